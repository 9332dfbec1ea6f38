//! `cargo xtask test`.

use crate::clock;
use crate::command::{self, Done, cargo, say, succeeds};
use crate::servers::{self, Server};
use std::process::Command;

/// What is built for tests. Not all features: those of `leader-redis` are three TLS libraries, two of them in C.
pub(crate) const FEATURES: &str = "leader-core/serde,leader-core/testing";
/// The harness's part for containers.
pub(crate) const DOCKER_FEATURE: &str = "leader-tests/testcontainers";
/// The harness's part for servers with TLS.
pub(crate) const TLS_FEATURE: &str = "leader-tests/tls";

pub(crate) fn run(args: &[&str]) -> Done {
    let features = match servers::ensure()? {
        Server::Found => FEATURES.to_owned(),
        Server::Docker => format!("{FEATURES},{DOCKER_FEATURE}"),
    };
    clock::ensure();
    let mut failures = Vec::new();
    let mut tests = runner().command();
    tests
        .args(["--workspace", "--features", &features, "--no-fail-fast"])
        .args(args);
    failures.extend(command::run(&mut tests).err());
    if args.is_empty() {
        let documentation = [
            "test",
            "--doc",
            "--workspace",
            "--features",
            &features,
            "--no-fail-fast",
        ];
        failures.extend(command::run(&mut cargo(&documentation)).err());
    } else {
        say("arguments were given, so documentation tests are left out");
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n       "))
    }
}

/// What runs unit and integration tests.
#[derive(Clone, Copy)]
pub(crate) enum Runner {
    Nextest,
    Cargo,
}

/// The runner that this machine has.
pub(crate) fn runner() -> Runner {
    if succeeds(&mut cargo(&["nextest", "--version"])) {
        say("running the tests with cargo-nextest");
        return Runner::Nextest;
    }
    say("cargo-nextest is not installed: running the tests with `cargo test`");
    Runner::Cargo
}

impl Runner {
    pub(crate) fn command(self) -> Command {
        match self {
            Self::Nextest => cargo(&["nextest", "run"]),
            Self::Cargo => cargo(&["test", "--lib", "--bins", "--tests", "--examples"]),
        }
    }
}
