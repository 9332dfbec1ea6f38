//! [`Figure`]: one thing that is measured; [`Reading`]: what was seen, beside its goal.

use std::fmt;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Outcome<T = ()> = Result<T, Error>;

/// One thing that is measured.
pub(crate) struct Figure {
    /// `P1`.
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    /// Measures it. It makes its own runtime, since on which one it runs is part of the figure.
    pub(crate) measure: fn() -> Outcome<Vec<Reading>>,
    /// The part of a second process, if it has one: see [`second_process`](crate::ground::second_process).
    pub(crate) play: Option<fn(&[&str]) -> Outcome>,
}

/// One line of the table.
pub(crate) struct Reading {
    /// What of the figure this is: `64 tasks, to rslock`.
    what: String,
    value: f64,
    /// Of what the value is a multiple: `two pings`. Or what is counted: `commands`.
    unit: &'static str,
    goal: Goal,
    note: String,
}

/// What a value should be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    Exactly(f64),
    /// For comparison only.
    None,
}

impl Reading {
    /// A ratio to a floor or a peer, which is named.
    pub(crate) fn ratio(what: impl Into<String>, value: f64, to: &'static str, goal: Goal) -> Self {
        Self {
            what: what.into(),
            value,
            unit: to,
            goal,
            note: String::new(),
        }
    }

    /// A number of things, which are named.
    pub(crate) fn count(what: impl Into<String>, value: f64, of: &'static str, goal: Goal) -> Self {
        Self::ratio(what, value, of, goal)
    }

    /// What helps to read it: the absolute figures of this run, say, or why a goal is missed.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.explain(note);
        self
    }

    pub(crate) fn explain(&mut self, note: impl Into<String>) {
        self.note = note.into();
    }

    /// Whether the goal is met; `None` where there is none.
    pub(crate) fn is_met(&self) -> Option<bool> {
        // What is shown is what is judged.
        let value = shown(self.value).parse().unwrap_or(self.value);
        match self.goal {
            // Nothing takes less than no time: such a figure is a mistake of the measurement.
            Goal::AtMost(_) if self.value < 0.0 => Some(false),
            Goal::AtMost(most) => Some(value <= most),
            Goal::AtLeast(least) => Some(value >= least),
            Goal::Exactly(exact) => Some((value - exact).abs() < 1e-9),
            Goal::None => None,
        }
    }

    /// The cells of its line in the table.
    pub(crate) fn cells(&self) -> [String; 4] {
        let met = match self.is_met() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        [
            self.what.clone(),
            format!("{} {}", shown(self.value), self.unit),
            self.goal.to_string(),
            met.to_owned(),
        ]
    }

    pub(crate) fn remark(&self) -> &str {
        &self.note
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [what, value, goal, met] = self.cells();
        write!(f, "{what}: {value} ({goal}: {met}) {}", self.note)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(value) => write!(f, "at most {}", plain(*value)),
            Self::AtLeast(value) => write!(f, "at least {}", plain(*value)),
            Self::Exactly(value) => write!(f, "exactly {}", plain(*value)),
            Self::None => Ok(()),
        }
    }
}

/// As many digits as mean something.
fn shown(value: f64) -> String {
    if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn plain(value: f64) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_or_not() {
        let met = |value, goal| Reading::ratio("", value, "x", goal).is_met();
        assert_eq!(met(1.15, Goal::AtMost(1.15)), Some(true));
        assert_eq!(met(1.16, Goal::AtMost(1.15)), Some(false));
        assert_eq!(met(-3.0, Goal::AtMost(1.15)), Some(false));
        assert_eq!(met(f64::NAN, Goal::AtMost(1.15)), Some(false));
        assert_eq!(met(0.94, Goal::AtLeast(0.95)), Some(false));
        assert_eq!(met(2.0, Goal::Exactly(2.0)), Some(true));
        assert_eq!(met(2.01, Goal::Exactly(2.0)), Some(false));
        assert_eq!(met(5.0, Goal::None), None);
    }

    #[test]
    fn a_missed_goal_stays_visible() {
        let reading = Reading::ratio("own client", 1.3, "two pings", Goal::AtMost(1.15));
        let cells = ["own client", "1.30 two pings", "at most 1.15", "**no**"];
        assert_eq!(reading.cells(), cells.map(str::to_owned));
    }
}
