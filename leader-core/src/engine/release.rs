//! Letting go: of a tenure, and of an attempt whose answer was not seen. What cannot be finished at once goes on in
//! the background, and the next attempt at the same name waits for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::tenure::{Phase, Tenure, kept};
use super::{Engine, here};
use crate::error::{LeaderError, LossReason, Step};
use crate::label::Label;
use crate::name::LockName;
use crate::store::{Hint, LeaseStore, Release, ReleaseReply, StoreError};
use crate::token::Token;

/// For how long a store refuses claims of a token that was ended while one might be on its way: far longer than any
/// client or network keeps a request.
const MARK: Duration = Duration::from_secs(60);

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl<S: LeaseStore> Engine<S> {
    /// One try to end a closed tenure; if the store does not confirm, more of them in the background.
    pub(super) async fn end(self: &Arc<Self>, tenure: &Arc<Tenure>) -> Result<(), LeaderError> {
        self.keepers.leave(tenure);
        if let Err(error) = here() {
            self.end_behind(tenure);
            return Err(error);
        }
        let limit = self.command_timeout;
        // An extension in flight finishes first, so that it cannot arrive after the release.
        let _ = tokio::time::timeout(limit, tenure.gate.acquire()).await;
        match self.send_end(tenure).await {
            Ok(reply) => {
                self.ended(tenure, Some(reply));
                match reply {
                    ReleaseReply::Released { .. } => Ok(()),
                    ReleaseReply::NotHeld(reason) => Err(tenure.lost_error(reason)),
                }
            }
            Err(error) => {
                self.failed(Step::Release, tenure, &error);
                self.end_behind(tenure);
                Err(LeaderError::backend(
                    Step::Release,
                    Some(&tenure.id.name),
                    error,
                ))
            }
        }
    }

    /// Ends a tenure from where nothing can be awaited.
    pub(super) fn end_behind(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        self.keepers.leave(tenure);
        if !self.is_held(tenure) {
            return;
        }
        let over = match tenure.phase_now() {
            Phase::Lost(LossReason::Taken | LossReason::Deleted) => true,
            _ => Instant::now() >= tenure.times.store_end(),
        };
        // A claim that may still arrive has to find a mark, also when the lease itself is over.
        if self.closed.is_cancelled() || (over && !tenure.uncertain) {
            self.ended(tenure, None);
        } else if let Some(reply) = self.end_now(tenure) {
            self.ended(tenure, Some(reply));
        } else {
            let settling = Settlements::begin(&self.settlements, &tenure.id.name);
            let ending = Ending {
                engine: self.clone(),
                tenure: tenure.clone(),
            };
            let insist = async move {
                let Ending { engine, tenure } = &ending;
                let mut until = tenure.times.store_end();
                if tenure.uncertain {
                    until = until.max(Instant::now() + kept(tenure.lease));
                }
                let send = || engine.send_end(tenure);
                let reply = engine.insist(settling, &tenure.label, until, send).await;
                engine.ended(tenure, reply);
            };
            self.tracker
                .spawn_on(self.background.wrap(insist), &tenure.runtime);
        }
    }

    /// Undoes what a claim whose answer was not seen may have done, or may do when it arrives late.
    pub(super) fn abandon(
        self: &Arc<Self>,
        name: &LockName,
        label: &Label,
        token: Token,
        until: Instant,
        runtime: &Handle,
    ) {
        if self.closed.is_cancelled() {
            return;
        }
        let release = Release::abandoned(name.clone(), token, MARK);
        if let Some(reply) = self.store.release_now(&release) {
            self.tell_waiters(name, Duration::ZERO, reply, runtime);
            return;
        }
        let settling = Settlements::begin(&self.settlements, name);
        let (engine, label, after) = (self.clone(), label.clone(), runtime.clone());
        let insist = async move {
            let send = || engine.send_release(&release, &label);
            if let Some(reply) = engine.insist(settling, &label, until, send).await {
                engine.tell_waiters(&release.name, Duration::ZERO, reply, &after);
            }
        };
        self.tracker.spawn_on(self.background.wrap(insist), runtime);
    }

    /// Sends a release again and again until the store has answered, or until there is nothing left to release.
    async fn insist<T>(
        &self,
        settling: Settling,
        label: &Label,
        until: Instant,
        send: impl Fn() -> T,
    ) -> Option<ReleaseReply>
    where
        T: Future<Output = Result<ReleaseReply, StoreError>>,
    {
        let mut settling = Some(settling);
        let mut pause = FIRST_PAUSE;
        loop {
            let reply = tokio::select! {
                biased;
                () = self.closed.cancelled() => return None,
                reply = send() => reply,
            };
            let error = match reply {
                Ok(reply) => return Some(reply),
                Err(error) => error,
            };
            // Whoever waits for this release waits for one try; the next may be long in coming.
            settling.take();
            if Instant::now() + pause >= until {
                self.tell_given_up(label, &error);
                return None;
            }
            let _ = tokio::time::timeout(pause, self.closed.cancelled()).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sends the release of a tenure once.
    async fn send_end(&self, tenure: &Tenure) -> Result<ReleaseReply, StoreError> {
        tenure.releases.fetch_add(1, Ordering::AcqRel);
        let reply = self.send_release(&request(tenure), &tenure.label).await;
        if reply.as_ref().is_err_and(|error| !error.may_have_run()) {
            tenure.releases.fetch_sub(1, Ordering::AcqRel);
        }
        reply
    }

    /// As [`send_end`](Self::send_end), without waiting, if the store can.
    fn end_now(&self, tenure: &Tenure) -> Option<ReleaseReply> {
        let reply = self.store.release_now(&request(tenure))?;
        tenure.releases.fetch_add(1, Ordering::AcqRel);
        Some(reply)
    }

    async fn send_release(
        &self,
        release: &Release,
        label: &Label,
    ) -> Result<ReleaseReply, StoreError> {
        let limit = self.command_timeout;
        let reply = tokio::time::timeout(limit, self.store.release(release))
            .await
            .unwrap_or_else(|_| Err(StoreError::no_answer(limit)));
        if let Err(error) = &reply {
            self.tell_not_released(label, error);
        }
        reply
    }

    /// The tenure is over in the store, or there is nothing more to be done about it.
    pub(super) fn ended(&self, tenure: &Tenure, reply: Option<ReleaseReply>) {
        if !self.forget(tenure) {
            return;
        }
        let Some(reply) = reply else {
            return;
        };
        self.tell_waiters(&tenure.id.name, tenure.keep(), reply, &tenure.runtime);
        match reply {
            // Told as lost already.
            _ if tenure.phase_now() != Phase::Closed => {}
            // An earlier release, whose answer was not seen, has done it.
            ReleaseReply::NotHeld(_) if tenure.releases.load(Ordering::Acquire) > 1 => {
                self.tell_released(tenure);
            }
            ReleaseReply::Released { .. } => self.tell_released(tenure),
            ReleaseReply::NotHeld(reason) => self.tell_gone(tenure, reason),
        }
    }

    /// Wakes this process's own waiters, which need no detour through the store, and lets others go first if the
    /// store has told any.
    fn tell_waiters(
        &self,
        name: &LockName,
        free_in: Duration,
        reply: ReleaseReply,
        runtime: &Handle,
    ) {
        let ReleaseReply::Released { revision, told } = reply else {
            return;
        };
        if free_in.is_zero() && told > self.queues.watches(name) {
            Courtesy::begin(&self.courtesy, name, runtime);
        }
        self.queues.tell(name, Hint::Released { revision, free_in });
    }
}

/// A release under way in the background. Dropped before it is over, with its runtime, nobody will see to it any more:
/// the slot ends with its lease, and the tenure is forgotten.
struct Ending<S: LeaseStore> {
    engine: Arc<Engine<S>>,
    tenure: Arc<Tenure>,
}

impl<S: LeaseStore> Drop for Ending<S> {
    fn drop(&mut self) {
        self.engine.ended(&self.tenure, None);
    }
}

fn request(tenure: &Tenure) -> Release {
    let id = &tenure.id;
    let request = Release::new(id.name.clone(), tenure.token, id.slot).keeping(tenure.keep());
    if tenure.uncertain {
        request.marking(MARK)
    } else {
        request
    }
}

/// Releases under way in the background, by name. The next attempt of this process at such a name waits for the first
/// try of each: whoever drops a lease and asks again must not be told that somebody leads who was itself.
#[derive(Default)]
pub(crate) struct Settlements {
    by_name: Mutex<HashMap<LockName, Vec<CancellationToken>>>,
    /// How many names there are, so that the usual case takes no lock.
    names: AtomicUsize,
}

/// A release under way; over when dropped.
pub(crate) struct Settling {
    settlements: Arc<Settlements>,
    name: LockName,
    over: CancellationToken,
}

impl Settlements {
    fn lock(&self) -> MutexGuard<'_, HashMap<LockName, Vec<CancellationToken>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(this: &Arc<Self>, name: &LockName) -> Settling {
        let over = CancellationToken::new();
        let mut by_name = this.lock();
        by_name.entry(name.clone()).or_default().push(over.clone());
        this.names.store(by_name.len(), Ordering::Release);
        Settling {
            settlements: this.clone(),
            name: name.clone(),
            over,
        }
    }

    /// Waits until the releases of `name` that are under way now are over. Those that begin later are not waited for:
    /// there may always be another.
    pub(crate) async fn settled(&self, name: &LockName) {
        if self.names.load(Ordering::Acquire) == 0 {
            return;
        }
        let under_way = self.lock().get(name).cloned().unwrap_or_default();
        for over in under_way {
            over.cancelled().await;
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        // Fired first, which is how it is known from the others.
        self.over.cancel();
        let mut by_name = self.settlements.lock();
        if let Some(under_way) = by_name.get_mut(&self.name) {
            under_way.retain(|over| !over.is_cancelled());
            if under_way.is_empty() {
                by_name.remove(&self.name);
            }
        }
        self.settlements
            .names
            .store(by_name.len(), Ordering::Release);
    }
}

/// Names that this process has just released while others waited for them in the store. It lets them go first for a
/// moment: a holder that asks again without a gap, or a process with a long queue of its own, would otherwise always
/// be faster than anybody who has yet to be told.
#[derive(Default)]
pub(crate) struct Courtesy {
    until: Mutex<HashMap<LockName, Instant>>,
    names: AtomicUsize,
}

impl Courtesy {
    /// A few round trips of a local network.
    const PAUSE: Duration = Duration::from_millis(10);

    fn lock(&self) -> MutexGuard<'_, HashMap<LockName, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(this: &Arc<Self>, name: &LockName, runtime: &Handle) {
        let until = Instant::now() + Self::PAUSE;
        let mut names = this.lock();
        let begun = names.insert(name.clone(), until).is_none();
        this.names.store(names.len(), Ordering::Release);
        drop(names);
        if begun {
            let pause = Pause {
                courtesy: this.clone(),
                name: name.clone(),
            };
            runtime.spawn(async move { pause.courtesy.over(&pause.name).await });
        }
    }

    async fn over(&self, name: &LockName) {
        while let Some(until) = self.until(name)
            && Instant::now() < until
        {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Until when others go first.
    pub(crate) fn until(&self, name: &LockName) -> Option<Instant> {
        if self.names.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.lock().get(name).copied()
    }
}

/// The task that ends a pause; over when dropped, with its runtime as well.
struct Pause {
    courtesy: Arc<Courtesy>,
    name: LockName,
}

impl Drop for Pause {
    fn drop(&mut self) {
        let mut names = self.courtesy.lock();
        names.remove(&self.name);
        self.courtesy.names.store(names.len(), Ordering::Release);
    }
}
