//! Where, when and of what figures were measured.

use std::fs;
use std::process::Command;

/// Crates whose versions matter to the figures.
const CRATES: [&str; 4] = ["fred", "redis", "rslock", "tokio"];
const LOCK: &str = include_str!("../../Cargo.lock");

/// A list, in Markdown.
pub(crate) fn lines() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let server = said_by("redis-server", &["--version"]);
    let server = server.split(" sha=").next().unwrap_or_default();
    let crates: Vec<String> = CRATES
        .iter()
        .map(|name| format!("{name} {}", version(name).unwrap_or("?")))
        .collect();
    [
        format!(
            "- date: {}",
            said_by("date", &["-u", "+%Y-%m-%d %H:%M UTC"])
        ),
        format!(
            "- commit: {}",
            said_by("git", &["describe", "--always", "--dirty", "--exclude=*"])
        ),
        format!(
            "- machine: {cores} cores, {}, {}",
            processor(),
            said_by("uname", &["-sr"])
        ),
        format!("- server: {server}"),
        format!("- {}, release build", said_by("rustc", &["--version"])),
        format!("- crates: {}", crates.join(", ")),
    ]
    .map(|line| line + "\n")
    .concat()
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": "));
    model.map_or_else(
        || std::env::consts::ARCH.to_owned(),
        |(_, model)| model.to_owned(),
    )
}

fn said_by(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    said.unwrap_or_else(|_| format!("{program} is not here"))
}

/// As it was built.
fn version(name: &str) -> Option<&'static str> {
    let entry = LOCK
        .split_once(&format!("name = \"{name}\"\nversion = \""))?
        .1;
    entry.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        for name in CRATES {
            let version = version(name).unwrap_or_default();
            assert!(version.split('.').count() >= 3, "{name} {version}");
        }
        assert_eq!(version("no-such-crate"), None);
    }
}
