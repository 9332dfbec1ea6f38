//! Hints: how a store tells a waiter, or an observer, that asking again may be worth it.
//!
//! Hints may be lost and may be late; they only ever shorten a sleep. So the cell between a store and a waiter holds
//! one merged hint, not a queue: it can neither overflow nor lag.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::store::Revision;

/// What a store tells the watchers of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// A slot was released.
    Released {
        /// The release's place in the name's history.
        revision: Revision,
        /// When the slot is free, counted from now: zero, or what is left of a minimum lease.
        free_in: Duration,
    },
    /// A slot was granted, released or evicted; for those who [observe](crate::store::LeaseStore::observe).
    Changed,
    /// Something may have been missed; ask again.
    Missed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Released {
        revision: Revision,
        free_at: Instant,
    },
    Changed,
    Missed,
}

impl News {
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Released { revision, free_at },
                Self::Released {
                    revision: other_revision,
                    free_at: other_free_at,
                },
            ) => Self::Released {
                revision: revision.max(other_revision),
                free_at: free_at.min(other_free_at),
            },
            (Self::Changed, Self::Changed) => Self::Changed,
            _ => Self::Missed,
        }
    }
}

#[derive(Debug, Default)]
struct Cell {
    news: Mutex<Option<News>>,
    bell: Notify,
}

/// The store's end: push hints here. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HintSender {
    cell: Arc<Cell>,
}

impl HintSender {
    /// Tells the waiter. Never blocks; hints that were not read yet are merged.
    pub fn push(&self, hint: Hint) {
        let news = match hint {
            Hint::Released { revision, free_in } => News::Released {
                revision,
                free_at: Instant::now() + free_in.min(MAX_FREE_IN),
            },
            Hint::Changed => News::Changed,
            Hint::Missed => News::Missed,
        };
        let mut cell = self
            .cell
            .news
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *cell = Some(cell.map_or(news, |earlier| earlier.merge(news)));
        drop(cell);
        self.cell.bell.notify_one();
    }
}

/// What a store claims about the future is bounded, so that adding it to a clock cannot overflow.
const MAX_FREE_IN: Duration = crate::options::LeaseOptions::MAX_LEASE;

/// The waiter's end.
#[derive(Debug)]
pub struct Hints {
    cell: Arc<Cell>,
}

/// A pair of ends, as the engine hands them to [`LeaseStore::watch`](crate::store::LeaseStore::watch). Public for
/// tests of stores.
#[must_use]
pub fn hints() -> (HintSender, Hints) {
    let cell = Arc::new(Cell::default());
    (HintSender { cell: cell.clone() }, Hints { cell })
}

impl Hints {
    /// Waits until something was told since the last call.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future loses nothing: a hint stays until it is returned.
    pub async fn told(&mut self) {
        self.news().await;
    }

    /// Waits until something was told since the last call, and says what: for a store that passes it on.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future loses nothing: a hint stays until it is returned.
    pub async fn next(&mut self) -> Hint {
        match self.news().await {
            News::Released { revision, free_at } => Hint::Released {
                revision,
                free_in: free_at.saturating_duration_since(Instant::now()),
            },
            News::Changed => Hint::Changed,
            News::Missed => Hint::Missed,
        }
    }

    pub(crate) async fn news(&mut self) -> News {
        loop {
            if let Some(news) = self.take() {
                return news;
            }
            self.cell.bell.notified().await;
        }
    }

    /// How many senders the store still has.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn senders(&self) -> usize {
        Arc::strong_count(&self.cell) - 1
    }

    fn take(&self) -> Option<News> {
        self.cell
            .news
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(revision: u64, free_in: Duration) -> Hint {
        Hint::Released {
            revision: Revision::new(revision),
            free_in,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unread_hints_merge_to_the_latest_revision_and_the_earliest_time() {
        let (sender, mut hints) = hints();
        sender.push(released(3, Duration::from_secs(5)));
        sender.push(released(2, Duration::from_secs(1)));
        assert_eq!(
            hints.news().await,
            News::Released {
                revision: Revision::new(3),
                free_at: Instant::now() + Duration::from_secs(1),
            }
        );
    }

    #[tokio::test]
    async fn a_missed_hint_is_not_covered_up_by_a_later_one() {
        let (sender, mut hints) = hints();
        sender.push(Hint::Missed);
        sender.push(released(1, Duration::ZERO));
        assert_eq!(hints.news().await, News::Missed);
        sender.push(Hint::Changed);
        sender.push(Hint::Changed);
        assert_eq!(hints.next().await, Hint::Changed);
        sender.push(Hint::Changed);
        sender.push(Hint::Missed);
        sender.push(Hint::Changed);
        assert_eq!(hints.next().await, Hint::Missed);
    }
}
