//! `cargo xtask bench`: what the library costs.

use crate::command::{self, Done, cargo};

/// What the guard adds to a poll, in calls of `Instant::now`. Fails above two; each figure is the best of many short
/// rounds of one run, so that a busy machine does not decide.
pub(crate) fn poll() -> Done {
    command::run(&mut cargo(&[
        "run",
        "--locked",
        "--release",
        "--package",
        "leader-core",
        "--example",
        "poll_cost",
    ]))
}
