//! Once the faults are over, somebody leads within one lease: a cluster that needs a restart after every bad minute is
//! no better than a cron job on one machine.

use std::time::Duration;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Outcome};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct LeadsAgain {
    /// By name: when somebody was last seen to lead.
    led: Vec<Instant>,
}

impl Invariant for LeadsAgain {
    fn name(&self) -> &'static str {
        "leads again"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let Some(quiet) = facts.quiet else {
            return Ok(());
        };
        self.led.resize(facts.slots.len(), quiet);
        match event {
            Event::Over { run, outcome } if facts.runs[*run].last => ensure(
                matches!(outcome, Outcome::LetGo | Outcome::ShutDown),
                || format!("run {run} stood when all was well, and ended with {outcome:?}"),
            ),
            Event::Applied { .. }
            | Event::Granted { .. }
            | Event::Polled { .. }
            | Event::Finished { .. } => {
                let lease = Duration::from_millis(facts.plan.longest_lease());
                // A step under way, and the longest pause after a failure.
                let slack = 3 * facts.command_timeout()
                    + Duration::from_millis(560 + 4 * facts.plan.latency);
                for (name, led) in self.led.iter_mut().enumerate() {
                    if facts.valid(name, at).next().is_some() {
                        *led = at;
                    }
                    let waits = facts
                        .runs
                        .iter()
                        .any(|run| run.last && run.name == name && run.over.is_none());
                    ensure(!waits || at <= *led + lease + lease / 50 + slack, || {
                        format!(
                            "nobody has led n{name} for {:?}, although nothing is wrong",
                            at - *led
                        )
                    })?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
