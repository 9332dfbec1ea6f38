//! `cargo xtask chaos`: real servers and real processes, with everything going wrong.

use std::process::Command;

use crate::command::{self, Done, cargo, root, run};

/// How long each topology is played in CI, in seconds: a minute in all.
const IN_CI: &str = "15";

/// Plays what is asked for; see `cargo xtask chaos --help`.
pub(crate) fn play(args: &[&str]) -> Done {
    run(&mut cargo(&[
        "build",
        "--locked",
        "--package",
        "leader-chaos",
    ]))?;
    let program = command::target(&root())?.join("debug").join("chaos");
    let status = Command::new(program).args(args).status();
    let status = status.map_err(|error| format!("the chaos does not start: {error}"))?;
    // It has said itself what is wrong.
    if status.success() {
        Ok(())
    } else {
        Err("the chaos did not end clean".to_owned())
    }
}

/// A minute of it.
pub(crate) fn in_ci() -> Done {
    play(&["--topology", "all", "--seconds", IN_CI])
}
