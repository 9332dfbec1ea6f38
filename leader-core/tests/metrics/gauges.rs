//! Gauges come back to zero, whatever happens.

use std::panic::AssertUnwindSafe;
use std::pin::pin;

use futures::FutureExt;
use leader_core::testing::Fault;
use leader_core::{BackendKind, ElectorExt, LeaseOptions, LocalElector, LocalStore, OnLost, Step};
use tokio::time::{sleep, timeout};

use crate::support::{LEASE, Metered, alone, candidate, lead, ms, options, s};

const LEADING: [Option<i64>; 3] = [Some(1), Some(1), Some(0)];
const NOTHING: [Option<i64>; 3] = [Some(0), Some(0), Some(0)];

fn built() -> LeaseOptions {
    options().build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_never_led_shows_that_it_does_not() {
    let mut metered = Metered::new();
    let store = LocalElector::new();
    let (a, b) = (store.node("a"), store.node("b"));
    // Before anybody counts.
    let other = LeaseOptions::builder().lease(LEASE).build().unwrap();
    let _lease = a.try_acquire("report:acme", &other).await.unwrap();
    assert!(
        b.try_acquire("report:acme", &built())
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(metered.gauges(), [None, Some(0), Some(0)]);
    assert_eq!(metered.value("master_status{name=report:acme}"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn let_go_of_by_hand() {
    let mut metered = Metered::new();
    let elector = LocalElector::new();
    let lease = lead(&elector, options()).await;
    let handle = lease.handle();
    assert_eq!(metered.gauges(), LEADING);
    lease.release().await.unwrap();
    assert_eq!(metered.gauges(), NOTHING, "released, and a handle is left");
    drop(handle);

    drop(lead(&elector, options()).await);
    assert_eq!(metered.gauges(), NOTHING, "dropped");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_no_holding() {
    let mut metered = Metered::new();
    let (elector, faults) = candidate(&LocalStore::new());
    faults.always(Step::Release, Fault::Refuse(BackendKind::Unreachable));
    lead(&elector, options()).await.release().await.unwrap_err();
    assert_eq!(metered.gauges(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_returns_fails_or_panics() {
    let mut metered = Metered::new();
    let elector = LocalElector::new();
    let built = built();
    elector
        .run_if_leader("report:acme", &built, |_| async {})
        .await
        .unwrap();
    assert_eq!(metered.gauges(), NOTHING, "returned");
    let failed =
        elector.run_if_leader_result("report:acme", &built, |_| async { Err::<(), _>("no") });
    assert!(failed.await.is_ok());
    assert_eq!(metered.gauges(), NOTHING, "failed");
    let panicked = elector.run_if_leader("report:acme", &built, |_| async { panic!("the body's") });
    assert!(AssertUnwindSafe(panicked).catch_unwind().await.is_err());
    assert_eq!(metered.gauges(), NOTHING, "panicked");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_half_way() {
    let mut metered = Metered::new();
    let elector = LocalElector::new();
    let options = built();
    {
        let mut run =
            pin!(elector.run_if_leader("report:acme", &options, |_| std::future::pending::<()>()));
        assert!(timeout(s(1), run.as_mut()).await.is_err());
        assert_eq!(metered.gauges(), LEADING);
    }
    assert_eq!(metered.gauges(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_half_way() {
    use futures::{StreamExt, stream};
    let mut metered = Metered::new();
    let elector = LocalElector::new();
    let options = options().auto_extend(true).build().unwrap();
    let mut orders = Box::pin(elector.guard_stream("report:acme", &options, |_| stream::repeat(1)));
    assert_eq!(orders.next().await, Some(1));
    assert_eq!(metered.gauges(), LEADING);
    drop(orders);
    assert_eq!(metered.gauges(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_dropped_waits_no_longer() {
    let mut metered = Metered::new();
    let store = LocalElector::new();
    let (a, b) = (store.node("a"), store.node("b"));
    let lease = lead(&a, options()).await;
    let options = options().wait(s(60)).build().unwrap();
    for _ in 0..3 {
        let mut attempt = Box::pin(b.try_acquire("report:acme", &options));
        assert!(timeout(ms(10), attempt.as_mut()).await.is_err());
        assert_eq!(metered.gauges(), [Some(1), Some(1), Some(1)]);
        drop(attempt);
        assert_eq!(metered.gauges(), LEADING);
    }
    lease.release().await.unwrap();
    assert_eq!(metered.gauges(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_dropped_with_its_claim_in_flight() {
    let mut metered = Metered::new();
    let (elector, faults) = candidate(&LocalStore::new());
    faults.once(Step::Claim, Fault::HoldReply);
    let options = built();
    let mut attempt = Box::pin(elector.try_acquire("report:acme", &options));
    assert!(timeout(ms(10), attempt.as_mut()).await.is_err());
    assert_eq!(metered.gauges(), [None, Some(0), Some(1)]);
    drop(attempt);
    faults.let_go_all();
    sleep(s(1)).await;
    assert_eq!(metered.gauges(), [None, Some(0), Some(0)]);
}

#[tokio::test(start_paused = true)]
async fn lost_leases() {
    let mut metered = Metered::new();
    let store = LocalStore::new();
    let (elector, faults) = candidate(&store);
    // By hand; nobody looks at the clock.
    let lease = lead(&elector, options()).await;
    sleep(LEASE).await;
    assert_eq!(metered.gauges(), NOTHING, "its time ran out");
    drop(lease);
    // With a body that goes on.
    let notified = options().on_lost(OnLost::Notify).build().unwrap();
    let run = tokio::spawn({
        let elector = elector.clone();
        async move {
            let run = elector.run_if_leader("report:acme", &notified, |_| sleep(LEASE * 2));
            run.await.map(drop)
        }
    });
    sleep(LEASE).await;
    assert_eq!(metered.gauges(), NOTHING, "the body goes on");
    run.await.unwrap().unwrap_err();
    // Taken away.
    let lease = lead(&elector, options().auto_extend(true)).await;
    elector.force_release("report:acme").await.unwrap();
    lease.lost().await;
    assert_eq!(metered.gauges(), NOTHING, "deleted");
    drop(lease);
    // Every extension fails.
    let lease = lead(&elector, options().auto_extend(true)).await;
    faults.stop(BackendKind::Unreachable);
    lease.lost().await;
    assert_eq!(metered.gauges(), NOTHING, "the store is gone");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown() {
    let mut metered = Metered::new();
    let (elector, faults) = candidate(&LocalStore::new());
    let three = || options().slots(3);
    let lease = lead(&elector, three()).await;
    let notified = three().on_lost(OnLost::Notify).build().unwrap();
    let body = tokio::spawn({
        let elector = elector.clone();
        async move {
            elector
                .run_if_leader("report:acme", &notified, |_| sleep(s(600)))
                .await
                .map(drop)
        }
    });
    let waiting = tokio::spawn({
        let elector = elector.clone();
        let options = options().slots(1).wait(s(600)).build().unwrap();
        async move { elector.try_acquire("report:acme", &options).await.map(drop) }
    });
    sleep(s(1)).await;
    assert_eq!(metered.gauges(), [Some(2), Some(1), Some(1)]);
    faults.stop(BackendKind::Unreachable);
    elector.shutdown().await;
    assert_eq!(metered.gauges(), NOTHING, "and one body still runs");
    waiting.await.unwrap().unwrap_err();
    body.await.unwrap().unwrap_err();
    drop(lease);
    assert_eq!(metered.gauges(), NOTHING);
}

#[test]
fn a_runtime_that_ends() {
    let mut metered = Metered::new();
    let elector = LocalElector::new();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let options = options().auto_extend(true).build().unwrap();
    let lease = first.block_on(lead(&elector, crate::support::options().auto_extend(true)));
    let standing = elector.clone();
    first.spawn(async move {
        standing
            .run_if_leader("report:umbrella", &options, |_| {
                std::future::pending::<()>()
            })
            .await
    });
    first.block_on(tokio::task::yield_now());
    assert_eq!(metered.gauges(), [Some(2), Some(1), Some(0)]);
    drop(first);
    assert_eq!(metered.gauges(), LEADING, "one is held outside");
    drop(lease);
    assert_eq!(metered.gauges(), NOTHING);
    // Whoever comes next counts from there.
    runtime().block_on(async {
        let lease = lead(&elector, crate::support::options()).await;
        assert_eq!(metered.gauges(), LEADING);
        lease.release().await.unwrap();
    });
    assert_eq!(metered.gauges(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn several_leases_under_one_label_are_one_leader() {
    let mut metered = Metered::new();
    let elector = LocalElector::new();
    let options = || options().slots(3);
    let (a, b) = (
        lead(&elector, options()).await,
        lead(&elector, options()).await,
    );
    assert_eq!(metered.gauges(), [Some(2), Some(1), Some(0)]);
    drop(a);
    assert_eq!(metered.gauges(), LEADING);
    drop(b);
    assert_eq!(metered.gauges(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn a_recorder_that_comes_late_never_shows_less_than_nobody() {
    alone();
    let elector = LocalElector::new();
    let lease = lead(&elector, options()).await;
    let mut metered = Metered::new();
    lease.release().await.unwrap();
    assert_eq!(metered.gauges(), [None; 3]);
    let lease = lead(&elector, options()).await;
    assert_eq!(metered.gauges(), LEADING);
    lease.release().await.unwrap();
    assert_eq!(metered.gauges(), NOTHING);
}
