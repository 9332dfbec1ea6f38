//! A run ends in this order: body over, extension stopped, slot given back. A slot that is free while its body still
//! works is a second leader; an extension after the release is a lease that nobody has.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Op, TokenNo};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct InOrder {
    released: BTreeSet<TokenNo>,
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
                    ensure(!run.guarded || run.body_end.is_some(), || {
                        format!("the slot of run {number} is given back before its body has ended")
                    })?;
                }
                Ok(())
            }
            Event::Sent {
                op: Op::Extend { token, .. },
                ..
            } => ensure(!self.released.contains(token), || {
                format!("t{token} is extended after its release was sent")
            }),
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
