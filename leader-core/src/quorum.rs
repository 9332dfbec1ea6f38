//! [`Quorum`]: a store made of several independent ones, of which a majority decides.

mod claim;
mod extend;
mod failure;
mod inspect;
mod nodes;
mod release;
mod round;
mod seats;
mod sightings;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::nodes::{Node, NodeSet, Size};
use self::seats::Seats;
use self::sightings::Sightings;
use crate::engine::background::Background;
use crate::error::LeaderError;
use crate::hints::HintSender;
use crate::name::LockName;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
    StoreError, Watching,
};

/// A [`LeaseStore`] made of several independent stores: a lease is held by whoever holds it on a majority of them.
pub struct Quorum<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    nodes: Vec<Node<S>>,
    size: Size,
    /// How long the slowest node may take for one step.
    timeout: Duration,
    seats: Seats,
    sightings: Sightings,
    background: Background,
    /// What is left of a round when it is decided.
    tracker: TaskTracker,
    closed: CancellationToken,
}

impl<S> Shared<S> {
    fn all(&self) -> NodeSet {
        NodeSet::all(self.size.nodes())
    }

    /// Goes on with `work` in a task, until it is over or the quorum is closed. Outside a runtime there is nobody to do
    /// it: what is left on the nodes ends with its lease.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Option<JoinHandle<()>> {
        let runtime = Handle::try_current().ok()?;
        let closed = self.closed.clone();
        let work = async move {
            closed.run_until_cancelled(work).await;
        };
        Some(self.tracker.spawn_on(self.background.wrap(work), &runtime))
    }
}

impl<S: LeaseStore> Quorum<S> {
    /// A quorum of `nodes`.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidOptions`] when there is no node, or more than 31.
    pub fn new(nodes: impl IntoIterator<Item = S>) -> Result<Self, LeaderError> {
        let nodes: Vec<Node<S>> = nodes
            .into_iter()
            .map(|store| Node {
                timeout: store.command_timeout(),
                store,
            })
            .collect();
        if nodes.is_empty() || nodes.len() > NodeSet::MAX {
            let reason = format!(
                "a quorum has 1 to {} nodes, usually 3 or 5, and not {}",
                NodeSet::MAX,
                nodes.len()
            );
            return Err(LeaderError::invalid_options("quorum", reason));
        }
        let slowest = nodes.iter().map(|node| node.timeout).max();
        Ok(Self {
            shared: Arc::new(Shared {
                size: Size::of(nodes.len()),
                timeout: slowest.unwrap_or_default(),
                nodes,
                seats: Seats::default(),
                sightings: Sightings::default(),
                background: Background::default(),
                tracker: TaskTracker::new(),
                closed: CancellationToken::new(),
            }),
        })
    }

    /// The nodes, in the order in which they were given.
    pub fn nodes(&self) -> impl Iterator<Item = &S> {
        self.shared.nodes.iter().map(|node| &node.store)
    }

    /// How many nodes must agree: more than half of them.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.shared.size.majority()
    }

    /// How many nodes may fail.
    #[must_use]
    pub fn tolerates(&self) -> usize {
        self.shared.size.spare()
    }

    /// For simulations: as [`StoreElectorBuilder::wrap_background`](crate::StoreElectorBuilder::wrap_background), for a
    /// quorum that has no other handle yet.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn wrap_background(
        mut self,
        wrap: impl Fn(crate::BoxFuture<'static, ()>) -> crate::BoxFuture<'static, ()>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.background.wrap = Some(Box::new(wrap));
        }
        self
    }

    /// How many tokens may hold something, and how many tasks there are; for tests that show that nothing leaks.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn footprint(&self) -> (usize, usize) {
        (self.shared.seats.len(), self.shared.tracker.len())
    }
}

impl<S> Clone for Quorum<S> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Quorum<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.shared.nodes.iter().map(|node| &node.store);
        f.debug_tuple("Quorum")
            .field(&nodes.collect::<Vec<_>>())
            .finish()
    }
}

impl<S: LeaseStore> LeaseStore for Quorum<S> {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        claim::claim(&self.shared, claim).await
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        extend::extend(&self.shared, batch).await
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        release::release(&self.shared, release).await
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        watch::watch(&self.shared, name, since, hints).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        inspect::inspect(&self.shared, name).await
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        inspect::evict(&self.shared, name).await
    }

    /// Twice what the slowest node may take: a claim may have two rounds.
    fn command_timeout(&self) -> Duration {
        self.shared.timeout.saturating_mul(2)
    }

    fn release_now(&self, release: &Release) -> Option<ReleaseReply> {
        release::release_now(&self.shared, release)
    }

    /// Closes the nodes. What was left of earlier rounds gets a moment to end.
    async fn close(&self) {
        self.shared.tracker.close();
        let _ = timeout(LAST_MOMENT, self.shared.tracker.wait()).await;
        self.shared.closed.cancel();
        let nodes = self.shared.nodes.iter();
        join_all(nodes.map(|node| node.store.close())).await;
    }
}

const LAST_MOMENT: Duration = Duration::from_millis(50);
