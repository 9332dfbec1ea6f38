//! The server that the tests need. The harness finds it by the same rules; here it is made sure that it will.

use crate::command::{Done, on_path, output, say, succeeds};
use crate::packages;
use std::env;
use std::path::PathBuf;
use std::process::Command;

const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];
/// What the managers call it, the most common name first.
const PACKAGES: [&str; 4] = ["redis-server", "redis", "valkey", "valkey-server"];

/// Where the tests get their server from.
pub(crate) enum Server {
    /// The environment names it, or a binary is on the PATH: the harness needs no help.
    Found,
    /// Only an engine is here: the harness must be built with its part for containers.
    Docker,
}

/// Finds a server or installs one, and says which.
pub(crate) fn ensure() -> Done<Server> {
    if let Some(backend) = variable("LEADER_TEST_BACKEND") {
        say(&format!("LEADER_TEST_BACKEND asks for {backend}"));
        return Ok(if backend == "docker" {
            Server::Docker
        } else {
            Server::Found
        });
    }
    if variable("LEADER_TEST_REDIS_URL").is_some() {
        say(
            "the tests use the server of LEADER_TEST_REDIS_URL; those that kill their server will fail there",
        );
        return Ok(Server::Found);
    }
    if let Some(program) = binary() {
        let version = output(Command::new(&program).arg("--version")).unwrap_or_default();
        say(&format!(
            "the tests use {}: {}",
            program.display(),
            version.trim()
        ));
        return Ok(Server::Found);
    }
    say("the tests need a Redis or Valkey server, and none is on the PATH");
    let why = match packages::install(&PACKAGES) {
        Ok(()) => match binary() {
            Some(program) => {
                say(&format!("the tests use {}", program.display()));
                return Ok(Server::Found);
            }
            None => "the package has no server on the PATH".to_owned(),
        },
        Err(why) => why,
    };
    say(&format!(
        "a server cannot be installed ({why}); is there Docker?"
    ));
    if succeeds(Command::new("docker").arg("info")) {
        say("yes: the tests use containers");
        return Ok(Server::Docker);
    }
    Err(
        "the tests need a server: install redis-server or valkey-server, or start Docker, or set \
         LEADER_TEST_REDIS_URL or LEADER_TEST_REDIS_SERVER (see CONTRIBUTING.md)"
            .to_owned(),
    )
}

/// The server binary that the harness would start.
pub(crate) fn binary() -> Option<PathBuf> {
    let named = variable("LEADER_TEST_REDIS_SERVER").map(PathBuf::from);
    named.or_else(|| {
        PROGRAMS
            .iter()
            .find_map(|program| on_path(program).into_iter().next())
    })
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
