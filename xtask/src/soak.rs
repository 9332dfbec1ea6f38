//! `cargo xtask soak`: thousands of leases held for minutes, beside which others come and go.

use crate::command::{self, Done, cargo};

/// Where the figures stand in the repository.
const RECORD: &str = "benches/SOAK.md";

pub(crate) fn run(args: &[&str]) -> Done {
    let mut command = cargo(&[
        "run",
        "--locked",
        "--release",
        "--package",
        "leader-benches",
    ]);
    command.args(["--bin", "soak", "--"]);
    for arg in args {
        command.arg(arg);
        if *arg == "--write" {
            command.arg(RECORD);
        }
    }
    command::run(&mut command)
}
