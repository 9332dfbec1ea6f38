//! Wrong changes to the engine, one at a time, each on a copy of it: how many seeds until the simulation notices?

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::build;
use super::wrong::{WRONG, Wrong};
use crate::command::{Done, root, say, target};

/// Each wrong change is to be caught within so many.
const SEEDS: u64 = 40_000;
/// More than enough for all of them; a change after which a run never ends is caught too.
const LIMIT: Duration = Duration::from_secs(300);

/// Makes every wrong change whose name has `only` in it, and writes the table when that is all of them.
pub(crate) fn all(only: &str) -> Done {
    let scratch = target(&root())?.join("sim-mutants");
    let mut table = String::from(HEAD);
    let mut survivors = Vec::new();
    for wrong in WRONG.iter().filter(|wrong| wrong.name.contains(only)) {
        copy_all(&scratch)?;
        wrong.make(&scratch)?;
        let topology = if wrong.name.starts_with("quorum: ") {
            "quorum"
        } else {
            "single"
        };
        let caught = attempt(&scratch, topology)?;
        say(&format!("{}: {caught}", wrong.name));
        if matches!(caught, Caught::Not) {
            survivors.push(wrong.name);
        }
        let file = wrong.file.trim_start_matches("leader-core/src/");
        let (by, seeds) = caught.cells();
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {} | `{file}` | {by} | {seeds} |", wrong.name);
    }
    if only.is_empty() {
        let file = root().join("tests/sim/MUTANTS.md");
        fs::write(&file, table).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if survivors.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "not caught within {SEEDS} seeds: {}",
            survivors.join(", ")
        ))
    }
}

const HEAD: &str = "\
# The simulation can fail

Each line is a wrong change to `leader-core`, made on a copy of it, with the invariant that caught it and the number of
seeds that this took, counted from seed 0. Written by `cargo xtask sim --mutants`; the changes are in
`xtask/src/sim/wrong.rs`, and a unit test there fails when one of them no longer applies. Ordinary CI plays none of them:
each needs a build of its own.

| wrong change | file | caught by | seeds |
|---|---|---|---|
";

/// How a wrong change came out.
enum Caught {
    By { invariant: String, seeds: u64 },
    NeverEnds,
    Not,
}

impl Caught {
    fn cells(&self) -> (String, String) {
        match self {
            Self::By { invariant, seeds } => (invariant.clone(), seeds.to_string()),
            Self::NeverEnds => (
                "a run that never ends".to_owned(),
                "at most 10000".to_owned(),
            ),
            Self::Not => ("**not caught**".to_owned(), format!("over {SEEDS}")),
        }
    }
}

impl std::fmt::Display for Caught {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (by, seeds) = self.cells();
        write!(f, "{by}, {seeds} seeds")
    }
}

fn attempt(scratch: &Path, topology: &str) -> Done<Caught> {
    let mut sim = build(scratch, Some(&scratch.join("target")))?;
    let seeds = SEEDS.to_string();
    let log = scratch.join("log");
    let file = fs::File::create(&log).map_err(|error| error.to_string())?;
    let mut child = sim
        .args(["--quick", "--seeds", &seeds, "--topology", topology])
        .stdin(Stdio::null())
        .stdout(file)
        .spawn()
        .map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if begun.elapsed() > LIMIT => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(Caught::NeverEnds);
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if status.success() {
        return Ok(Caught::Not);
    }
    // `sim: seed 7 failed: exclusion: …`
    let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
    let line = text.lines().last().unwrap_or_default();
    let mut words = line.trim_start_matches("sim: seed ").splitn(2, " failed: ");
    let seed = words.next().and_then(|seed| seed.parse::<u64>().ok());
    let invariant = words.next().and_then(|rest| rest.split(':').next());
    match (seed, invariant) {
        (Some(seed), Some(invariant)) => Ok(Caught::By {
            invariant: invariant.to_owned(),
            seeds: seed + 1,
        }),
        _ => Err(format!("the simulation said something else: {line}")),
    }
}

/// A small workspace of the engine, what its manifest names, and the simulation alone.
fn copy_all(scratch: &Path) -> Done {
    let from = root();
    let text = |error: std::io::Error| error.to_string();
    for dir in ["leader-core", "leader-macros", "tests/sim"] {
        let _ = fs::remove_dir_all(scratch.join(dir));
        copy_dir(&from.join(dir), &scratch.join(dir)).map_err(text)?;
    }
    let manifest = fs::read_to_string(from.join("Cargo.toml")).map_err(text)?;
    let of_the_copy = manifest.lines().map(|line| match line.split_once(" = ") {
        Some(("members", _)) => "members = [\"leader-core\", \"leader-macros\", \"tests/sim\"]",
        Some(("default-members", _)) => "",
        _ => line,
    });
    let manifest = of_the_copy.collect::<Vec<_>>().join("\n");
    fs::write(scratch.join("Cargo.toml"), manifest).map_err(text)?;
    fs::copy(from.join("Cargo.lock"), scratch.join("Cargo.lock")).map_err(text)?;
    Ok(())
}

fn copy_dir(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

impl Wrong {
    /// Makes the change in the workspace at `root`.
    fn make(&self, root: &Path) -> Done {
        for (old, new) in self.changes {
            let file = root.join(self.file);
            let text =
                fs::read_to_string(&file).map_err(|error| format!("{}: {error}", self.file))?;
            let found = text.matches(old).count();
            if found != 1 {
                return Err(format!(
                    "the wrong change `{}` no longer applies: its text stands {found} times in {}",
                    self.name, self.file
                ));
            }
            fs::write(&file, text.replace(old, new)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_change_applies() {
        for wrong in WRONG {
            let text = fs::read_to_string(root().join(wrong.file)).unwrap();
            for (old, _) in wrong.changes {
                assert_eq!(text.matches(old).count(), 1, "{}: {old}", wrong.name);
            }
        }
        assert!(WRONG.len() >= 15);
    }
}
