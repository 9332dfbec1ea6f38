//! No body is polled once its deadline has passed, however late the process wakes up: this is what a lock that is
//! merely checked before the work cannot give.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Op, Said, TokenNo};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct Stopped {
    /// Tokens of which the candidate was told that they are not in force.
    not_held: BTreeSet<TokenNo>,
}

impl Invariant for Stopped {
    fn name(&self) -> &'static str {
        "stopped"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        match event {
            Event::Answered {
                op: Op::Extend { token, .. },
                said: Some(Said::NotHeld(_)),
                ..
            } => {
                self.not_held.insert(*token);
                Ok(())
            }
            Event::Polled { run: number } => {
                let run = &facts.runs[*number];
                if run.stand.notify {
                    return Ok(());
                }
                ensure(run.relies_until(at).is_some(), || {
                    format!("the body of run {number} was polled without a valid lease")
                })?;
                // Counted here, not by the engine's reckoning.
                let longest = run.stand.max_tenure.map(Duration::from_millis);
                let too_long = run
                    .granted
                    .zip(longest)
                    .is_some_and(|(granted, longest)| at >= granted + longest);
                ensure(!too_long, || {
                    format!("the body of run {number} was polled after its longest tenure")
                })?;
                let token = run
                    .fence
                    .and_then(|fence| facts.holders.get(&(run.name, fence)));
                ensure(
                    token.is_none_or(|token| !self.not_held.contains(token)),
                    || {
                        format!(
                            "the body of run {number} was polled after the store said that its lease is another's"
                        )
                    },
                )
            }
            _ => Ok(()),
        }
    }
}
