//! [`Tally`]: what happened, counted by its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use leader_core::{LeaderError, LossReason};

/// What happened so far. A clone is the same tally.
#[derive(Clone, Default)]
pub(super) struct Tally {
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
}

/// Before the reason, in the name under which a lost lease is counted.
const LOST: &str = "lost: ";

impl Tally {
    pub(super) fn count(&self, what: &str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(what) {
            *count += 1;
        } else {
            counts.insert(what.to_owned(), 1);
        }
    }

    pub(super) fn count_failure(&self, error: &LeaderError) {
        match error {
            LeaderError::LeaseLost { reason, .. } => self.count_loss(*reason),
            LeaderError::Backend { step, kind, .. } => {
                self.count(&format!("failed: {step}, {kind}"));
            }
            other => self.count(&format!("failed: {other}")),
        }
    }

    pub(super) fn count_loss(&self, reason: LossReason) {
        self.count(&format!("{LOST}{reason}"));
    }

    pub(super) fn of(&self, what: &str) -> u64 {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(what).copied().unwrap_or_default()
    }

    /// How many leases were lost, for whatever reason.
    pub(super) fn lost(&self) -> u64 {
        let all = self.all().into_iter();
        all.filter(|(what, _)| what.starts_with(LOST))
            .map(|(_, count)| count)
            .sum()
    }

    pub(super) fn all(&self) -> Vec<(String, u64)> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts
            .iter()
            .map(|(what, count)| (what.clone(), *count))
            .collect()
    }
}
