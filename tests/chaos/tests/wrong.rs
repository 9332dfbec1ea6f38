//! Real runs with a worker that is wrong: the checker must find it out.

use std::process::Command;

/// A run is short, and the worker may have had no chance to be wrong in it.
const RUNS: u64 = 6;

fn is_caught(wrong: &str, rule: &str) {
    let mut said = String::new();
    for seed in 1..=RUNS {
        let mut chaos = Command::new(env!("CARGO_BIN_EXE_chaos"));
        chaos.args([
            "--topology",
            "single",
            "--seconds",
            "5",
            "--seed",
            &seed.to_string(),
        ]);
        let output = chaos.args(["--wrong", wrong]).output().expect("it starts");
        said = String::from_utf8_lossy(&output.stdout).into_owned();
        let logs = said.lines().find_map(|line| line.split_once("logs in "));
        if let Some((_, dir)) = logs {
            // Kept for people, of whom there are none here.
            let _ = std::fs::remove_dir_all(dir);
        }
        if said.contains(&format!("VIOLATION of {rule}")) {
            assert_eq!(output.status.code(), Some(1), "{said}");
            return;
        }
    }
    panic!("{wrong}: not caught in {RUNS} runs, of which the last was\n{said}");
}

#[test]
fn a_worker_that_does_not_look_at_its_lease_is_caught() {
    is_caught("deaf", "exclusion");
}

#[test]
fn a_worker_that_writes_past_the_fence_is_caught() {
    is_caught("unfenced", "stale write");
}

#[test]
fn a_worker_that_keeps_its_leases_is_caught() {
    is_caught("hoarding", "recovery");
}
