//! Standing for election: one attempt, from the first claim to a lease, a skip, or an error.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::backoff::Backoff;
use super::meter::Held;
use super::queue::{Full, Queue};
use super::tenure::{BoxFuture, Tenure, Times, in_place, kept, validity};
use super::{Engine, far_from, here};
use crate::error::{BackendKind, LeaderError, Step};
use crate::event::TenureId;
use crate::label::Label;
use crate::lease::Lease;
use crate::name::LockName;
use crate::options::LeaseOptions;
use crate::outcome::{Acquisition, Skipped};
use crate::span::Around;
use crate::store::{Claim, ClaimReply, LeaseStore, Revision, StoreError};
use crate::token::FencingToken;

/// Waits that end within this time of each other rest on one answer: however many give up, they ask twenty times a
/// second at most.
const SHARED: Duration = Duration::from_millis(50);

impl<S: LeaseStore> Engine<S> {
    #[expect(
        clippy::manual_async_fn,
        reason = "the future of an async function has room for each argument twice, and thousands of tasks may wait in it"
    )]
    pub(super) fn acquire<'a>(
        self: &'a Arc<Self>,
        name: &'a LockName,
        options: &'a LeaseOptions,
    ) -> impl Future<Output = Result<Acquisition, LeaderError>> + Send + 'a {
        async move {
            if self.is_closing() {
                return Err(LeaderError::ShutDown);
            }
            // For the timers; the runtime itself is asked for again where it is needed, which saves keeping it.
            here()?;
            // Dropped last: a shutdown waits until the attempt has left what it has to undo to the background.
            let _under_way = self.tracker.token();
            let (_standing, span) = {
                let label = Label::new(name, options);
                let span = Around::standing(&label, &self.node_id, options.slots());
                (self.meter.standing(&label), span)
            };
            let acquired = span.future(self.stand(name, options)).await;
            self.acquired(name, &Label::new(name, options), acquired)
        }
    }

    /// One attempt. Whoever waits in the queue has nothing in the future but a place there: what asks the store is made,
    /// in a box, when there is something to ask.
    #[expect(clippy::manual_async_fn, reason = "as for `acquire`")]
    fn stand<'a>(
        self: &'a Arc<Self>,
        name: &'a LockName,
        options: &'a LeaseOptions,
    ) -> impl Future<Output = Result<Acquisition, LeaderError>> + Send + 'a {
        async move {
            let begun = Instant::now();
            if options.wait().is_zero() {
                let attempt = Attempt::new(self, name, options, begun)?;
                let asking = in_place(|| attempt.ask_once());
                return self.unless_closing(name, asking).await;
            }
            let place = self.queues.enter(name, options.slots());
            // Looked for after entering: a shutdown closes the queues that it finds.
            if self.is_closing() {
                return Err(LeaderError::ShutDown);
            }
            let deadline = far_from(begun, options.wait());
            let turn = match timeout_at(deadline, place.queue.turn.acquire()).await {
                Ok(Ok(turn)) => Some(turn),
                Ok(Err(_closed)) => return Err(LeaderError::ShutDown),
                Err(_) => None,
            };
            let attempt = Attempt::new(self, name, options, begun)?;
            let asking = match turn {
                Some(turn) => in_place(|| attempt.talk(&place.queue, turn)),
                None => in_place(|| attempt.last_call(&place.queue)),
            };
            self.unless_closing(name, asking).await
        }
    }

    /// What talks to the store, as long as no shutdown begins.
    async fn unless_closing(
        &self,
        name: &LockName,
        asking: BoxFuture<'_, Result<Acquisition, StoreError>>,
    ) -> Result<Acquisition, LeaderError> {
        tokio::select! {
            biased;
            acquired = asking => {
                acquired.map_err(|error| LeaderError::backend(Step::Claim, Some(name), error))
            }
            () = self.closing.cancelled() => Err(LeaderError::ShutDown),
        }
    }

    /// As [`acquire`](Self::acquire), without waiting: `None` when this cannot be done, in which case nothing has been.
    pub(super) fn acquire_now(
        self: &Arc<Self>,
        name: &LockName,
        options: &LeaseOptions,
    ) -> Option<Result<Acquisition, LeaderError>> {
        let waits = !options.wait().is_zero();
        let others_first = self.courtesy.until(name).is_some()
            || self.settlements.has(name)
            || (waits && self.queues.has(name, options.slots()));
        if self.is_closing() || others_first {
            return None;
        }
        let runtime = self.runtime().ok()?;
        let now = Instant::now();
        let claim = self.new_claim(name, options, now);
        let reply = self.store.claim_now(&claim, now)?;
        // Who waits begins with a claim of its own, and a token that was given up is no use to anybody.
        if matches!(reply, ClaimReply::Taken { .. } if waits) || reply == ClaimReply::Ended {
            return None;
        }
        let label = Label::new(name, options);
        let _standing = self.meter.standing(&label);
        let span = Around::standing(&label, &self.node_id, options.slots());
        match reply {
            ClaimReply::Granted { slot, fence } => {
                let grant = Grant {
                    claim,
                    slot,
                    fence,
                    sent: now,
                    // The store went by the same look at the clock.
                    answered: now,
                    begun: now,
                    freed: None,
                    uncertain: false,
                };
                let lease = span.inside(|| self.grant(grant, label, options, runtime));
                if !self.is_closing() {
                    return Some(Ok(Acquisition::Elected(lease)));
                }
                let label = lease.tenure().label.clone();
                Some(self.acquired(name, &label, Ok(Acquisition::Elected(lease))))
            }
            ClaimReply::Taken {
                retry_after,
                holder,
                ..
            } => {
                let skipped = Skipped::new(holder, Some(retry_after));
                Some(self.acquired(name, &label, Ok(Acquisition::Skipped(skipped))))
            }
            ClaimReply::Ended => None,
        }
    }

    fn new_claim(&self, name: &LockName, options: &LeaseOptions, now: Instant) -> Claim {
        let token = self.tokens.fresh(now);
        Claim::new(name.clone(), self.node_id.clone(), token, options.lease())
            .of_slots(options.slots())
    }

    /// What an attempt comes to, told.
    fn acquired(
        &self,
        name: &LockName,
        label: &Label,
        acquired: Result<Acquisition, LeaderError>,
    ) -> Result<Acquisition, LeaderError> {
        // Elected while the elector shut down: whoever swept up the leases may not have seen this one.
        let acquired = match acquired {
            Ok(Acquisition::Elected(_)) if self.is_closing() => Err(LeaderError::ShutDown),
            acquired => acquired,
        };
        self.tell_acquired(name, label, &acquired);
        acquired
    }

    /// A grant becomes a lease.
    fn grant(
        self: &Arc<Self>,
        grant: Grant,
        label: Label,
        options: &LeaseOptions,
        runtime: Handle,
    ) -> Lease {
        let (claim, sent, now) = (grant.claim, grant.sent, grant.answered);
        let lease = claim.lease;
        let times = Times::new(lease, sent, now);
        let held = Held::begin(&label, grant.begun, grant.freed);
        let tenure = Tenure::new(
            self.next_key(),
            self.id,
            TenureId {
                name: claim.name,
                node_id: claim.node_id,
                slot: grant.slot,
                fence: grant.fence,
            },
            claim.token,
            grant.uncertain,
            options,
            (label, held),
            (now, times),
            runtime,
            self.clone(),
        );
        self.hold(Arc::new(tenure))
    }
}

/// A claim that was granted, and when.
struct Grant {
    claim: Claim,
    slot: u32,
    fence: FencingToken,
    /// Taken before the request was sent: the lease is counted from here.
    sent: Instant,
    answered: Instant,
    begun: Instant,
    /// When the slot became free, where a release was told.
    freed: Option<Instant>,
    /// An earlier claim of the token may still arrive.
    uncertain: bool,
}

/// One attempt to be elected. Dropped before its end, it undoes what its claims may have done.
struct Attempt<'a, S: LeaseStore> {
    engine: &'a Arc<Engine<S>>,
    label: Label,
    options: &'a LeaseOptions,
    runtime: Handle,
    claim: Claim,
    begun: Instant,
    deadline: Instant,
    /// A claim was sent whose answer has not been seen: it may have been executed, or may yet be.
    uncertain: bool,
    last_sent: Instant,
    /// When a slot became free, where a release was told that this attempt has not yet asked after.
    freed: Option<Instant>,
}

/// What a claim brought.
enum Answer {
    Elected(Lease),
    Full(Full),
}

impl<'a, S: LeaseStore> Attempt<'a, S> {
    fn new(
        engine: &'a Arc<Engine<S>>,
        name: &LockName,
        options: &'a LeaseOptions,
        begun: Instant,
    ) -> Result<Self, LeaderError> {
        Ok(Self {
            engine,
            label: Label::new(name, options),
            options,
            runtime: engine.runtime()?,
            claim: engine.new_claim(name, options, Instant::now()),
            begun,
            deadline: far_from(begun, options.wait()),
            uncertain: false,
            last_sent: begun,
            freed: None,
        })
    }

    /// Exactly one claim, past the queue: who does not wait takes nobody's place in it.
    async fn ask_once(mut self) -> Result<Acquisition, StoreError> {
        if let Some(until) = self.engine.courtesy.until(&self.claim.name) {
            tokio::time::sleep_until(until.min(self.limit())).await;
        }
        Ok(match self.ask().await? {
            Answer::Elected(lease) => Acquisition::Elected(lease),
            Answer::Full(full) => skipped(&full),
        })
    }

    /// The first in the queue: asks whenever that is worth it, for the last time at the deadline.
    async fn talk(
        mut self,
        queue: &Queue,
        _turn: SemaphorePermit<'_>,
    ) -> Result<Acquisition, StoreError> {
        let engine = self.engine;
        let mut talk = queue.talk.lock().await;
        let name = self.claim.name.clone();
        let mut backoff = Backoff::of_a_step();
        loop {
            if let Some(until) = engine.courtesy.until(&name) {
                tokio::time::sleep_until(until.min(self.deadline)).await;
            }
            let asked = Instant::now();
            let last = asked >= self.deadline;
            // Others whose wait ended with this one may have asked already.
            if last
                && let Some(answer) = queue.answer()
                && answer.asked >= self.deadline
            {
                return answer.result.map(|full| skipped(&full));
            }
            if talk.full.is_none() || last {
                match self.ask().await {
                    Ok(Answer::Elected(lease)) => {
                        talk.full = self.full_with(&lease);
                        if let Some(full) = &talk.full {
                            queue.note(asked, Ok(full.clone()));
                        }
                        return Ok(Acquisition::Elected(lease));
                    }
                    Ok(Answer::Full(full)) => {
                        backoff = Backoff::of_a_step();
                        queue.note(asked, Ok(full.clone()));
                        if last {
                            return Ok(skipped(&full));
                        }
                        talk.full = Some(full);
                    }
                    Err(error) => {
                        queue.note(asked, Err(error.clone()));
                        talk.full = None;
                        let now = Instant::now();
                        let hopeless = self.options.fails_fast() || !error.kind().is_transient();
                        if last || now >= self.deadline || hopeless {
                            return Err(error);
                        }
                        engine.tell_asking_again(&self.label, &error);
                        tokio::time::sleep_until(self.deadline.min(now + backoff.take())).await;
                        continue;
                    }
                }
            }
            self.freed = queue
                .news(
                    &mut talk,
                    &engine.store,
                    (&name, &self.label),
                    self.deadline,
                    engine.command_timeout,
                )
                .await;
        }
    }

    /// The wait is over and this task never became the first in its queue. Its end must rest on an answer of about
    /// now: the last one the queue got, or, shared by all whose wait ends together, a claim of its own.
    async fn last_call(mut self, queue: &Queue) -> Result<Acquisition, StoreError> {
        let limit = self.limit();
        let Ok(_place) = timeout_at(limit, queue.last_call.acquire()).await else {
            return Err(StoreError::no_answer(self.engine.command_timeout));
        };
        // Of one slot, the first in the queue takes what is freed since an answer. Of several, it leaves the others.
        let shared = if self.claim.slots == 1 {
            SHARED
        } else {
            Duration::ZERO
        };
        let fresh = self.deadline.checked_sub(shared);
        // Never an answer from before this attempt began.
        let fresh = fresh.map_or(self.begun, |fresh| fresh.max(self.begun));
        if let Some(answer) = queue.answer()
            && answer.asked >= fresh
        {
            return answer.result.map(|full| skipped(&full));
        }
        let asked = Instant::now();
        let answer = self.ask().await;
        let known = match &answer {
            Ok(Answer::Elected(lease)) => self.full_with(lease).map(Ok),
            Ok(Answer::Full(full)) => Some(Ok(full.clone())),
            Err(error) => Some(Err(error.clone())),
        };
        if let Some(known) = known {
            queue.note(asked, known);
        }
        Ok(match answer? {
            Answer::Elected(lease) => Acquisition::Elected(lease),
            Answer::Full(full) => skipped(&full),
        })
    }

    /// What a queue knows after this attempt was granted `lease`: with one slot, the next need not ask to know that it
    /// is taken; with several, another may be free.
    fn full_with(&self, lease: &Lease) -> Option<Full> {
        (self.claim.slots == 1).then(|| Full {
            until: Instant::now() + self.options.lease(),
            revision: Revision::from(lease.fence()),
            holder: Some(self.claim.node_id.clone()),
        })
    }

    /// An attempt has its answer by then, whatever the store does.
    fn limit(&self) -> Instant {
        far_from(self.deadline, self.engine.command_timeout)
    }

    /// Sends the claim once.
    async fn ask(&mut self) -> Result<Answer, StoreError> {
        let engine = self.engine;
        let command_timeout = engine.command_timeout;
        let limit = self.limit();
        let settled = engine.settlements.settled(&self.claim.name);
        if timeout_at(limit, settled).await.is_err() {
            return Err(StoreError::no_answer(command_timeout).not_run());
        }
        // Taken before the request is sent: the lease is counted from here.
        let sent = Instant::now();
        let earlier = std::mem::replace(&mut self.uncertain, true);
        self.last_sent = sent;
        let limit = limit.min(sent + command_timeout);
        // Boxed, as is a watch: all who wait in a queue would have the whole of it in their own future.
        let claim = in_place(|| engine.store.claim(&self.claim));
        let Ok(reply) = timeout_at(limit, claim).await else {
            return Err(StoreError::no_answer(limit - sent));
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                self.uncertain = earlier || error.may_have_run();
                return Err(error);
            }
        };
        let now = Instant::now();
        match reply {
            ClaimReply::Granted { .. } if now >= sent + validity(self.claim.lease) => {
                // Still uncertain: a claim of the same token, or the end of this attempt, takes care of it.
                Err(StoreError::new(
                    BackendKind::TimedOut,
                    "the grant was answered after its lease had ended; lengthen the lease",
                ))
            }
            ClaimReply::Granted { slot, fence } => {
                let grant = Grant {
                    claim: self.claim.clone(),
                    slot,
                    fence,
                    sent,
                    answered: now,
                    begun: self.begun,
                    freed: self.freed,
                    uncertain: earlier,
                };
                let (label, runtime) = (self.label.clone(), self.runtime.clone());
                let lease = engine.grant(grant, label, self.options, runtime);
                self.uncertain = false;
                Ok(Answer::Elected(lease))
            }
            ClaimReply::Taken {
                retry_after,
                holder,
                revision,
            } => {
                self.uncertain = earlier;
                Ok(Answer::Full(Full {
                    until: far_from(now, retry_after),
                    revision,
                    holder,
                }))
            }
            ClaimReply::Ended => {
                // Only a store that mixes up tokens answers this to an attempt that goes on. With a fresh token the
                // next claim is a new one.
                let ended = std::mem::replace(&mut self.claim.token, engine.tokens.fresh(now));
                self.uncertain = false;
                engine.abandon(
                    &self.claim.name,
                    &self.label,
                    ended,
                    self.until(),
                    &self.runtime,
                );
                Err(StoreError::new(
                    BackendKind::MalformedReply,
                    "the store took a claim for one that had been given up",
                ))
            }
        }
    }

    /// Until when a claim of this attempt can hold a slot.
    fn until(&self) -> Instant {
        far_from(
            self.last_sent + self.engine.command_timeout,
            kept(self.claim.lease),
        )
    }
}

impl<S: LeaseStore> Drop for Attempt<'_, S> {
    fn drop(&mut self) {
        if self.uncertain {
            let until = self.until();
            self.engine.abandon(
                &self.claim.name,
                &self.label,
                self.claim.token,
                until,
                &self.runtime,
            );
        }
    }
}

fn skipped(full: &Full) -> Acquisition {
    Acquisition::Skipped(Skipped::new(full.holder.clone(), Some(full.retry_after())))
}
