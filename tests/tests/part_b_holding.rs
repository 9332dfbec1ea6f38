//! Part B of the scenarios: holding a lease. What needs a broken network or a broken server is in `part_b_faults.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leader_core::{ElectorExt, LeaderError, LeaseOptions, LossReason, OnLost};
use leader_tests::{
    World, at_once, is_skipped, lead, ms, on_every_store, options, until, until_some, waiting,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

on_every_store!(
    b01_auto_extension_keeps_a_lease_for_five_times_its_length,
    b04_a_deleted_lease_is_lost_within_one_interval,
    b04_a_taken_lease_is_lost_and_leaves_the_successor_alone,
    b06_an_explicit_extension_is_not_shortened_by_the_automatic_one,
    b06_a_short_explicit_extension_does_not_let_an_auto_extended_lease_die,
    b06_an_extension_of_nothing_is_refused_and_deletes_nothing,
    b07_an_expired_lease_is_not_revived,
    b09_each_lease_keeps_its_own_time,
    b10_reading_the_state_changes_nothing,
    max_tenure_ends_a_stuck_body,
    a_lost_body_is_dropped_and_not_polled_again,
    a_notified_body_runs_on_and_the_run_is_lost_all_the_same,
    the_cancellation_token_fires_at_the_deadline,
);

/// Nobody else stands. The wait is there so that a claim that was answered after its own lease had ended is sent again.
fn short(lease: u64) -> LeaseOptions {
    options(waiting(Duration::from_secs(20), ms(lease)))
}

/// A lease that is extended in time, at the world's pace.
fn extended<W: World>(lease: u64) -> LeaseOptions {
    options(waiting(Duration::ZERO, ms(lease) * W::PACE).auto_extend(true))
}

#[track_caller]
fn assert_lost<T: std::fmt::Debug>(result: Result<T, LeaderError>, expected: LossReason) {
    match result {
        Err(LeaderError::LeaseLost { reason, .. }) if reason == expected => {}
        other => panic!("not lost as {expected:?}: {other:?}"),
    }
}

async fn b01_auto_extension_keeps_a_lease_for_five_times_its_length<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let keeping = extended::<W>(600);
    let led = Notify::new();
    let mut running = std::pin::pin!(a.run_if_leader("x", &keeping, async |lease| {
        led.notify_one();
        sleep(ms(3_000) * W::PACE).await;
        lease.ensure_valid().unwrap();
    }));
    tokio::select! {
        ended = &mut running => panic!("{ended:?} before it began"),
        () = led.notified() => {}
    }
    let begun = Instant::now();
    let mut tries = 0;
    loop {
        tokio::select! {
            ended = &mut running => {
                ended.unwrap().expect("nobody else stood first");
                break;
            }
            () = sleep(ms(40)) => {
                if begun.elapsed() < ms(2_900) * W::PACE {
                    assert!(is_skipped(&b, "x", &at_once()).await, "a peer got in");
                    tries += 1;
                }
            }
        }
    }
    assert!(tries > 0);
}

async fn b04_a_deleted_lease_is_lost_within_one_interval<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &extended::<W>(2_000)).await;
    assert_eq!(b.force_release("x").await.unwrap(), 1);
    let begun = Instant::now();
    lease.lost().await;
    // A third of the lease, not the whole of it.
    assert!(
        begun.elapsed() < ms(1_900) * W::PACE,
        "{:?}",
        begun.elapsed()
    );
    assert_lost(lease.ensure_valid(), LossReason::Deleted);
    assert_eq!(b.force_release("x").await.unwrap(), 0);
}

async fn b04_a_taken_lease_is_lost_and_leaves_the_successor_alone<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &extended::<W>(2_000)).await;
    b.force_release("x").await.unwrap();
    let successor = lead(&b, "x", &at_once()).await;
    assert!(successor.fence() > lease.fence());
    let by_hand = lease.extend(Duration::from_secs(30)).await;
    assert_lost(by_hand, LossReason::Taken);
    assert_lost(lease.release().await, LossReason::Taken);
    let state = a.state("x").await.unwrap();
    assert_eq!(state.holders().len(), 1);
    assert_eq!(state.holders()[0].fence(), successor.fence());
    successor.release().await.unwrap();
}

async fn b06_an_explicit_extension_is_not_shortened_by_the_automatic_one<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &extended::<W>(500)).await;
    lease.extend(Duration::from_secs(60)).await.unwrap();
    assert!(lease.remaining() > Duration::from_secs(50));
    // Long enough for several automatic extensions, if there were any.
    sleep(ms(1_200) * W::PACE).await;
    assert!(
        lease.remaining() > Duration::from_secs(50),
        "{:?}",
        lease.remaining()
    );
    let remaining = b.state("x").await.unwrap().holders()[0].remaining();
    assert!(remaining > Duration::from_secs(50), "{remaining:?}");
    // And it is gone at once when it is released (c05).
    lease.release().await.unwrap();
    assert!(!is_skipped(&b, "x", &at_once()).await);
}

async fn b06_a_short_explicit_extension_does_not_let_an_auto_extended_lease_die<W: World>(
    world: W,
) {
    let a = world.candidate("a").await;
    let lease = lead(&a, "x", &extended::<W>(600)).await;
    let end = Instant::now() + ms(1_800) * W::PACE;
    while Instant::now() < end {
        lease.extend(ms(20)).await.unwrap();
        assert!(lease.remaining() > ms(20));
        sleep(ms(50)).await;
    }
    lease.release().await.unwrap();
}

async fn b06_an_extension_of_nothing_is_refused_and_deletes_nothing<W: World>(world: W) {
    let a = world.candidate("a").await;
    let lease = lead(&a, "x", &at_once()).await;
    for nothing in [
        Duration::ZERO,
        Duration::from_nanos(1),
        ms(9),
        Duration::MAX,
    ] {
        let refused = lease.extend(nothing).await;
        assert!(
            matches!(
                refused,
                Err(LeaderError::InvalidOptions {
                    option: "extend",
                    ..
                })
            ),
            "{nothing:?}: {refused:?}"
        );
    }
    lease.ensure_valid().unwrap();
    assert_eq!(a.state("x").await.unwrap().holders().len(), 1);
}

async fn b07_an_expired_lease_is_not_revived<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &short(1_000)).await;
    lease.lost().await;
    assert_lost(
        lease.extend(Duration::from_secs(30)).await,
        LossReason::Expired,
    );
    until("the store's lease has ended too", ms(5_000), async || {
        a.state("x").await.unwrap().holders().is_empty()
    })
    .await;
    assert!(!is_skipped(&b, "x", &at_once()).await);
    assert_lost(lease.ensure_valid(), LossReason::Expired);
    assert_lost(lease.release().await, LossReason::Expired);
}

async fn b09_each_lease_keeps_its_own_time<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    // Two handles of one lease agree.
    let lease = lead(&a, "x", &short(30_000)).await;
    let handle = lease.handle();
    lease.extend(Duration::from_secs(90)).await.unwrap();
    assert!(handle.remaining() > Duration::from_secs(80));
    assert_eq!(handle.fence(), lease.fence());
    lease.release().await.unwrap();
    assert!(!handle.is_valid(), "a handle outlived its lease");
    assert_lost(handle.ensure_valid(), LossReason::Released);

    // Two candidates with different options for one name: each gets what it asked for.
    let brief = lead(&a, "x", &short(100)).await;
    let patient = options(waiting(Duration::from_secs(10), Duration::from_secs(60)));
    let long = lead(&b, "x", &patient).await;
    assert!(!brief.is_valid());
    assert!(long.remaining() > Duration::from_secs(50));
    assert!(a.state("x").await.unwrap().holders()[0].remaining() > Duration::from_secs(50));
}

async fn b10_reading_the_state_changes_nothing<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &short(3_000 * u64::from(W::PACE))).await;
    let first = b.state("x").await.unwrap();
    for _ in 0..1_000 {
        let state = b.state("x").await.unwrap();
        assert_eq!(state.holders()[0].fence(), lease.fence());
        assert_eq!(state.holders()[0].node_id(), "a");
        assert!(state.holders()[0].remaining() <= first.holders()[0].remaining());
        assert!(b.state("never-led").await.unwrap().holders().is_empty());
    }
    // It ends when it would have ended anyway.
    lease.lost().await;
    until("the slot is free", ms(5_000), async || {
        b.state("x").await.unwrap().holders().is_empty()
    })
    .await;
}

async fn max_tenure_ends_a_stuck_body<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let longest = options(
        waiting(Duration::ZERO, ms(300) * W::PACE)
            .auto_extend(true)
            .max_tenure(ms(900) * W::PACE),
    );
    let stuck = a
        .run_if_leader("x", &longest, |_| std::future::pending::<()>())
        .await;
    assert_lost(stuck, LossReason::MaxTenure);
    assert!(!is_skipped(&b, "x", &options(waiting(ms(10_000), ms(60_000)))).await);
}

async fn a_lost_body_is_dropped_and_not_polled_again<W: World>(world: W) {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let a = world.candidate("a").await;
    let (polls, drops) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, dropped) = (polls.clone(), Dropped(drops.clone()));
    let lost = a
        .run_if_leader("x", &short(1_000), |_| async move {
            let _dropped = dropped;
            loop {
                counted.fetch_add(1, Ordering::SeqCst);
                sleep(ms(10)).await;
            }
        })
        .await;
    assert_lost::<Option<()>>(lost, LossReason::Expired);
    assert_eq!(
        drops.load(Ordering::SeqCst),
        1,
        "the body was not dropped before the run returned"
    );
    let polled = polls.load(Ordering::SeqCst);
    assert!(polled > 0);
    sleep(ms(50)).await;
    assert_eq!(polls.load(Ordering::SeqCst), polled);
}

async fn a_notified_body_runs_on_and_the_run_is_lost_all_the_same<W: World>(world: W) {
    let a = world.candidate("a").await;
    let notify = options(waiting(Duration::from_secs(20), ms(1_000)).on_lost(OnLost::Notify));
    let finished = Arc::new(AtomicUsize::new(0));
    let finish = finished.clone();
    let lost = a
        .run_if_leader("x", &notify, |lease| async move {
            lease.cancellation_token().cancelled().await;
            assert!(!lease.is_valid());
            sleep(ms(50)).await;
            finish.fetch_add(1, Ordering::SeqCst);
        })
        .await;
    assert_lost(lost, LossReason::Expired);
    assert_eq!(
        finished.load(Ordering::SeqCst),
        1,
        "the body was not left to finish"
    );
}

async fn the_cancellation_token_fires_at_the_deadline<W: World>(world: W) {
    let a = world.candidate("a").await;
    let lease = lead(&a, "x", &short(1_000)).await;
    let token = lease.cancellation_token();
    assert!(!token.is_cancelled());
    // Cancelling one's own copy does nothing to the lease.
    lease.cancellation_token().cancel();
    assert!(lease.is_valid() && !token.is_cancelled());
    until_some("the token fires", ms(5_000), async || {
        token.is_cancelled().then_some(())
    })
    .await;
    assert!(!lease.is_valid());
}
