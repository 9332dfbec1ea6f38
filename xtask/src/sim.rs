//! `cargo xtask sim`: plays the simulation, or, with `--mutants`, shows that it can fail.

mod mutants;
mod wrong;

use std::path::Path;
use std::process::Command;

use crate::command::{self, Done, cargo, root, run};

/// Plays seeds, or makes wrong changes; see the help.
pub(crate) fn play(args: &[&str]) -> Done {
    match args {
        ["--mutants"] => mutants::all(""),
        ["--mutants", only] => mutants::all(only),
        args => {
            let mut command = build(&root(), None)?;
            command.args(args);
            let status = command.status();
            let status =
                status.map_err(|error| format!("the simulation does not start: {error}"))?;
            // It has said itself what is wrong.
            if status.success() {
                Ok(())
            } else {
                Err("the simulation did not end clean".to_owned())
            }
        }
    }
}

/// Builds the simulation of the workspace at `root` and gives the command that plays it.
fn build(root: &Path, target: Option<&Path>) -> Done<Command> {
    let mut cargo = cargo(&[
        "build",
        "--quiet",
        "--profile",
        "sim",
        "--package",
        "leader-sim",
    ]);
    cargo.current_dir(root);
    if let Some(target) = target {
        cargo.env("CARGO_TARGET_DIR", target);
        // Built for one wrong change, which a few seeds find out: building takes longer than playing.
        cargo.env("CARGO_PROFILE_SIM_OPT_LEVEL", "0");
        cargo.env("CARGO_PROFILE_SIM_CODEGEN_UNITS", "64");
    }
    run(&mut cargo)?;
    let target = target.map_or_else(|| command::target(root), |target| Ok(target.to_owned()))?;
    Ok(Command::new(target.join("sim").join("sim")))
}
