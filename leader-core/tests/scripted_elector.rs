//! The scripted elector leads, follows, fails and loses at a word, and its leases behave as real ones.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use leader_core::testing::ScriptedElector;
use leader_core::{
    BackendKind, Elector, ElectorExt, LeaderError, LeaderEvent, LeaseOptions, LossReason, OnLost,
    RunOutcome, Step,
};
use tokio::time::{Instant, sleep};

const NAME: &str = "invoice-close";
const LEASE: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(2);

fn options() -> LeaseOptions {
    LeaseOptions::builder()
        .lease(LEASE)
        .wait(WAIT)
        .build()
        .unwrap()
}

fn auto_extended() -> LeaseOptions {
    LeaseOptions::builder()
        .lease(LEASE)
        .wait(WAIT)
        .auto_extend(true)
        .build()
        .unwrap()
}

fn reason<T: std::fmt::Debug>(run: Result<T, LeaderError>) -> LossReason {
    match run {
        Err(LeaderError::LeaseLost { reason, .. }) => reason,
        other => panic!("not lost: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_runs_the_work_with_growing_fencing_tokens() {
    let elector = ScriptedElector::leader();
    let mut last = None;
    for _ in 0..3 {
        let fence = elector
            .run_if_leader(NAME, &options(), |lease| async move { lease.fence() })
            .await
            .unwrap();
        assert!(fence > last, "{fence:?} after {last:?}");
        last = fence;
    }
}

#[tokio::test(start_paused = true)]
async fn a_leaders_own_tasks_lead_one_after_the_other() {
    let elector = ScriptedElector::leader();
    let running = Cell::new(false);
    let (options, second) = (options(), Duration::from_secs(1));
    let run = || {
        elector.run_if_leader(NAME, &options, |_lease| async {
            assert!(!running.replace(true), "two bodies at once");
            sleep(second).await;
            running.set(false);
        })
    };
    let begun = Instant::now();
    let (first, other) = tokio::join!(run(), run());
    assert_eq!((first.unwrap(), other.unwrap()), (Some(()), Some(())));
    assert_eq!(begun.elapsed(), second * 2, "the second was not late");
}

#[tokio::test(start_paused = true)]
async fn a_followers_work_is_skipped_when_its_wait_is_over() {
    let elector: Arc<dyn Elector> = Arc::new(ScriptedElector::follower("node-b"));
    let begun = Instant::now();
    let outcome = elector
        .run_if_leader_result(NAME, &options(), |_lease| async { Ok::<_, ()>(()) })
        .await
        .unwrap();
    let RunOutcome::Skipped(skipped) = outcome else {
        panic!("not skipped: {outcome:?}");
    };
    assert_eq!(skipped.holder().unwrap(), &"node-b");
    assert_eq!(begun.elapsed(), WAIT);

    let state = elector.state(NAME).await.unwrap();
    assert_eq!(state.holders()[0].node_id(), &"node-b");
    assert_eq!(state.holders().len(), 1);
    assert_eq!(elector.force_release(NAME).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_is_an_error_and_never_a_skip() {
    for kind in [BackendKind::Denied, BackendKind::Unreachable] {
        let elector = ScriptedElector::failing(kind);
        let begun = Instant::now();
        let error = elector
            .run_if_leader(NAME, &options(), |_lease| async {})
            .await
            .unwrap_err();
        let LeaderError::Backend { step, kind: is, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!((step, is), (Step::Claim, kind));
        let waited = if kind.is_transient() {
            WAIT
        } else {
            Duration::ZERO
        };
        assert_eq!(begun.elapsed(), waited);
        assert!(elector.state(NAME).await.is_err());
        assert!(elector.force_release(NAME).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_elected_at_the_word() {
    let elector = ScriptedElector::follower("node-b");
    let options = options();
    let waiting = elector.try_acquire(NAME, &options);
    let turn = async {
        sleep(WAIT / 2).await;
        elector.lead();
    };
    let begun = Instant::now();
    let (lease, ()) = tokio::join!(waiting, turn);
    let lease = lease.unwrap().unwrap();
    assert_eq!(begun.elapsed(), WAIT / 2);

    // The scripted leader has led in between: its fencing token is among the others.
    elector.follow("node-c");
    let state = elector.state(NAME).await.unwrap();
    assert!(state.holders()[0].fence() > lease.fence());
    lease.release().await.unwrap();
    elector.lead();
    let next = elector.try_acquire(NAME, &options).await.unwrap().unwrap();
    assert!(next.fence() > state.holders()[0].fence());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_error_at_the_word() {
    let elector = ScriptedElector::follower("node-b");
    let options = options();
    let waiting = elector.try_acquire(NAME, &options);
    let turn = async {
        sleep(WAIT / 2).await;
        elector.fail(BackendKind::WrongType);
    };
    let begun = Instant::now();
    let (lease, ()) = tokio::join!(waiting, turn);
    assert!(matches!(lease, Err(LeaderError::Backend { .. })));
    assert_eq!(begun.elapsed(), WAIT / 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_body_is_not_polled_again() {
    for lost in [
        LossReason::Expired,
        LossReason::Taken,
        LossReason::Deleted,
        LossReason::MaxTenure,
        LossReason::Released,
    ] {
        let elector = ScriptedElector::leader();
        let mut events = elector.events();
        let polled_after = Cell::new(false);
        let options = options();
        let run = elector.run_if_leader(NAME, &options, |_lease| async {
            sleep(WAIT).await;
            polled_after.set(true);
        });
        let lose = async {
            sleep(WAIT / 2).await;
            assert_eq!(elector.lose(lost), 1);
            assert_eq!(elector.lose(lost), 0, "a lease is lost once");
        };
        let begun = Instant::now();
        let (run, ()) = tokio::join!(run, lose);
        assert_eq!(reason(run), lost);
        assert_eq!(begun.elapsed(), WAIT / 2, "at once");
        sleep(LEASE).await;
        assert!(!polled_after.get());

        let mut told = Vec::new();
        while let Some(Some(event)) = events.next().now_or_never() {
            told.push(event);
        }
        assert!(
            matches!(&told[1..], [LeaderEvent::Lost { reason, .. }] if *reason == lost),
            "{told:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_lost_to_a_shutdown_says_so() {
    let elector = ScriptedElector::leader();
    let options = options();
    let run = elector.run_if_leader(NAME, &options, |_lease| std::future::pending::<()>());
    let shut_down = async { elector.lose(LossReason::ShutDown) };
    let (run, count) = tokio::join!(run, shut_down);
    assert!(matches!(run, Err(LeaderError::ShutDown)), "{run:?}");
    assert_eq!(count, 1);
}

#[tokio::test(start_paused = true)]
async fn every_lease_is_lost_and_the_names_are_free_after_it() {
    let elector = ScriptedElector::leader();
    let options = auto_extended();
    let mut leases = Vec::new();
    for name in [NAME, "order-feed:eu", "order-feed:us"] {
        leases.push(elector.try_acquire(name, &options).await.unwrap().unwrap());
    }
    let signal = leases[0].cancellation_token();
    assert_eq!(elector.lose(LossReason::Deleted), 3);
    signal.cancelled().await;
    for lease in &leases {
        assert_eq!(reason(lease.ensure_valid()), LossReason::Deleted);
        let next = elector.try_acquire(lease.name(), &options).await.unwrap();
        assert!(next.unwrap().fence() > lease.fence());
    }
    for lease in leases {
        assert_eq!(reason(lease.release().await), LossReason::Deleted);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_lost_lease_is_elected() {
    let elector = ScriptedElector::leader();
    let options = options();
    let lease = elector.try_acquire(NAME, &options).await.unwrap().unwrap();
    let waiting = elector.try_acquire(NAME, &options);
    let lose = async {
        sleep(WAIT / 2).await;
        elector.lose(LossReason::Taken);
    };
    let begun = Instant::now();
    let (next, ()) = tokio::join!(waiting, lose);
    assert!(next.unwrap().unwrap().fence() > lease.fence());
    assert_eq!(begun.elapsed(), WAIT / 2);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_to_be_notified_ends_by_itself() {
    let elector = ScriptedElector::leader();
    let options = LeaseOptions::builder()
        .on_lost(OnLost::Notify)
        .build()
        .unwrap();
    let ended = Cell::new(false);
    let run = elector.run_if_leader(NAME, &options, |lease| {
        let ended = &ended;
        async move {
            lease.cancellation_token().cancelled().await;
            sleep(WAIT).await;
            ended.set(true);
        }
    });
    let lose = async { elector.lose(LossReason::Taken) };
    let (run, _) = tokio::join!(run, lose);
    assert_eq!(reason(run), LossReason::Taken);
    assert!(ended.get());
}

#[tokio::test(start_paused = true)]
async fn an_extended_lease_is_taken_at_its_next_extension() {
    let elector = ScriptedElector::leader();
    let options = auto_extended();
    let lease = elector.try_acquire(NAME, &options).await.unwrap().unwrap();
    sleep(LEASE * 3).await;
    lease.ensure_valid().unwrap();
    elector.follow("node-b");
    let begun = Instant::now();
    lease.lost().await;
    assert_eq!(reason(lease.ensure_valid()), LossReason::Taken);
    assert!(begun.elapsed() <= LEASE / 3, "{:?}", begun.elapsed());

    let state = elector.state(NAME).await.unwrap();
    assert_eq!(state.holders()[0].node_id(), &"node-b");
    elector.lead();
    let next = elector.try_acquire(NAME, &options).await.unwrap().unwrap();
    assert!(next.fence() > state.holders()[0].fence());
}

#[tokio::test(start_paused = true)]
async fn an_extension_by_hand_asks_the_script_too() {
    let elector = ScriptedElector::leader();
    let lease = elector
        .try_acquire(NAME, &options())
        .await
        .unwrap()
        .unwrap();
    lease.extend(LEASE * 2).await.unwrap();
    elector.fail(BackendKind::ReadOnly);
    let error = lease.extend(LEASE * 2).await.unwrap_err();
    assert!(matches!(error, LeaderError::Backend { .. }), "{error:?}");
    lease.ensure_valid().unwrap();
    elector.follow("node-b");
    assert_eq!(reason(lease.extend(LEASE * 2).await), LossReason::Taken);
}

#[tokio::test(start_paused = true)]
async fn a_lease_outlives_a_failing_store_until_its_deadline() {
    let elector = ScriptedElector::leader();
    let options = auto_extended();
    let lease = elector.try_acquire(NAME, &options).await.unwrap().unwrap();
    elector.fail(BackendKind::Unreachable);
    sleep(LEASE / 2).await;
    lease.ensure_valid().unwrap();
    elector.lead();
    sleep(LEASE * 2).await;
    lease.ensure_valid().unwrap();

    elector.fail(BackendKind::Unreachable);
    let begun = Instant::now();
    lease.lost().await;
    assert_eq!(reason(lease.ensure_valid()), LossReason::Expired);
    assert!(begun.elapsed() > LEASE / 2, "not before its deadline");
}

#[tokio::test(start_paused = true)]
async fn a_minimum_lease_is_kept() {
    let elector = ScriptedElector::leader();
    let options = LeaseOptions::builder()
        .lease(LEASE)
        .min_lease(WAIT)
        .wait(LEASE)
        .build()
        .unwrap();
    let begun = Instant::now();
    for _ in 0..2 {
        elector
            .run_if_leader(NAME, &options, |_lease| async {})
            .await
            .unwrap()
            .unwrap();
    }
    assert!(begun.elapsed() >= WAIT, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_shut_down_elector_says_so() {
    let elector = ScriptedElector::leader();
    elector.shutdown().await;
    let error = elector.try_acquire(NAME, &options()).await.unwrap_err();
    assert!(matches!(error, LeaderError::ShutDown), "{error:?}");
}
