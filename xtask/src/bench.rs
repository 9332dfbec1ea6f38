//! `cargo xtask bench`: what the library costs.

use crate::command::{self, Done, cargo, root};
use std::process::Command;

/// All figures, into `benches/RESULTS.md`; or some, for people to read.
pub(crate) fn figures(ids: &[&str]) -> Done {
    // P8 is an example of `leader-core`'s, which the benchmarks run.
    command::run(&mut cargo(&[
        "build",
        "--locked",
        "--release",
        "--package",
        "leader-core",
        "--example",
        "poll_cost",
    ]))?;
    let mut bench = cargo(&[
        "run",
        "--locked",
        "--release",
        "--package",
        "leader-benches",
        "--",
    ]);
    if ids.is_empty() {
        bench.arg("--write").arg(root().join("benches/RESULTS.md"));
    }
    command::run(bench.args(ids))
}

/// What the guard adds to a poll, in calls of `Instant::now`. Fails above two; each figure is the best of many short
/// rounds of one run, so that a busy machine does not decide, or seldom.
pub(crate) fn poll() -> Done {
    command::run(poll_cost().args(["--", "--judge"]))
}

/// The same, for people to read: no figure fails a run that others share the machine with.
pub(crate) fn show_poll() -> Done {
    command::run(&mut poll_cost())
}

fn poll_cost() -> Command {
    cargo(&[
        "run",
        "--locked",
        "--release",
        "--package",
        "leader-core",
        "--example",
        "poll_cost",
    ])
}
