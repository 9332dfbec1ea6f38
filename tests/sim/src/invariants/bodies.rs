//! A body runs once or not at all, and not when the run was skipped: "exactly one" starts with every single run.

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Outcome};
use crate::facts::Facts;

pub(super) struct Bodies;

impl Invariant for Bodies {
    fn name(&self) -> &'static str {
        "bodies"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        match event {
            Event::Granted { run: number, .. } => {
                let run = &facts.runs[*number];
                ensure(run.bodies == 1, || {
                    format!("run {number} was granted {} times", run.bodies)
                })?;
                ensure(run.relies_until(at).is_some(), || {
                    format!("run {number} was elected with a lease that was over already")
                })
            }
            Event::Polled { run } => ensure(facts.runs[*run].body_end.is_none(), || {
                format!("the body of run {run} is polled after its end")
            }),
            Event::Over { run, outcome } => {
                let ran = facts.runs[*run].bodies > 0;
                match outcome {
                    Outcome::Skipped | Outcome::Backend(leader_core::Step::Claim, _) => {
                        ensure(!ran, || {
                            format!("run {run} says {outcome:?}, but it was granted")
                        })
                    }
                    Outcome::Elected
                    | Outcome::ActionFailed
                    | Outcome::Lost(_)
                    | Outcome::Panicked => ensure(ran, || {
                        format!("run {run} says {outcome:?}, but it was never granted")
                    }),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
