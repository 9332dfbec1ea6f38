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
    skips: Vec<(usize, usize)>,
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

    pub(crate) fn skipped(&self, night: usize, candidate: usize) {
        self.lock().skips.push((night, candidate));
    }

    pub(crate) fn trouble(&self) {
        self.lock().troubles += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is wrong, then the counts. Whether every night ran exactly once, and every candidate stood every
    /// night.
    pub(crate) fn verdict_on_all(&self) -> bool {
        let entries = self.lock();
        let mut faults = entries.faults();
        for night in 1..=NIGHTS {
            let runs = entries.runs.iter().filter(|run| run.night == night).count();
            if runs != 1 {
                faults.push(format!("night {night} ran {runs} times"));
            }
        }
        let stood = entries.runs.len() + entries.skips.len();
        if stood != NIGHTS * CANDIDATES {
            faults.push(format!(
                "{stood} times somebody stood, instead of {}",
                NIGHTS * CANDIDATES
            ));
        }
        tell_of(&faults);
        tell(format_args!(
            "settlement: {}, {}, {}, {} skipped",
            count(entries.nights().len(), "night"),
            count(entries.candidates().len(), "candidate"),
            count(entries.runs.len(), "run"),
            entries.skips.len()
        ));
        faults.is_empty()
    }

    /// As far as one candidate can tell: it stood every night. The runs of all five must add up to one for each night.
    pub(crate) fn verdict_on_one(&self, number: usize) -> bool {
        let entries = self.lock();
        let mut faults = entries.faults();
        let stood = entries.runs.len() + entries.skips.len();
        if stood != NIGHTS {
            faults.push(format!("it stood {stood} times, instead of {NIGHTS}"));
        }
        tell_of(&faults);
        tell(format_args!(
            "candidate {number}: {}, {}, {} skipped",
            count(entries.nights().len(), "night"),
            count(entries.runs.len(), "run"),
            entries.skips.len()
        ));
        faults.is_empty()
    }
}

impl Entries {
    fn nights(&self) -> BTreeSet<usize> {
        let runs = self.runs.iter().map(|run| run.night);
        runs.chain(self.skips.iter().map(|(night, _)| *night))
            .collect()
    }

    fn candidates(&self) -> BTreeSet<usize> {
        let runs = self.runs.iter().map(|run| run.candidate);
        runs.chain(self.skips.iter().map(|(_, candidate)| *candidate))
            .collect()
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.troubles > 0 {
            faults.push(format!("trouble {}", count(self.troubles, "time")));
        }
        if !self
            .runs
            .is_sorted_by(|earlier, later| earlier.fence < later.fence)
        {
            faults.push("a fencing token is not greater than the one before".to_owned());
        }
        faults
    }
}

fn tell_of(faults: &[String]) {
    tell(format_args!(""));
    for fault in faults {
        tell(format_args!("wrong: {fault}"));
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
