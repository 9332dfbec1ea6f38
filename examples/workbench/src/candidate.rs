//! [`Candidate`]: a row of the bench, and the process of it that can be started, stopped, frozen and killed.
//!
//! A process here is a thread with a current-thread runtime of its own: its tasks, those of the engine among them, are
//! polled by nobody else. Frozen, the thread stands still; killed, the runtime is dropped with what was under way.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use leader_core::{CancellationToken, LeaseHandle};
use serde::Serialize;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::journal::millis;
use crate::life;
use crate::reach::Link;
use crate::view::Record;
use crate::world::World;

/// How long a thread may take to stand still, to end, or to begin.
const THREAD: Duration = Duration::from_secs(5);

/// What a candidate does, as it knows itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// There is no process: never started, stopped, or killed.
    #[default]
    Down,
    /// On its way to the store.
    Connecting,
    /// Neither stands nor leads.
    Idle,
    Waiting,
    /// Works under a lease.
    Leading,
    /// Works under a lease that the store does not know, or not any more. Only pages say so: it does not know itself.
    Believes,
    /// Works, and its lease has ended.
    Stale,
}

/// What is known of a row at any time, without asking its process.
#[derive(Debug, Default)]
pub(crate) struct Row {
    state: Mutex<RowState>,
}

#[derive(Debug, Default)]
pub(crate) struct RowState {
    /// Which of the row's processes this is about, counted from 1.
    process: u64,
    pub(crate) phase: Phase,
    pub(crate) lease: Option<LeaseHandle>,
    /// When that was granted, at the latest, and for how long.
    pub(crate) granted: Option<(Instant, Duration)>,
    /// When the minimum lease of the present tenure is over.
    pub(crate) kept_until: Option<Instant>,
    pub(crate) frozen: bool,
    pub(crate) cut: bool,
}

/// What pages see of a row.
#[derive(Debug, Serialize)]
pub(crate) struct RowView {
    id: &'static str,
    phase: Phase,
    fence: Option<u64>,
    slot: Option<u32>,
    /// By its own reckoning.
    remaining_ms: Option<u64>,
    frozen: bool,
    cut: bool,
}

impl Row {
    pub(crate) fn state(&self) -> MutexGuard<'_, RowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it is about another process than before: its number.
    fn begin(&self) -> u64 {
        let mut state = self.state();
        let process = state.process + 1;
        *state = RowState {
            process,
            ..RowState::default()
        };
        process
    }

    /// How long the lease with the fencing token `fence` was granted for, if it is the one that this is about.
    pub(crate) fn granted_for(&self, fence: u64) -> Option<Duration> {
        let state = self.state();
        let lease = state.lease.as_ref()?;
        let (_, duration) = state.granted?;
        (lease.fence().get() == fence).then_some(duration)
    }

    /// The row as it is now, by what the store says.
    pub(crate) fn view(&self, id: &'static str, record: &Record) -> RowView {
        let state = self.state();
        // Looked at only: whether a lease is over is for its own candidate to notice.
        let ends = state.lease.as_ref().map(LeaseHandle::reckoning);
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        let remaining = ends.map(|end| end.map(left).unwrap_or_default());
        let fence = state.lease.as_ref().map(|lease| lease.fence().get());
        let denied = || {
            let (granted, _) = state.granted?;
            Some(record.denies(fence?, granted))
        };
        let phase = match (state.phase, remaining) {
            (Phase::Leading, Some(Duration::ZERO)) => Phase::Stale,
            (Phase::Leading, _) if denied() == Some(true) => Phase::Believes,
            (phase, _) => phase,
        };
        RowView {
            id,
            phase,
            fence,
            slot: state.lease.as_ref().map(LeaseHandle::slot),
            remaining_ms: remaining.map(millis),
            frozen: state.frozen,
            cut: state.cut,
        }
    }
}

/// Where a frozen thread stands.
#[derive(Debug, Default)]
struct Ice {
    frost: Mutex<Frost>,
    thawed: Condvar,
}

#[derive(Debug, Default)]
struct Frost {
    frozen: bool,
    /// How often it has thawed.
    thaws: u64,
}

impl Ice {
    fn frost(&self) -> MutexGuard<'_, Frost> {
        self.frost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it has thawed so far: with the next thaw this frost is over.
    fn freeze(&self) -> u64 {
        let mut frost = self.frost();
        frost.frozen = true;
        frost.thaws
    }

    fn thaw(&self) {
        let mut frost = self.frost();
        frost.frozen = false;
        frost.thaws += 1;
        self.thawed.notify_all();
    }

    fn is_set(&self) -> bool {
        self.frost().frozen
    }

    /// Blocks the thread until the thaw that ends this frost, also when the next one has come by the time that it wakes.
    fn stand_still(&self, thaws: u64) {
        let lasts = |frost: &mut Frost| frost.thaws == thaws;
        let waited = self.thawed.wait_while(self.frost(), lasts);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// What a process and its row share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) id: &'static str,
    /// Which of the row's processes it is.
    process: u64,
    pub(crate) world: Arc<World>,
    pub(crate) link: watch::Sender<Link>,
    /// Cancelled: hand over and end.
    pub(crate) stop: CancellationToken,
    /// Cancelled: be gone. Nothing that happens afterwards is told.
    pub(crate) killed: CancellationToken,
    /// Stand once more.
    pub(crate) again: Notify,
}

impl Context {
    /// The row, unless it is about another process by now: a thread that needs long for its end must not speak for its
    /// successor.
    pub(crate) fn row(&self) -> Option<MutexGuard<'_, RowState>> {
        let state = self.world.row(self.id).state();
        (state.process == self.process).then_some(state)
    }

    fn show(&self, change: impl FnOnce(&mut RowState)) {
        if let Some(mut row) = self.row() {
            change(&mut row);
        }
    }
}

/// A running process. Dropped, it is killed: whoever let go of it half-way has left nobody who could control it.
#[derive(Debug)]
pub(crate) struct Process {
    context: Arc<Context>,
    ice: Arc<Ice>,
    runtime: Handle,
    /// `None` once somebody waits for its end.
    thread: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts the process of the row `id`.
    pub(crate) fn start(world: &Arc<World>, id: &'static str) -> std::io::Result<Self> {
        let context = Arc::new(Context {
            id,
            process: world.row(id).begin(),
            world: world.clone(),
            link: watch::Sender::default(),
            stop: CancellationToken::new(),
            killed: CancellationToken::new(),
            again: Notify::new(),
        });
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let here = context.clone();
        let thread = std::thread::Builder::new()
            .name(format!("candidate {id}"))
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        biased;
                        () = here.killed.cancelled() => {}
                        () = life::live(&here) => {}
                    }
                });
                // What is left of a killed one is dropped, and cannot reach the store any more.
                runtime.shutdown_background();
                here.show(|row| {
                    row.phase = Phase::Down;
                    row.lease = None;
                    row.frozen = false;
                    row.cut = false;
                });
            })?;
        Ok(Self {
            context,
            ice: Arc::default(),
            runtime: handle,
            thread: Some(thread),
        })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub(crate) fn stand_again(&self) {
        self.context.again.notify_one();
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.ice.is_set()
    }

    /// Stops the thread, which must not be frozen: no task of it is polled until it is thawed. Returns when it stands still,
    /// or `false` when it could not be made to, and goes on.
    pub(crate) async fn freeze(&self) -> bool {
        let thaws = self.ice.freeze();
        let (tell, standing) = oneshot::channel();
        let (ice, context) = (self.ice.clone(), self.context.clone());
        self.runtime.spawn(async move {
            context.show(|row| row.frozen = true);
            let _ = tell.send(());
            ice.stand_still(thaws);
            context.show(|row| row.frozen = false);
        });
        let stands = matches!(timeout(THREAD, standing).await, Ok(Ok(())));
        if !stands {
            self.thaw();
        }
        stands
    }

    pub(crate) fn thaw(&self) {
        self.ice.thaw();
    }

    /// Cuts the way to the store, or mends it.
    pub(crate) fn set_link(&self, link: Link) {
        self.context.link.send_replace(link);
        self.context.show(|row| row.cut = link == Link::Cut);
    }

    /// Ends the process in the middle of whatever it does.
    pub(crate) async fn kill(mut self) {
        self.strike();
        self.joined().await;
    }

    /// Asks the process to hand over and end, and waits for it. One that does not is killed.
    pub(crate) async fn stop(mut self) {
        self.thaw();
        self.context.stop.cancel();
        self.joined().await;
    }

    fn strike(&self) {
        // First its way to the store, so that nothing that is dropped can give a lease back.
        self.context.link.send_replace(Link::Cut);
        self.context.killed.cancel();
        self.thaw();
    }

    async fn joined(&mut self) {
        if let Some(thread) = self.thread.take() {
            let joined = tokio::task::spawn_blocking(move || thread.join());
            let _ = timeout(THREAD, joined).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.strike();
    }
}
