//! Nothing takes longer than it says: who waits for half a second must not hang for a minute because the store does.

use std::time::Duration;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, RunNo};
use crate::facts::Facts;

pub(super) struct Bounded;

/// Timers have a granularity of a millisecond, and a message may be handled one later.
const SLACK: Duration = Duration::from_millis(3);
/// The grace of `shutdown`, and its last moment.
const GRACE: Duration = Duration::from_millis(5_100);

impl Bounded {
    fn stood(at: Instant, number: RunNo, facts: &Facts) -> Verdict {
        let run = &facts.runs[number];
        if run.stand.wait >= 3_600_000 {
            return Ok(());
        }
        let frozen = facts.frozen(run.node).saturating_sub(run.frozen);
        let took = at - run.begun;
        // A process that was frozen may find its next step just begun.
        let steps = if frozen.is_zero() { 1 } else { 2 };
        let limit = Duration::from_millis(run.stand.wait)
            + steps * facts.command_timeout()
            + frozen
            + SLACK;
        ensure(took <= limit, || {
            format!("run {number} stood for {took:?}, which should take {limit:?} at most")
        })
    }
}

impl Invariant for Bounded {
    fn name(&self) -> &'static str {
        "bounded"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        match event {
            Event::Granted { run, .. } => Self::stood(at, *run, facts),
            Event::Over {
                run: number,
                outcome,
            } => {
                let run = &facts.runs[*number];
                if run.granted.is_none() {
                    return if *outcome == crate::event::Outcome::Cut {
                        Ok(())
                    } else {
                        Self::stood(at, *number, facts)
                    };
                }
                let Some(ended) = run.body_end.map(|(at, ..)| at).or(run.letting_go) else {
                    return Ok(());
                };
                let frozen = facts.frozen(run.node);
                let limit = 2 * facts.command_timeout() + frozen + SLACK;
                ensure(at - ended <= limit, || {
                    format!(
                        "run {number} took {:?} to end, which should take {limit:?} at most",
                        at - ended
                    )
                })
            }
            Event::ExtendedByHand {
                run, took, frozen, ..
            } => {
                let limit = 2 * facts.command_timeout() + *frozen + SLACK;
                ensure(*took <= limit, || {
                    format!(
                        "an extension of run {run} took {took:?}, which should take {limit:?} at most"
                    )
                })
            }
            Event::ShutDown { node, took, frozen } => {
                ensure(*took <= GRACE + *frozen + SLACK, || {
                    format!("the shutdown of c{node} took {took:?}")
                })
            }
            _ => Ok(()),
        }
    }
}
