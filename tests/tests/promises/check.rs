//! What is wrong with a table: each complaint names the row or the test, and what to do.

use std::collections::BTreeSet;

use crate::table::{Proof, Row, rows};
use crate::tree::{SUITE, Test, Tree};

/// How many guarantees there are, and how many scenarios of each part.
const PARTS: [(char, usize); 9] = [
    ('G', 10),
    ('a', 16),
    ('b', 10),
    ('c', 10),
    ('d', 8),
    ('e', 5),
    ('f', 5),
    ('g', 3),
    ('h', 5),
];

pub(crate) fn complaints(table: &str, tree: &Tree) -> Vec<String> {
    let rows = rows(table);
    let mut complaints = Vec::new();
    for (promise, times) in expected().map(|promise| {
        let times = rows.iter().filter(|row| row.promise == promise).count();
        (promise, times)
    }) {
        match times {
            1 => {}
            0 => complaints.push(format!("{promise} has no row; write one")),
            _ => complaints.push(format!("{promise} has {times} rows; keep one")),
        }
    }
    for row in &rows {
        let named = row.promise.as_str();
        if !expected().any(|promise| promise == named) {
            complaints.push(format!(
                "{named} is no promise; add it to `PARTS`, or take the row out"
            ));
        }
        if row.says.is_empty() {
            complaints.push(format!("{named} does not say what is promised"));
        }
        if row.shown_by.is_empty() {
            complaints.push(format!("{named} names no test; write one, and name it"));
        }
        let wrong = row
            .shown_by
            .iter()
            .filter_map(|proof| what_is_wrong_with(proof, tree));
        complaints.extend(wrong.map(|wrong| format!("{named}: {wrong}")));
    }
    for test in &tree.tests {
        if tree.cases.contains(&test.2) && test.1 != SUITE {
            continue;
        }
        for number in numbers(&test.2) {
            if !rows
                .iter()
                .any(|row| row.promise == number && names(row, test))
            {
                let (package, binary, function) = test;
                complaints.push(format!(
                    "`{package}::{binary}::{function}` is in no row of {number}; add it, or take the number out of its name"
                ));
            }
        }
    }
    complaints
}

fn expected() -> impl Iterator<Item = String> {
    PARTS.iter().flat_map(|(part, count)| {
        (1..=*count).map(move |number| match part {
            'G' => format!("G{number}"),
            part => format!("{part}{number:02}"),
        })
    })
}

fn what_is_wrong_with(proof: &Proof, tree: &Tree) -> Option<String> {
    match proof {
        Proof::Test {
            package,
            binary,
            function,
        } => {
            let is_there = tree.tests.iter().any(|test| is_named(proof, test));
            (!is_there).then(|| format!("there is no test `{package}::{binary}::{function}`"))
        }
        Proof::Chore(chore) => {
            let words = chore.split(' ').next().unwrap_or_default();
            let is_there = tree.chores.contains(&format!("\n  {words} "));
            (!is_there).then(|| format!("there is no chore `cargo xtask {chore}`"))
        }
        Proof::Unreadable(words) => Some(format!(
            "`{words}` is neither `package::binary::function` nor `cargo xtask ..`"
        )),
    }
}

fn names(row: &Row, test: &Test) -> bool {
    row.shown_by.iter().any(|proof| is_named(proof, test))
}

fn is_named(proof: &Proof, (package, binary, function): &Test) -> bool {
    let Proof::Test {
        package: in_package,
        binary: in_binary,
        function: pattern,
    } = proof
    else {
        return false;
    };
    let fits = match pattern.strip_suffix('*') {
        Some(start) => function.starts_with(start),
        None => function == pattern,
    };
    in_package == package && in_binary == binary && fits
}

/// The scenarios that a test has in its name: `g01_g02_..` has two.
fn numbers(function: &str) -> BTreeSet<String> {
    let is_number = |part: &&str| {
        let bytes = part.as_bytes();
        bytes.len() == 3
            && (b'a'..=b'h').contains(&bytes[0])
            && bytes[1..].iter().all(u8::is_ascii_digit)
    };
    let parts = function.split('_').take_while(is_number);
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with these tests, and a table in which each promise is shown by the same one, but for a line or two.
    fn judged(forged: impl Fn(&str) -> Option<String>, tests: &[&str]) -> Vec<String> {
        let test = |function: &str| {
            let (package, binary) = ("leader-core", "lib");
            (package.to_owned(), binary.to_owned(), function.to_owned())
        };
        let tree = Tree {
            tests: tests.iter().map(|function| test(function)).collect(),
            chores: "\n  sim [--seeds N]  Play.\n".to_owned(),
            ..Tree::default()
        };
        let row = |promise: String| {
            let sound = format!("| {promise} | it holds | `leader-core::lib::it_holds` |");
            forged(&promise).unwrap_or(sound)
        };
        let table: Vec<String> = expected().map(row).collect();
        complaints(&table.join("\n"), &tree)
    }

    fn only(promise: &'static str, line: &'static str) -> impl Fn(&str) -> Option<String> {
        move |other| (other == promise).then(|| line.to_owned())
    }

    #[track_caller]
    fn refused(complaints: &[String], words: &str) {
        let [complaint] = complaints else {
            panic!("{complaints:?}");
        };
        assert!(complaint.contains(words), "{complaint}");
    }

    #[test]
    fn a_sound_table_is_not_complained_of() {
        assert_eq!(judged(|_| None, &["it_holds"]), Vec::<String>::new());
        let chore = only("a01", "| a01 | it holds | `cargo xtask sim --seeds 9` |");
        assert_eq!(judged(chore, &["it_holds"]), Vec::<String>::new());
        let pattern = only("b02", "| b02 | it holds | `leader-core::lib::b02_*` |");
        let tests = ["it_holds", "b02_it_holds", "b02_and_so_does_this"];
        assert_eq!(judged(pattern, &tests), Vec::<String>::new());
    }

    #[test]
    fn a_row_that_shows_nothing_is_refused() {
        for (line, words) in [
            ("| a01 | it holds | |", "a01 names no test"),
            ("| a01 | it holds |", "a01 names no test"),
            ("| a01 | it holds | it surely does |", "a01 names no test"),
            ("| a01 | | `leader-core::lib::it_holds` |", "does not say"),
            (
                "| a01 | it holds | `leader-core::lib::gone` |",
                "no test `leader-core::lib::gone`",
            ),
            (
                "| a01 | it holds | `leader-core::guard::it_holds` |",
                "no test",
            ),
            (
                "| a01 | it holds | `leader-redis::lib::it_holds` |",
                "no test",
            ),
            ("| a01 | it holds | `leader-core::lib::a01_*` |", "no test"),
            ("| a01 | it holds | `it_holds` |", "is neither"),
            ("| a01 | it holds | `cargo xtask pray` |", "no chore"),
            ("", "a01 has no row"),
            (
                "| a01 | it holds | `cargo xtask sim` |\n| a01 | it holds | `cargo xtask sim` |",
                "a01 has 2 rows",
            ),
            (
                "| a01 | x | `cargo xtask sim` |\n| z99 | x | `cargo xtask sim` |",
                "z99 is no promise",
            ),
        ] {
            refused(&judged(only("a01", line), &["it_holds"]), words);
        }
    }

    #[test]
    fn a_scenarios_test_that_is_in_no_row_is_found() {
        let tests = ["it_holds", "a03_it_holds"];
        refused(
            &judged(|_| None, &tests),
            "lib::a03_it_holds` is in no row of a03",
        );
        // In the row of another one is not enough.
        let elsewhere = only(
            "a04",
            "| a04 | it holds | `leader-core::lib::a03_it_holds` |",
        );
        refused(&judged(elsewhere, &tests), "is in no row of a03");
        let both = ["it_holds", "g01_g02_it_holds"];
        let one = only("g01", "| g01 | it holds | `leader-core::lib::g01_*` |");
        refused(&judged(one, &both), "is in no row of g02");
    }
}
