//! [`Journal`]: what happened on the bench, in a ring of fixed size that pages read at their own pace.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// How many events are kept. A page that lags further is told how many it has missed.
pub(crate) const KEPT: usize = 2048;

/// One thing that happened. Words are codes, for which the page has its own words in each language.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Event {
    /// Counts up from 1; never the same twice, also after a reset.
    pub(crate) seq: u64,
    /// Since the bench was laid out.
    pub(crate) at_ms: u64,
    /// Whose event; `None` for the store's own.
    pub(crate) candidate: Option<&'static str>,
    pub(crate) action: &'static str,
    pub(crate) slot: Option<u32>,
    pub(crate) fence: Option<u64>,
    /// How long the lease is still valid, or the slot still kept.
    pub(crate) remaining_ms: Option<u64>,
    /// How it went, as one word.
    pub(crate) result: &'static str,
    /// Who or what is meant by the result: a node id, a step of the store, a number.
    pub(crate) detail: Option<String>,
    /// The library's own words, where there are any, for which there is no code.
    pub(crate) message: Option<String>,
}

impl Event {
    pub(crate) fn new(action: &'static str, result: &'static str) -> Self {
        Self {
            action,
            result,
            ..Self::default()
        }
    }

    pub(crate) fn detail(mut self, detail: &impl ToString) -> Self {
        self.detail = Some(detail.to_string());
        self
    }
}

/// What a reader gets.
#[derive(Debug, Default)]
pub(crate) struct Since {
    /// Changes when the journal is cleared.
    pub(crate) volume: u64,
    /// How many events it will never see.
    pub(crate) missed: u64,
    pub(crate) events: Vec<Event>,
}

#[derive(Debug)]
pub(crate) struct Journal {
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    events: VecDeque<Event>,
    last: u64,
    volume: u64,
    /// How often each action was noted.
    counts: BTreeMap<&'static str, u64>,
    began: Instant,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self {
            ring: Mutex::new(Ring {
                events: VecDeque::with_capacity(KEPT),
                last: 0,
                volume: 1,
                counts: BTreeMap::new(),
                began: Instant::now(),
            }),
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an event. It waits for nobody: the lock is held for a push or a copy, never for a page.
    pub(crate) fn note(&self, mut event: Event) {
        let mut ring = self.ring();
        ring.last += 1;
        *ring.counts.entry(event.action).or_default() += 1;
        event.seq = ring.last;
        event.at_ms = millis(ring.began.elapsed());
        if ring.events.len() == KEPT {
            ring.events.pop_front();
        }
        ring.events.push_back(event);
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.ring().last
    }

    /// How often each action was noted since the journal was cleared, also those that are not kept any more.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.ring().counts.clone()
    }

    pub(crate) fn now_ms(&self) -> u64 {
        millis(self.ring().began.elapsed())
    }

    /// What happened after the event `seen`; at most the last `most` events.
    pub(crate) fn since(&self, seen: u64, most: usize) -> Since {
        let ring = self.ring();
        let unseen = ring.last.saturating_sub(seen);
        let unseen = usize::try_from(unseen).unwrap_or(usize::MAX);
        let given = unseen.min(most).min(ring.events.len());
        let events = ring.events.range(ring.events.len() - given..);
        Since {
            volume: ring.volume,
            missed: (unseen - given) as u64,
            events: events.cloned().collect(),
        }
    }

    /// Forgets what happened, and counts the time from now.
    pub(crate) fn clear(&self) {
        let mut ring = self.ring();
        ring.events.clear();
        ring.volume += 1;
        ring.counts.clear();
        ring.began = Instant::now();
    }
}

/// Whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_lags_is_told_how_many_it_has_missed() {
        let journal = Journal::new();
        for _ in 0..KEPT + 5 {
            journal.note(Event::new("stands", "ok"));
        }
        let since = journal.since(3, 10);
        assert_eq!(since.missed, (KEPT + 5 - 3 - 10) as u64);
        let seen: Vec<u64> = since.events.iter().map(|event| event.seq).collect();
        let last = journal.last();
        assert_eq!(seen, (last - 9..=last).collect::<Vec<_>>());

        let all = journal.since(0, usize::MAX);
        assert_eq!((all.missed, all.events.len()), (5, KEPT));
        assert_eq!(journal.since(last, 10).events.len(), 0);
    }

    #[test]
    fn what_was_forgotten_counts_as_missed() {
        let journal = Journal::new();
        journal.note(Event::new("stands", "ok"));
        journal.clear();
        journal.note(Event::new("stands", "ok"));
        let since = journal.since(0, 10);
        assert_eq!((since.missed, since.events.len()), (1, 1));
    }
}
