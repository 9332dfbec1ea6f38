//! What a review found, each as a story of its own.
#![allow(
    missing_docs,
    clippy::async_yields_async,
    reason = "a test, one of which gets a task out of its body"
)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, HintSender, LeaseStore, Release, ReleaseReply,
    Revision, StoreError, Watching,
};
use leader_core::testing::{Fault, FaultyStore};
use leader_core::{
    Acquisition, BackendKind, BoxFuture, CancellationToken, Elector, ElectorExt, ElectorId, Events,
    Health, Holder, LeaderError, LeaderState, LeaseOptions, LeaseOptionsBuilder, LocalElector,
    LocalStore, LockName, NodeId, OnLost, Step, StoreElector,
};
use tokio::time::{Instant, sleep, timeout};

fn o() -> LeaseOptionsBuilder {
    LeaseOptions::builder()
        .wait(Duration::ZERO)
        .lease(Duration::from_secs(60))
}

#[tokio::test(start_paused = true)]
async fn lost_ends_when_the_lease_is_released() {
    let a = LocalElector::new();
    let lease = a
        .try_acquire("x", &o().build().unwrap())
        .await
        .unwrap()
        .unwrap();
    let handle = lease.handle();
    let waiting = tokio::spawn(async move { handle.lost().await });
    tokio::task::yield_now().await;
    lease.release().await.unwrap();
    timeout(Duration::from_secs(5), waiting)
        .await
        .expect("still waiting 5 s after the release")
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn spawned_work_that_watches_the_token_outlives_the_lease() {
    let a = LocalElector::new();
    let b = a.node("b");
    let working = Arc::new(AtomicBool::new(false));
    let flag = working.clone();
    a.run_if_leader("x", &o().build().unwrap(), |lease| async move {
        let token = lease.cancellation_token();
        tokio::spawn(async move {
            flag.store(true, Ordering::SeqCst);
            token.cancelled().await;
            flag.store(false, Ordering::SeqCst);
        });
        tokio::task::yield_now().await;
    })
    .await
    .unwrap();
    let _b = b
        .try_acquire("x", &o().build().unwrap())
        .await
        .unwrap()
        .unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert!(
        !working.load(Ordering::SeqCst),
        "an hour later the old leader's task still works"
    );
}

/// Between grant and body, the process is frozen.
struct Frozen(LocalElector, Duration);
impl Elector for Frozen {
    fn node_id(&self) -> &NodeId {
        self.0.node_id()
    }
    fn elector_id(&self) -> ElectorId {
        self.0.elector_id()
    }
    fn acquire<'a>(
        &'a self,
        n: &'a LockName,
        o: &'a LeaseOptions,
    ) -> BoxFuture<'a, Result<Acquisition, LeaderError>> {
        Box::pin(async move {
            let l = self.0.acquire(n, o).await;
            sleep(self.1).await;
            l
        })
    }
    fn inspect<'a>(&'a self, n: &'a LockName) -> BoxFuture<'a, Result<LeaderState, LeaderError>> {
        self.0.inspect(n)
    }
    fn evict<'a>(&'a self, n: &'a LockName) -> BoxFuture<'a, Result<u32, LeaderError>> {
        self.0.evict(n)
    }
    fn subscribe(&self) -> Events {
        self.0.subscribe()
    }
    fn examine(&self) -> Health {
        self.0.examine()
    }
    fn listen<'a>(
        &'a self,
        n: &'a LockName,
        h: HintSender,
    ) -> BoxFuture<'a, Result<Watching, LeaderError>> {
        self.0.listen(n, h)
    }
    fn closing(&self) -> CancellationToken {
        self.0.closing()
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close()
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_under_notify_does_not_begin_on_a_lost_lease() {
    let a = Frozen(LocalElector::new(), Duration::from_secs(61));
    let ran = AtomicBool::new(false);
    let r = a
        .run_if_leader(
            "x",
            &o().on_lost(OnLost::Notify).build().unwrap(),
            |_| async { ran.store(true, Ordering::SeqCst) },
        )
        .await;
    assert!(r.is_err());
    assert!(
        !ran.load(Ordering::SeqCst),
        "the body began after its lease had ended"
    );
}

#[tokio::test(start_paused = true)]
async fn the_closure_is_not_called_on_a_lost_lease() {
    let a = Frozen(LocalElector::new(), Duration::from_secs(61));
    let ran = AtomicBool::new(false);
    let r = a
        .run_if_leader("x", &o().build().unwrap(), |_| {
            ran.store(true, Ordering::SeqCst);
            async {}
        })
        .await;
    assert!(r.is_err());
    assert!(
        !ran.load(Ordering::SeqCst),
        "the closure was called after its lease had ended"
    );
}

#[test]
fn state_outside_a_runtime_is_an_error_and_no_panic() {
    let a = LocalElector::new();
    let r = futures::executor::block_on(a.state("x"));
    assert!(matches!(r, Err(LeaderError::NoRuntime)), "{r:?}");
}
#[test]
fn release_outside_a_runtime_does_not_panic() {
    let a = LocalElector::new();
    let rt = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let lease = rt
        .block_on(a.try_acquire("x", &o().build().unwrap()))
        .unwrap()
        .unwrap();
    let _ = futures::executor::block_on(lease.release());
}
#[test]
fn shutdown_outside_a_runtime_does_not_panic() {
    let a = LocalElector::new();
    futures::executor::block_on(a.shutdown());
}
#[test]
fn builder_with_runtime_acquires_outside() {
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let a = StoreElector::builder(LocalStore::new())
        .runtime(rt.handle().clone())
        .build();
    let r = futures::executor::block_on(a.try_acquire("x", &o().build().unwrap()));
    assert!(
        r.is_ok() || matches!(r, Err(LeaderError::NoRuntime)),
        "{r:?}"
    );
}
/// A store whose extension panics once.
struct Panics {
    inner: LocalStore,
    left: AtomicUsize,
    releases: Arc<AtomicUsize>,
    fail_release: bool,
    fail_extend: bool,
}
impl Panics {
    fn new(left: usize) -> Self {
        Self {
            inner: LocalStore::new(),
            left: AtomicUsize::new(left),
            releases: Arc::default(),
            fail_release: false,
            fail_extend: false,
        }
    }
}
impl LeaseStore for Panics {
    async fn claim(&self, c: &Claim) -> Result<ClaimReply, StoreError> {
        self.inner.claim(c).await
    }
    async fn extend(&self, b: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        if self.fail_extend {
            return vec![Err(StoreError::new(BackendKind::Unreachable, "gone").not_run()); b.len()];
        }
        if self.left.load(Ordering::SeqCst) > 0 {
            self.left.fetch_sub(1, Ordering::SeqCst);
            panic!("a bug in a store");
        }
        self.inner.extend(b).await
    }
    async fn release(&self, r: &Release) -> Result<ReleaseReply, StoreError> {
        self.releases.fetch_add(1, Ordering::SeqCst);
        if self.fail_release {
            return Err(StoreError::new(BackendKind::Unreachable, "gone").not_run());
        }
        self.inner.release(r).await
    }
    async fn watch(
        &self,
        n: &LockName,
        s: Revision,
        h: HintSender,
    ) -> Result<Watching, StoreError> {
        self.inner.watch(n, s, h).await
    }
    async fn inspect(&self, n: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.inner.inspect(n).await
    }
    async fn evict(&self, n: &LockName) -> Result<u32, StoreError> {
        self.inner.evict(n).await
    }
    fn command_timeout(&self) -> Duration {
        Duration::from_millis(500)
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_once_does_not_end_extension_for_good() {
    let a = StoreElector::builder(Panics::new(1)).build();
    let opts = o()
        .lease(Duration::from_secs(3))
        .auto_extend(true)
        .build()
        .unwrap();
    let first = a.try_acquire("x", &opts).await.unwrap().unwrap();
    sleep(Duration::from_secs(10)).await;
    assert!(first.is_valid(), "one request that panicked cost a lease");
    let second = a.try_acquire("y", &opts).await.unwrap().unwrap();
    sleep(Duration::from_secs(10)).await;
    assert!(
        second.is_valid(),
        "no lease of this elector is extended any more"
    );
}

#[tokio::test(start_paused = true)]
async fn an_extension_by_hand_after_a_store_panic_is_bounded() {
    let a = StoreElector::builder(Panics::new(1)).build();
    let opts = o()
        .lease(Duration::from_secs(60))
        .auto_extend(true)
        .build()
        .unwrap();
    let lease = a.try_acquire("x", &opts).await.unwrap().unwrap();
    sleep(Duration::from_secs(30)).await; // the automatic one panicked at 20 s
    let begun = Instant::now();
    let r = timeout(
        Duration::from_secs(3600),
        lease.extend(Duration::from_secs(60)),
    )
    .await;
    assert!(r.is_ok(), "hung for {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_to_a_closed_store() {
    let mut store = Panics::new(0);
    store.fail_release = true;
    let releases = store.releases.clone();
    let a = StoreElector::builder(store).build();
    let lease = a
        .try_acquire("x", &o().lease(Duration::from_secs(3600)).build().unwrap())
        .await
        .unwrap()
        .unwrap();
    a.shutdown().await;
    let at_close = releases.load(Ordering::SeqCst);
    sleep(Duration::from_secs(600)).await;
    let later = releases.load(Ordering::SeqCst);
    drop(lease);
    assert_eq!(
        (later - at_close, a.footprint().tasks),
        (0, 0),
        "releases sent after close, background tasks left"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_extension_does_not_keep_a_task_for_a_year() {
    let mut store = Panics::new(0);
    store.fail_release = true;
    store.fail_extend = true;
    let a = StoreElector::builder(store).build();
    let lease = a
        .try_acquire("x", &o().lease(Duration::from_secs(10)).build().unwrap())
        .await
        .unwrap()
        .unwrap();
    let _ = lease.extend(LeaseOptions::MAX_LEASE).await.unwrap_err();
    drop(lease);
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(
        a.footprint().tasks,
        0,
        "an hour after the end of a 10 s lease that was never extended"
    );
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_asks_again_at_once_without_wait_lets_others_in() {
    let a = LocalElector::new();
    let b = a.node("b");
    let opts = o().build().unwrap();
    let hog = tokio::spawn(async move {
        loop {
            let _ = a
                .run_if_leader("x", &opts, |_| sleep(Duration::from_millis(5)))
                .await
                .unwrap();
        }
    });
    tokio::task::yield_now().await;
    let got = b
        .try_acquire(
            "x",
            &LeaseOptions::builder()
                .wait(Duration::from_secs(10))
                .build()
                .unwrap(),
        )
        .await
        .unwrap();
    hog.abort();
    assert!(got.is_some(), "starved for 10 s");
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_runtime_is_gone_leaves_no_agenda() {
    let e = StoreElector::builder(LocalStore::new()).build();
    let e2 = e.clone();
    std::thread::spawn(move || {
        let rt = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let lease = rt
            .block_on(e2.try_acquire("x", &o().auto_extend(true).build().unwrap()))
            .unwrap()
            .unwrap();
        drop(rt);
        drop(lease);
    })
    .join()
    .unwrap();
    assert_eq!(e.footprint().keepers, 0);
}

struct NoLimit(LocalStore);
impl LeaseStore for NoLimit {
    async fn claim(&self, c: &Claim) -> Result<ClaimReply, StoreError> {
        self.0.claim(c).await
    }
    async fn extend(&self, b: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        self.0.extend(b).await
    }
    async fn release(&self, r: &Release) -> Result<ReleaseReply, StoreError> {
        self.0.release(r).await
    }
    async fn watch(
        &self,
        n: &LockName,
        s: Revision,
        h: HintSender,
    ) -> Result<Watching, StoreError> {
        self.0.watch(n, s, h).await
    }
    async fn inspect(&self, n: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.0.inspect(n).await
    }
    async fn evict(&self, n: &LockName) -> Result<u32, StoreError> {
        self.0.evict(n).await
    }
    fn command_timeout(&self) -> Duration {
        Duration::MAX
    }
}
#[tokio::test(start_paused = true)]
async fn a_store_without_a_limit_does_not_panic() {
    let e = StoreElector::builder(NoLimit(LocalStore::new())).build();
    let _ = e.try_acquire("x", &o().build().unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn a_slot_freed_within_the_wait_is_taken_also_when_the_hint_is_lost() {
    let local = LocalStore::new();
    let peer = StoreElector::builder(local.clone()).build();
    let store = FaultyStore::new(local);
    let faults = store.faults();
    faults.always(Step::Watch, Fault::LoseHints);
    let a = StoreElector::builder(store).build();
    let held = peer
        .try_acquire("x", &o().build().unwrap())
        .await
        .unwrap()
        .unwrap();
    let first = {
        let a = a.clone();
        tokio::spawn(async move {
            a.try_acquire(
                "x",
                &LeaseOptions::builder()
                    .wait(Duration::from_secs(30))
                    .build()
                    .unwrap(),
            )
            .await
        })
    };
    sleep(Duration::from_millis(10)).await;
    let second = {
        let a = a.clone();
        tokio::spawn(async move {
            a.try_acquire(
                "x",
                &LeaseOptions::builder()
                    .wait(Duration::from_millis(400))
                    .build()
                    .unwrap(),
            )
            .await
        })
    };
    sleep(Duration::from_millis(10)).await;
    held.release().await.unwrap();
    let second = second.await.unwrap().unwrap();
    let free = peer.state("x").await.unwrap().holders().is_empty();
    first.abort();
    assert!(
        second.is_some() || !free,
        "skipped at the end of its wait although the slot had been free for 380 ms"
    );
}

#[tokio::test(start_paused = true)]
async fn a_nested_run_in_a_spawned_task_ends_with_the_lease() {
    let a = LocalElector::new();
    let opts = o().build().unwrap();
    let e = a.clone();
    let task = a
        .run_if_leader("x", &opts, |lease| {
            let e = e.clone();
            async move {
                let opts = o().build().unwrap();
                let t = tokio::spawn(lease.scope(async move {
                    e.run_if_leader("x", &opts, |_| std::future::pending::<()>())
                        .await
                }));
                tokio::task::yield_now().await;
                t
            }
        })
        .await
        .unwrap()
        .unwrap();
    let r = timeout(Duration::from_secs(5), task).await;
    assert!(
        r.is_ok(),
        "the nested run still hangs 5 s after the outer run has ended"
    );
}

#[tokio::test(start_paused = true)]
async fn shutdown_from_a_body_completes() {
    let a = LocalElector::new();
    let done = Arc::new(AtomicBool::new(false));
    let (e, d) = (a.clone(), done.clone());
    let _ = a
        .run_if_leader("x", &o().build().unwrap(), |_| async move {
            e.shutdown().await;
            d.store(true, Ordering::SeqCst);
        })
        .await;
    let mut events = a.events();
    let ended = futures::StreamExt::next(&mut events);
    assert!(
        done.load(Ordering::SeqCst) || timeout(Duration::from_secs(60), ended).await.is_ok(),
        "shutdown was dropped half-way: events never end"
    );
}

struct Canary(Arc<AtomicBool>);
impl Drop for Canary {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
struct Watched(LocalStore, #[allow(dead_code)] Canary);
impl LeaseStore for Watched {
    async fn claim(&self, c: &Claim) -> Result<ClaimReply, StoreError> {
        self.0.claim(c).await
    }
    async fn extend(&self, b: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        self.0.extend(b).await
    }
    async fn release(&self, r: &Release) -> Result<ReleaseReply, StoreError> {
        self.0.release(r).await
    }
    async fn watch(
        &self,
        n: &LockName,
        s: Revision,
        h: HintSender,
    ) -> Result<Watching, StoreError> {
        self.0.watch(n, s, h).await
    }
    async fn inspect(&self, n: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.0.inspect(n).await
    }
    async fn evict(&self, n: &LockName) -> Result<u32, StoreError> {
        self.0.evict(n).await
    }
    fn command_timeout(&self) -> Duration {
        Duration::from_millis(500)
    }
}

#[test]
fn a_lease_dropped_after_its_runtime_leaves_nothing() {
    let gone = Arc::new(AtomicBool::new(false));
    let e = StoreElector::builder(Watched(LocalStore::new(), Canary(gone.clone()))).build();
    let rt = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let lease = rt
        .block_on(e.try_acquire("x", &o().build().unwrap()))
        .unwrap()
        .unwrap();
    drop(rt);
    drop(lease);
    let held = e.footprint().held;
    drop(e);
    assert_eq!(
        (held, gone.load(Ordering::SeqCst)),
        (0, true),
        "tenures kept for ever; engine and store dropped"
    );
}

#[test]
fn a_lease_aborted_with_its_runtime_leaves_nothing() {
    let gone = Arc::new(AtomicBool::new(false));
    let e = StoreElector::builder(Watched(LocalStore::new(), Canary(gone.clone()))).build();
    let rt = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let e2 = e.clone();
    rt.block_on(async {
        tokio::spawn(async move {
            e2.run_if_leader("x", &o().build().unwrap(), |_| std::future::pending::<()>())
                .await
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
    });
    drop(rt);
    let held = e.footprint().held;
    drop(e);
    assert_eq!(
        (held, gone.load(Ordering::SeqCst)),
        (0, true),
        "tenures kept for ever; engine and store dropped"
    );
}
