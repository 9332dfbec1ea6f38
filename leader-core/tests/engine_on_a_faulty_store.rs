//! Waiting without hints, slots that are freed at the last moment, and requests that arrive late or twice.

use std::time::Duration;

use leader_core::store::{Claim, LeaseStore};
use leader_core::testing::{Fault, Faults, FaultyStore, Footprint};
use leader_core::{
    BackendKind, ElectorExt, LeaderError, LeaseOptions, LeaseOptionsBuilder, LocalStore, LockName,
    NodeId, Step, StoreElector, Token,
};
use tokio::time::{Instant, sleep, timeout};

const NAME: &str = "invoice-close";
const LEASE: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(2);
/// What the engine allows one step.
const COMMAND: Duration = Duration::from_millis(500);
const MOMENT: Duration = Duration::from_millis(1);

type Elector = StoreElector<FaultyStore<LocalStore>>;

/// A candidate on a faulty way to `store`.
fn candidate(store: &LocalStore, node_id: &str) -> (Elector, Faults) {
    let store = FaultyStore::new(store.clone());
    let faults = store.faults();
    let elector = StoreElector::builder(store).node_id(node_id).build();
    (elector, faults)
}

fn options() -> LeaseOptionsBuilder {
    LeaseOptions::builder().lease(LEASE).wait(WAIT)
}

fn no_wait() -> LeaseOptions {
    options().wait(Duration::ZERO).build().unwrap()
}

async fn holders(store: &LocalStore) -> usize {
    let name = LockName::new(NAME).unwrap();
    store.inspect(&name).await.unwrap().len()
}

fn kind<T: std::fmt::Debug>(result: Result<T, LeaderError>) -> (Step, BackendKind) {
    match result {
        Err(LeaderError::Backend { step, kind, .. }) => (step, kind),
        other => panic!("the store did not fail: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a04_a_claim_that_is_given_up_does_not_stay_whenever_it_arrives() {
    for faults_of_claim in [
        vec![Fault::HoldReply],
        vec![Fault::HoldRequest],
        vec![Fault::DelayRequest(COMMAND / 2)],
        vec![Fault::DelayReply(COMMAND / 2)],
        vec![
            Fault::DelayRequest(COMMAND / 5),
            Fault::DelayReply(COMMAND / 5),
        ],
        vec![Fault::DelayRequest(COMMAND * 3)],
        vec![
            Fault::LoseReply(BackendKind::Unreachable),
            Fault::HoldRepeat,
        ],
    ] {
        for patience in [0, 50, 150, 450, 600].map(Duration::from_millis) {
            let store = LocalStore::new();
            let (elector, faults) = candidate(&store, "node");
            let (peer, _) = candidate(&store, "peer");
            faults.once(Step::Claim, faults_of_claim.clone());
            let options = options().wait(Duration::ZERO).build().unwrap();
            // Dropped while the claim is in flight, or given up by the engine itself.
            let acquired = timeout(patience, elector.try_acquire(NAME, &options)).await;
            let elected = matches!(acquired, Ok(Ok(Some(_))));
            drop(acquired);
            sleep(COMMAND).await;
            faults.let_go_all();
            sleep(COMMAND * 3).await;
            let told = format!("{faults_of_claim:?}, dropped after {patience:?}");
            assert_eq!(holders(&store).await, 0, "{told}");
            assert_eq!(elector.footprint(), Footprint::default(), "{told}");
            let next = peer.try_acquire(NAME, &no_wait()).await.unwrap();
            assert!(next.is_some(), "{told}, elected: {elected}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a12_a_waiter_without_hints_is_elected_when_the_lease_ends() {
    let store = LocalStore::new();
    let (peer, _) = candidate(&store, "peer");
    let _lease = peer.try_acquire(NAME, &no_wait()).await.unwrap().unwrap();
    for fault in [
        Fault::LoseHints,
        Fault::HoldReply,
        Fault::Refuse(BackendKind::Denied),
    ] {
        let (elector, faults) = candidate(&store, "waiter");
        faults.always(Step::Watch, fault);
        let options = options().wait(LEASE * 3).build().unwrap();
        let begun = Instant::now();
        let lease = elector.try_acquire(NAME, &options).await.unwrap().unwrap();
        let waited = begun.elapsed();
        assert!(
            waited >= LEASE && waited <= LEASE + Duration::from_millis(100),
            "{fault:?}: {waited:?}"
        );
        // The denial, and the grant; one more where the store gave no answer to the watch.
        assert!(faults.asked(Step::Claim) <= 3, "{fault:?}");
        std::mem::forget(lease);
    }
}

#[tokio::test(start_paused = true)]
async fn a12_a_waiter_whose_hints_were_lost_asks_when_the_store_is_back() {
    let store = LocalStore::new();
    let (peer, _) = candidate(&store, "peer");
    let lease = peer.try_acquire(NAME, &no_wait()).await.unwrap().unwrap();
    let (elector, faults) = candidate(&store, "waiter");
    faults.once(Step::Watch, Fault::LoseHints);
    let options = options().build().unwrap();
    let waiting = elector.try_acquire(NAME, &options);
    let begun = Instant::now();
    let back = async {
        faults.until_asked(Step::Watch, 1).await;
        lease.release().await.unwrap();
        sleep(WAIT / 2).await;
        faults.heal();
    };
    let (lease, ()) = tokio::join!(waiting, back);
    assert!(lease.unwrap().is_some());
    assert_eq!(begun.elapsed(), WAIT / 2);
}

#[tokio::test(start_paused = true)]
async fn a13_a_waiter_of_a_held_name_sends_two_claims() {
    let store = LocalStore::new();
    let (peer, _) = candidate(&store, "peer");
    let _lease = peer.try_acquire(NAME, &no_wait()).await.unwrap().unwrap();
    let (elector, faults) = candidate(&store, "waiter");
    let options = options().wait(LEASE / 2).build().unwrap();
    let waiting = (0..100).map(|_| elector.try_acquire(NAME, &options));
    for lease in futures::future::join_all(waiting).await {
        assert!(lease.unwrap().is_none());
    }
    assert!(
        faults.asked(Step::Claim) <= 2,
        "{}",
        faults.asked(Step::Claim)
    );
    assert_eq!(faults.asked(Step::Watch), 1);
    assert_eq!(elector.footprint(), Footprint::default());
}

#[tokio::test(start_paused = true)]
async fn a13_waiters_whose_waits_end_one_after_the_other_ask_once_each() {
    let store = LocalStore::new();
    let (peer, _) = candidate(&store, "peer");
    let _lease = peer.try_acquire(NAME, &no_wait()).await.unwrap().unwrap();
    let (elector, faults) = candidate(&store, "waiter");
    let waiting = (1..=10).map(|seconds| {
        let wait = Duration::from_millis(100) * seconds;
        let options = options().wait(wait).build().unwrap();
        let elector = &elector;
        async move { elector.try_acquire(NAME, &options).await }
    });
    for lease in futures::future::join_all(waiting).await {
        assert!(lease.unwrap().is_none());
    }
    // The first denial, and each one's last attempt at most.
    assert!(
        faults.asked(Step::Claim) <= 11,
        "{}",
        faults.asked(Step::Claim)
    );
}

#[tokio::test(start_paused = true)]
async fn e01_waiters_whose_waits_end_together_take_all_slots_that_are_free() {
    for slots in [3, 50] {
        let store = LocalStore::new();
        let (peer, _) = candidate(&store, "peer");
        let options = options().slots(slots).build().unwrap();
        let mut leases = Vec::new();
        for _ in 0..slots {
            leases.push(peer.try_acquire(NAME, &options).await.unwrap().unwrap());
        }
        let (elector, faults) = candidate(&store, "waiter");
        let waiting = (0..slots * 2).map(|_| elector.try_acquire(NAME, &options));
        let free = async {
            sleep(WAIT * 19 / 20).await;
            faults.always(Step::Claim, Fault::DelayReply(COMMAND / 4));
            leases.clear();
        };
        let begun = Instant::now();
        let (acquired, ()) = tokio::join!(futures::future::join_all(waiting), free);
        assert!(begun.elapsed() <= WAIT + COMMAND, "{:?}", begun.elapsed());
        let acquired: Vec<_> = acquired.into_iter().map(Result::unwrap).collect();
        let elected = acquired.iter().flatten().count();
        assert_eq!(elected, slots as usize, "each was freed within the wait");
        let asked = faults.asked(Step::Claim);
        assert!(asked <= slots as usize * 2 + 1, "{asked} claims");
    }
}

#[tokio::test(start_paused = true)]
async fn e01_a_slot_that_the_first_in_the_queue_leaves_is_taken_at_the_deadline() {
    let store = LocalStore::new();
    let name = LockName::new(NAME).unwrap();
    let raw = |lease| Claim::new(name.clone(), NodeId::new("peer"), Token::random(), lease);
    store.claim(&raw(LEASE).of_slots(2)).await.unwrap();
    store.claim(&raw(WAIT * 7 / 8).of_slots(2)).await.unwrap();

    let (elector, faults) = candidate(&store, "waiter");
    faults.always(Step::Watch, Fault::LoseHints);
    let options = options().slots(2).build().unwrap();
    let waiting = (0..2).map(|_| elector.try_acquire(NAME, &options));
    let peers = async {
        // One lease ends and is taken anew: whoever asks then is denied.
        sleep(WAIT * 7 / 8).await;
        store.claim(&raw(LEASE).of_slots(2)).await.unwrap();
        faults.until_asked(Step::Claim, 2).await;
        // Soon after it both are freed, and nobody is told.
        sleep(COMMAND / 10).await;
        assert_eq!(store.evict(&name).await.unwrap(), 2);
        faults.always(Step::Claim, Fault::DelayReply(COMMAND / 3));
    };
    let (elected, ()) = tokio::join!(futures::future::join_all(waiting), peers);
    let elected = elected
        .into_iter()
        .filter_map(Result::unwrap)
        .collect::<Vec<_>>();
    assert_eq!(elected.len(), 2, "two slots were freed within the wait");
}

#[tokio::test(start_paused = true)]
async fn b06_an_extension_by_hand_that_is_lost_leaves_the_present_deadline() {
    let store = LocalStore::new();
    let (elector, faults) = candidate(&store, "node");
    let lease = elector
        .try_acquire(NAME, &no_wait())
        .await
        .unwrap()
        .unwrap();
    faults.once(Step::Extend, Fault::LoseReply(BackendKind::Unreachable));
    let failed = kind(lease.extend(LEASE * 10).await);
    assert_eq!(failed, (Step::Extend, BackendKind::Unreachable));
    assert!(lease.remaining() <= LEASE);
    // The store may keep it for longer; dropped after its deadline, it is released all the same.
    sleep(LEASE).await;
    assert!(!lease.is_valid());
    assert_eq!(holders(&store).await, 1);
    drop(lease);
    sleep(COMMAND).await;
    assert_eq!(holders(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn every_step_may_be_repeated() {
    let store = LocalStore::new();
    let (elector, faults) = candidate(&store, "node");
    let (peer, _) = candidate(&store, "peer");
    for step in [
        Step::Claim,
        Step::Extend,
        Step::Release,
        Step::Watch,
        Step::Inspect,
    ] {
        faults.always(step, Fault::Repeat(Duration::ZERO));
    }
    let options = options().auto_extend(true).build().unwrap();
    let mut last = None;
    for _ in 0..20 {
        let run = elector.run_if_leader(NAME, &options, |lease| async move {
            sleep(LEASE).await;
            lease.fence()
        });
        let fence = run.await.unwrap();
        assert!(fence > last);
        last = fence;
        let peers = peer.try_acquire(NAME, &no_wait()).await.unwrap();
        peers.unwrap().release().await.unwrap();
    }
    sleep(MOMENT).await;
    assert_eq!(elector.footprint(), Footprint::default());
}
