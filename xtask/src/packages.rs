//! Installing what is missing with the platform's own package manager.

use crate::command::{Done, on_path, output, run, say};
use std::process::Command;

/// One package manager: how it looks for news, how it installs.
struct Manager {
    program: &'static str,
    refresh: Option<&'static [&'static str]>,
    install: &'static [&'static str],
    needs_root: bool,
}

const MANAGERS: &[Manager] = &[
    Manager {
        program: "apt-get",
        refresh: Some(&["update"]),
        install: &["install", "--yes", "--no-install-recommends"],
        needs_root: true,
    },
    Manager {
        program: "dnf",
        refresh: None,
        install: &["install", "--assumeyes"],
        needs_root: true,
    },
    Manager {
        program: "apk",
        refresh: None,
        install: &["add", "--no-cache"],
        needs_root: true,
    },
    Manager {
        program: "pacman",
        refresh: None,
        install: &["--sync", "--refresh", "--noconfirm", "--needed"],
        needs_root: true,
    },
    Manager {
        program: "brew",
        refresh: None,
        install: &["install"],
        needs_root: false,
    },
];

/// Installs the first of `packages` that the manager has. Names of the same thing differ between systems.
pub(crate) fn install(packages: &[&str]) -> Done {
    let Some(manager) = MANAGERS
        .iter()
        .find(|manager| !on_path(manager.program).is_empty())
    else {
        let known: Vec<_> = MANAGERS.iter().map(|manager| manager.program).collect();
        return Err(format!(
            "no package manager that this program knows is here ({})",
            known.join(", ")
        ));
    };
    if let Some(refresh) = manager.refresh {
        run(manager.command()?.args(refresh))?;
    }
    let mut last = String::new();
    for package in packages {
        say(&format!("installing `{package}` with {}", manager.program));
        match run(manager.command()?.args(manager.install).arg(package)) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Manager {
    fn command(&self) -> Done<Command> {
        let mut command = Command::new(self.program);
        if self.needs_root && !is_root() {
            if on_path("sudo").is_empty() {
                return Err(format!("{} needs root, and there is no sudo", self.program));
            }
            command = Command::new("sudo");
            command.arg(self.program);
        }
        // Debian's packages ask questions otherwise.
        command.env("DEBIAN_FRONTEND", "noninteractive");
        Ok(command)
    }
}

pub(crate) fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
