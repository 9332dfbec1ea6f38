//! The programs that the tests run: those that `cargo build --examples` has made.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The program of that example.
///
/// # Panics
///
/// When it was not built.
pub(crate) fn example(name: &str) -> PathBuf {
    let own = env::current_exe().expect("a test has a path");
    let target = own.ancestors().nth(2).unwrap_or(Path::new(""));
    let program = target.join("examples").join(name);
    assert!(
        program.is_file(),
        "there is no {}; `cargo xtask browser` builds it",
        program.display()
    );
    program
}

/// What `cargo run --example timeline` says of a scenario, as the page's table has it: tick, candidate, fencing token,
/// remaining, result.
///
/// # Panics
///
/// When it fails.
#[must_use]
pub fn timeline(scenario: &str) -> Vec<Vec<String>> {
    let told = Command::new(example("timeline"))
        .args([scenario, "--json"])
        .output();
    let told = told.expect("the timeline runs").stdout;
    let text = String::from_utf8(told).expect("it tells text");
    let cell = |row: &Value, field: &str| match &row[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).expect("a line is JSON");
            ["tick", "candidate", "token", "remaining", "result"]
                .map(|field| cell(&row, field))
                .to_vec()
        })
        .collect()
}
