//! [`Quorum`]: a store made of several independent ones, of which a majority decides.

mod claim;
mod extend;
mod failure;
mod inspect;
mod nodes;
mod observe;
mod opening;
mod proposal;
mod release;
mod round;
mod seats;
mod sightings;
mod turns;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::nodes::{Node, NodeSet, Size};
use self::seats::Seats;
use self::sightings::Sightings;
use self::turns::Turns;
use crate::engine::background::Background;
use crate::error::LeaderError;
use crate::hints::HintSender;
use crate::name::LockName;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
    StoreError, Watching,
};

/// A [`LeaseStore`] made of several independent stores, its nodes: a lease is held by whoever holds it on a majority.
///
/// One server that dies may take with it the only record of who leads. Of five independent ones two may die, hang or
/// be cut off, and nobody notices: names are led, extended and given back by the other three. Three that fail are an
/// error at once, which says what is wrong with each; they are never mistaken for somebody else leading.
///
/// ```
/// use leader_core::{ElectorExt, LeaseOptions, LocalStore, Quorum, StoreElector};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leader_core::LeaderError> {
/// // In a service each of these is a server of its own.
/// let quorum = Quorum::new([LocalStore::new(), LocalStore::new(), LocalStore::new()])?;
/// assert_eq!((quorum.majority(), quorum.tolerates()), (2, 1));
///
/// let elector = StoreElector::builder(quorum).build();
/// let options = LeaseOptions::builder().build()?;
/// let closed = elector.run_if_leader("invoice-close", &options, |_| async { 42 }).await?;
/// assert_eq!(closed, Some(42));
/// # Ok(())
/// # }
/// ```
///
/// # How it works
///
/// - **Claim.** All nodes are asked at once, each within its own time limit. The claim is granted once a majority has
///   granted it: the same slot, and the same fencing token. Each node issues a number that is greater than all it has
///   issued. One number is proposed to all of them, what the fastest of their clocks shows by now, as far as their last
///   answers tell; where those of a majority agree on it, or on another, the claim is granted. Where they do not, the
///   greatest is written back to a majority before the grant counts. So any later majority has a node that has seen it. The
///   lease counts from before the first request. What a minority has granted is given back at once. Where several claim
///   at once and nobody has won, the claim is put again a few times, after pauses that differ.
/// - **Extend.** A majority must have extended, in the same request. A node that has lost the record is given it again,
///   with the same slot and number, only while a majority has just confirmed that it is still this tenure's.
/// - **Release.** Every node is told, and a majority must have heard. Where a claim may yet arrive, the node is told to
///   refuse it. A node that does not answer within its time limit keeps its record until the lease is over.
/// - **Wait.** A waiter watches every node, and is woken once for each release, when a majority has told of it.
///
/// # What it costs
///
/// A run whose nodes are well takes two rounds, as many as on one store: the claim and the release. Each is as quick as
/// the quickest majority, and nodes that hang hold up none of them for longer than the round has taken anyway. A claim
/// takes a round more, in which the number is written back, where nodes do not agree about it: the first of a name, as no
/// node remembers it; the first of a quorum, which has not heard of the nodes' time yet, and the first after half an
/// hour in which it heard nothing; and one that follows another candidate's release more closely than an answer takes.
/// It always does where the clocks of no majority are within half a second of each other. Candidates that claim the same
/// name at once may find that nobody has won, and try again.
///
/// # What it assumes
///
/// - **The nodes fail independently.** Replicas of one another, or processes on one machine, are one node.
/// - **A node keeps what it has said**, or stays down for as long as the longest lease after it has lost it. One that
///   restarts empty is made up for by the others while a majority still has the record. If a lease stands on three of
///   five, since two did not answer, and one of the three forgets it, a second holder can find a majority: this is the
///   accident that persistence, `appendfsync always`, or a delayed restart rules out.
/// - **Clocks measure a lease** within 1 % of one another, as everywhere here. Nodes' wall clocks need not agree, and may
///   be set; fencing tokens then run ahead with the fastest of them, for as long as some node of each majority remembers.
///   Where all have forgotten, they go on with the time. A node that comes back with a memory of old has been away for
///   longer than the second by which a proposed number may be behind its time.
/// - **The same nodes for all candidates.** Majorities of different sets of nodes need not meet.
///
/// # What each accident does
///
/// | accident | what happens |
/// |---|---|
/// | fewer than half of the nodes down, hung, cut off | nothing; an answer waits for the slowest node of a majority |
/// | more than half of them | claims and extensions are errors; a leader loses its lease at its own deadline |
/// | a node restarts empty | it is given the records of those who lead with their next extension |
/// | a majority loses a record | its holder is told so with its next extension, and a peer may lead before that |
/// | a candidate is paused | it loses its lease by its own clock; its writes are refused where fencing tokens are checked |
/// | a candidate is cut off from some nodes | it leads while it reaches a majority |
///
/// # Where it comes from
///
/// The algorithm is [Redlock](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). Martin
/// Kleppmann's critique, [How to do distributed locking](https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html)
/// (2016), says what it lacks: a number that a resource can check, and safety where time is wrong. The number is here,
/// ordered over all majorities. Time is not made right by more nodes: as with a single store, a holder that was paused
/// in the middle of a write is only kept out by a resource that compares fencing tokens.
///
/// # Cancellation safety
///
/// A step that is dropped half-way may have taken effect on some nodes, as on any store; the release that the engine
/// sends then reaches all of them. What is left of a round when it is decided goes on in a task, for a node's time limit
/// at most.
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
    turns: Turns,
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
    /// A quorum of `nodes`, best of an odd number of them: a fourth makes the majority larger and tolerates no more
    /// than three do.
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
                turns: Turns::default(),
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

    /// What stands for `token` on the nodes; for tests that look at these.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn on_nodes(&self, token: crate::Token) -> Option<crate::Token> {
        self.shared.seats.of(token).map(|seat| seat.token)
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

    async fn observe(&self, name: &LockName, hints: HintSender) -> Result<Watching, StoreError> {
        observe::observe(&self.shared, name, hints).await
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

    fn release_now(&self, release: &Release, now: Instant) -> Option<ReleaseReply> {
        release::release_now(&self.shared, release, now)
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
