//! The guard, polled by hand: what decides is the clock, not which wake-up came first.
#![allow(missing_docs, reason = "a test")]

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use leader_core::testing::{Fault, FaultyStore};
use leader_core::{
    ElectorExt, LeaderError, LeaseOptions, LocalElector, LocalStore, LossReason, OnLost, Step,
    StoreElector,
};
use tokio::sync::Notify;

fn options() -> leader_core::LeaseOptionsBuilder {
    LeaseOptions::builder()
        .lease(Duration::from_secs(1))
        .wait(Duration::ZERO)
}

/// A body that counts how often it is polled, and can be woken.
fn counting(polls: &Arc<AtomicUsize>, wake: &Arc<Notify>) -> impl Future<Output = ()> + use<> {
    let (polls, wake) = (polls.clone(), wake.clone());
    async move {
        loop {
            polls.fetch_add(1, Ordering::SeqCst);
            wake.notified().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b05_a_body_that_is_woken_after_its_deadline_is_dropped_unpolled() {
    let elector = LocalElector::new();
    let (polls, wake) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let once = options().build().unwrap();
    let mut run = Box::pin(elector.run_if_leader("x", &once, |_| counting(&polls, &wake)));
    assert!(run.as_mut().now_or_never().is_none());
    assert_eq!(polls.load(Ordering::SeqCst), 1);

    // Frozen: time passes, nothing is polled. Thawed: the body's own wake-up is there.
    tokio::time::advance(Duration::from_secs(60)).await;
    wake.notify_one();
    match run.as_mut().now_or_never() {
        Some(Err(LeaderError::LeaseLost {
            reason: LossReason::Expired,
            ..
        })) => {}
        other => panic!("polled once, the run should be lost: {other:?}"),
    }
    assert_eq!(
        polls.load(Ordering::SeqCst),
        1,
        "the body was polled past its deadline"
    );
    assert_eq!(Arc::strong_count(&wake), 1, "the body was not dropped");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_in_the_poll_after_its_deadline_was_not_elected() {
    let elector = LocalElector::new();
    let notify = options().on_lost(OnLost::Notify).build().unwrap();
    let wake = Arc::new(Notify::new());
    let woken = wake.clone();
    let mut run =
        Box::pin(elector.run_if_leader("x", &notify, |_| async move { woken.notified().await }));
    assert!(run.as_mut().now_or_never().is_none());
    tokio::time::advance(Duration::from_secs(60)).await;
    wake.notify_one();
    let ended = run.as_mut().now_or_never();
    assert!(
        matches!(ended, Some(Err(LeaderError::LeaseLost { .. }))),
        "{ended:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn validity_needs_no_background_task() {
    let elector = LocalElector::new();
    let extended = options().auto_extend(true).build().unwrap();
    let lease = elector.try_acquire("x", &extended).await.unwrap().unwrap();
    let token = lease.cancellation_token();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(
        lease.is_valid() && !token.is_cancelled(),
        "it was not extended"
    );
    // Time passes in one step, before any task has run: the clock alone decides.
    let past = tokio::time::advance(Duration::from_secs(60)).now_or_never();
    assert!(!lease.is_valid(), "{past:?}");
    assert!(token.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_lease_counts_one_percent_and_two_milliseconds_less_than_the_store() {
    let elector = LocalElector::new();
    let lease = elector
        .try_acquire("x", &options().build().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(lease.remaining(), Duration::from_millis(988));
    let stored = elector.state("x").await.unwrap().holders()[0].remaining();
    assert_eq!(stored, Duration::from_secs(1));
    tokio::time::advance(Duration::from_millis(987)).await;
    assert!(lease.is_valid());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(!lease.is_valid());
    assert_eq!(elector.state("x").await.unwrap().holders().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a02_the_last_attempt_is_at_the_deadline() {
    let a = LocalElector::new();
    let b = a.node("b");
    let lease = a
        .try_acquire("x", &options().build().unwrap())
        .await
        .unwrap()
        .unwrap();
    // The store's lease ends with the wait, to the millisecond: no hint tells of it.
    std::mem::forget(lease);
    let wait = options().wait(Duration::from_secs(1)).build().unwrap();
    assert!(b.try_acquire("x", &wait).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn spans_and_errors_show_no_token() {
    let elector = LocalElector::new();
    let lease = elector
        .try_acquire("x", &options().build().unwrap())
        .await
        .unwrap()
        .unwrap();
    let shown = format!("{lease:?} {:?} {elector:?}", lease.handle());
    assert!(shown.contains("fence"), "{shown}");
    assert!(!shown.to_lowercase().contains("token:"), "{shown}");
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("while dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn c01_a_panic_in_the_bodys_drop_is_resumed_after_the_release() {
    for ends_by_itself in [true, false] {
        let store = FaultyStore::new(LocalStore::new());
        let faults = store.faults();
        let elector = StoreElector::builder(store).build();
        let once = options().build().unwrap();
        // Whoever does not wait for the release is back before it has arrived.
        let slowly = Fault::DelayRequest(Duration::from_millis(50));
        faults.always(Step::Release, slowly);
        let run = elector.run_if_leader("x", &once, |_| {
            let held = PanicsWhenDropped;
            // Not a local of an async block, so it is gone only when the body itself is.
            std::future::poll_fn(move |_| {
                let _ = &held;
                if ends_by_itself {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
        });
        let run = async {
            let panic = AssertUnwindSafe(run).catch_unwind().await.unwrap_err();
            (panic, faults.ran(Step::Release))
        };
        let ((panic, released), ()) = tokio::join!(run, async {
            if !ends_by_itself {
                elector.shutdown().await;
            }
        });
        assert_eq!(*panic.downcast::<&str>().unwrap(), "while dropped");
        assert_eq!(released, 1, "the slot was not given back yet");
    }
}

#[tokio::test]
async fn runs_that_never_wait_let_other_tasks_of_the_thread_run() {
    let (elector, once) = (LocalElector::new(), options().build().unwrap());
    let other = tokio::spawn(async {});
    for _ in 0..10_000 {
        if other.is_finished() {
            return;
        }
        let run = elector.run_if_leader("x", &once, |_| async {});
        assert_eq!(run.await.unwrap(), Some(()));
    }
    panic!("10 000 runs in a row kept the thread to themselves");
}

#[tokio::test]
async fn a_token_that_is_asked_for_after_the_end_has_fired() {
    let (elector, once) = (LocalElector::new(), options().build().unwrap());
    let lease = elector.try_acquire("x", &once).await.unwrap().unwrap();
    let handle = lease.handle();
    lease.release().await.unwrap();
    assert!(handle.cancellation_token().is_cancelled());
    handle.lost().await;
}
