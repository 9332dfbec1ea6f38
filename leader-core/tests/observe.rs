//! Observing under paused time: when the observer looks, and that it does not look for nothing.

use std::time::Duration;

use futures::StreamExt;
use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, HintSender, LeaseStore, Release, ReleaseReply,
    Revision, StoreError, Watching,
};
use leader_core::testing::{Fault, FaultyStore};
use leader_core::{
    ElectorExt, FencingToken, Holder, LeaseOptions, LocalStore, LockName, Observing, Quorum, Step,
    StoreElector,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

const HOUR: Duration = Duration::from_secs(3600);

fn options() -> LeaseOptions {
    let options = LeaseOptions::builder().lease(HOUR * 3);
    options.wait(Duration::ZERO).build().unwrap()
}

async fn next(leaders: &mut Observing) -> Vec<FencingToken> {
    let state = leaders.next().await.expect("it goes on").unwrap();
    state.holders().iter().map(Holder::fence).collect()
}

async fn grants_are_told_within(store: impl LeaseStore + Clone, limit: Duration) {
    let a = StoreElector::builder(store.clone()).node_id("a").build();
    let b = StoreElector::builder(store).node_id("b").build();
    let mut leaders = b.observe("x");
    // Polled all the time, as it sleeps by itself.
    let (sender, mut told) = mpsc::unbounded_channel();
    let observer = tokio::spawn(async move {
        loop {
            let fences = next(&mut leaders).await;
            if sender.send((fences, Instant::now())).is_err() {
                return;
            }
        }
    });
    assert!(told.recv().await.unwrap().0.is_empty());
    for _ in 0..3 {
        sleep(HOUR).await;
        let begun = Instant::now();
        let lease = a.try_acquire("x", &options()).await.unwrap().unwrap();
        let (fences, at) = told.recv().await.unwrap();
        assert_eq!(fences, [lease.fence()]);
        assert!(at - begun <= limit, "{:?}", at - begun);
        sleep(HOUR).await;
        let begun = Instant::now();
        lease.release().await.unwrap();
        let (fences, at) = told.recv().await.unwrap();
        assert!(fences.is_empty());
        assert!(at - begun <= limit, "{:?}", at - begun);
    }
    observer.abort();
}

#[tokio::test(start_paused = true)]
async fn a_grant_is_told_at_once() {
    grants_are_told_within(LocalStore::new(), Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_grant_by_a_quorum_is_told_soon() {
    let nodes = [LocalStore::new(), LocalStore::new(), LocalStore::new()];
    grants_are_told_within(Quorum::new(nodes).unwrap(), Duration::from_millis(20)).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_store_does_not_tell_is_looked_for() {
    let store = Silent(LocalStore::new());
    grants_are_told_within(store, Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_told_and_lost_is_looked_for() {
    let store = FaultyStore::new(LocalStore::new());
    store.faults().always(Step::Watch, Fault::LoseHints);
    grants_are_told_within(store, Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_quiet() {
    let store = FaultyStore::new(LocalStore::new());
    let faults = store.faults();
    let elector = StoreElector::builder(store).build();
    let _lease = elector.try_acquire("x", &options()).await.unwrap();
    let mut leaders = elector.observe("x");
    assert_eq!(next(&mut leaders).await.len(), 1);
    let before = faults.ran(Step::Inspect);
    assert!(timeout(HOUR, next(&mut leaders)).await.is_err());
    let looks = faults.ran(Step::Inspect) - before;
    assert!((360..=480).contains(&looks), "{looks} looks in an hour");
    assert_eq!(faults.ran(Step::Watch), 1);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_changes_is_not_a_flood_of_looks() {
    let store = FaultyStore::new(LocalStore::new());
    let faults = store.faults();
    let elector = StoreElector::builder(store).build();
    let mut leaders = elector.observe("x");
    next(&mut leaders).await;
    let flood = tokio::spawn(async move {
        for _ in 0..1000 {
            let lease = elector.try_acquire("x", &options()).await.unwrap().unwrap();
            sleep(Duration::from_millis(1)).await;
            lease.release().await.unwrap();
        }
        elector
    });
    while timeout(Duration::from_secs(1), next(&mut leaders))
        .await
        .is_ok()
    {}
    let looks = faults.ran(Step::Inspect);
    assert!((10..=110).contains(&looks), "{looks} looks in a second");
    drop(flood.await.unwrap());
}

/// Tells of releases only.
#[derive(Clone)]
struct Silent(LocalStore);

impl LeaseStore for Silent {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        self.0.claim(claim).await
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        self.0.extend(batch).await
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        self.0.release(release).await
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        self.0.watch(name, since, hints).await
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
