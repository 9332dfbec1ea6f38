//! [`Log`]: the rows of a play, each with the moment at which it became true, and what the store says at that moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leader_core::{ElectorExt, FencingToken, Holder, LocalStore, NodeId, StoreElector};
use tokio::time::Instant;

use super::plan::Candidate;
use super::row::Row;
use super::time::Clock;

/// What the candidates compete for.
pub(super) const NAME: &str = "invoice-close";

/// A clone is the same log.
#[derive(Clone)]
pub(super) struct Log {
    clock: Clock,
    /// Reads the store, and never stands.
    observer: StoreElector<LocalStore>,
    rows: Arc<Mutex<Vec<(Instant, Row)>>>,
}

impl Log {
    pub(super) fn begin(store: LocalStore) -> Self {
        Self {
            clock: Clock::begin(),
            observer: StoreElector::builder(store).node_id("observer").build(),
            rows: Arc::default(),
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Row)>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, at: Instant, row: Row) {
        self.lock().push((at, row));
    }

    /// The rows up to the end of `tick`, in their order.
    pub(super) fn take_until(&self, tick: u32) -> Vec<Row> {
        let mut rows = self.lock();
        let (mut told, later): (Vec<_>, Vec<_>) =
            rows.drain(..).partition(|(_, row)| row.tick <= tick);
        *rows = later;
        told.sort_by_key(|(at, row)| (*at, row.action, row.token, row.candidate));
        told.into_iter().map(|(_, row)| row).collect()
    }

    async fn holders(&self) -> Vec<Holder> {
        // The store is in this process's memory: it always answers.
        let state = self.observer.state(NAME).await;
        state.map_or_else(|_| Vec::new(), |state| state.holders().to_vec())
    }

    /// In how many ticks the store's record of a tenure ends, if there is one.
    pub(super) async fn remaining(&self, fence: FencingToken) -> Option<u32> {
        let holders = self.holders().await;
        let holder = holders.iter().find(|holder| holder.fence() == fence)?;
        Some(self.clock.ticks_until(holder.remaining()))
    }

    /// Whose lease ends first, and in which tick.
    pub(super) async fn first_to_end(&self) -> Option<(Option<Candidate>, u32)> {
        let holders = self.holders().await;
        let first = holders.iter().min_by_key(|holder| holder.remaining())?;
        let ends = self.clock.tick_at(Instant::now() + first.remaining());
        Some((candidate_of(first.node_id()), ends))
    }
}

/// The candidate whose node id this is.
pub(super) fn candidate_of(node_id: &NodeId) -> Option<Candidate> {
    let letter = node_id.as_str().chars().next()?;
    Candidate::try_from(letter).ok()
}
