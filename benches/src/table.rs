//! [`Table`]: goals beside figures, on the terminal and in `RESULTS.md`.

use std::fmt;

use crate::figure::{Figure, Reading};
use crate::surroundings;

#[derive(Default)]
pub(crate) struct Table {
    figures: Vec<(&'static str, &'static str, Vec<Reading>)>,
}

const HEAD: [&str; 5] = ["", "what", "measured", "goal", "met"];

impl Table {
    pub(crate) fn add(&mut self, figure: &Figure, readings: Vec<Reading>) {
        self.figures.push((figure.id, figure.what, readings));
    }

    /// The table with where, when and of what it was measured.
    pub(crate) fn document(&self) -> String {
        format!(
            "# Results\n\n\
             Written by `cargo xtask bench`; not edited by hand. Absolute times do not travel between machines, so each figure is a ratio \
             to a floor or a peer of the same run: the median of rounds that were taken in turn. A figure that misses its goal stays here \
             as it is; what was tried and what a profile says is in [PROFILE.md](PROFILE.md).\n\n\
             - **ping**: one `PING` and its answer on the same client.\n\
             - **raw**: the same two scripts, sent bare over the `redis` crate's multiplexed connection.\n\
             - **rslock**: that crate's lock and release. It has no fencing and no wake-up.\n\
             - **set nx**: `SET NX PX` and a script that compares and deletes, by hand, over the same kind of connection.\n\
             - **raw by fred**, **the scripts alone**: the same two scripts, sent bare by the same client as ours.\n\
             - **bare sockets**: the same two scripts over blocking sockets, without runtime or client library: the least that anything \
             which decides in these scripts can take.\n\n\
             {}\n{self}",
            surroundings::lines()
        )
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![HEAD.map(str::to_owned)];
        for (id, title, readings) in &self.figures {
            rows.push([
                (*id).to_owned(),
                format!("**{title}**"),
                String::new(),
                String::new(),
                String::new(),
            ]);
            for reading in readings {
                let [what, measured, goal, met] = reading.cells();
                rows.push([String::new(), what, measured, goal, met]);
            }
        }
        let widths: [usize; 5] =
            std::array::from_fn(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0));
        for (number, row) in rows.iter().enumerate() {
            for (cell, width) in row.iter().zip(widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")?;
            if number == 0 {
                for width in widths {
                    write!(f, "|{}", "-".repeat(width + 2))?;
                }
                writeln!(f, "|")?;
            }
        }
        writeln!(f)?;
        for (id, _, readings) in &self.figures {
            for reading in readings
                .iter()
                .filter(|reading| !reading.remark().is_empty())
            {
                let [what, ..] = reading.cells();
                writeln!(f, "- {id}, {what}: {}", reading.remark())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Goal;

    #[test]
    fn goals_stand_beside_the_figures() {
        let figure = Figure {
            id: "P1",
            what: "a run",
            measure: || Ok(Vec::new()),
            play: None,
        };
        let mut table = Table::default();
        let missed = Reading::ratio("one task", 1.2, "two pings", Goal::AtMost(1.15));
        table.add(&figure, vec![missed.note("a ping took 30 µs")]);
        let text = table.to_string();
        assert!(text.contains("| P1 | **a run** |"), "{text}");
        assert!(
            text.contains("|    | one task  | 1.20 two pings | at most 1.15 | **no** |"),
            "{text}"
        );
        assert!(text.contains("- P1, one task: a ping took 30 µs"), "{text}");
    }
}
