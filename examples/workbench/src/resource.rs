//! [`Resource`]: what the leaders write to. It remembers the highest fencing token it has seen, and refuses lower ones.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leader_core::fencing::{FenceGate, StaleFence};
use leader_core::{FencingToken, LeaseHandle};
use serde::Serialize;

use crate::settings::MOST_SLOTS;

/// How many writes are shown.
const SHOWN: usize = 12;

/// One book for each slot: the tokens of two slots say nothing about each other.
#[derive(Debug)]
pub(crate) struct Resource {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    of_slots: Vec<Book>,
    writes: VecDeque<Write>,
    accepted: u64,
    refused: u64,
}

#[derive(Debug, Default)]
struct Book {
    gate: FenceGate,
    by: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct Write {
    at_ms: u64,
    candidate: &'static str,
    slot: u32,
    fence: FencingToken,
    accepted: bool,
    seen: FencingToken,
}

/// What pages see of it.
#[derive(Debug, Serialize)]
pub(crate) struct ResourceView {
    slots: Vec<BookView>,
    writes: Vec<Write>,
    accepted: u64,
    refused: u64,
}

#[derive(Debug, Serialize)]
struct BookView {
    seen: Option<FencingToken>,
    by: Option<&'static str>,
}

impl Resource {
    pub(crate) fn new() -> Self {
        Self {
            books: Mutex::new(Books::new()),
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write that carries the lease's fencing token. The lock is held across the check and the write, and by nobody
    /// who could be frozen with it.
    pub(crate) fn write(
        &self,
        at_ms: u64,
        candidate: &'static str,
        lease: &LeaseHandle,
    ) -> Result<(), StaleFence> {
        let (slot, fence) = (lease.slot(), lease.fence());
        let mut books = self.books();
        let book = books.of_slots.get_mut(slot as usize);
        let checked: Result<(), StaleFence> = book.map_or(Ok(()), |book| {
            book.gate.check(fence)?;
            book.by = Some(candidate);
            Ok(())
        });
        match checked {
            Ok(()) => books.accepted += 1,
            Err(_) => books.refused += 1,
        }
        if books.writes.len() == SHOWN {
            books.writes.pop_back();
        }
        books.writes.push_front(Write {
            at_ms,
            candidate,
            slot,
            fence,
            accepted: checked.is_ok(),
            seen: checked.map_or_else(|stale| stale.seen, |()| fence),
        });
        checked
    }

    pub(crate) fn view(&self, slots: usize) -> ResourceView {
        let books = self.books();
        let slot = |book: &Book| BookView {
            seen: book.gate.seen(),
            by: book.by,
        };
        ResourceView {
            slots: books.of_slots.iter().take(slots).map(slot).collect(),
            writes: books.writes.iter().cloned().collect(),
            accepted: books.accepted,
            refused: books.refused,
        }
    }

    pub(crate) fn clear(&self) {
        *self.books() = Books::new();
    }
}

impl Books {
    fn new() -> Self {
        Self {
            of_slots: (0..MOST_SLOTS).map(|_| Book::default()).collect(),
            ..Self::default()
        }
    }
}
