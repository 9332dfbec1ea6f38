//! However a run ends, its slot is free at once, not when its lease ends: the next in line must not wait for a minute
//! because somebody pressed Ctrl-C.

use std::time::Duration;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Op, Outcome, RunNo, Said, TokenNo};
use crate::facts::Facts;
use crate::server::Slot;

#[derive(Default)]
pub(super) struct Freed {
    /// Claims that were granted when their attempt was over already, when, and for how long their process had been
    /// frozen by then.
    late: Vec<(TokenNo, Instant, Duration)>,
}

impl Freed {
    /// "Over" means over: whoever asks next is not told that the lease which has just ended still stands.
    fn free_when_over(at: Instant, number: RunNo, outcome: &Outcome, facts: &Facts) -> Verdict {
        let run = &facts.runs[number];
        let well = matches!(
            outcome,
            Outcome::Elected | Outcome::ActionFailed | Outcome::Panicked | Outcome::LetGo
        );
        // A lease that was lost, or is dropped, is given back behind.
        let lost = matches!(run.body_end, Some((.., false)));
        let waited = !lost && !run.dropped;
        let stays = |slot: &Slot| slot.in_force && slot.ends > at && Some(slot.fence) == run.fence;
        ensure(
            !(facts.plan.is_clean() && well && waited && facts.slots[run.name].iter().any(stays)),
            || format!("run {number} is over ({outcome:?}), but its slot is still taken"),
        )
    }

    /// A claim that arrives when its attempt is over: a mark must be there to refuse it, or on its way to end it.
    fn note_late_claim(
        &mut self,
        at: Instant,
        op: &Op,
        said: Said,
        before: &[Slot],
        facts: &Facts,
    ) {
        if let (Op::Claim { token, .. }, Said::Granted { fence, .. }) = (op, said)
            && before.iter().all(|slot| slot.fence != fence)
            && let Some(run) = facts.tokens[*token].run.map(|run| &facts.runs[run])
            && run.over.is_some()
        {
            self.late.push((*token, at, facts.frozen(run.node)));
        }
    }

    fn judge_late_claims(&mut self, at: Instant, facts: &Facts) -> Verdict {
        let mut verdict = Ok(());
        self.late.retain(|(token, granted, frozen)| {
            let known = &facts.tokens[*token];
            let Some(run) = known.run else { return false };
            let frozen = facts.frozen(facts.runs[run].node).saturating_sub(*frozen);
            if at <= *granted + frozen + Duration::from_millis(3) {
                return true;
            }
            if !known.marked && verdict.is_ok() {
                verdict = Err(format!("a claim of t{token} was granted when its run {run} was over, and nobody ends it"));
            }
            false
        });
        verdict
    }

    /// How long a release may take from the moment at which nothing hinders it.
    fn patience(facts: &Facts) -> Duration {
        let way = Duration::from_millis(2 * facts.plan.latency + 3);
        if facts.plan.is_clean() {
            way
        } else {
            // A step under way that never ends, and the longest pause before it is tried again.
            way + 3 * facts.command_timeout() + Duration::from_millis(500)
        }
    }
}

impl Invariant for Freed {
    fn name(&self) -> &'static str {
        "freed"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        self.judge_late_claims(at, facts)?;
        if let Event::Over {
            run: number,
            outcome,
        } = event
        {
            return Self::free_when_over(at, *number, outcome, facts);
        }
        let Event::Applied {
            name,
            before,
            op,
            said,
            ..
        } = event
        else {
            return Ok(());
        };
        self.note_late_claim(at, op, *said, before, facts);
        let healthy = if facts.plan.is_clean() {
            Some(facts.begun)
        } else {
            facts.quiet
        };
        let Some(healthy) = healthy else {
            return Ok(());
        };
        for slot in before.iter().filter(|slot| slot.in_force) {
            let Some(token) = facts.holders.get(&(*name, slot.fence)) else {
                continue;
            };
            let known = &facts.tokens[*token];
            // A store that forgot the mark, or brought the tenure back, is on its own.
            if facts
                .last_forgot
                .is_some_and(|forgot| forgot >= known.first_sent)
            {
                continue;
            }
            // A claim that took longer than its own lease and a command's time, while the store answered nothing else.
            let late = known.last_claim_sent + facts.command_timeout() + known.lease;
            if known.last_granted.is_some_and(|granted| granted > late)
                && known.release_sent.is_some()
            {
                continue;
            }
            if matches!(op, Op::Release { token: own, .. } if own == token) {
                continue;
            }
            let over = known
                .run
                .and_then(|run| facts.runs[run].over.as_ref())
                .map(|(over, _)| *over);
            if let Some(over) = over {
                let free = over.max(healthy) + Self::patience(facts);
                ensure(at <= free, || {
                    format!(
                        "n{name} is still taken by t{token} of run {:?}, which was over {:?} ago",
                        known.run,
                        at - over
                    )
                })?;
            }
        }
        Ok(())
    }
}
