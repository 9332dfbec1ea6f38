//! Runs an example as people run it.

use std::path::Path;
use std::process::Command;

/// What the example of this name tells on its standard output.
///
/// # Panics
///
/// When it was not built, or fails.
pub(crate) fn play(example: &str) -> String {
    let own = std::env::current_exe().expect("a test has a path");
    let target = own.ancestors().nth(2).unwrap_or(Path::new(""));
    let program = target.join("examples").join(example);
    let played = Command::new(&program).output();
    let played = played.unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo build --examples` makes it, as a test run of the whole package does",
            program.display()
        )
    });
    let (told, complaint) = (text(&played.stdout), text(&played.stderr));
    assert!(played.status.success(), "{told}\n{complaint}");
    told
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The number behind `words` in the first line that begins with them.
pub(crate) fn number_after(words: &str, told: &str) -> u64 {
    let mut rests = told
        .lines()
        .filter_map(|line| line.trim().strip_prefix(words));
    let digits = |rest: &str| {
        rest.trim()
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let number = rests.find_map(digits);
    number.unwrap_or_else(|| panic!("no line has {words:?} and a number:\n{told}"))
}
