//! The keeper: one background task per elector (and runtime) that extends all its auto-extended leases in batches,
//! and fires the signal of a watched lease at its deadline.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::extension::{Extended, Request, Turn};
use super::tenure::{Phase, Tenure, validity};
use super::{Engine, chance};
use crate::store::LeaseStore;

/// More leases than this go to the store in several requests, so that none keeps it busy for long.
const MAX_BATCH: usize = 256;
/// Leases that are due within this time of each other go in one batch.
const MAX_AHEAD: Duration = Duration::from_millis(50);

/// The agendas of one elector, one for each runtime on which it has leases to look after.
#[derive(Default)]
pub(crate) struct Keepers {
    agendas: Mutex<HashMap<runtime::Id, Agenda>>,
}

/// What one keeper has to do, by when and, at the same time, by the tenure's key. Gone when nothing is left to do.
struct Agenda {
    entries: BTreeMap<(Instant, u64), Entry>,
    bell: Arc<Notify>,
}

struct Entry {
    tenure: Arc<Tenure>,
    /// When to extend it next; `None` for a lease that is only watched, or while a request is in flight.
    extend_at: Option<Instant>,
    failures: u32,
}

impl Entry {
    fn next_look(&self) -> Instant {
        let end = self.tenure.end();
        self.extend_at.map_or(end, |at| at.min(end))
    }
}

impl Agenda {
    /// For who is not the keeper, which may have to wake up earlier for this.
    fn put(&mut self, entry: Entry) {
        let at = entry.next_look();
        if self.next().is_none_or(|first| at < first) {
            self.ring(&entry.tenure.runtime);
        }
        self.note(entry);
    }

    fn note(&mut self, entry: Entry) {
        let at = entry.next_look();
        entry.tenure.times.note_look(Some(at));
        self.entries.insert((at, entry.tenure.key), entry);
    }

    fn ring(&self, runtime: &Handle) {
        self.bell.notify_one();
        not_next(runtime);
    }

    fn take(&mut self, tenure: &Tenure) -> Option<Entry> {
        let at = tenure.times.next_look()?;
        tenure.times.note_look(None);
        self.entries.remove(&(at, tenure.key))
    }

    /// When something is due next.
    fn next(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|((at, _), _)| *at)
    }
}

/// What the keeper finds when it looks at its agenda.
enum Round {
    Over,
    Work {
        due: Vec<Due>,
        ended: Vec<Arc<Tenure>>,
        next: Option<Instant>,
    },
}

struct Due {
    turn: Turn,
    failures: u32,
}

impl Keepers {
    fn lock(&self) -> MutexGuard<'_, HashMap<runtime::Id, Agenda>> {
        self.agendas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a tenure: it is over, or being released.
    pub(crate) fn leave(&self, tenure: &Tenure) {
        let mut agendas = self.lock();
        if let Some(agenda) = agendas.get_mut(&tenure.runtime.id())
            && agenda.take(tenure).is_some()
            && agenda.entries.is_empty()
        {
            // The keeper ends when it has nothing left.
            agenda.ring(&tenure.runtime);
        }
    }

    /// Looks at a tenure anew after its times have changed.
    fn update(&self, tenure: &Tenure, change: impl FnOnce(&mut Entry)) {
        let mut agendas = self.lock();
        if let Some(agenda) = agendas.get_mut(&tenure.runtime.id())
            && let Some(mut entry) = agenda.take(tenure)
        {
            change(&mut entry);
            agenda.put(entry);
        }
    }

    /// An explicit extension has moved the deadline.
    pub(crate) fn extended(&self, tenure: &Tenure) {
        self.update(tenure, |entry| {
            if entry.extend_at.is_some() {
                entry.extend_at = Some(next_extension(tenure));
            }
        });
    }

    fn round(&self, runtime: runtime::Id, idle: bool) -> Round {
        let now = Instant::now();
        let mut agendas = self.lock();
        let Some(agenda) = agendas.get_mut(&runtime) else {
            return Round::Over;
        };
        if agenda.entries.is_empty() && idle {
            agendas.remove(&runtime);
            return Round::Over;
        }
        let (mut due, mut ended) = (Vec::new(), Vec::new());
        if agenda.next().is_some_and(|at| at <= now) {
            let later = agenda.entries.split_off(&(now + MAX_AHEAD, 0));
            let looked_at = std::mem::replace(&mut agenda.entries, later);
            for mut entry in looked_at.into_values() {
                let tenure = &entry.tenure;
                if now >= tenure.end() || tenure.phase_now() != Phase::Held {
                    tenure.times.note_look(None);
                    ended.push(entry.tenure);
                    continue;
                }
                let ahead = (tenure.lease / 100).min(MAX_AHEAD);
                if entry.extend_at.is_some_and(|at| at <= now + ahead) {
                    if let Some(turn) = Turn::take(tenure) {
                        entry.extend_at = None;
                        due.push(Due {
                            turn,
                            failures: entry.failures,
                        });
                    } else {
                        // An explicit extension is in flight; it may make this one unnecessary.
                        entry.extend_at = Some(now + pause(tenure, 0));
                    }
                }
                agenda.note(entry);
            }
        }
        Round::Work {
            due,
            ended,
            next: agenda.next(),
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// Lets any worker run the task that was just woken. A multi-thread runtime keeps it for the worker that woke it, as the
/// very next to run and out of the others' reach; if the task at hand then blocks that worker, as a body may, the
/// keeper would be stuck behind it, and with it every lease. A task that is woken after it takes its place.
fn not_next(runtime: &Handle) {
    runtime.spawn(std::future::ready(()));
}

/// When a lease that lives until its present deadline is to be extended: at a third of its time, spread a little. A
/// lease that was explicitly extended for longer is left alone until as much of it is left.
fn next_extension(tenure: &Tenure) -> Instant {
    let lease = tenure.lease;
    let deadline = tenure.times.deadline();
    let lead = validity(lease).saturating_sub(lease / 3);
    let spread = chance::below(lease / 30, tenure.key ^ tenure.id.fence.get());
    deadline.checked_sub(lead + spread).unwrap_or(deadline)
}

/// How long to wait after a failed extension: short against the lease, and not much longer each time, since every try
/// before the deadline counts.
fn pause(tenure: &Tenure, failures: u32) -> Duration {
    let first = (tenure.lease / 50).clamp(Duration::from_millis(5), Duration::from_millis(250));
    let pause = first * (1 << failures.min(3));
    pause / 2 + chance::below(pause / 2, tenure.key ^ u64::from(failures))
}

impl<S: LeaseStore> Engine<S> {
    /// Puts a granted tenure on the agenda: to be extended if its options say so, else to be watched.
    pub(super) fn keep(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        let runtime = tenure.runtime.id();
        let mut agendas = self.keepers.lock();
        // Under the lock: whoever closes a tenure takes it off the agenda afterwards.
        if tenure.phase_now() != Phase::Held {
            return;
        }
        let mut hire = false;
        let agenda = agendas.entry(runtime).or_insert_with(|| {
            hire = true;
            Agenda {
                entries: BTreeMap::new(),
                bell: Arc::new(Notify::new()),
            }
        });
        if tenure.times.next_look().is_none() {
            agenda.put(Entry {
                tenure: tenure.clone(),
                extend_at: tenure.auto_extend.then(|| next_extension(tenure)),
                failures: 0,
            });
        }
        let bell = agenda.bell.clone();
        drop(agendas);
        if hire {
            let work = keep(OnDuty {
                engine: self.clone(),
                runtime,
                bell,
                begun: false,
            });
            tenure.runtime.spawn(self.background.wrap(work));
            not_next(&tenure.runtime);
        }
    }

    async fn extend_batch(&self, due: Vec<Due>) {
        let (requests, failures): (Vec<Request>, Vec<u32>) = due
            .into_iter()
            .map(|Due { turn, failures }| {
                let lease = turn.tenure().lease;
                (Request { turn, lease }, failures)
            })
            .unzip();
        let answers = self.send_extensions(&requests).await;
        for ((request, failures), answer) in requests.into_iter().zip(failures).zip(answers) {
            let tenure = request.turn.tenure().clone();
            drop(request);
            let (failures, extend_at) = match answer {
                Extended::Done => (0, next_extension(&tenure)),
                Extended::Lost => continue,
                // Whatever the failure is, the lease is ours until its deadline, and the next try may succeed.
                Extended::Failed(_) => (
                    failures.saturating_add(1),
                    Instant::now() + pause(&tenure, failures),
                ),
            };
            self.keepers.update(&tenure, |entry| {
                entry.failures = failures;
                entry.extend_at = Some(extend_at);
            });
        }
    }
}

/// The keeper's life: looks at the agenda whenever something on it is due, and ends when nothing is left on it.
async fn keep<S: LeaseStore>(mut on_duty: OnDuty<S>) {
    on_duty.begun = true;
    let OnDuty {
        engine,
        runtime,
        bell,
        begun: _,
    } = &on_duty;
    let mut requests = FuturesUnordered::new();
    loop {
        let Round::Work { due, ended, next } = engine.keepers.round(*runtime, requests.is_empty())
        else {
            return;
        };
        for tenure in ended {
            // Looking at the clock marks it as lost, and tells; unless it was extended by hand in this very moment.
            if tenure.phase() == Phase::Held {
                engine.keep(&tenure);
            }
        }
        let mut due = due.into_iter().peekable();
        while due.peek().is_some() {
            requests.push(engine.extend_batch(due.by_ref().take(MAX_BATCH).collect()));
        }
        if next.is_none() && requests.is_empty() {
            // The last lease has just ended: nobody would ring.
            continue;
        }
        tokio::select! {
            biased;
            Some(()) = requests.next(), if !requests.is_empty() => {}
            () = sleep_until(next) => {}
            () = bell.notified() => {}
        }
    }
}

/// Takes the agenda away when the keeper ends before its time: with its runtime, or by a panic, of a subscriber to
/// tracing say. In the second case another keeper goes on.
struct OnDuty<S: LeaseStore> {
    engine: Arc<Engine<S>>,
    runtime: runtime::Id,
    /// The agenda's, to tell it from that of a keeper which came after.
    bell: Arc<Notify>,
    /// It was polled. One that never was has not panicked itself: its runtime has ended, during a panic of somebody
    /// else, and would end the next one in the same way.
    begun: bool,
}

impl<S: LeaseStore> Drop for OnDuty<S> {
    fn drop(&mut self) {
        let mut agendas = self.engine.keepers.lock();
        let left = match agendas.get(&self.runtime) {
            Some(agenda) if Arc::ptr_eq(&agenda.bell, &self.bell) => agendas.remove(&self.runtime),
            _ => None,
        };
        for entry in left.iter().flat_map(|agenda| agenda.entries.values()) {
            entry.tenure.times.note_look(None);
        }
        drop(agendas);
        if let Some(agenda) = left
            && self.begun
            && std::thread::panicking()
        {
            for entry in agenda.entries.into_values() {
                self.engine.keep(&entry.tenure);
            }
        }
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
