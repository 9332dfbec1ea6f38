//! Nobody relies on a lease for longer than the store keeps it: between the two lies the moment in which a successor
//! is let in while its predecessor still works.

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::Event;
use crate::facts::Facts;

pub(super) struct Conservative;

impl Invariant for Conservative {
    fn name(&self) -> &'static str {
        "conservative"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let name = match event {
            Event::Granted { name, .. } | Event::Applied { name, .. } => *name,
            Event::Polled { run } => facts.runs[*run].name,
            _ => return Ok(()),
        };
        for (number, run) in facts.valid(name, at) {
            let kept = facts.slots[name]
                .iter()
                .find(|slot| slot.in_force && Some(slot.fence) == run.fence)
                .map(|slot| slot.ends);
            let until = run.relies_until(at);
            ensure(until <= kept, || {
                let of = |end: Option<Instant>| end.map(|end| end.saturating_duration_since(at));
                format!(
                    "run {number} relies on its lease for {:?}, the store keeps it for {:?}",
                    of(until),
                    of(kept)
                )
            })?;
        }
        Ok(())
    }
}
