//! Once the faults are over, somebody leads within one lease: a cluster that needs a restart after every bad minute is
//! no better than a cron job on one machine.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Outcome};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct LeadsAgain {
    led: BTreeSet<usize>,
    stands: BTreeSet<usize>,
}

impl Invariant for LeadsAgain {
    fn name(&self) -> &'static str {
        "leads again"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let Some(quiet) = facts.quiet else {
            return Ok(());
        };
        match event {
            Event::Stood { run, name, .. } if facts.runs[*run].last => {
                self.stands.insert(*name);
            }
            Event::Granted { name, .. } => {
                self.led.insert(*name);
            }
            Event::Over { run, outcome } if facts.runs[*run].last => {
                return ensure(
                    matches!(outcome, Outcome::LetGo | Outcome::ShutDown),
                    || format!("run {run} stood when all was well, and ended with {outcome:?}"),
                );
            }
            Event::Applied { .. } | Event::Finished { .. } => {
                let lease = Duration::from_millis(facts.plan.longest_lease());
                // A step under way, and the longest pause after a failure.
                let slack = 3 * facts.command_timeout()
                    + Duration::from_millis(560 + 4 * facts.plan.latency);
                if at <= quiet + lease + lease / 50 + slack {
                    return Ok(());
                }
                for name in self.stands.difference(&self.led) {
                    // Nobody needs to be elected where somebody has led all along, or nobody is there any more.
                    let leads = facts.valid(*name, at).next().is_some();
                    let waits = facts
                        .runs
                        .iter()
                        .any(|run| run.last && run.name == *name && run.over.is_none());
                    ensure(leads || !waits, || {
                        format!(
                            "nobody leads n{name}, {:?} after the faults were over",
                            at - quiet
                        )
                    })?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
