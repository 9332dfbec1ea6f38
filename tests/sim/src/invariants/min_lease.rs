//! A slot with a minimum lease is kept for that long however the work ends: so five clocks, seconds apart, do not run
//! a nightly job twice.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Op, Outcome, Said};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct MinLease {
    /// By name and slot: until when it is kept, and by which run.
    kept: BTreeMap<(usize, u32), (Instant, usize, u64)>,
    /// By name and fencing token: when the store granted it.
    granted: BTreeMap<(usize, u64), Instant>,
}

impl Invariant for MinLease {
    fn name(&self) -> &'static str {
        "min lease"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        match event {
            Event::Granted {
                run,
                name,
                slot,
                fence,
                ..
            } => {
                let min_lease = Duration::from_millis(facts.runs[*run].stand.min_lease);
                // By a clock that may be slow or fast, and never beyond the lease, which the store has counted since
                // its grant.
                let granted = self.granted.get(&(*name, *fence)).copied().unwrap_or(at);
                let until = granted + min_lease - min_lease / 100;
                self.kept.insert((*name, *slot), (until, *run, *fence));
                Ok(())
            }
            Event::Applied {
                name,
                op: Op::Claim { token, .. },
                said: Said::Granted { slot, fence },
                ..
            } => {
                self.granted.entry((*name, *fence)).or_insert(at);
                let Some((until, number, earlier)) = self.kept.get(&(*name, *slot)) else {
                    return Ok(());
                };
                let run = &facts.runs[*number];
                let forgotten = facts.forgotten.contains(&(*name, *earlier))
                    || facts.last_forgot.is_some_and(|forgot| forgot >= run.begun);
                // Who lost the lease keeps nothing, and who was elected while shutting down never had one.
                let lost = matches!(run.over, Some((_, Outcome::Lost(_) | Outcome::ShutDown)));
                let same = facts.tokens[*token].run == Some(*number);
                ensure(
                    same || forgotten || lost || at >= *until || fence == earlier,
                    || {
                        format!(
                            "slot {slot} of n{name} was granted {:?} before the minimum lease of run {number} was over",
                            *until - at
                        )
                    },
                )
            }
            _ => Ok(()),
        }
    }
}
