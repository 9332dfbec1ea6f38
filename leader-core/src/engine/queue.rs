//! The waiting queue: tasks of one elector that wait for the same name and slot count, first come, first served. Only
//! the first of them talks to the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::chance;
use super::tell::tell_no_hints;
use crate::hints::{HintSender, Hints, News, hints};
use crate::label::Label;
use crate::name::LockName;
use crate::node::NodeId;
use crate::store::{Hint, LeaseStore, Revision, StoreError, Watching};

/// A name's queues, by slot count: who asks for more slots is not held up by who asks for fewer.
type ByName = HashMap<LockName, Vec<(u32, Arc<Queue>)>>;

/// The queues of one elector. One exists only while somebody is in it.
#[derive(Default)]
pub(crate) struct Queues {
    by_name: Mutex<ByName>,
    /// How many names there are, so that a run that nobody waits for takes no lock.
    names: AtomicUsize,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, ByName> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn are_empty(&self) -> bool {
        self.names.load(Ordering::Acquire) == 0
    }

    pub(crate) fn enter<'a>(&'a self, name: &'a LockName, slots: u32) -> Place<'a> {
        let mut by_name = self.lock();
        let queues = by_name.entry(name.clone()).or_default();
        let queue = if let Some((_, queue)) = queues.iter().find(|(of, _)| *of == slots) {
            queue.clone()
        } else {
            let queue = Arc::new(Queue::new(slots));
            queues.push((slots, queue.clone()));
            queue
        };
        self.names.store(by_name.len(), Ordering::Release);
        Place {
            queues: self,
            name,
            queue,
        }
    }

    /// Ends the waits in all queues there are.
    pub(crate) fn close(&self) {
        let queues = self.lock();
        let each = queues.values().flatten();
        let turns: Vec<_> = each.map(|(_, queue)| queue.turn.clone()).collect();
        // Not under the lock, which those who are woken need to leave.
        drop(queues);
        for turn in turns {
            turn.close();
        }
    }

    /// Whether somebody waits for `name` among those who ask for this many slots.
    pub(crate) fn has(&self, name: &LockName, slots: u32) -> bool {
        if self.are_empty() {
            return false;
        }
        let by_name = self.lock();
        let queues = by_name.get(name);
        queues.is_some_and(|queues| queues.iter().any(|(of, _)| *of == slots))
    }

    /// Tells the waiters of `name` in this process about a release by this process, which needs no detour through the
    /// store.
    pub(crate) fn tell(&self, name: &LockName, hint: Hint) {
        if self.are_empty() {
            return;
        }
        if let Some(queues) = self.lock().get(name) {
            for (_, queue) in queues {
                queue.sender.push(hint);
            }
        }
    }

    /// How many watches this process has open in the store for `name`.
    pub(crate) fn watches(&self, name: &LockName) -> u32 {
        self.lock().get(name).map_or(0, |queues| {
            let open = |(_, queue): &&(u32, Arc<Queue>)| queue.watched.load(Ordering::Acquire);
            u32::try_from(queues.iter().filter(open).count()).unwrap_or(u32::MAX)
        })
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// A task's place in a queue; left when dropped.
pub(crate) struct Place<'a> {
    queues: &'a Queues,
    name: &'a LockName,
    pub(crate) queue: Arc<Queue>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut by_name = self.queues.lock();
        // The map's own reference and this one: nobody else is in the queue.
        if Arc::strong_count(&self.queue) == 2
            && let Some(queues) = by_name.get_mut(self.name)
        {
            queues.retain(|(_, queue)| !Arc::ptr_eq(queue, &self.queue));
            if queues.is_empty() {
                by_name.remove(self.name);
                self.queues.names.store(by_name.len(), Ordering::Release);
            }
        }
    }
}

pub(crate) struct Queue {
    /// Held by the first in the queue: one permit, in the order of arrival. Closed by a shutdown, which wakes them all.
    pub(crate) turn: Arc<Semaphore>,
    /// For who has the turn.
    pub(crate) talk: tokio::sync::Mutex<Talk>,
    /// Held by those who ask at the end of their wait without ever having become the first: as many at a time as there
    /// are slots to be had.
    pub(crate) last_call: Semaphore,
    answer: Mutex<Option<Answer>>,
    sender: HintSender,
    watched: AtomicBool,
}

/// The last answer to a claim of this queue.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) asked: Instant,
    pub(crate) result: Result<Full, StoreError>,
}

/// All slots were found taken.
#[derive(Clone)]
pub(crate) struct Full {
    /// When the first of them is free if nobody extends.
    pub(crate) until: Instant,
    pub(crate) revision: Revision,
    pub(crate) holder: Option<NodeId>,
}

impl Full {
    pub(crate) fn retry_after(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// What the first in the queue knows, handed to its successor.
pub(crate) struct Talk {
    /// Set while the slots are known to be taken: asking again is not worth it yet.
    pub(crate) full: Option<Full>,
    watching: Option<Watching>,
    hints: Hints,
}

impl Queue {
    fn new(slots: u32) -> Self {
        let (sender, hints) = hints();
        Self {
            turn: Arc::new(Semaphore::new(1)),
            talk: tokio::sync::Mutex::new(Talk {
                full: None,
                watching: None,
                hints,
            }),
            last_call: Semaphore::new(slots as usize),
            answer: Mutex::new(None),
            sender,
            watched: AtomicBool::new(false),
        }
    }

    pub(crate) fn note(&self, asked: Instant, result: Result<Full, StoreError>) {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.as_ref().is_none_or(|earlier| earlier.asked <= asked) {
            *answer = Some(Answer { asked, result });
        }
    }

    pub(crate) fn answer(&self) -> Option<Answer> {
        self.answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sleeps until asking again is worth it: a release was told, the first lease must have ended, or `deadline`. Since
    /// when a slot is free, if that was told.
    pub(crate) async fn news<S: LeaseStore>(
        &self,
        talk: &mut Talk,
        store: &S,
        (name, label): (&LockName, &Label),
        deadline: Instant,
        command_timeout: Duration,
    ) -> Option<Instant> {
        let mut full = talk.full.take()?;
        let mut freed = None;
        // So that the waiters of many processes do not ask in the same instant.
        let jitter = Duration::from_millis(1) + chance::below(MAX_JITTER, full.revision.get());
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            if talk.watching.is_none() {
                let asked = Instant::now();
                let limit = deadline.min(asked + command_timeout);
                let watch = Box::pin(store.watch(name, full.revision, self.sender.clone()));
                // Hints only ever shorten the sleep; without them the times below still hold.
                match tokio::time::timeout_at(limit, watch).await {
                    Ok(Ok(watching)) => {
                        talk.watching = Some(watching);
                        self.watched.store(true, Ordering::Release);
                    }
                    Ok(Err(error)) => tell_no_hints(label, &error),
                    Err(_) => tell_no_hints(label, &StoreError::no_answer(limit - asked)),
                }
            }
            let wake = (full.until + jitter).min(deadline);
            tokio::select! {
                biased;
                news = talk.hints.news() => match news {
                    News::Changed | News::Missed => return None,
                    News::Released { revision, .. } if revision <= full.revision => {}
                    // The revision that is known stays: of several slots, one that was released earlier may be told
                    // later, and be free sooner.
                    News::Released { free_at, .. } => {
                        freed = Some(freed.map_or(free_at, |earlier: Instant| earlier.min(free_at)));
                        if free_at <= Instant::now() {
                            return freed;
                        }
                        full.until = full.until.min(free_at);
                    }
                },
                // A store that could not tell may be able to a little later.
                () = tokio::time::sleep(backoff.pause()), if talk.watching.is_none() => {
                    backoff.take();
                }
                () = tokio::time::sleep_until(wake) => {
                    let now = Instant::now();
                    if now < full.until {
                        talk.full = Some(full);
                    }
                    return freed.filter(|freed| *freed <= now);
                }
            }
        }
    }
}

/// How long to wait before a store that could not tell of releases is asked to once more.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const MAX_JITTER: Duration = Duration::from_millis(5);
