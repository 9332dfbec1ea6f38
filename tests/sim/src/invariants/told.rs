//! Events tell a tenure's story in order and once: elected, extended, then lost or released. People page on `Lost`,
//! and count leaders by adding and subtracting.

use std::collections::BTreeMap;

use leader_core::{LeaderEvent, TenureId};
use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Outcome};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct Told {
    tenures: BTreeMap<(String, u64), Tale>,
    /// A reader that was too slow knows nothing for sure.
    missed: bool,
}

/// How far a tenure's story has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tale {
    Elected,
    Over,
}

impl Told {
    fn tell(&mut self, tenure: &TenureId, next: Tale, what: &str) -> Verdict {
        let key = (tenure.name.to_string(), tenure.fence.get());
        let before = self.tenures.insert(key, next);
        ensure(before == Some(Tale::Elected), || {
            format!(
                "{what} was told of fence {}, which is {before:?}",
                tenure.fence
            )
        })
    }
}

impl Invariant for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    fn see(&mut self, _at: Instant, event: &Event, facts: &Facts) -> Verdict {
        if self.missed {
            return Ok(());
        }
        if let Event::Finished { .. } = event {
            // Where the store cannot be reached, a release may be given up, and nobody knows.
            let open = self
                .tenures
                .iter()
                .find(|(_, tale)| **tale == Tale::Elected);
            return ensure(!facts.plan.is_clean() || open.is_none(), || {
                format!("nobody was told how {open:?} ended")
            });
        }
        let Event::Told { event, .. } = event else {
            return Ok(());
        };
        match event {
            LeaderEvent::Elected { tenure, .. } => {
                let key = (tenure.name.to_string(), tenure.fence.get());
                let before = self.tenures.insert(key, Tale::Elected);
                ensure(before.is_none(), || {
                    format!("fence {} was elected twice", tenure.fence)
                })
            }
            LeaderEvent::Extended { tenure, .. } => {
                self.tell(tenure, Tale::Elected, "an extension")
            }
            LeaderEvent::Released { tenure, .. } => self.tell(tenure, Tale::Over, "a release"),
            LeaderEvent::Lost { tenure, reason, .. } => {
                self.tell(tenure, Tale::Over, "a loss")?;
                let fence = tenure.fence.get();
                let run = facts.runs.iter().position(|run| {
                    run.fence == Some(fence) && format!("n{}", run.name) == tenure.name.as_str()
                });
                let Some(run) = run else { return Ok(()) };
                let released = facts
                    .holders
                    .get(&(facts.runs[run].name, fence))
                    .map(|token| &facts.tokens[*token])
                    .is_some_and(|token| token.released.is_some() && !token.repeated);
                let well = matches!(
                    facts.runs[run].over,
                    Some((_, Outcome::Elected | Outcome::ActionFailed | Outcome::LetGo))
                );
                ensure(!(well && released), || {
                    format!(
                        "run {run} ended well and its slot was released, but it is told as lost ({reason:?})"
                    )
                })
            }
            LeaderEvent::Missed { .. } => {
                self.missed = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
