//! Where a test's server comes from.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

const BACKEND: &str = "LEADER_TEST_BACKEND";
const URL: &str = "LEADER_TEST_REDIS_URL";
const SERVER: &str = "LEADER_TEST_REDIS_SERVER";

const NONE_FOUND: &str = "\
the tests need a Redis or Valkey server and found none. Do one of these:
  - `cargo xtask test`, which installs one and says what it does
  - install `redis-server` or `valkey-server` so that it is on the PATH
  - set LEADER_TEST_REDIS_SERVER to the path of its binary
  - set LEADER_TEST_REDIS_URL to a server whose data may be deleted (tests that kill their server fail there)
  - with Docker: run the tests with `--features leader-tests/testcontainers`";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A server that is there already, by its URL.
    Shared(String),
    /// A server binary, started for each test.
    Binary(PathBuf),
    /// A container for each test.
    #[cfg(feature = "testcontainers")]
    Docker,
}

#[cfg(feature = "testcontainers")]
const DOCKER: Option<Source> = Some(Source::Docker);
#[cfg(not(feature = "testcontainers"))]
const DOCKER: Option<Source> = None;

/// The source that the environment names, else the first that is there.
pub(super) fn of_this_process() -> Source {
    let found = choose(|name| env::var_os(name).filter(|value| !value.is_empty()));
    found.unwrap_or_else(|what_to_do| panic!("{what_to_do}"))
}

/// Whether servers can be started, killed and replaced here, or why not.
pub(super) fn starts_servers() -> Result<(), String> {
    match choose(|name| env::var_os(name).filter(|value| !value.is_empty()))? {
        Source::Shared(_) => Err(format!(
            "{URL} names a server, which cannot be killed and replaced"
        )),
        Source::Binary(_) => Ok(()),
        #[cfg(feature = "testcontainers")]
        Source::Docker => Ok(()),
    }
}

fn choose(var: impl Fn(&str) -> Option<OsString>) -> Result<Source, String> {
    let text = |name| var(name).map(|value| value.to_string_lossy().into_owned());
    let binary = || match var(SERVER).map(PathBuf::from) {
        Some(named) if named.is_file() => Ok(Some(named)),
        Some(named) => Err(format!("{SERVER} is {}, which is no file", named.display())),
        None => Ok(on_path(&var("PATH").unwrap_or_default())),
    };
    match text(BACKEND).as_deref() {
        None => match (text(URL), binary()?) {
            (Some(url), _) => Ok(Source::Shared(url)),
            (None, Some(program)) => Ok(Source::Binary(program)),
            (None, None) => DOCKER.ok_or_else(|| NONE_FOUND.to_owned()),
        },
        Some("url") => text(URL).map(Source::Shared).ok_or_else(|| format!("{BACKEND}=url needs {URL}")),
        Some("binary") => binary()?.map(Source::Binary).ok_or_else(|| NONE_FOUND.to_owned()),
        Some("docker") => DOCKER.ok_or_else(|| {
            format!("{BACKEND}=docker needs the tests to be built with `--features leader-tests/testcontainers`")
        }),
        Some(other) => Err(format!("{BACKEND} is url, binary or docker, not {other:?}")),
    }
}

fn on_path(path: &OsString) -> Option<PathBuf> {
    let programs = ["redis-server", "valkey-server"];
    programs.iter().find_map(|program| {
        env::split_paths(path)
            .map(|dir| dir.join(program))
            .find(|file| file.is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn choose_in(vars: &[(&str, &str)]) -> Result<Source, String> {
        choose(|name| {
            vars.iter()
                .find(|(given, _)| *given == name)
                .map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_url_comes_before_the_binary() {
        let dir = tempfile::tempdir().expect("a directory for a stand-in binary");
        let program = dir.path().join("valkey-server");
        fs::write(&program, "").expect("a stand-in binary");
        let path = dir.path().to_str().expect("a path in UTF-8");

        let both = [(URL, "redis://a"), ("PATH", path)];
        assert_eq!(choose_in(&both), Ok(Source::Shared("redis://a".into())));
        assert_eq!(
            choose_in(&[("PATH", path)]),
            Ok(Source::Binary(program.clone()))
        );
        let forced = [(BACKEND, "binary"), (URL, "redis://a"), ("PATH", path)];
        assert_eq!(choose_in(&forced), Ok(Source::Binary(program)));
    }

    #[test]
    fn a_wrong_choice_says_what_is_right() {
        assert!(
            choose_in(&[(BACKEND, "podman")])
                .is_err_and(|text| text.contains("url, binary or docker"))
        );
        assert!(choose_in(&[(BACKEND, "url")]).is_err_and(|text| text.contains(URL)));
        assert!(
            choose_in(&[(SERVER, "/no/such/server")])
                .is_err_and(|text| text.contains("/no/such/server"))
        );
    }

    #[cfg(not(feature = "testcontainers"))]
    #[test]
    fn no_server_is_a_failure_that_helps() {
        assert!(choose_in(&[]).is_err_and(|text| text.contains("cargo xtask test")));
        assert!(
            choose_in(&[(BACKEND, "docker")]).is_err_and(|text| text.contains("testcontainers"))
        );
    }
}
