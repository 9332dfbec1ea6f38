//! What happened, written down where it happened, and the verdict on it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leader_core::FencingToken;

use crate::schedule::{CANDIDATES, NIGHTS};
use crate::tell;

#[derive(Default)]
pub(crate) struct Ledger {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    runs: Vec<Run>,
    /// The candidates that were skipped, once for each time.
    skipped: Vec<usize>,
    troubles: usize,
}

struct Run {
    night: usize,
    candidate: usize,
    fence: FencingToken,
}

impl Ledger {
    /// Written by the work itself, so that a run counts however it ends.
    pub(crate) fn ran(&self, night: usize, candidate: usize, fence: FencingToken) {
        self.lock().runs.push(Run {
            night,
            candidate,
            fence,
        });
    }

    pub(crate) fn skipped(&self, candidate: usize) {
        self.lock().skipped.push(candidate);
    }

    pub(crate) fn trouble(&self) {
        self.lock().troubles += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every night was settled exactly once, and every candidate stood every night.
    pub(crate) fn verdict_on_all(&self) -> Verdict {
        let entries = self.lock();
        let mut faults = entries.faults(NIGHTS * CANDIDATES);
        for night in 1..=NIGHTS {
            let runs = entries.runs.iter().filter(|run| run.night == night).count();
            if runs != 1 {
                faults.push(format!("night {night} was settled {}", count(runs, "time")));
            }
        }
        let settled: BTreeSet<_> = entries.runs.iter().map(|run| run.night).collect();
        let ran = entries.runs.iter().map(|run| &run.candidate);
        let stood: BTreeSet<_> = ran.chain(&entries.skipped).collect();
        let counts = format!(
            "settlement: {}, {}, {}, {} skipped",
            count(settled.len(), "night"),
            count(stood.len(), "candidate"),
            count(entries.runs.len(), "run"),
            entries.skipped.len()
        );
        Verdict { faults, counts }
    }

    /// As far as one candidate can tell: it stood every night. The runs of all must add up to one for each night.
    pub(crate) fn verdict_on_one(&self, number: usize) -> Verdict {
        let entries = self.lock();
        let faults = entries.faults(NIGHTS);
        let counts = format!(
            "candidate {number}: {}, {}, {} skipped",
            count(entries.stood(), "night"),
            count(entries.runs.len(), "run"),
            entries.skipped.len()
        );
        Verdict { faults, counts }
    }
}

impl Entries {
    fn stood(&self) -> usize {
        self.runs.len() + self.skipped.len()
    }

    fn faults(&self, expected: usize) -> Vec<String> {
        let mut faults = Vec::new();
        if self.troubles > 0 {
            faults.push(format!("trouble, {}", count(self.troubles, "time")));
        }
        if self.stood() != expected {
            let stood = count(self.stood(), "time");
            faults.push(format!("somebody stood {stood}, instead of {expected}"));
        }
        if !self.runs.is_sorted_by(|a, b| a.fence < b.fence) {
            faults.push("a fencing token is not greater than the one before".to_owned());
        }
        faults
    }
}

pub(crate) struct Verdict {
    faults: Vec<String>,
    counts: String,
}

impl Verdict {
    /// Says what is wrong, then the counts. Whether nothing is wrong.
    pub(crate) fn told(&self) -> bool {
        tell(format_args!(""));
        for fault in &self.faults {
            tell(format_args!("wrong: {fault}"));
        }
        tell(format_args!("{}", self.counts));
        self.faults.is_empty()
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger in which candidate 1 settled these nights, and everybody else was skipped.
    fn settled(nights: &[usize]) -> Ledger {
        let ledger = Ledger::default();
        for (fence, night) in (1..).zip(nights) {
            ledger.ran(*night, 1, FencingToken::new(fence));
        }
        for _ in 1..=NIGHTS {
            (2..=CANDIDATES).for_each(|candidate| ledger.skipped(candidate));
        }
        ledger
    }

    #[test]
    fn three_nights_settled_once_each_are_right() {
        let verdict = settled(&[1, 2, 3]).verdict_on_all();
        assert!(verdict.faults.is_empty(), "{:?}", verdict.faults);
        assert_eq!(
            verdict.counts,
            "settlement: 3 nights, 5 candidates, 3 runs, 12 skipped"
        );
    }

    #[test]
    fn a_night_settled_twice_or_never_is_said() {
        let verdict = settled(&[1, 1, 3]).verdict_on_all();
        assert_eq!(
            verdict.faults,
            ["night 1 was settled 2 times", "night 2 was settled 0 times"]
        );
        assert_eq!(
            verdict.counts,
            "settlement: 2 nights, 5 candidates, 3 runs, 12 skipped"
        );
    }

    #[test]
    fn a_fencing_token_that_does_not_grow_and_trouble_are_said() {
        let ledger = settled(&[1, 2]);
        ledger.ran(3, 1, FencingToken::new(2));
        ledger.trouble();
        assert_eq!(
            ledger.verdict_on_all().faults,
            [
                "trouble, 1 time",
                "a fencing token is not greater than the one before"
            ]
        );
    }

    #[test]
    fn a_candidate_that_missed_a_night_is_said() {
        let ledger = Ledger::default();
        ledger.ran(1, 4, FencingToken::new(1));
        ledger.skipped(4);
        let verdict = ledger.verdict_on_one(4);
        assert_eq!(verdict.faults, ["somebody stood 2 times, instead of 3"]);
        assert_eq!(verdict.counts, "candidate 4: 2 nights, 1 run, 1 skipped");
    }
}
