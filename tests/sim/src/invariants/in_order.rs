//! A run ends in this order: body over, extension stopped, slot given back. A slot that is free while its body still
//! works is a second leader; an extension after the release is a lease that nobody has.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Op, Outcome, RunNo, TokenNo};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct InOrder {
    released: BTreeSet<TokenNo>,
    /// Extensions that somebody waits for.
    extending: BTreeSet<(TokenNo, u64)>,
    /// Runs whose slot was given back meanwhile.
    hasty: BTreeSet<RunNo>,
}

impl Invariant for InOrder {
    fn name(&self) -> &'static str {
        "in order"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        match event {
            Event::Sent {
                op: Op::Release { token, .. },
                ..
            } => {
                self.released.insert(*token);
                let holder = facts.runs.iter().enumerate().find(|(_, run)| {
                    run.fence
                        .is_some_and(|fence| facts.holders.get(&(run.name, fence)) == Some(token))
                });
                if let Some((number, run)) = holder {
                    ensure(run.relies_until(at).is_none(), || {
                        format!(
                            "the slot of run {number} is given back while it relies on its lease"
                        )
                    })?;
                    // Who was frozen may find that all its time-outs are over at once.
                    let frozen = facts.frozen(run.node) > run.frozen;
                    if !frozen
                        && run.over.is_none()
                        && self.extending.iter().any(|(extended, _)| extended == token)
                    {
                        self.hasty.insert(number);
                    }
                    ensure(!run.guarded || run.body_end.is_some(), || {
                        format!("the slot of run {number} is given back before its body has ended")
                    })?;
                }
                Ok(())
            }
            Event::Sent {
                message,
                op: Op::Extend { token, .. },
                ..
            } => {
                self.extending.insert((*token, *message));
                ensure(!self.released.contains(token), || {
                    format!("t{token} is extended after its release was sent")
                })
            }
            Event::Answered {
                message,
                op: Op::Extend { token, .. },
                ..
            } => {
                self.extending.remove(&(*token, *message));
                Ok(())
            }
            // Who is dropped has no time to wait for an extension, and who has lost its lease no need.
            Event::Over {
                run,
                outcome: Outcome::Elected | Outcome::ActionFailed | Outcome::Panicked,
            } => {
                let lost = matches!(facts.runs[*run].body_end, Some((.., false)));
                ensure(lost || !self.hasty.contains(run), || {
                    format!("the slot of run {run} was given back while an extension was under way")
                })
            }
            Event::Sent {
                op: Op::Claim { token, .. },
                ..
            } => ensure(!self.released.contains(token), || {
                format!("t{token} is claimed after its release was sent")
            }),
            _ => Ok(()),
        }
    }
}
