//! `cargo xtask test --servers ..`: what touches a server, on each server and in each version of the protocol.

use crate::command::{self, Done, cargo, say};
use crate::releases::{self, Release};
use crate::test::{self, FEATURES, Runner};
use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

const RESP: &str = "LEADER_TEST_RESP";

/// Those of the protocol.
const VERSIONS: [&str; 2] = ["2", "3"];

/// Which tests are run on each server.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    /// All that touch a server: those of the harness's package but for the stories on the store in memory.
    All,
    /// What is about the server's own answers: the test programs named after the store, on each server once, by one version
    /// of the protocol and the other in turn.
    Store,
}

/// One server and one version of the protocol, and how the tests went there.
struct Round<'a> {
    release: &'a Release,
    resp: &'a str,
    done: Done,
    time: Duration,
}

/// Runs them all, whatever fails, and shows a table.
pub(crate) fn run(servers: &str, extent: Extent, args: &[&str]) -> Done {
    let releases = releases::named(servers)?;
    let chosen = env::var(RESP).ok().filter(|resp| !resp.is_empty());
    let resps = chosen.map_or_else(|| VERSIONS.map(str::to_owned).to_vec(), |resp| vec![resp]);
    let runner = test::runner();
    let mut rounds = Vec::new();
    for (index, resp) in played(releases.len(), &resps, extent) {
        let release = &releases[index];
        say(&format!("on {} by RESP{resp}", release.version));
        let start = Instant::now();
        let mut tests = command(runner, extent, args);
        tests
            .env("LEADER_TEST_BACKEND", "binary")
            .env("LEADER_TEST_REDIS_SERVER", &release.program)
            .env(RESP, resp);
        rounds.push(Round {
            release,
            resp,
            done: command::run(&mut tests),
            time: start.elapsed(),
        });
    }
    println!();
    for round in &rounds {
        println!(
            "{:>6}  {:>7.1} s  {:<12} RESP{}  {}",
            if round.done.is_ok() { "ok" } else { "FAILED" },
            round.time.as_secs_f64(),
            round.release.name,
            round.resp,
            round.release.version
        );
    }
    match rounds.iter().filter(|round| round.done.is_err()).count() {
        0 => Ok(()),
        failed => Err(format!(
            "the tests failed in {failed} of {} rounds",
            rounds.len()
        )),
    }
}

/// The rounds: which of so many servers, and by which version of the protocol.
fn played(servers: usize, resps: &[String], extent: Extent) -> Vec<(usize, &str)> {
    let all = (0..servers).flat_map(|server| {
        let each = resps.iter().enumerate();
        each.map(move |(version, resp)| (server, version, resp.as_str()))
    });
    let is_played = |(server, version, _): &(usize, usize, &str)| match extent {
        Extent::All => true,
        Extent::Store => *version == server % resps.len(),
    };
    let played = all.filter(is_played);
    played.map(|(server, _, resp)| (server, resp)).collect()
}

fn command(runner: Runner, extent: Extent, args: &[&str]) -> Command {
    match runner {
        Runner::Nextest => {
            // The build of `cargo xtask test`, so that nothing is built twice.
            let mut tests = cargo(&["nextest", "run"]);
            tests.args(["--features", FEATURES]);
            let filter = match extent {
                Extent::All => {
                    "package(leader-redis) | package(leader-tests) - test(/(^|::)local::/)"
                }
                Extent::Store => "package(leader-tests) & binary(/^(conformance_)?redis/)",
            };
            let quiet = [
                "--no-fail-fast",
                "--status-level=fail",
                "--final-status-level=fail",
            ];
            tests.args(quiet).args(["-E", filter]).args(args);
            tests
        }
        Runner::Cargo => {
            let mut tests = cargo(&["test", "--no-fail-fast", "--package", "leader-tests"]);
            match extent {
                Extent::All => tests.args(["--package", "leader-redis", "--lib", "--tests"]),
                Extent::Store => tests.args(["--test", "conformance_redis", "--test", "redis_*"]),
            };
            tests.args(args).args(["--", "--skip", "local::"]);
            tests
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn h05_every_release_is_played_in_both_versions_of_the_protocol() {
        let resps = VERSIONS.map(str::to_owned);
        let all = [(0, "2"), (0, "3"), (1, "2"), (1, "3")];
        assert_eq!(played(2, &resps, Extent::All), all);
        // Each server once, and each version on some of them.
        let store = [(0, "2"), (1, "3"), (2, "2"), (3, "3")];
        assert_eq!(played(4, &resps, Extent::Store), store);

        // The releases that people are told of are those that are played, and the first that will do is among them.
        let text = |file| fs::read_to_string(command::root().join(file)).unwrap();
        let told = text("tests/PROMISES.md") + &text("CONTRIBUTING.md");
        let names = releases::names();
        assert_eq!(names, ["redis-6.2", "redis-8.2", "valkey-9.1"]);
        for name in &names {
            let (_, series) = name.split_once('-').unwrap();
            assert!(told.matches(series).count() > 1, "{name} is not told of");
        }
        assert!(text("README.md").contains("Redis or Valkey (6.2 or later)"));
    }
}
