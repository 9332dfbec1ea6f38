//! The project's chores, the same for people and for CI: `cargo xtask --help`.

mod bench;
mod browser;
mod chaos;
mod ci;
mod clock;
mod command;
mod docker;
mod fuzz;
mod matrix;
mod packages;
mod postgres;
mod releases;
mod servers;
mod sim;
mod soak;
mod test;
mod tree;

use browser::Pictures;
use matrix::Extent;
use std::process::ExitCode;

const HELP: &str = "\
The project's chores.

Usage: cargo xtask <command>

Commands:
  test [-- <args>]  Run unit, integration and documentation tests. Finds the server that they need, or installs one.
                    <args> go to the test runner; documentation tests are then left out.
  test --servers all|NAME [-- <args>]
                    Run what touches a server on each server of several releases, or on one (`valkey-9.1`), once in each
                    version of the protocol, and show a table.
  servers           Fetch those servers and show them.
  ci                Everything that must hold before a change lands: format, clippy, test, rustdoc, licences and bans,
                    minimum Rust version, layering, no ignored tests.
  docker            Run a part of the tests on servers in containers, on an engine that runs or that can be started.
  sim [--seeds N] [--from S] | [--seed X [--trace]] | [--mutants [part of a name]]
                    Play the simulation: many seeds, or one. Or make wrong changes and see them caught. With `--topology
                    quorum` on several servers of which a majority decides.
  fuzz [TARGET] [--seconds N]
                    Throw whatever a fuzzer thinks of at names, options, durations, replies, messages and URLs, or at one
                    of them; a minute each if nothing is said. Needs cargo-fuzz.
  bench [P1 P3 ..]  Measure what the library costs, in ratios to floors and peers of the same run, and show a table with the
                    goals. All of it takes some minutes and is written to benches/RESULTS.md; with some named, it is not.
  chaos --topology single|replicated|quorum|cluster|all [--seconds N] [--seed X] [--json FILE] [--page FILE]
                    Several worker processes on real servers, while both are killed, frozen, cut off and slowed; a checker
                    reads their logs afterwards. 60 s each, unless it is said otherwise; `chaos --help` has the rest.
  bench poll        Measure what the guard adds to a poll. Above two calls of `Instant::now` is a failure.
  soak [--minutes N] [--leases N] [--json FILE] [--write]
                    Hold 5000 leases for ten minutes, or as said, while others come and go: nothing may be lost or grow.
                    With `--write` the figures are put into benches/SOAK.md.
  browser [--pictures] [-- <args>]
                    Test the workbench's page in Chromium, which is found or installed. `--pictures` keeps those of
                    docs/workbench. <args> go to the tests: a part of a test's name, say.
  audit             Ask the advisory database about the dependencies (needs the network).
  help, --help      Show this text.

Where tests find their server is said in CONTRIBUTING.md.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["test"] => test::run(&[]),
        ["test", "--", rest @ ..] => test::run(rest),
        ["test", "--servers", servers] => matrix::run(servers, Extent::All, &[]),
        ["test", "--servers", servers, "--", rest @ ..] => matrix::run(servers, Extent::All, rest),
        ["servers"] => releases::fetch(),
        ["ci"] => ci::run(),
        ["docker"] => docker::run(),
        ["bench", "poll"] => bench::poll(),
        ["bench", ids @ ..] => bench::figures(ids),
        ["browser"] => browser::run(Pictures::NotTaken, &[]),
        ["browser", "--pictures"] => browser::run(Pictures::Kept, &[]),
        ["browser", "--pictures", "--", rest @ ..] => browser::run(Pictures::Kept, rest),
        ["browser", "--", rest @ ..] => browser::run(Pictures::NotTaken, rest),
        ["audit"] => ci::audit(),
        ["fuzz", rest @ ..] => fuzz::play(rest),
        ["sim", rest @ ..] => sim::play(rest),
        ["soak", rest @ ..] => soak::run(rest),
        ["chaos", rest @ ..] => chaos::play(rest),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        [] => Err(format!("which command?\n\n{HELP}")),
        ["test", rest @ ..] => {
            let rest = rest.join(" ");
            Err(format!(
                "arguments of the test runner come after `--`: cargo xtask test -- {rest}"
            ))
        }
        [known @ ("ci" | "docker" | "audit" | "servers"), ..] => {
            Err(format!("`{known}` takes no arguments"))
        }
        [unknown, ..] => Err(format!("there is no command `{unknown}`\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
