//! `PROMISES.md` is true: each guarantee and each scenario names what shows it, and all of that is there.
#![allow(missing_docs, reason = "a test")]

mod check;
mod table;
mod tree;

use std::path::Path;

use check::complaints;
use tree::Tree;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[test]
fn every_promise_names_what_shows_it() {
    let table = std::fs::read_to_string(root().join("tests/PROMISES.md")).unwrap();
    let complaints = complaints(&table, &Tree::read(root()));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The tree is read as the test runner would: each of the ways in which tests come about is known.
#[test]
fn tests_of_every_kind_are_found() {
    let tree = Tree::read(root());
    for (package, binary, function) in [
        (
            "leader-core",
            "lib",
            "a08_names_are_accepted_or_refused_by_rule",
        ),
        (
            "leader-core",
            "guard",
            "b05_a_body_that_is_woken_after_its_deadline_is_dropped_unpolled",
        ),
        (
            "leader-core",
            "conformance",
            "a01_a_held_name_is_denied_and_says_by_whom",
        ),
        (
            "leader-tests",
            "part_a_being_elected",
            "a16_other_tasks_run_on_while_five_hundred_wait",
        ),
        ("leader-tests", "redis_store", "a03_reply_lost_then_resent"),
        (
            "leader-tests",
            "conformance_redis",
            "g02_fencing_tokens_carry_the_time",
        ),
        (
            "leader-tests-postgres",
            "fenced_table",
            "a_row_is_a_fenced_resource",
        ),
    ] {
        let found = tree.has(package, binary, function);
        assert!(found, "{package}::{binary}::{function} was not found");
    }
    assert!(!tree.has(
        "leader-tests",
        "redis_store",
        "a_test_that_nobody_has_written"
    ));
}
