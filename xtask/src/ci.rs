//! `cargo xtask ci` and `cargo xtask audit`.

use crate::bench;
use crate::browser;
use crate::chaos;
use crate::command::{self, Done, cargo, say, succeeds};
use crate::matrix::{self, Extent};
use crate::test::{self, DOCKER_FEATURE, FEATURES, SERVICE, TLS_FEATURE};
use crate::tree;
use std::time::{Duration, Instant};

const DENY_VERSION: &str = "0.20.2";

type Step = (&'static str, fn() -> Done);

/// In the order in which a person wants to know: the quick ones first. No step needs an earlier one, so all are run.
const STEPS: &[Step] = &[
    ("format", format),
    ("no ignored tests", tree::check_no_ignored_tests),
    ("layers", tree::check_layers),
    ("rust-version of dependencies", tree::check_rust_versions),
    ("clippy", clippy),
    ("clippy, leader-core alone", clippy_core),
    ("clippy, metrics and the service", clippy_metrics),
    ("clippy, leader-redis with TLS", clippy_tls),
    (
        "clippy, tests in containers and with TLS",
        clippy_optional_tests,
    ),
    ("benchmarks and the browser's tests", measuring),
    ("rustdoc", rustdoc),
    ("bans, licences and sources", deny),
    ("tests", tests),
    ("chaos, a minute of it", chaos::in_ci),
    ("cost of a poll", bench::show_poll),
    ("the workbench in a browser", browser::in_ci),
    ("tests with TLS", tests_with_tls),
    ("tests on each server", tests_on_each_server),
];

pub(crate) fn run() -> Done {
    let mut results = Vec::new();
    for (name, step) in STEPS {
        println!("\n==> {name}");
        let start = Instant::now();
        let result = step();
        let time = start.elapsed();
        match &result {
            Ok(()) => println!("==> {name}: ok, {}", seconds(time)),
            Err(why) => println!("==> {name}: FAILED, {}: {why}", seconds(time)),
        }
        results.push((name, result.is_ok(), time));
    }
    println!("\n==> all steps");
    for (name, is_ok, time) in &results {
        println!(
            "{:>6}  {:>6}  {name}",
            if *is_ok { "ok" } else { "FAILED" },
            seconds(*time)
        );
    }
    match results.iter().filter(|(_, is_ok, _)| !is_ok).count() {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} steps failed", results.len())),
    }
}

/// `cargo xtask audit`: apart from `ci`, since a new advisory is no fault of the change at hand.
pub(crate) fn audit() -> Done {
    ensure_deny()?;
    command::run(&mut cargo(&["deny", "check", "advisories"]))
}

fn format() -> Done {
    ensure_component("rustfmt", "fmt")?;
    command::run(&mut cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Done {
    lint(&["--all-targets", "--features", FEATURES])
}

fn clippy_core() -> Done {
    lint(&["--package", "leader-core", "--no-default-features"])
}

fn clippy_metrics() -> Done {
    lint(&[
        "--package",
        "leader-core",
        "--package",
        SERVICE,
        "--all-targets",
        "--features",
        "leader-core/metrics",
    ])
}

fn clippy_tls() -> Done {
    // The one TLS library that needs no C compiler.
    lint(&[
        "--package",
        "leader-redis",
        "--features",
        "enable-rustls-ring",
    ])
}

fn clippy_optional_tests() -> Done {
    let features = format!("{DOCKER_FEATURE},{TLS_FEATURE}");
    lint(&[
        "--package",
        "leader-tests",
        "--all-targets",
        "--features",
        &features,
    ])
}

/// What is run by hand must not rot meanwhile: it is linted, and what the figures are reckoned with is tested.
fn measuring() -> Done {
    lint(&[
        "--package",
        "leader-benches",
        "--package",
        "leader-browser-tests",
        "--all-targets",
    ])?;
    let mut tests = test::runner().command();
    command::run(tests.args([
        "--package",
        "leader-benches",
        "--no-default-features",
        "--lib",
        "--bins",
    ]))
}

fn lint(scope: &[&str]) -> Done {
    ensure_component("clippy", "clippy")?;
    command::run(
        cargo(&["clippy", "--locked"])
            .args(scope)
            .args(["--", "-D", "warnings"]),
    )
}

fn rustdoc() -> Done {
    let mut command = cargo(&[
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
        "--features",
        FEATURES,
    ]);
    command::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn deny() -> Done {
    ensure_deny()?;
    // The graphs would be most of this chore's output.
    let check = ["deny", "check", "--hide-inclusion-graph"];
    command::run(cargo(&check).args(["bans", "licenses", "sources"]))
}

fn tests() -> Done {
    test::run(&[])
}

/// Apart from the others: TLS is some 20 more crates, and another build of what stands on them.
fn tests_with_tls() -> Done {
    let mut tests = test::runner().command();
    command::run(tests.args([
        "--package",
        "leader-tests",
        "--features",
        TLS_FEATURE,
        "--test",
        "redis_tls",
    ]))
}

fn tests_on_each_server() -> Done {
    matrix::run("all", Extent::Store, &[])
}

fn ensure_component(component: &str, subcommand: &str) -> Done {
    if succeeds(&mut cargo(&[subcommand, "--version"])) {
        return Ok(());
    }
    say(&format!("installing {component} with rustup"));
    command::run(std::process::Command::new("rustup").args(["component", "add", component]))
}

fn ensure_deny() -> Done {
    if succeeds(&mut cargo(&["deny", "--version"])) {
        return Ok(());
    }
    say(&format!(
        "cargo-deny is not here: building {DENY_VERSION}, once, for some minutes"
    ));
    command::run(&mut cargo(&[
        "install",
        "cargo-deny",
        "--locked",
        "--version",
        DENY_VERSION,
    ]))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
