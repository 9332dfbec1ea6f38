//! The cancellation matrix: acquire, body, extend, release and stream each ended at every await point. Afterwards the slot is
//! free in time, and nothing is left. On the local store every step yields a few times, so that there are points at
//! which to end it; on a real Redis, replies are held back.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, HintSender, LeaseStore, Release, ReleaseReply,
    Revision, StoreError, Watching,
};
use leader_core::testing::Footprint;
use leader_core::{ElectorExt, Holder, Lease, LocalStore, LockName, StoreElector};
use leader_redis::RedisStore;
use leader_tests::{
    Proxy, Server, at_once, elector_at, lead, ms, options, patient, until, waiting,
};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

/// Far less than the lease, which is a minute: who is let in, was let in by a release.
const IN_TIME: Duration = Duration::from_secs(10);

/// What is ended half-way.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Acquire,
    Wait,
    Body,
    Extend,
    Release,
    Stream,
}

const STAGES: [Stage; 6] = [
    Stage::Acquire,
    Stage::Wait,
    Stage::Body,
    Stage::Extend,
    Stage::Release,
    Stage::Stream,
];

/// Two candidates on one store.
struct Pair<S: LeaseStore> {
    cut: StoreElector<S>,
    next: StoreElector<S>,
}

impl<S: LeaseStore> Pair<S> {
    /// Begins `stage`, calls `ready` when it can go wrong, and drops it after `polls` polls, or when `patience` is over. Whether it
    /// ended by itself.
    async fn end_at(
        &self,
        stage: Stage,
        polls: usize,
        patience: Duration,
        ready: impl FnOnce(),
    ) -> bool {
        let ended = match stage {
            Stage::Acquire => {
                let once = at_once();
                ready();
                let acquiring = self.cut.try_acquire("x", &once);
                let acquired = timeout(patience, DropAtPoll::new(polls, acquiring)).await;
                acquired.ok().flatten().map(drop)
            }
            Stage::Wait => {
                let held = lead(&self.next, "x", &at_once()).await;
                let holder = tokio::spawn(give_way(held));
                let wait = patient();
                ready();
                let acquiring = self.cut.try_acquire("x", &wait);
                let acquired = timeout(patience, DropAtPoll::new(polls, acquiring)).await;
                let ended = acquired.ok().flatten().map(drop);
                holder.await.unwrap();
                ended
            }
            Stage::Body => {
                let inside = Arc::new(AtomicUsize::new(0));
                let once = at_once();
                let running = self.cut.run_if_leader("x", &once, |_| {
                    ready();
                    let inside = Inside::enter(&inside);
                    async move {
                        for _ in 0..5 {
                            yield_now().await;
                        }
                        drop(inside);
                    }
                });
                let ran = timeout(patience, DropAtPoll::new(polls, running)).await;
                let left = inside.load(Ordering::SeqCst);
                assert_eq!(left, 0, "the body outlived its run, ended at poll {polls}");
                ran.ok().flatten().map(drop)
            }
            Stage::Extend => {
                let lease = lead(&self.cut, "x", &at_once()).await;
                ready();
                let extending = lease.extend(Duration::from_secs(600));
                let extended = timeout(patience, DropAtPoll::new(polls, extending)).await;
                extended.ok().flatten().map(drop)
            }
            Stage::Release => {
                let lease = lead(&self.cut, "x", &at_once()).await;
                ready();
                let released = timeout(patience, DropAtPoll::new(polls, lease.release())).await;
                released.ok().flatten().map(drop)
            }
            Stage::Stream => {
                let inside = Arc::new(AtomicUsize::new(0));
                let once = at_once();
                let guarded = self.cut.guard_stream("x", &once, |_| {
                    ready();
                    let inside = Inside::enter(&inside);
                    futures::stream::unfold((0, inside), |(item, inside)| async move {
                        yield_now().await;
                        (item < 3).then_some((item, (item + 1, inside)))
                    })
                });
                let reading = guarded.for_each(|_| yield_now());
                let read = timeout(patience, DropAtPoll::new(polls, reading)).await;
                let left = inside.load(Ordering::SeqCst);
                assert_eq!(left, 0, "the stream outlived its end at poll {polls}");
                read.ok().flatten()
            }
        };
        ended.is_some()
    }

    /// The slot is free in time, and nothing is left.
    async fn all_is_well(&self, stage: Stage, polls: usize) {
        let begun = Instant::now();
        let wait = options(waiting(IN_TIME, Duration::from_secs(60)));
        let next = self.next.try_acquire("x", &wait).await.unwrap();
        let next = next.unwrap_or_else(|| panic!("{stage:?} ended at poll {polls}: still led"));
        assert!(begun.elapsed() < IN_TIME);
        next.release().await.unwrap();
        until("nothing is left", IN_TIME, async || {
            [&self.cut, &self.next].map(StoreElector::footprint) == [Footprint::default(); 2]
        })
        .await;
    }
}

async fn give_way(held: Lease) {
    for _ in 0..20 {
        yield_now().await;
    }
    held.release().await.unwrap();
}

/// Counts the bodies that are still there.
struct Inside(Arc<AtomicUsize>);

impl Inside {
    fn enter(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Gives its future up after so many polls.
struct DropAtPoll<F> {
    left: usize,
    future: Pin<Box<F>>,
}

impl<F> DropAtPoll<F> {
    fn new(polls: usize, future: F) -> Self {
        Self {
            left: polls,
            future: Box::pin(future),
        }
    }
}

impl<F: Future> Future for DropAtPoll<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        self.left -= 1;
        if self.left == 0 {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }
}

/// The local store, each step of which yields before and after, and which cannot release without waiting.
#[derive(Clone, Default)]
struct Yielding(LocalStore);

async fn yields() {
    for _ in 0..3 {
        yield_now().await;
    }
}

impl LeaseStore for Yielding {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        yields().await;
        let reply = self.0.claim(claim).await;
        yields().await;
        reply
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        yields().await;
        let replies = self.0.extend(batch).await;
        yields().await;
        replies
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        yields().await;
        let reply = self.0.release(release).await;
        yields().await;
        reply
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        yields().await;
        let watching = self.0.watch(name, since, hints).await;
        yields().await;
        watching
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.0.inspect(name).await
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        self.0.evict(name).await
    }

    fn command_timeout(&self) -> Duration {
        self.0.command_timeout()
    }
}

async fn every_stage_ends_well_at_every_poll_on_the_local_store() {
    for stage in STAGES {
        let store = Yielding::default();
        let pair = Pair {
            cut: StoreElector::builder(store.clone()).node_id("cut").build(),
            next: StoreElector::builder(store.clone()).node_id("next").build(),
        };
        let mut polls = 1;
        while !pair.end_at(stage, polls, IN_TIME, || ()).await {
            pair.all_is_well(stage, polls).await;
            polls += 1;
        }
        pair.all_is_well(stage, polls).await;
        // There were points at which to end it.
        assert!(polls > 5, "{stage:?} was over after {polls} polls");
    }
}

#[tokio::test]
async fn ended_at_every_poll_on_a_current_thread_runtime() {
    every_stage_ends_well_at_every_poll_on_the_local_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_at_every_poll_on_a_multi_thread_runtime() {
    every_stage_ends_well_at_every_poll_on_the_local_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_while_a_reply_of_redis_is_held_back() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = |url: String| async move {
        let builder = elector_at(url);
        let builder = builder.command_timeout(Duration::from_secs(5));
        builder.connect_store().await.unwrap()
    };
    let pair: Pair<RedisStore> = Pair {
        cut: StoreElector::builder(store(proxy.url()).await).build(),
        next: StoreElector::builder(store(server.url()).await).build(),
    };
    for stage in STAGES {
        for polls in 1..=8 {
            // What comes before the stage itself has had its replies.
            let hold = || proxy.hold_replies();
            pair.end_at(stage, polls, ms(60), hold).await;
            proxy.release_replies();
            pair.all_is_well(stage, polls).await;
        }
    }
}
