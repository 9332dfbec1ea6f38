//! A run says `Elected` only if its lease was valid when the body ended: who reads that marks the invoices as closed.

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{BodyEnd, Event, Outcome};
use crate::facts::Facts;

pub(super) struct EndsWell;

impl Invariant for EndsWell {
    fn name(&self) -> &'static str {
        "ends well"
    }

    fn see(&mut self, _at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let Event::Over {
            run: number,
            outcome,
        } = event
        else {
            return Ok(());
        };
        let run = &facts.runs[*number];
        if !run.guarded {
            return Ok(());
        }
        match outcome {
            Outcome::Elected | Outcome::ActionFailed => ensure(
                matches!(run.body_end, Some((_, BodyEnd::Returned, true))),
                || {
                    format!(
                        "run {number} says {outcome:?}, but its body ended like this: {:?}",
                        run.body_end
                    )
                },
            ),
            // And a body that returned under a valid lease is not reported as lost.
            Outcome::Lost(reason) => ensure(
                !matches!(run.body_end, Some((_, BodyEnd::Returned, true))),
                || {
                    format!(
                        "run {number} says lost ({reason:?}), but its body returned under a valid lease"
                    )
                },
            ),
            Outcome::Panicked => ensure(
                matches!(run.body_end, Some((_, BodyEnd::Panicked, _))),
                || format!("run {number} panicked, but its body did not"),
            ),
            Outcome::Odd(what) => Err(format!("run {number} ended oddly: {what}")),
            _ => Ok(()),
        }
    }
}
