//! [`Faults`]: the handle by which a test says what goes wrong, lets go what is held, and reads what happened.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::fault::{Course, Fault};
use super::log::{Call, Entry, Happened, Held, Part, Request};
use crate::error::{BackendKind, Step};

/// What goes wrong on a [`FaultyStore`](crate::testing::FaultyStore): the test's handle on it. A clone is the same
/// handle.
///
/// A call meets the faults that are armed for it when it is made: first those of [`once`](Self::once) and
/// [`times`](Self::times), in the order in which they were armed; else those of [`always`](Self::always); else what
/// [`decide`](Self::decide) says.
#[derive(Clone)]
pub struct Faults {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    state: Mutex<State>,
    asked: Notify,
}

type Decide = Box<dyn FnMut(&Call) -> Vec<Fault> + Send>;

struct State {
    started: Instant,
    next: HashMap<Step, VecDeque<Vec<Fault>>>,
    always: HashMap<Step, Vec<Fault>>,
    decide: Option<Decide>,
    release_now: bool,
    /// In the order in which they came to be held.
    held: Vec<(Held, LetGo)>,
    calls: u64,
    asked: HashMap<Step, usize>,
    ran: HashMap<Step, usize>,
    log: Vec<Entry>,
}

/// How something that is held goes on.
pub(super) enum LetGo {
    /// Whoever waits for it is woken.
    Wake(oneshot::Sender<()>),
    /// It sets out, whoever waits for it.
    Send(Box<dyn FnOnce() + Send>),
}

impl LetGo {
    /// Whether nobody waits for it any more.
    fn is_over(&self) -> bool {
        match self {
            Self::Wake(waiting) => waiting.is_closed(),
            Self::Send(_) => false,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is made: its number, and what it goes through.
    pub(super) fn ask(&self, request: Request) -> (Call, Course) {
        let step = request.step();
        let mut state = self.state();
        state.calls += 1;
        *state.asked.entry(step).or_default() += 1;
        let call = Call {
            number: state.calls,
            request,
        };
        let happened = Happened::Asked(call.request.clone());
        state.note(call.number, step, happened);
        let next = state.next.get_mut(&step).and_then(VecDeque::pop_front);
        state.next.retain(|_, calls| !calls.is_empty());
        let faults = if let Some(faults) = next {
            faults
        } else if let Some(faults) = state.always.get(&step) {
            faults.clone()
        } else if let Some(decide) = state.decide.as_mut() {
            decide(&call)
        } else {
            Vec::new()
        };
        drop(state);
        self.asked.notify_waiters();
        (call, Course::of(&faults))
    }

    pub(super) fn note(&self, call: u64, step: Step, happened: Happened) {
        let mut state = self.state();
        if matches!(happened, Happened::Ran(_)) {
            *state.ran.entry(step).or_default() += 1;
        }
        state.note(call, step, happened);
    }

    /// Holds `part` of `call` back.
    pub(super) fn hold(&self, call: &Call, part: Part, let_go: LetGo) {
        let call = call.clone();
        self.state().held.push((Held { call, part }, let_go));
    }

    /// Waits until `part` of `call` is let go.
    pub(super) async fn held(&self, call: &Call, part: Part) {
        let (go, held) = oneshot::channel();
        self.hold(call, part, LetGo::Wake(go));
        // An error would mean that the handle is gone, and it is borrowed here.
        let _ = held.await;
    }

    /// Whether a release may go past the faults: none is armed, and the test said so.
    pub(super) fn lets_release_now_pass(&self) -> bool {
        let state = self.state();
        state.release_now
            && state.next.is_empty()
            && state.always.is_empty()
            && state.decide.is_none()
    }
}

impl State {
    fn note(&mut self, call: u64, step: Step, happened: Happened) {
        self.log.push(Entry {
            at: self.started.elapsed(),
            call,
            step,
            happened,
        });
    }
}

const STEPS: [Step; 6] = [
    Step::Claim,
    Step::Extend,
    Step::Release,
    Step::Watch,
    Step::Inspect,
    Step::Evict,
];

impl Faults {
    pub(super) fn new() -> Self {
        let state = State {
            started: Instant::now(),
            next: HashMap::new(),
            always: HashMap::new(),
            decide: None,
            release_now: false,
            held: Vec::new(),
            calls: 0,
            asked: HashMap::new(),
            ran: HashMap::new(),
            log: Vec::new(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                asked: Notify::new(),
            }),
        }
    }

    /// The next call of `step` meets `faults`: one, or several as an array.
    ///
    /// # Panics
    ///
    /// When a reply is to be lost with a kind that says that nothing was done.
    #[track_caller]
    pub fn once(&self, step: Step, faults: impl IntoIterator<Item = Fault>) {
        self.times(1, step, faults);
    }

    /// Each of the next `count` calls of `step` meets `faults`.
    ///
    /// # Panics
    ///
    /// As [`once`](Self::once).
    #[track_caller]
    pub fn times(&self, count: usize, step: Step, faults: impl IntoIterator<Item = Fault>) {
        let faults = checked(faults);
        let mut state = self.shared.state();
        let next = state.next.entry(step).or_default();
        next.extend(std::iter::repeat_n(faults, count));
        state.next.retain(|_, calls| !calls.is_empty());
    }

    /// Every call of `step` meets `faults`, until told otherwise.
    ///
    /// # Panics
    ///
    /// As [`once`](Self::once).
    #[track_caller]
    pub fn always(&self, step: Step, faults: impl IntoIterator<Item = Fault>) {
        self.shared.state().always.insert(step, checked(faults));
    }

    /// Every call is refused with an error of this kind, until told otherwise: the store is down, loading, read-only.
    pub fn stop(&self, kind: BackendKind) {
        for step in STEPS {
            self.always(step, Fault::Refuse(kind));
        }
    }

    /// Asks `decide` about every call for which nothing else is armed, in the order in which calls are made: for
    /// simulations, which draw from a seed. It must not use this handle.
    pub fn decide(&self, decide: impl FnMut(&Call) -> Vec<Fault> + Send + 'static) {
        self.shared.state().decide = Some(Box::new(decide));
    }

    /// Disarms every fault. What is held stays held.
    pub fn disarm(&self) {
        let mut state = self.shared.state();
        state.next.clear();
        state.always.clear();
        state.decide = None;
    }

    /// What is held back, in the order in which it came to be held.
    #[must_use]
    pub fn held(&self) -> Vec<Held> {
        let mut state = self.shared.state();
        state.held.retain(|(_, let_go)| !let_go.is_over());
        state.held.iter().map(|(held, _)| held.clone()).collect()
    }

    /// Lets go what is held of the call with this number. Requests that are let go one after the other arrive in that
    /// order, on a current-thread runtime.
    pub fn let_go(&self, call: u64) {
        let mut state = self.shared.state();
        let (gone, held) = std::mem::take(&mut state.held)
            .into_iter()
            .partition(|(held, _)| held.call.number == call);
        state.held = held;
        drop(state);
        let_go(gone);
    }

    /// Lets go all that is held, in the order in which it came to be held.
    pub fn let_go_all(&self) {
        let held = std::mem::take(&mut self.shared.state().held);
        let_go(held);
    }

    /// Disarms every fault and lets go all that is held. Delays that have begun go on.
    pub fn heal(&self) {
        self.disarm();
        self.let_go_all();
    }

    /// Lets [`release_now`](crate::store::LeaseStore::release_now) pass while no fault is armed, if the inner store
    /// can do it. Otherwise a faulty store cannot release without waiting, so that dropped leases are released in the
    /// background, as on any store behind a connection.
    pub fn allow_release_now(&self) {
        self.shared.state().release_now = true;
    }

    /// How many calls of `step` were made. A batch of extensions is one.
    #[must_use]
    pub fn asked(&self, step: Step) -> usize {
        self.shared.state().asked.get(&step).copied().unwrap_or(0)
    }

    /// How many times the inner store did `step`: without what was refused or lost on the way, with what was
    /// repeated.
    #[must_use]
    pub fn ran(&self, step: Step) -> usize {
        self.shared.state().ran.get(&step).copied().unwrap_or(0)
    }

    /// Waits until `count` calls of `step` were made in all. Returns at once if they were.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future changes nothing.
    pub async fn until_asked(&self, step: Step, count: usize) {
        loop {
            let asked = self.shared.asked.notified();
            tokio::pin!(asked);
            // Registered before the look, so that a call in between is not missed.
            asked.as_mut().enable();
            if self.asked(step) >= count {
                return;
            }
            asked.await;
        }
    }

    /// What has happened so far.
    #[must_use]
    pub fn log(&self) -> Vec<Entry> {
        self.shared.state().log.clone()
    }

    /// What has happened since the last time; it is not kept.
    #[expect(clippy::must_use_candidate, reason = "also called to begin a new log")]
    pub fn take_log(&self) -> Vec<Entry> {
        std::mem::take(&mut self.shared.state().log)
    }
}

#[track_caller]
fn checked(faults: impl IntoIterator<Item = Fault>) -> Vec<Fault> {
    let mut checked = Vec::new();
    for fault in faults {
        checked.push(fault.check());
    }
    checked
}

fn let_go(held: Vec<(Held, LetGo)>) {
    for (_, let_go) in held {
        match let_go {
            // Whoever waited for it may have given up.
            LetGo::Wake(waiting) => drop(waiting.send(())),
            LetGo::Send(go) => go(),
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state();
        f.debug_struct("Faults")
            .field("next", &state.next)
            .field("always", &state.always)
            .field("held", &state.held.len())
            .field("calls", &state.calls)
            .finish_non_exhaustive()
    }
}
