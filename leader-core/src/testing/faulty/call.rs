//! The life of one call: on its way, in the store, and on its way back.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::FaultyStore;
use super::ask::{Ask, Watch};
use super::fault::{Copy, Course, Failure};
use super::faults::{LetGo, Shared};
use super::log::{Call, Happened, Part};
use crate::hints::{Hint, HintSender, Hints, News, hints};
use crate::store::{LeaseStore, Release, ReleaseReply, StoreError, Watching};

impl<S: LeaseStore> FaultyStore<S> {
    pub(super) async fn call<A: Ask>(&self, ask: A) -> A::Answer {
        let (call, course) = self.faults.shared.ask(ask.request());
        self.take_course(call, course, ask).await
    }

    pub(super) async fn call_watch(&self, mut ask: Watch) -> Result<Watching, StoreError> {
        let (call, course) = self.faults.shared.ask(ask.request());
        if !course.hints_lost && course.hints_delay.is_zero() {
            return self.take_course(call, course, ask).await;
        }
        let (sender, told) = hints();
        let watcher = std::mem::replace(&mut ask.hints, sender);
        let lost = course.hints_lost.then(|| {
            let (go, lost) = oneshot::channel();
            self.faults.shared.hold(&call, Part::Hints, LetGo::Wake(go));
            lost
        });
        let delay = course.hints_delay;
        let watching = self.take_course(call, course, ask).await?;
        let relay = tokio::spawn(async move {
            let mut told = told;
            if let Some(lost) = lost {
                if lost.await.is_err() {
                    return;
                }
                // What was told until now is lost.
                let _ = told.told().now_or_never();
                watcher.push(Hint::Missed);
            }
            relay(told, watcher, delay).await;
        });
        let end = AbortOnDrop(relay.abort_handle());
        let tells_grants = watching.tells_grants();
        let relayed = Watching::new((watching, end));
        Ok(if tells_grants {
            relayed.of_grants()
        } else {
            relayed
        })
    }

    async fn take_course<A: Ask>(&self, call: Call, course: Course, ask: A) -> A::Answer {
        let shared = &self.faults.shared;
        let mut answering = Answering {
            shared,
            call: &call,
            answered: false,
        };
        let sending = Sending {
            store: self.store.clone(),
            shared: Arc::downgrade(shared),
            call: call.clone(),
            ask,
        };
        let failed = |error| sending.ask.failed(error);
        let answer = match course.failure {
            Some(Failure::Refused(kind)) => {
                if course.request_held {
                    shared.held(&call, Part::Request).await;
                }
                sleep(course.request_delay).await;
                let error = StoreError::new(kind, "refused, as the test has ordered");
                failed(error.not_run())
            }
            Some(Failure::RequestLost(kind)) => {
                let reason = "no answer: the request was lost, as the test has ordered";
                failed(StoreError::new(kind, reason))
            }
            None => sending.send(&course).await,
            Some(Failure::ReplyLost(kind)) => {
                sending.send(&course).await;
                let reason = "no answer: the reply was lost, as the test has ordered";
                failed(StoreError::new(kind, reason))
            }
        };
        if course.reply_held {
            shared.held(&call, Part::Reply).await;
        }
        sleep(course.reply_delay).await;
        answering.answered = true;
        shared.note(
            call.number,
            call.request.step(),
            Happened::Answered(A::reply(&answer)),
        );
        answer
    }

    pub(super) fn release_past_faults(
        &self,
        release: &Release,
        now: Instant,
    ) -> Option<ReleaseReply> {
        let shared = &self.faults.shared;
        if !shared.lets_release_now_pass() {
            return None;
        }
        let reply = self.store.release_now(release, now)?;
        let (call, _) = shared.ask(release.request());
        let told = Release::reply(&Ok(reply));
        let step = call.request.step();
        shared.note(call.number, step, Happened::Ran(told.clone()));
        shared.note(call.number, step, Happened::Answered(told));
        Some(reply)
    }
}

/// A request on its way to the store. It does not keep the handle of the test alive: what is held when the test is
/// over is never let go, and ends.
struct Sending<S, A> {
    store: Arc<S>,
    shared: Weak<Shared>,
    call: Call,
    ask: A,
}

impl<S, A: Clone> Clone for Sending<S, A> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            shared: self.shared.clone(),
            call: self.call.clone(),
            ask: self.ask.clone(),
        }
    }
}

impl<S: LeaseStore, A: Ask> Sending<S, A> {
    /// Sends the request: the answer, as the store gave it.
    async fn send(&self, course: &Course) -> A::Answer {
        if !course.travels() {
            return self.arrive(course).await;
        }
        let (answer, answered) = oneshot::channel();
        let (sending, way) = (self.clone(), course.clone());
        let journey = async move {
            sleep(way.request_delay).await;
            // Whoever sent it may have given up.
            let _ = answer.send(sending.arrive(&way).await);
        };
        // On its way, it is out of its caller's hands.
        if course.request_held {
            self.hold(Part::Request, journey);
        } else {
            tokio::spawn(journey);
        }
        match answered.await {
            Ok(answer) => answer,
            // The test is over, or its runtime is, and with it whoever waits here.
            Err(_) => std::future::pending().await,
        }
    }

    /// Runs `journey` when it is let go. It becomes a task only then, so that what is let go arrives in that order.
    fn hold(&self, part: Part, journey: impl Future<Output = ()> + Send + 'static) {
        let runtime = Handle::current();
        let go = move || drop(runtime.spawn(journey));
        if let Some(shared) = self.shared.upgrade() {
            shared.hold(&self.call, part, LetGo::Send(Box::new(go)));
        }
    }

    async fn arrive(&self, course: &Course) -> A::Answer {
        let answer = self.run().await;
        for copy in &course.copies {
            let sending = self.clone();
            match *copy {
                Copy::After(delay) if delay.is_zero() => drop(self.run().await),
                Copy::After(delay) => drop(tokio::spawn(async move {
                    sleep(delay).await;
                    sending.run().await;
                })),
                Copy::WhenLetGo => self.hold(Part::Repeat, async move {
                    sending.run().await;
                }),
            }
        }
        answer
    }

    async fn run(&self) -> A::Answer {
        let answer = self.ask.run(&*self.store).await;
        if let Some(shared) = self.shared.upgrade() {
            let ran = Happened::Ran(A::reply(&answer));
            shared.note(self.call.number, self.call.request.step(), ran);
        }
        answer
    }
}

/// A call without an answer; given up when dropped so.
struct Answering<'a> {
    shared: &'a Shared,
    call: &'a Call,
    answered: bool,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        if !self.answered {
            let step = self.call.request.step();
            self.shared.note(self.call.number, step, Happened::GivenUp);
        }
    }
}

/// Passes on what is told, late.
async fn relay(mut told: Hints, watcher: HintSender, delay: Duration) {
    loop {
        let news = told.news().await;
        sleep(delay).await;
        watcher.push(match news {
            News::Released { revision, free_at } => Hint::Released {
                revision,
                free_in: free_at.saturating_duration_since(Instant::now()),
            },
            News::Changed => Hint::Changed,
            News::Missed => Hint::Missed,
        });
    }
}

/// Ends a task with the watch that it serves.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sleeps, but does not give way for no time at all: a call without a fault is as quick as its store.
async fn sleep(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}
