//! Where PostgreSQL's programs are, and who may run them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "LEADER_TEST_POSTGRES_BIN";
/// Where Debian and its kin keep one folder per version, off the PATH.
const VERSIONS: &str = "/usr/lib/postgresql";

const NONE_FOUND: &str = "\
this needs a PostgreSQL server and found none. Do one of these:
  - `cargo xtask test`, which installs one and says what it does
  - install your system's package, `postgresql` on most: nothing of it needs to run or to be set up
  - set LEADER_TEST_POSTGRES_BIN to the folder that has `initdb` and `postgres`";

/// A folder with `initdb`, `postgres` and `pg_isready`.
pub(super) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The folder that the environment names, else that on the PATH, else the newest version installed.
    pub(super) fn find() -> Result<Self, String> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let folder = match variable(VARIABLE).map(PathBuf::from) {
            Some(named) if has_all(&named) => Some(named),
            Some(named) => {
                let named = named.display();
                return Err(format!(
                    "{VARIABLE} is {named}, which has no `initdb` and `postgres`"
                ));
            }
            None => on_path(&variable("PATH").unwrap_or_default())
                .or_else(|| newest(Path::new(VERSIONS))),
        };
        folder
            .map(|folder| Self { folder })
            .ok_or_else(|| NONE_FOUND.to_owned())
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// User and group to run them as, when this process is root.
    pub(super) fn unprivileged() -> Option<(u32, u32)> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = ["postgres", "nobody"]
            .iter()
            .find_map(|name| ids_of(name, &users));
        Some(found.unwrap_or_else(|| {
            panic!("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")
        }))
    }
}

/// Reads `name:x:uid:gid:...`.
fn ids_of(name: &str, users: &str) -> Option<(u32, u32)> {
    let mut lines = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.first() == Some(&name))?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

fn has_all(folder: &Path) -> bool {
    let programs = ["initdb", "postgres", "pg_isready"];
    programs
        .iter()
        .all(|program| folder.join(program).is_file())
}

fn on_path(path: &OsString) -> Option<PathBuf> {
    env::split_paths(path).find(|folder| has_all(folder))
}

fn newest(place: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(place).ok()?.flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders
        .filter(|folder| has_all(folder))
        .max_by_key(|folder| {
            let version = folder.parent().and_then(Path::file_name);
            let version = version.and_then(|version| version.to_str());
            version.and_then(|version| version.split('.').next()?.parse::<u32>().ok())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_numbers_are_read() {
        let users = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:,,,:/var:/bin/sh\n";
        assert_eq!(ids_of("postgres", users), Some((101, 104)));
        assert_eq!(ids_of("nobody", users), None);
    }

    #[test]
    fn the_newest_version_is_taken() {
        let place = tempfile::tempdir().expect("a directory");
        for version in ["9.6", "15", "17"] {
            let bin = place.path().join(version).join("bin");
            fs::create_dir_all(&bin).expect("a directory");
            for program in ["initdb", "postgres", "pg_isready"] {
                fs::write(bin.join(program), "").expect("a file");
            }
        }
        fs::create_dir_all(place.path().join("18/bin")).expect("a directory");
        let newest = newest(place.path()).expect("there are three");
        assert!(newest.ends_with("17/bin"), "{newest:?}");
    }
}
