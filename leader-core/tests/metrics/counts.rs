//! Counters and histograms: what they count, and under which labels.

use leader_core::testing::Fault;
use leader_core::{BackendKind, ElectorExt, LeaseOptions, LocalElector, LocalStore, Step};
use tokio::time::{advance, sleep};

use crate::support::{LEASE, Metered, candidate, lead, ms, options, s};

#[tokio::test(start_paused = true)]
async fn attempts_elections_and_skips_are_counted_by_pattern() {
    let mut metered = Metered::new();
    let store = LocalElector::new();
    let (a, b) = (store.node("a"), store.node("b"));
    let lease = lead(&a, options()).await;
    let built = options().build().unwrap();
    let elected = b.run_if_leader("report:umbrella", &built, |_| async {});
    assert_eq!(elected.await.unwrap(), Some(()));
    let skipped = b.run_if_leader("report:acme", &built, |_| async {});
    assert_eq!(skipped.await.unwrap(), None);
    lease.release().await.unwrap();

    assert_eq!(
        metered.value("attempts_total{name=report:{tenant}}"),
        Some(3)
    );
    assert_eq!(
        metered.value("elections_total{name=report:{tenant}}"),
        Some(2)
    );
    assert_eq!(metered.value("skips_total{name=report:{tenant}}"), Some(1));
    let shown = metered.shown();
    assert!(
        !shown.contains("acme") && !shown.contains("umbrella"),
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_pattern_the_name_is_the_label() {
    let mut metered = Metered::new();
    let elector = LocalElector::new();
    let options = LeaseOptions::default();
    let ran = elector.run_if_leader("invoice-close", &options, |_| async {});
    ran.await.unwrap();
    assert_eq!(
        metered.value("elections_total{name=invoice-close}"),
        Some(1)
    );
    assert!(metered.described.len() >= 5, "{:?}", metered.described);
}

#[tokio::test(start_paused = true)]
async fn losses_are_counted_once_by_reason() {
    let mut metered = Metered::new();
    let store = LocalStore::new();
    let (elector, _) = candidate(&store);
    // Its time runs out, and nobody looks.
    let lease = lead(&elector, options()).await;
    sleep(LEASE).await;
    assert_eq!(
        metered.value("losses_total{name=report:{tenant},reason=expired}"),
        Some(1)
    );
    drop(lease);
    // An operator takes it, and the next extension learns of it.
    let lease = lead(&elector, options().auto_extend(true)).await;
    elector.force_release("report:acme").await.unwrap();
    lease.lost().await;
    assert_eq!(
        metered.value("losses_total{name=report:{tenant},reason=deleted}"),
        Some(1)
    );
    assert_eq!(
        metered.value("extensions_total{name=report:{tenant},result=lost}"),
        Some(1)
    );
    // It was gone before it was let go of.
    let lease = lead(&elector, options()).await;
    elector.force_release("report:acme").await.unwrap();
    lease.release().await.unwrap_err();
    assert_eq!(
        metered.value("losses_total{name=report:{tenant},reason=deleted}"),
        Some(2)
    );
    assert_eq!(
        metered.value("losses_total{name=report:{tenant},reason=expired}"),
        Some(1)
    );
}

#[tokio::test(start_paused = true)]
async fn extensions_are_counted_by_result() {
    let mut metered = Metered::new();
    let (elector, faults) = candidate(&LocalStore::new());
    let lease = lead(&elector, options()).await;
    lease.extend(LEASE).await.unwrap();
    faults.once(Step::Extend, Fault::Refuse(BackendKind::ReadOnly));
    lease.extend(LEASE).await.unwrap_err();
    lease.extend(LEASE).await.unwrap();
    assert_eq!(
        metered.value("extensions_total{name=report:{tenant},result=extended}"),
        Some(2)
    );
    assert_eq!(
        metered.value("extensions_total{name=report:{tenant},result=failed}"),
        Some(1)
    );
    assert_eq!(
        metered.value("extensions_total{name=report:{tenant},result=lost}"),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn failures_of_the_store_are_counted_by_kind() {
    let mut metered = Metered::new();
    let (elector, faults) = candidate(&LocalStore::new());
    faults.once(Step::Claim, Fault::Refuse(BackendKind::OutOfMemory));
    elector
        .try_acquire("report:acme", &options().build().unwrap())
        .await
        .unwrap_err();
    let failures = "attempt_failures_total{name=report:{tenant},kind=out_of_memory}";
    assert_eq!(metered.value(failures), Some(1));
    assert_eq!(metered.value("skips_total{name=report:{tenant}}"), None);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_counted_each_time_it_is_tried() {
    let mut metered = Metered::new();
    let (elector, faults) = candidate(&LocalStore::new());
    let refused = Fault::Refuse(BackendKind::Unreachable);
    // Awaited, and behind.
    let lease = lead(&elector, options()).await;
    faults.times(2, Step::Release, refused);
    lease.release().await.unwrap_err();
    sleep(s(1)).await;
    assert_eq!(
        metered.value("release_failures_total{name=report:{tenant}}"),
        Some(2)
    );
    // Of an attempt whose answer was not seen.
    faults.once(Step::Claim, Fault::LoseReply(BackendKind::Unreachable));
    faults.once(Step::Release, refused);
    elector
        .try_acquire("report:acme", &options().build().unwrap())
        .await
        .unwrap_err();
    sleep(s(1)).await;
    assert_eq!(
        metered.value("release_failures_total{name=report:{tenant}}"),
        Some(3)
    );
    // A lease that is dropped.
    faults.once(Step::Release, refused);
    drop(lead(&elector, options()).await);
    sleep(s(1)).await;
    assert_eq!(
        metered.value("release_failures_total{name=report:{tenant}}"),
        Some(4)
    );
}

#[tokio::test(start_paused = true)]
async fn waits_holds_and_handovers_are_measured() {
    let mut metered = Metered::new();
    let store = LocalElector::new();
    let (a, b) = (store.node("a"), store.node("b"));
    let lease = lead(&a, options()).await;
    let waiter = tokio::spawn(async move { lead(&b, options().wait(s(60))).await });
    sleep(s(3)).await;
    lease.release().await.unwrap();
    let lease = waiter.await.unwrap();
    advance(ms(500)).await;
    lease.release().await.unwrap();

    let holds = metered.recorded("hold_seconds{name=report:{tenant}}");
    assert_eq!(holds.len(), 2);
    assert_eq!(holds[0], 3_000);
    assert!((500..600).contains(&holds[1]), "{holds:?}");
    let waits = metered.recorded("acquire_wait_seconds{name=report:{tenant}}");
    assert_eq!(waits.len(), 2);
    assert_eq!(waits[0], 0);
    assert!((3_000..3_100).contains(&waits[1]), "{waits:?}");
    // Known only where somebody waited for a release that was told.
    let handovers = metered.recorded("handover_seconds{name=report:{tenant}}");
    assert_eq!(handovers.len(), 1);
    assert!((0..100).contains(&handovers[0]), "{handovers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handover_is_measured_from_when_the_slot_is_free() {
    let mut metered = Metered::new();
    let store = LocalElector::new();
    let (a, b) = (store.node("a"), store.node("b"));
    let lease = lead(&a, options().min_lease(s(5))).await;
    let waiter = tokio::spawn(async move { lead(&b, options().wait(s(60))).await });
    sleep(s(1)).await;
    lease.release().await.unwrap();
    let _lease = waiter.await.unwrap();
    let handovers = metered.recorded("handover_seconds{name=report:{tenant}}");
    assert_eq!(handovers.len(), 1);
    assert!((0..100).contains(&handovers[0]), "{handovers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_is_no_handover() {
    let mut metered = Metered::new();
    let store = LocalElector::new();
    let (a, b) = (store.node("a"), store.node("b"));
    let _lost = lead(&a, options()).await;
    let _lease = lead(&b, options().wait(s(60))).await;
    assert_eq!(
        metered
            .recorded("acquire_wait_seconds{name=report:{tenant}}")
            .len(),
        2
    );
    assert!(
        metered
            .recorded("handover_seconds{name=report:{tenant}}")
            .is_empty()
    );
}
