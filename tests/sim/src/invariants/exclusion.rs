//! At most as many candidates as there are slots hold a lease that is valid by their own reckoning, as long as the
//! store keeps what it acknowledged: else the settlement runs twice.

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::Event;
use crate::facts::Facts;

pub(super) struct Exclusion;

impl Invariant for Exclusion {
    fn name(&self) -> &'static str {
        "exclusion"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let name = match event {
            Event::Granted { name, .. } | Event::Applied { name, .. } => *name,
            Event::Polled { run } => facts.runs[*run].name,
            _ => return Ok(()),
        };
        // Candidates may disagree about the slots: then it is the largest number that anybody was let in under.
        let valid: Vec<_> = facts.valid(name, at).collect();
        let slots = valid
            .iter()
            .map(|(_, run)| run.stand.slots as usize)
            .max()
            .unwrap_or(1);
        ensure(valid.len() <= slots, || {
            let runs: Vec<_> = valid.iter().map(|(run, _)| *run).collect();
            format!("runs {runs:?} all rely on n{name}, which has {slots} slots")
        })
    }
}
