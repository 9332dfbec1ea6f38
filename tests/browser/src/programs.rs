//! The programs that the tests run: those that `cargo build --examples` has made.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The table of what `cargo run --example timeline` says of a scenario, its head among the rows.
///
/// # Panics
///
/// When it fails.
#[must_use]
pub fn timeline(scenario: &str) -> Vec<Vec<String>> {
    let told = Command::new(example("timeline")).arg(scenario).output();
    let told = told.expect("the timeline runs").stdout;
    let text = String::from_utf8(told).expect("it tells text");
    // The plan, the table and the lanes, with an empty line between them.
    let table = text.split("\n\n").nth(1).expect("a table");
    table.lines().map(cells).collect()
}

/// Two spaces are between the cells, or more; what is empty on the page is a dash.
fn cells(line: &str) -> Vec<String> {
    line.split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .map(|cell| cell.replace('-', if cell == "-" { "" } else { "-" }))
        .collect()
}
