//! A slot that is free while somebody waits for it is taken within moments: a settlement that starts a minute late
//! because a wake-up was forgotten is late all the same.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::Event;
use crate::facts::Facts;
use crate::server::Slot;

#[derive(Default)]
pub(super) struct Prompt {
    /// By name: the slots, and since when they have been so.
    slots: BTreeMap<usize, (Instant, Vec<Slot>)>,
}

impl Prompt {
    /// Since when fewer than `slots` of them have been taken, if so at `at`.
    fn free_since(&self, name: usize, slots: u32, at: Instant) -> Option<Instant> {
        let (since, taken) = self.slots.get(&name)?;
        let mut ends: Vec<_> = taken.iter().map(|slot| slot.ends).collect();
        ends.sort();
        let free = match ends.len().checked_sub(slots as usize) {
            None => *since,
            Some(nth) => ends[nth].max(*since),
        };
        (free <= at).then_some(free)
    }
}

impl Invariant for Prompt {
    fn name(&self) -> &'static str {
        "prompt"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let name = match event {
            Event::Applied { name, .. } | Event::Granted { name, .. } => *name,
            Event::Over { run, .. } => facts.runs[*run].name,
            _ => return Ok(()),
        };
        if !facts.plan.is_clean() {
            return Ok(());
        }
        // Jitter, courtesy, and some round trips: of claims that others have under way, and of one's own.
        let moments = Duration::from_millis(30 + 20 * facts.plan.latency);
        for (number, run) in facts.runs.iter().enumerate() {
            let over = run.over.as_ref().is_some_and(|(over, _)| *over < at);
            if run.name != name
                || run.granted.is_some_and(|granted| granted < at)
                || over
                || run.stand.wait == 0
            {
                continue;
            }
            let free = self
                .free_since(name, run.stand.slots, at)
                .map(|free| free.max(run.begun));
            ensure(free.is_none_or(|free| at <= free + moments), || {
                format!(
                    "run {number} waits for n{name}, of which a slot has been free since {:?} ago",
                    free.map(|free| at - free)
                )
            })?;
        }
        if let Event::Applied { name, after, .. } = event {
            let (since, slots) = self.slots.entry(*name).or_insert_with(|| (at, Vec::new()));
            if slots != after {
                *since = at;
                slots.clone_from(after);
            }
        }
        Ok(())
    }
}
