//! The example, played as people play it.

use std::path::Path;
use std::process::Command;

#[test]
fn g03_the_frozen_leaders_writes_are_refused_with_both_numbers() {
    let own = std::env::current_exe().expect("a test has a path");
    let target = own.ancestors().nth(2).unwrap_or(Path::new(""));
    let program = target.join("examples/fenced_postgres");
    let played = Command::new(&program).output();
    let played = played.unwrap_or_else(|error| {
        panic!(
            "{}: {error}; a test run of the whole package builds it",
            program.display()
        )
    });
    let (told, complaint) = (text(&played.stdout), text(&played.stderr));
    assert!(played.status.success(), "{told}\n{complaint}");

    let fence_of = |who: &str| {
        let mut lines = told.lines();
        let line = lines.find(|line| line.trim().starts_with(&format!("{who} leads with")));
        let fence = line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        fence.unwrap_or_else(|| panic!("{who} does not lead:\n{told}"))
    };
    let (a, b) = (fence_of("A"), fence_of("B"));
    assert!(a < b, "{told}");
    for write in ["deposit to account 7", "open account 8"] {
        let refused = format!(
            "A cannot {write}: the write was refused: its fencing token {a} is older than {b}"
        );
        assert!(told.contains(&refused), "{refused}\n{told}");
    }
    assert!(
        told.contains(&format!(
            "lost the lease on `accounts` with fencing token {a}"
        )),
        "{told}"
    );
    let verdict = format!("account 7 has 150, account 8 has 100, under {b}");
    assert!(told.contains(&verdict), "{told}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
