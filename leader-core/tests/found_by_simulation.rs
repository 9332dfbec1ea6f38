//! What the simulation found in the engine, each as a story of its own.
#![allow(missing_docs, reason = "a test")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, Granted, Hint, HintSender, LeaseStore, Release,
    ReleaseReply, Revision, StoreError, Watching,
};
use leader_core::testing::{Fault, FaultyStore};
use leader_core::{
    BackendKind, ElectorExt, Events, Holder, LeaderError, LeaderEvent, LeaseOptions, LocalElector,
    LocalStore, LockName, NodeId, Quorum, Step, StoreElector, Token,
};

use tokio::time::Instant;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What was told so far.
fn told(events: &mut Events) -> Vec<LeaderEvent> {
    std::iter::from_fn(|| events.next().now_or_never().flatten()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_not_told_as_released_too() {
    let elector = LocalElector::new();
    let mut events = elector.events();
    let short = LeaseOptions::builder().lease(ms(30)).build().unwrap();
    let run = elector.run_if_leader("x", &short, |_| std::future::pending::<()>());
    run.await.unwrap_err();
    let told = told(&mut events);
    assert!(
        matches!(
            told[..],
            [LeaderEvent::Elected { .. }, LeaderEvent::Lost { .. }]
        ),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_extension_answered_after_the_loss_is_not_told() {
    let elector = StoreElector::builder(Slow::answering_extensions_after(ms(60))).build();
    let mut events = elector.events();
    let kept = LeaseOptions::builder()
        .lease(ms(60))
        .auto_extend(true)
        .build()
        .unwrap();
    let run = elector.run_if_leader("x", &kept, |_| std::future::pending::<()>());
    run.await.unwrap_err();
    tokio::time::sleep(ms(200)).await;
    let told = told(&mut events);
    assert!(
        matches!(
            told[..],
            [LeaderEvent::Elected { .. }, LeaderEvent::Lost { .. }]
        ),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_keeper_ends_with_the_last_lease_although_nobody_releases_it() {
    let store = Slow::default();
    let alive = store.alive.clone();
    let elector = StoreElector::builder(store).build();
    let bounded = LeaseOptions::builder()
        .lease(ms(75))
        .auto_extend(true)
        .max_tenure(ms(75))
        .build()
        .unwrap();
    let lease = elector.try_acquire("x", &bounded).await.unwrap();
    tokio::time::sleep(ms(150)).await;
    // A keeper that waits for nothing would keep the engine, and its store, for ever.
    drop((lease, elector));
    tokio::time::sleep(ms(150)).await;
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_was_lost_is_told_as_a_release() {
    let store = Slow::default();
    store.loses_answer.store(true, Ordering::SeqCst);
    let elector = StoreElector::builder(store).build();
    let mut events = elector.events();
    let options = LeaseOptions::default();
    let run = elector.run_if_leader("x", &options, async |_| 7);
    assert_eq!(run.await.unwrap(), Some(7));
    tokio::time::sleep(ms(100)).await;
    let told = told(&mut events);
    assert!(
        matches!(
            told[..],
            [
                LeaderEvent::Elected { .. },
                LeaderEvent::Failed { .. },
                LeaderEvent::Released { .. }
            ]
        ),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_is_skipped_because_another_task_took_one_of_several_slots() {
    let store = Slow {
        claim: ms(100),
        ..Slow::default()
    };
    let elector = StoreElector::builder(store).build();
    let three = LeaseOptions::builder().slots(3).wait(ms(150)).build();
    let three = three.unwrap();
    // The third is still in the queue when its wait ends, and asks for itself.
    let (a, b, c) = tokio::join!(
        elector.try_acquire("x", &three),
        elector.try_acquire("x", &three),
        elector.try_acquire("x", &three),
    );
    let elected = [a, b, c].map(|acquired| acquired.unwrap().is_some());
    assert_eq!(elected, [true; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_a_slow_store_still_keeps_is_given_back() {
    let store = Slow {
        // 0.9 % slower than the candidate's clock, within the drift that is allowed for.
        second: ms(1_009),
        ..Slow::default()
    };
    let elector = StoreElector::builder(store).build();
    let second = LeaseOptions::builder()
        .wait(Duration::ZERO)
        .lease(ms(1_000))
        .build()
        .unwrap();
    let lease = elector.try_acquire("x", &second).await.unwrap();
    tokio::time::sleep(ms(1_000)).await;
    drop(lease);
    assert!(elector.try_acquire("x", &second).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_arrives_after_the_lease_it_was_granted_in_the_end_does_not_stay() {
    let store = LateClaim::default();
    let local = store.store.clone();
    let elector = StoreElector::builder(store).build();
    let short = LeaseOptions::builder()
        .wait(ms(2_000))
        .lease(ms(50))
        .build()
        .unwrap();
    // The first claim is under way for two seconds, the second is granted after half a second.
    let lease = elector.try_acquire("x", &short).await.unwrap().unwrap();
    lease.lost().await;
    tokio::time::sleep(ms(50)).await;
    drop(lease);
    tokio::time::sleep(ms(1_410)).await;
    let x = LockName::new("x").unwrap();
    assert_eq!(local.inspect(&x).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_on_its_way_when_the_elector_shuts_down_is_undone() {
    let store = LateClaim::default();
    let local = store.store.clone();
    let elector = StoreElector::builder(store).build();
    let standing = elector.clone();
    let standing = tokio::spawn(async move {
        let options = LeaseOptions::default();
        standing.try_acquire("x", &options).await
    });
    tokio::task::yield_now().await;
    elector.shutdown().await;
    assert!(matches!(
        standing.await.unwrap(),
        Err(LeaderError::ShutDown)
    ));
    tokio::time::sleep(ms(2_100)).await;
    let x = LockName::new("x").unwrap();
    assert_eq!(local.inspect(&x).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_extended_after_its_loss_is_given_back() {
    let store = Slow::answering_extensions_after(ms(30));
    let elector = StoreElector::builder(store).build();
    let bounded = LeaseOptions::builder()
        .wait(Duration::ZERO)
        .lease(ms(300))
        .max_tenure(ms(300))
        .build()
        .unwrap();
    let lease = elector.try_acquire("x", &bounded).await.unwrap().unwrap();
    tokio::time::sleep(ms(280)).await;
    // Executed at once, answered when the longest tenure is over.
    lease.extend(ms(300)).await.unwrap_err();
    tokio::time::sleep(ms(100)).await;
    drop(lease);
    let next = elector.try_acquire("x", &bounded).await.unwrap();
    assert!(next.is_some());
}

/// A local store whose first claim is two seconds on its way, whether its sender waits or not.
#[derive(Default)]
struct LateClaim {
    store: LocalStore,
    begun: AtomicBool,
}

impl LeaseStore for LateClaim {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        let (store, claim) = (self.store.clone(), claim.clone());
        let late = !self.begun.swap(true, Ordering::SeqCst);
        let way = async move {
            if late {
                tokio::time::sleep(ms(2_000)).await;
            }
            store.claim(&claim).await
        };
        tokio::spawn(way).await.unwrap()
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        self.store.extend(batch).await
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        self.store.release(release).await
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        self.store.watch(name, since, hints).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.store.inspect(name).await
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        self.store.evict(name).await
    }

    fn command_timeout(&self) -> Duration {
        self.store.command_timeout()
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_told_after_a_later_one_that_is_kept_for_a_while_still_wakes() {
    let store = Slow::default();
    let (local, watcher) = (store.store.clone(), store.watcher.clone());
    let holder = StoreElector::builder(local).build();
    let elector = StoreElector::builder(store).build();
    let options = LeaseOptions::builder().slots(2).wait(ms(20_000));
    let options = options.build().unwrap();
    let first = holder.try_acquire("x", &options).await.unwrap().unwrap();
    let last = holder.try_acquire("x", &options).await.unwrap().unwrap();
    let revision = last.fence().get();

    let begun = Instant::now();
    let waiting = elector.try_acquire("x", &options);
    let release = async {
        tokio::time::sleep(ms(10)).await;
        first.release().await.unwrap();
        let watcher = watcher.lock().unwrap().clone().unwrap();
        // The second release, of a slot that a minimum lease keeps, is told before the first.
        watcher.push(Hint::Released {
            revision: Revision::new(revision + 20_000),
            free_in: ms(10_000),
        });
        tokio::time::sleep(ms(10)).await;
        watcher.push(Hint::Released {
            revision: Revision::new(revision + 10_000),
            free_in: Duration::ZERO,
        });
    };
    let (waited, ()) = tokio::join!(waiting, release);
    assert!(waited.unwrap().is_some());
    assert!(begun.elapsed() < ms(100), "{:?}", begun.elapsed());
}

/// A local store that takes its time, or loses an answer.
struct Slow {
    store: LocalStore,
    /// How long it takes a second of a claim's lease to be.
    second: Duration,
    claim: Duration,
    extension: Duration,
    /// Loses the answer to the next release.
    loses_answer: AtomicBool,
    /// Who watches is told by the test alone.
    watcher: Arc<Mutex<Option<HintSender>>>,
    /// Counted as long as this store is there.
    alive: Arc<()>,
}

impl Slow {
    fn answering_extensions_after(extension: Duration) -> Self {
        Self {
            extension,
            ..Self::default()
        }
    }
}

impl Default for Slow {
    fn default() -> Self {
        Self {
            store: LocalStore::new(),
            second: ms(1_000),
            claim: Duration::ZERO,
            extension: Duration::ZERO,
            loses_answer: AtomicBool::new(false),
            watcher: Arc::default(),
            alive: Arc::default(),
        }
    }
}

impl LeaseStore for Slow {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        tokio::time::sleep(self.claim).await;
        let mut claim = claim.clone();
        claim.lease = claim.lease.mul_f64(self.second.as_secs_f64());
        self.store.claim(&claim).await
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        let replies = self.store.extend(batch).await;
        tokio::time::sleep(self.extension).await;
        replies
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        let reply = self.store.release(release).await;
        if self.loses_answer.swap(false, Ordering::SeqCst) {
            return Err(StoreError::new(BackendKind::Unreachable, "cut"));
        }
        reply
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        let _ = (name, since);
        *self.watcher.lock().unwrap() = Some(hints);
        Ok(Watching::unbound())
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.store.inspect(name).await
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        self.store.evict(name).await
    }

    fn command_timeout(&self) -> Duration {
        self.store.command_timeout()
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_a_node_has_lost_is_not_written_again_after_the_release() {
    let nodes: Vec<_> = (0..5)
        .map(|_| FaultyStore::new(LocalStore::new()))
        .collect();
    let quorum = Quorum::new(nodes.clone()).unwrap();
    let (name, node_id) = (LockName::new("x").unwrap(), NodeId::new("a"));
    let (token, lease) = (Token::random(), ms(60_000));
    let claim = Claim::new(name.clone(), node_id.clone(), token, lease);
    let Ok(ClaimReply::Granted { slot, fence }) = quorum.claim(&claim).await else {
        panic!("nobody else stands");
    };
    for node in &nodes[3..] {
        node.inner().evict(&name).await.unwrap();
    }
    // The extension is answered when the release is over.
    for node in &nodes[..3] {
        node.faults().once(Step::Extend, Fault::DelayReply(ms(200)));
    }
    let granted = Granted::new(node_id, 1, fence);
    let extension = [Extension::new(name.clone(), token, slot, lease).of(granted)];
    let release = Release::new(name.clone(), token, slot);
    let (extended, released) = tokio::join!(quorum.extend(&extension), async {
        tokio::time::sleep(ms(100)).await;
        quorum.release(&release).await
    });
    assert!(
        matches!(extended[..], [Ok(ExtendReply::Extended)]),
        "{extended:?}"
    );
    released.unwrap();
    tokio::time::sleep(ms(500)).await;
    for node in &nodes {
        let left = node.inner().inspect(&name).await.unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}
