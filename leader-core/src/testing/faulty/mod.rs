//! [`FaultyStore`]: a store that misbehaves on command.

mod ask;
mod call;
mod fault;
mod faults;
mod log;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use self::fault::Fault;
pub use self::faults::Faults;
pub use self::log::{Call, Entry, Happened, Held, Part, Reply, Request};
use crate::hints::HintSender;
use crate::name::LockName;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
    StoreError, Watching,
};

/// A store that misbehaves on command: it delays, refuses, loses, repeats, holds back and reorders what it is asked
/// and what it answers, and keeps a log of it. Without a fault it is the store that it wraps. A clone is the same
/// store.
///
/// A test holds on to its [`Faults`], and arms a [`Fault`] for a step:
///
/// ```
/// use std::time::Duration;
///
/// use leader_core::testing::{Fault, FaultyStore};
/// use leader_core::{BackendKind, ElectorExt, LeaseOptions, LocalStore, Step, StoreElector};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leader_core::LeaderError> {
/// let store = FaultyStore::new(LocalStore::new());
/// let faults = store.faults();
/// let elector = StoreElector::builder(store).build();
/// let options = LeaseOptions::builder().wait(Duration::from_secs(1)).build()?;
///
/// // The store grants the claim, but its reply is lost.
/// faults.once(Step::Claim, Fault::LoseReply(BackendKind::Unreachable));
/// let lease = elector.try_acquire("invoice-close", &options).await?;
///
/// // The elector asked again, and was not taken for a rival of itself.
/// assert!(lease.is_some());
/// assert_eq!(faults.ran(Step::Claim), 2);
/// # Ok(())
/// # }
/// ```
///
/// # Order, time, and tasks
///
/// Nothing here is random and nothing waits in real time: delays are of Tokio's clock, so that under
/// [`tokio::time::pause`](https://docs.rs/tokio/latest/tokio/time/fn.pause.html) on a current-thread runtime the same
/// calls take the same course. There is no thread; a
/// request that arrives later than it is sent is a task of the runtime from which it was sent, and ends with it.
///
/// # Cancellation safety
///
/// A call that is dropped before its answer is [given up](Happened::GivenUp). What was delayed or held of its request
/// arrives all the same, as it would on a network. What had arrived at the inner store already is dropped with the
/// call.
pub struct FaultyStore<S> {
    store: Arc<S>,
    faults: Faults,
}

impl<S: LeaseStore> FaultyStore<S> {
    /// A store on `store`, without any fault yet.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self {
            store: Arc::new(store),
            faults: Faults::new(),
        }
    }

    /// The handle by which faults are armed.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// The store inside, which does not misbehave.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.store
    }
}

impl<S> Clone for FaultyStore<S> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            faults: self.faults.clone(),
        }
    }
}

impl<S> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore")
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl<S: LeaseStore> LeaseStore for FaultyStore<S> {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        self.call(claim.clone()).await
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        self.call(ask::Batch(batch.to_vec())).await
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        self.call(release.clone()).await
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        let name = name.clone();
        let since = Some(since);
        self.call_watch(ask::Watch { name, since, hints }).await
    }

    /// For faults and in the log, it is a watch since the beginning.
    async fn observe(&self, name: &LockName, hints: HintSender) -> Result<Watching, StoreError> {
        let name = name.clone();
        let since = None;
        self.call_watch(ask::Watch { name, since, hints }).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.call(ask::Inspect(name.clone())).await
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        self.call(ask::Evict(name.clone())).await
    }

    fn command_timeout(&self) -> Duration {
        self.store.command_timeout()
    }

    fn time_by_now(&self) -> Option<Duration> {
        self.store.time_by_now()
    }

    fn release_now(&self, release: &Release, now: Instant) -> Option<ReleaseReply> {
        self.release_past_faults(release, now)
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
