//! Contention is not failure, and failure is not contention: who is told "somebody else leads" may rely on somebody
//! being there, and who is told nothing of the kind gets an error.

use std::collections::BTreeMap;
use std::time::Duration;

use leader_core::{LeaderEvent, LossReason};
use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Op, Outcome, Said};
use crate::facts::{Facts, RunFact};
use crate::server::Slot;

#[derive(Default)]
pub(super) struct Honest {
    /// By candidate and name: when it was last told that all slots are taken, and whether it took the last one itself.
    full: BTreeMap<(usize, usize), Instant>,
    /// By name and fencing token: until when its holder was last seen to rely on its lease.
    relies: BTreeMap<(usize, u64), Instant>,
}

impl Honest {
    /// A lease does not expire before its deadline: an extension that fails is tried again.
    fn not_early(&self, at: Instant, event: &LeaderEvent, facts: &Facts) -> Verdict {
        let LeaderEvent::Lost {
            tenure,
            reason: LossReason::Expired,
            ..
        } = event
        else {
            return Ok(());
        };
        let name = (0..facts.slots.len()).find(|name| format!("n{name}") == tenure.name.as_str());
        let relies = name.and_then(|name| self.relies.get(&(name, tenure.fence.get())));
        ensure(relies.is_none_or(|until| at >= *until), || {
            format!(
                "fence {} was given up as expired before its deadline",
                tenure.fence
            )
        })
    }
}

impl Invariant for Honest {
    fn name(&self) -> &'static str {
        "honest"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        if let Event::Applied { name, .. }
        | Event::Answered { name, .. }
        | Event::Granted { name, .. } = event
        {
            for (_, run) in facts.valid(*name, at) {
                if let (Some(fence), Some(until)) = (run.fence, run.relies_until(at)) {
                    self.relies.insert((*name, fence), until);
                }
            }
        }
        match event {
            Event::Answered {
                node,
                name,
                op: Op::Claim { slots, .. },
                said: Some(said),
                ..
            } => {
                // Who was granted the only slot knows that it is taken.
                if *said == Said::Taken || (*slots == 1 && matches!(said, Said::Granted { .. })) {
                    self.full.insert((*node, *name), at);
                }
                Ok(())
            }
            // Who lets go and asks again is not told that somebody leads who was itself.
            Event::Applied {
                node,
                name,
                op: Op::Claim { token, .. },
                said: Said::Taken,
                before,
                ..
            } => {
                let own = |slot: &Slot| {
                    let run = facts
                        .holders
                        .get(&(*name, slot.fence))
                        .and_then(|token| facts.tokens[*token].run)
                        .map(|run| &facts.runs[run]);
                    let asked = facts.tokens[*token].last_claim_sent;
                    slot.in_force
                        && run.is_some_and(|run| {
                            run.node == *node
                                && run.over.as_ref().is_some_and(|(over, _)| *over < asked)
                        })
                };
                ensure(!facts.plan.is_clean() || !before.iter().all(own), || {
                    format!(
                        "c{node} asks for n{name}, which only leases take that it has let go of: {before:?}"
                    )
                })
            }
            Event::Over {
                run: number,
                outcome: Outcome::Skipped,
            } => {
                let run = &facts.runs[*number];
                let told = self.full.get(&(run.node, run.name));
                // An answer of about now. Of one slot, those whose waits end together share one.
                let end = run.begun + Duration::from_millis(run.stand.wait);
                let shared = Duration::from_millis(if run.stand.slots == 1 { 50 } else { 0 });
                let fresh = end.checked_sub(shared).unwrap_or(end);
                ensure(told.is_some_and(|told| *told >= fresh), || {
                    format!(
                        "run {number} was skipped, but the store has not said lately that n{} is taken",
                        run.name
                    )
                })
            }
            Event::Over {
                run: number,
                outcome: Outcome::Backend(step, kind),
            } => {
                let run = &facts.runs[*number];
                ensure(!is_well(run, facts), || {
                    format!(
                        "run {number} was told that the store is {kind} at the {step}, but nothing is wrong with it"
                    )
                })
            }
            Event::Over {
                run: number,
                outcome: Outcome::Lost(reason),
            } => {
                let run = &facts.runs[*number];
                let expected = match reason {
                    LossReason::Expired => !run.stand.auto_extend || !is_well(run, facts),
                    LossReason::MaxTenure => run.stand.max_tenure.is_some(),
                    LossReason::Taken | LossReason::Deleted => !is_well(run, facts),
                    _ => true,
                };
                ensure(expected, || {
                    format!("run {number} lost its lease ({reason:?}), but nothing was wrong")
                })
            }
            Event::Told { event, .. } => self.not_early(at, event, facts),
            _ => Ok(()),
        }
    }
}

/// Whether nothing goes wrong, and the lease is much longer than a few round trips: else it may be over before an
/// answer is there.
fn is_well(run: &RunFact, facts: &Facts) -> bool {
    facts.plan.is_clean() && run.stand.lease >= 20 + 12 * facts.plan.latency
}
