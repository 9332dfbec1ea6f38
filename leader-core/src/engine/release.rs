//! Letting go: of a tenure, and of an attempt whose answer was not seen. What cannot be finished at once goes on in
//! the background, and the next attempt at the same name waits for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::courtesy::Courtesy;
use super::settlements::{Settlements, Settling};
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
                self.ended(tenure, reply, Instant::now());
                answer(tenure, reply)
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

    /// As [`end`](Self::end), without waiting, if the store can and no extension is in flight.
    pub(super) fn end_now(&self, tenure: &Tenure, now: Instant) -> Option<Result<(), LeaderError>> {
        self.keepers.leave(tenure);
        if tenure.gate.available_permits() == 0 {
            return None;
        }
        let reply = self.send_end_now(tenure, now)?;
        self.ended(tenure, reply, now);
        Some(answer(tenure, reply))
    }

    /// Ends a tenure from where nothing can be awaited.
    pub(super) fn end_behind(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        self.keepers.leave(tenure);
        if !self.held.has(tenure) {
            return;
        }
        let now = Instant::now();
        let over = match tenure.phase_now() {
            Phase::Lost(LossReason::Taken | LossReason::Deleted) => true,
            _ => now >= tenure.times.store_end(),
        };
        // A claim that may still arrive has to find a mark, also when the lease itself is over.
        if self.closed.is_cancelled() || (over && !tenure.uncertain) {
            self.forget(tenure);
        } else if let Some(reply) = self.send_end_now(tenure, now) {
            self.ended(tenure, reply, now);
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
                if let Some(reply) = engine.insist(settling, &tenure.label, until, send).await {
                    engine.ended(tenure, reply, Instant::now());
                }
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
        if let Some(reply) = self.store.release_now(&release, Instant::now()) {
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
        let mut backoff = Backoff::of_a_step();
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
            let pause = backoff.take();
            if Instant::now() + pause >= until {
                self.tell_given_up(label, &error);
                return None;
            }
            let _ = tokio::time::timeout(pause, self.closed.cancelled()).await;
        }
    }

    /// Sends the release of a tenure once.
    async fn send_end(&self, tenure: &Tenure) -> Result<ReleaseReply, StoreError> {
        tenure.releases.fetch_add(1, Ordering::AcqRel);
        let release = request(tenure, Instant::now());
        let reply = self.send_release(&release, &tenure.label).await;
        if reply.as_ref().is_err_and(|error| !error.may_have_run()) {
            tenure.releases.fetch_sub(1, Ordering::AcqRel);
        }
        reply
    }

    /// As [`send_end`](Self::send_end), without waiting, if the store can.
    fn send_end_now(&self, tenure: &Tenure, now: Instant) -> Option<ReleaseReply> {
        let reply = self.store.release_now(&request(tenure, now), now)?;
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

    /// The tenure is over in the store.
    fn ended(&self, tenure: &Tenure, reply: ReleaseReply, now: Instant) {
        if !self.forget(tenure) {
            return;
        }
        self.tell_waiters(&tenure.id.name, tenure.keep(now), reply, &tenure.runtime);
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
        if free_in.is_zero() && told > 0 && told > self.queues.watches(name) {
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
        self.engine.forget(&self.tenure);
    }
}

/// What a release came to, for who let go.
fn answer(tenure: &Tenure, reply: ReleaseReply) -> Result<(), LeaderError> {
    match reply {
        ReleaseReply::Released { .. } => Ok(()),
        ReleaseReply::NotHeld(reason) => Err(tenure.lost_error(reason)),
    }
}

fn request(tenure: &Tenure, now: Instant) -> Release {
    let id = &tenure.id;
    let request = Release::new(id.name.clone(), tenure.token, id.slot).keeping(tenure.keep(now));
    if tenure.uncertain {
        request.marking(MARK)
    } else {
        request
    }
}
