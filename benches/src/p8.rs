//! P8: what the guard adds to a poll; measured by `leader-core`'s example `poll_cost`, in calls of `Instant::now`.

use std::process::Command;

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::rounds::median;

pub(crate) const FIGURE: Figure = Figure {
    id: "P8",
    what: "what the guard adds to each poll of a future or stream",
    measure,
    play: None,
};

const ROUNDS: usize = 5;
const UNIT: &str = " x Instant::now";

fn measure() -> Outcome<Vec<Reading>> {
    let mut seen: Vec<(String, Vec<f64>)> = Vec::new();
    for _ in 0..ROUNDS {
        for (what, added) in once()? {
            match seen.iter_mut().find(|(known, _)| *known == what) {
                Some((_, values)) => values.push(added),
                None => seen.push((what, vec![added])),
            }
        }
    }
    let each = seen.into_iter().map(|(what, values)| {
        // By way of the scheduler, whatever else the machine does is in it.
        let judged = what != "yielding task";
        let goal = if judged {
            Goal::AtMost(2.0)
        } else {
            Goal::None
        };
        Reading::ratio(what, median(values), "x Instant::now", goal)
    });
    let mut readings: Vec<Reading> = each.collect();
    if let Some(first) = readings.first_mut() {
        first.explain(
            "that a guarded poll allocates nothing is a test: leader-core/tests/allocations.rs",
        );
        return Ok(readings);
    }
    Err("the example said no figure".into())
}

/// Each line is `pending future  1.2 ns bare, 30.1 ns guarded: + 1.10 x Instant::now`.
fn once() -> Outcome<Vec<(String, f64)>> {
    let program = std::env::current_exe()?
        .with_file_name("examples")
        .join("poll_cost");
    let output = Command::new(&program).output();
    let output = output.map_err(|error| {
        format!(
            "{}: {error}; `cargo xtask bench` builds it",
            program.display()
        )
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| {
        let (what, rest) = line.split_once("  ")?;
        let (_, added) = rest.split_once(": + ")?;
        Some((what.to_owned(), added.strip_suffix(UNIT)?.parse().ok()?))
    });
    Ok(lines.collect())
}
