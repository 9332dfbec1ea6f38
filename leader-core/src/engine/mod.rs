//! The engine: waiting, deadlines, extension, minimum leases, release and events, written once for all stores.
//!
//! | part | what it does |
//! |---|---|
//! | `acquire` | one attempt, from its first claim to a lease, a skip or an error |
//! | `backoff` | how long to wait before a store that failed is tried again |
//! | `queue` | who waits for the same name, and when asking again is worth it |
//! | `tenure` | one grant to its end: its deadline and its phase |
//! | `holdings` | what is held at the moment |
//! | `extension` | one request to extend one lease or many |
//! | `keeper` | extends leases in the background, and notices deadlines |
//! | `release` | gives slots back, now or behind |
//! | `settlements` | which releases the next attempt waits for |
//! | `courtesy` | who goes first after a release |
//! | `shutdown` | ends everything within a bound |
//! | `tell` | tells what happens: spans, events, metrics |
//! | `meter` | what is counted and measured |
//! | `background` | where tokens come from and background work goes |

mod acquire;
pub(crate) mod background;
mod backoff;
pub(crate) mod chance;
mod courtesy;
mod extension;
mod holdings;
mod keeper;
mod meter;
mod queue;
mod release;
mod settlements;
mod shutdown;
mod tell;
mod tenure;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::background::{Background, Tokens};
use self::courtesy::Courtesy;
use self::holdings::Holdings;
use self::keeper::Keepers;
use self::meter::Meter;
use self::queue::Queues;
use self::settlements::Settlements;
pub(crate) use self::tell::quietly;
pub use self::tenure::BoxFuture;
pub(crate) use self::tenure::{Phase, Tenure, kept};
use self::tenure::{Steward, in_place};
use crate::elector::{Elector, ElectorId};
use crate::error::{LeaderError, LossReason, Step};
use crate::event::{EventHub, Events};
use crate::health::Health;
use crate::lease::Lease;
use crate::name::LockName;
use crate::node::NodeId;
use crate::options::LeaseOptions;
use crate::outcome::Acquisition;
use crate::state::LeaderState;
use crate::store::{HintSender, LeaseStore, StoreError, Watching};

/// An elector on any [`LeaseStore`]: what makes a backend out of a store.
///
/// A clone is the same candidate.
pub struct StoreElector<S: LeaseStore> {
    engine: Arc<Engine<S>>,
}

impl<S: LeaseStore> StoreElector<S> {
    /// Starts building an elector on `store`.
    pub fn builder(store: S) -> StoreElectorBuilder<S> {
        StoreElectorBuilder {
            store,
            node_id: None,
            runtime: None,
            shutdown_grace: Duration::from_secs(5),
            tokens: Tokens::default(),
            background: Background::default(),
        }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.engine.store
    }

    /// What this elector has at the moment; all zero when nothing is held, waited for, or under way. For tests that
    /// show that nothing leaks.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn footprint(&self) -> crate::testing::Footprint {
        crate::testing::Footprint {
            held: self.engine.held.len(),
            queues: self.engine.queues.len(),
            keepers: self.engine.keepers.len(),
            settling: self.engine.settlements.len(),
            tasks: self.engine.tracker.len(),
        }
    }

    /// The tenures that are valid by the last look at the clock, for an elector that loses them at a word.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn tenures_in_force(&self) -> Vec<Arc<Tenure>> {
        let mut held = self.engine.held.all();
        held.retain(|tenure| tenure.phase_now() == Phase::Held);
        held
    }
}

impl<S: LeaseStore> Clone for StoreElector<S> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
        }
    }
}

impl<S: LeaseStore> fmt::Debug for StoreElector<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreElector")
            .field("node_id", &self.engine.node_id)
            .finish_non_exhaustive()
    }
}

/// Builds a [`StoreElector`].
#[must_use = "an elector is made by `build()`"]
pub struct StoreElectorBuilder<S> {
    store: S,
    node_id: Option<NodeId>,
    runtime: Option<Handle>,
    shutdown_grace: Duration,
    tokens: Tokens,
    background: Background,
}

impl<S: fmt::Debug> fmt::Debug for StoreElectorBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreElectorBuilder")
            .field("store", &self.store)
            .field("node_id", &self.node_id)
            .field("shutdown_grace", &self.shutdown_grace)
            .finish_non_exhaustive()
    }
}

impl<S: LeaseStore> StoreElectorBuilder<S> {
    /// Who this candidate is, for people. Default `host:pid:random`.
    pub fn node_id(mut self, node_id: impl Into<NodeId>) -> Self {
        self.node_id = Some(node_id.into());
        self
    }

    /// The runtime for background work: extensions, and releases of dropped leases. Default the runtime from which a
    /// lease is acquired; when that ends with leases alive, nobody extends or releases them any more, and their slots
    /// end with their leases. A runtime of its own keeps leases alive while a body blocks its worker thread.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// How long [`shutdown`](crate::ElectorExt::shutdown) may take. Default 5 s.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// For simulations: tokens that follow from `seed`, so that a run can be repeated. Anybody who knows the seed can
    /// end the leases: never use it outside tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn seed(mut self, seed: u64) -> Self {
        self.tokens = Tokens::seeded(seed);
        self
    }

    /// For simulations: spawns what `wrap` makes of each piece of background work instead of the work itself, to stop
    /// it for a while as a frozen process would.
    #[cfg(any(test, feature = "testing"))]
    pub fn wrap_background(
        mut self,
        wrap: impl Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.background.wrap = Some(Box::new(wrap));
        self
    }

    /// Makes the elector. Nothing is sent to the store.
    #[must_use]
    pub fn build(self) -> StoreElector<S> {
        let command_timeout = self.store.command_timeout().min(LONGEST_STEP);
        StoreElector {
            engine: Arc::new(Engine {
                id: ElectorId::next(),
                store: self.store,
                node_id: self.node_id.unwrap_or_else(NodeId::random),
                runtime: self.runtime,
                command_timeout,
                grace: self.shutdown_grace,
                tokens: self.tokens,
                background: self.background,
                last_key: AtomicU64::new(0),
                held: Holdings::default(),
                let_go: Notify::new(),
                queues: Queues::default(),
                keepers: Keepers::default(),
                settlements: Arc::default(),
                courtesy: Arc::default(),
                tracker: TaskTracker::new(),
                is_closing: AtomicBool::new(false),
                closing: CancellationToken::new(),
                closed: CancellationToken::new(),
                meter: Meter::default(),
                events: EventHub::new(),
            }),
        }
    }
}

impl<S: LeaseStore> Elector for StoreElector<S> {
    fn node_id(&self) -> &NodeId {
        &self.engine.node_id
    }

    fn elector_id(&self) -> ElectorId {
        self.engine.id
    }

    fn acquire<'a>(
        &'a self,
        name: &'a LockName,
        options: &'a LeaseOptions,
    ) -> BoxFuture<'a, Result<Acquisition, LeaderError>> {
        Box::pin(self.engine.acquire(name, options))
    }

    fn acquire_now(
        &self,
        name: &LockName,
        options: &LeaseOptions,
    ) -> Option<Result<Acquisition, LeaderError>> {
        self.engine.acquire_now(name, options)
    }

    fn inspect<'a>(
        &'a self,
        name: &'a LockName,
    ) -> BoxFuture<'a, Result<LeaderState, LeaderError>> {
        Box::pin(async move {
            let holders = self
                .engine
                .ask(Step::Inspect, name, self.engine.store.inspect(name));
            Ok(LeaderState::new(name.clone(), holders.await?))
        })
    }

    fn evict<'a>(&'a self, name: &'a LockName) -> BoxFuture<'a, Result<u32, LeaderError>> {
        Box::pin(
            self.engine
                .ask(Step::Evict, name, self.engine.store.evict(name)),
        )
    }

    fn subscribe(&self) -> Events {
        self.engine.events.subscribe()
    }

    fn examine(&self) -> Health {
        let held = self.engine.held.all();
        Health::of(held.iter().filter_map(|tenure| tenure.unproved()).collect())
    }

    fn listen<'a>(
        &'a self,
        name: &'a LockName,
        hints: HintSender,
    ) -> BoxFuture<'a, Result<Watching, LeaderError>> {
        let observe = self.engine.store.observe(name, hints);
        Box::pin(self.engine.ask(Step::Watch, name, observe))
    }

    fn closing(&self) -> CancellationToken {
        self.engine.closing.child_token()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.engine.clone().shut_down())
    }
}

pub(crate) struct Engine<S> {
    id: ElectorId,
    store: S,
    node_id: NodeId,
    runtime: Option<Handle>,
    /// How long one step of the store may take.
    command_timeout: Duration,
    grace: Duration,
    tokens: Tokens,
    background: Background,
    last_key: AtomicU64,
    held: Holdings,
    /// Rung whenever a tenure leaves `held` during a shutdown.
    let_go: Notify,
    queues: Queues,
    keepers: Keepers,
    settlements: Arc<Settlements>,
    courtesy: Arc<Courtesy>,
    /// Background releases.
    tracker: TaskTracker,
    /// Set when a shutdown begins.
    is_closing: AtomicBool,
    /// Fired when a shutdown begins.
    closing: CancellationToken,
    /// Fired when the store has been closed: nothing is sent to it from then on.
    closed: CancellationToken,
    meter: Meter,
    events: EventHub,
}

impl<S: LeaseStore> Engine<S> {
    /// The runtime for background work.
    fn runtime(&self) -> Result<Handle, LeaderError> {
        let here = here()?;
        Ok(self.runtime.clone().unwrap_or(here))
    }

    fn next_key(&self) -> u64 {
        self.last_key.fetch_add(1, Ordering::Relaxed)
    }

    /// A shutdown has begun. Whatever is done before this is read is seen by the shutdown, or sees it.
    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::Release);
        // First, so that no turn that a shutdown frees goes to somebody who would ask the store once more.
        self.queues.close();
        self.closing.cancel();
    }

    /// A tenure is held from now on.
    fn hold(self: &Arc<Self>, tenure: Arc<Tenure>) -> Lease {
        self.held.add(tenure.clone());
        self.tell_elected(&tenure);
        if tenure.auto_extend {
            self.keep(&tenure);
        }
        Lease::new(tenure)
    }

    /// Whether the tenure was there to be forgotten.
    fn forget(&self, tenure: &Tenure) -> bool {
        let forgotten = self.held.remove(tenure);
        if forgotten && self.is_closing() {
            self.let_go.notify_waiters();
        }
        forgotten
    }

    /// One step of the store that is not part of a tenure, within its time.
    async fn ask<T>(
        &self,
        step: Step,
        name: &LockName,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, LeaderError> {
        if self.is_closing() {
            return Err(LeaderError::ShutDown);
        }
        here()?;
        let limit = self.command_timeout;
        timeout(limit, answer)
            .await
            .unwrap_or_else(|_| Err(StoreError::no_answer(limit)))
            .map_err(|error| LeaderError::backend(step, Some(name), error))
    }
}

/// The engine that granted a tenure looks after it; a lease knows it in this form, whatever the store.
impl<S: LeaseStore> Steward for Engine<S> {
    fn extend(
        self: Arc<Self>,
        tenure: Arc<Tenure>,
        lease: Duration,
    ) -> BoxFuture<'static, Result<(), LeaderError>> {
        Box::pin(async move { self.extend_now(&tenure, lease).await })
    }

    fn release(
        self: Arc<Self>,
        tenure: Arc<Tenure>,
    ) -> BoxFuture<'static, Result<(), LeaderError>> {
        in_place(move || async move { self.end(&tenure).await })
    }

    fn release_now(&self, tenure: &Arc<Tenure>, now: Instant) -> Option<Result<(), LeaderError>> {
        self.end_now(tenure, now)
    }

    fn release_behind(self: Arc<Self>, tenure: &Arc<Tenure>) {
        self.end_behind(tenure);
    }

    fn watch_deadline(self: Arc<Self>, tenure: &Arc<Tenure>) {
        self.keep(tenure);
    }

    fn lost(&self, tenure: &Tenure, reason: LossReason) {
        self.keepers.leave(tenure);
        self.tell_lost(tenure, reason);
    }
}

/// The runtime of the caller, whose timers everything here needs.
fn here() -> Result<Handle, LeaderError> {
    Handle::try_current().map_err(|_| LeaderError::NoRuntime)
}

/// No store may keep its caller waiting for longer, whatever it says of itself.
const LONGEST_STEP: Duration = Duration::from_secs(60 * 60);

/// `instant + duration`, or an instant that nobody lives to see.
fn far_from(instant: Instant, duration: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    instant + duration.min(FAR)
}
