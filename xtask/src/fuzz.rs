//! `cargo xtask fuzz`: throws whatever a fuzzer thinks of at the parts that read what others write.

use crate::command::{self, Done, cargo, root, say, succeeds};
use std::fs;

const SECONDS: &str = "60";

/// Plays all targets, or the one that is named, each for so many seconds.
pub(crate) fn play(args: &[&str]) -> Done {
    let (named, seconds) = match args {
        [] => (None, SECONDS),
        ["--seconds", seconds] => (None, *seconds),
        [target] => (Some(*target), SECONDS),
        [target, "--seconds", seconds] => (Some(*target), *seconds),
        _ => return Err("write `cargo xtask fuzz [TARGET] [--seconds N]`".to_owned()),
    };
    if seconds.parse::<u32>().is_err() {
        return Err(format!("`{seconds}` is no number of seconds"));
    }
    let all = targets()?;
    let chosen: Vec<&String> = match named {
        None => all.iter().collect(),
        Some(named) => all.iter().filter(|target| *target == named).collect(),
    };
    if chosen.is_empty() {
        return Err(format!(
            "there is no such target; there are {}",
            all.join(", ")
        ));
    }
    if !succeeds(&mut cargo(&["fuzz", "--version"])) {
        return Err(
            "cargo-fuzz is not here; `cargo install cargo-fuzz --locked` builds it in some minutes, \
             and the targets need a C++ compiler besides"
                .to_owned(),
        );
    }
    let mut found = Vec::new();
    for target in chosen {
        say(&format!("{target}, for {seconds} s"));
        if let Err(why) = run(target, seconds) {
            println!("{why}");
            found.push(target.as_str());
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(format!(
        "something was found by {}; the input stands in `fuzz/artifacts`",
        found.join(", ")
    ))
}

/// Without a sanitizer, which stable Rust has none of: there is no unsafe code of ours that it could watch.
fn run(target: &str, seconds: &str) -> Done {
    // What was found to be new is kept beside what is committed.
    let corpus = format!("fuzz/corpus/{target}");
    fs::create_dir_all(root().join(&corpus)).map_err(|error| format!("{corpus}: {error}"))?;
    let mut fuzz = cargo(&["fuzz", "run", "--sanitizer", "none", target, &corpus]);
    fuzz.arg(format!("fuzz/seeds/{target}"));
    fuzz.arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-dict=fuzz/dictionaries/{target}.dict"))
        .args(["-max_len=512", "-timeout=10", "-print_final_stats=1"]);
    command::run(&mut fuzz)
}

fn targets() -> Done<Vec<String>> {
    let files = fs::read_dir(root().join("fuzz/fuzz_targets"));
    let files = files.map_err(|error| format!("no targets: {error}"))?;
    let names = files.flatten().filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        Some(name.strip_suffix(".rs")?.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}
