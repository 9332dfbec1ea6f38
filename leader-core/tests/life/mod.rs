//! A candidate's life, with everything that can happen in it: for those who watch it, and must not touch it.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use leader_core::store::LeaseStore;
use leader_core::testing::{Fault, Faults, FaultyStore, Footprint};
use leader_core::{
    BackendKind, Elector, ElectorExt, LeaderError, LeaderEvent, Lease, LeaseOptions,
    LeaseOptionsBuilder, LocalStore, LockName, LossReason, Step, StoreElector,
};
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(10);
/// The tokens of a life follow from it, and begin with its first digits.
pub(crate) const SEED: u64 = 0x5ec2_e700_1dea_5eed;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn candidate(
    store: &LocalStore,
    node_id: &str,
    seed: u64,
) -> (StoreElector<FaultyStore<LocalStore>>, Faults) {
    let store = FaultyStore::new(store.clone());
    let faults = store.faults();
    let elector = StoreElector::builder(store).node_id(node_id).seed(seed);
    (elector.build(), faults)
}

async fn lead(elector: &impl Elector, options: LeaseOptionsBuilder) -> Lease {
    let options = options.build().unwrap();
    let lease = elector.try_acquire("report:acme", &options).await;
    lease.unwrap().expect("nobody else leads")
}

/// What a candidate lives through, and whether its leases are what they would be without anybody counting.
pub(crate) async fn a_life() {
    let store = LocalStore::new();
    let (elector, faults) = candidate(&store, "node", SEED);
    let (peer, _) = candidate(&store, "peer", SEED + 1);
    let options = || {
        LeaseOptions::builder()
            .wait(Duration::ZERO)
            .lease(LEASE)
            .auto_extend(true)
            .name_pattern("report:{tenant}")
    };
    let built = options().build().unwrap();
    let name = LockName::new("report:acme").unwrap();
    let free = async || store.inspect(&name).await.unwrap().is_empty();
    let mut events = elector.events();

    // Elected, extended, and another skipped meanwhile.
    let ran = elector.run_if_leader("report:acme", &built, |_| async {
        sleep(LEASE * 3).await;
        let skipped = peer
            .run_if_leader("report:acme", &built, |_| async {})
            .await;
        assert_eq!(skipped.unwrap(), None);
        7
    });
    assert_eq!(ran.await.unwrap(), Some(7));
    assert!(free().await, "free at once");
    assert!(matches!(
        events.next().await,
        Some(LeaderEvent::Elected { .. })
    ));
    assert!(matches!(
        events.next().await,
        Some(LeaderEvent::Extended { .. })
    ));

    // The body panics: it is the body's panic that goes on.
    let run = elector.run_if_leader("report:acme", &built, |_| async { panic!("the body's") });
    let panic = AssertUnwindSafe(run).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"the body's"));
    assert!(free().await, "free after a panic");

    // A stream.
    let mut orders = Box::pin(elector.guard_stream("report:acme", &built, |_| {
        stream::iter(1..=3).then(async |order| {
            sleep(s(1)).await;
            order
        })
    }));
    assert_eq!(orders.next().await, Some(1));
    assert_eq!(orders.as_mut().collect::<Vec<_>>().await, [2, 3]);
    assert!(free().await, "free after a stream");

    // Dropped, also by a panic around it.
    drop(lead(&elector, options()).await);
    sleep(ms(1)).await;
    assert!(free().await, "free after a drop");
    let held = lead(&elector, options()).await;
    let unwound = std::panic::catch_unwind(AssertUnwindSafe(move || {
        let _held = held;
        panic!("of whoever holds")
    }));
    unwound.unwrap_err();
    sleep(ms(1)).await;
    assert!(free().await, "free after a drop by a panic");

    // Failures of the store.
    faults.once(Step::Claim, Fault::LoseReply(BackendKind::Unreachable));
    elector
        .try_acquire("report:acme", &built)
        .await
        .unwrap_err();
    sleep(s(1)).await;
    let lease = lead(&elector, options()).await;
    faults.times(2, Step::Extend, Fault::Refuse(BackendKind::ReadOnly));
    sleep(LEASE).await;
    lease.ensure_valid().unwrap();
    faults.once(Step::Release, Fault::Refuse(BackendKind::Unreachable));
    lease.release().await.unwrap_err();
    sleep(s(1)).await;
    assert!(free().await, "free after a release that failed");

    // Lost.
    let lease = lead(&elector, options()).await;
    elector.force_release("report:acme").await.unwrap();
    lease.lost().await;
    let lost = lease.ensure_valid().unwrap_err();
    assert!(
        matches!(
            lost,
            LeaderError::LeaseLost {
                reason: LossReason::Deleted,
                ..
            }
        ),
        "{lost}"
    );
    drop(lease);

    elector.shutdown().await;
    assert_eq!(elector.footprint(), Footprint::default());
}
