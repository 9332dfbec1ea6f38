//! `cargo xtask test`.

use crate::clock;
use crate::command::{self, Done, cargo, say, succeeds};
use crate::postgres;
use crate::servers::{self, Server};
use std::process::Command;

/// What is built for tests. Not all features: those of `leader-redis` are three TLS libraries, two of them in C.
pub(crate) const FEATURES: &str =
    "leader-core/serde,leader-core/testing,leader-examples/postgres,leader-tests-postgres/postgres";
/// Built and tested by a step of its own: the web server, and what it is tested with, would double the tree.
pub(crate) const SERVICE: &str = "leader-axum-service";
/// The harness's part for containers.
pub(crate) const DOCKER_FEATURE: &str = "leader-tests/testcontainers";
/// The harness's part for servers with TLS.
pub(crate) const TLS_FEATURE: &str = "leader-tests/tls";

pub(crate) fn run(args: &[&str]) -> Done {
    let (features, harness) = match servers::ensure()? {
        Server::Found => (FEATURES.to_owned(), ""),
        Server::Docker => (format!("{FEATURES},{DOCKER_FEATURE}"), DOCKER_FEATURE),
    };
    postgres::ensure()?;
    clock::ensure();
    let mut failures = Vec::new();
    let runner = runner();
    if let Runner::Cargo = runner {
        // As programs, which tests run; cargo makes tests of them only.
        let mut examples = cargo(&["build", "--examples"]);
        failures.extend(command::run(examples.args(["--features", &features])).err());
    }
    let mut tests = runner.command();
    tests
        .args(["--features", &features, "--no-fail-fast"])
        .args(args);
    failures.extend(command::run(&mut tests).err());
    if args.is_empty() {
        // What the engine counts, and who listens; without the feature it is what most people run.
        let mut metrics = runner.command();
        let one = ["--package", "leader-core", "--features", "metrics"];
        metrics
            .args(one)
            .args(["--test", "metrics", "--test", "spans"]);
        failures.extend(command::run(&mut metrics).err());
        let mut service = runner.command();
        let one = ["--package", SERVICE, "--features", harness];
        failures.extend(command::run(service.args(one)).err());
        let documentation = ["test", "--doc", "--features", &features, "--no-fail-fast"];
        failures.extend(command::run(&mut cargo(&documentation)).err());
    } else {
        say("arguments were given, so the metrics, the service and documentation are left out");
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
