//! The soak holds when nothing leaks, and is able to fail.

use std::process::{Command, Output};

fn soak(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    command
        .args(["--leases", "50", "--every", "100"])
        .args(args);
    command.output().unwrap()
}

fn told(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|told| String::from_utf8_lossy(told));
    format!("{out}\n{err}")
}

/// The line of the table that says so.
fn breaks(output: &Output, what: &str) -> bool {
    let line = |line: &str| line.starts_with(&format!("| {what} |")) && line.contains("**no**");
    told(output).lines().any(line)
}

#[test]
fn it_holds_when_nothing_leaks() {
    let output = soak(&["--seconds", "4"]);
    assert!(output.status.success(), "{}", told(&output));
}

#[test]
fn a_task_that_never_ends_is_caught() {
    let output = soak(&["--seconds", "4", "--leak", "task"]);
    assert!(!output.status.success(), "{}", told(&output));
    for what in ["tasks", "tasks, after all"] {
        assert!(breaks(&output, what), "{what}\n{}", told(&output));
    }
}

#[test]
fn memory_that_is_never_given_back_is_caught() {
    let output = soak(&["--seconds", "4", "--leak", "memory"]);
    assert!(!output.status.success(), "{}", told(&output));
    assert!(breaks(&output, "heap, bytes"), "{}", told(&output));
}
