//! `cargo run --example timeline`, as people run it.

use std::path::Path;
use std::process::{Command, Output};

use leader_workbench::ticks::Scenario;

fn timeline(arguments: &str) -> Output {
    let own = std::env::current_exe().expect("a test has a path");
    let target = own.ancestors().nth(2).unwrap_or(Path::new(""));
    let program = target.join("examples").join("timeline");
    let output = Command::new(&program)
        .args(arguments.split_whitespace())
        .output();
    output.unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo build --examples` makes it, as a test run of the whole package does",
            program.display()
        )
    })
}

fn told(arguments: &str) -> String {
    let output = timeline(arguments);
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn without_arguments_it_lists_the_scenarios_with_a_sentence_each() {
    let list = told("");
    for scenario in Scenario::ALL {
        let named = |line: &&str| line.trim_start().starts_with(scenario.name());
        let line = list.lines().find(named).expect("a line");
        assert!(line.ends_with('.') && line.len() > 40, "{line}");
    }
    assert!(told("--help").contains("--min-lease"));
}

#[test]
fn options_change_the_plan() {
    let contention = told("contention");
    assert!(
        contention.contains("   9  c          elected"),
        "{contention}"
    );
    let spelt = "--lease 10 --work 8 --wait 2 --min-lease 1 --stands 0,1,9 --slots 1";
    assert!(contention.ends_with(&told(spelt)));
    let named = told("--stands=a@0,b@1,c@9");
    assert!(contention.ends_with(&named));
    let expiry = told("expiry");
    let same = told("contention --lease 6 --work 12 --stands 0,6,10 --keep-working");
    assert!(expiry.ends_with(same.split_once('\n').expect("lines").1));
    let extended = told("expiry --extend --stands 0,1,7");
    assert!(extended.contains("12  a          released"), "{extended}");
    let frozen = told("expiry --writes --pause a@2-8");
    assert!(
        frozen.contains("stale: 1 is older than 12005000"),
        "{frozen}"
    );
    assert!(told("pause --pause none").contains("8  a          released"));
    assert!(told("contention --lang ko").contains("건너뜀"));
}

#[test]
fn json_is_one_row_in_a_line() {
    let lines = told("pause --json");
    let rows: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    assert_eq!(rows[0]["tick"], 0);
    assert_eq!(rows[0]["candidate"], "a");
    assert_eq!(rows[0]["action"], "elected");
    assert_eq!(rows[0]["token"], 1);
    let refused = rows
        .iter()
        .find(|row| row["action"] == "last-write-refused");
    let refused = refused.expect("a refused write");
    assert_eq!(
        (&refused["token"], &refused["seen"]),
        (&1.into(), &8_002_000.into())
    );
    assert_eq!(refused["result"], "stale: 1 is older than 8002000");
}

#[test]
fn wrong_arguments_are_one_line_and_exit_code_2() {
    for (arguments, told) in [
        ("nowhere", "there is no scenario `nowhere`"),
        ("contention expiry", "`expiry` stands without its option"),
        ("--lease", "--lease needs a value"),
        ("--lease x", "--lease takes a number of ticks, not `x`"),
        ("--lease 0", "`lease`: 0 is out of range; it takes 1 to 30"),
        ("--lease 5 --min-lease 6", "it takes 0 to 5 ticks"),
        ("--slots 5", "`slots`: 5 is out of range; it takes 1 to 4"),
        ("--stands 1,x", "--stands takes ticks of a to f"),
        ("--stands g@1", "--stands takes ticks of a to f"),
        ("--stands 0,0,0,0,0,0,0", "--stands takes ticks of a to f"),
        ("--pause a", "--pause takes `a@2-10`"),
        ("--pause a@3-2", "`pauses`: a is frozen from 3 to 2"),
        ("--lang de", "--lang takes en or ko, not `de`"),
        ("--extend=no", "--extend takes no value"),
        ("--nothing", "unknown option `--nothing`"),
    ] {
        let output = timeline(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {complaint}");
        assert!(complaint.contains(told), "{arguments}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}
