//! Part A of the scenarios: being elected. What needs a broken network or a broken server is in `part_a_faults.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use leader_core::{ElectorExt, LeaseOptions, RunOutcome};
use leader_tests::{
    World, at_once, is_skipped, lead, ms, on_every_store, options, patient, until, waiting,
};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

on_every_store!(
    a01_somebody_else_leading_is_skipped_not_an_error,
    a02_no_wait_is_one_attempt,
    a02_a_slot_freed_within_the_wait_is_taken,
    a07_extreme_time_limits_work,
    a08_two_names_are_two_locks,
    a09_tasks_of_one_name_run_one_at_a_time_and_in_order,
    a09_tasks_of_different_names_run_all_at_once,
    a16_other_tasks_run_on_while_five_hundred_wait,
    d01_a_body_that_returns_nothing_was_elected,
    d02_only_the_bodys_own_error_is_action_failed,
);

async fn a01_somebody_else_leading_is_skipped_not_an_error<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let _lease = lead(&a, "invoice-close", &at_once()).await;
    let ran = Arc::new(AtomicUsize::new(0));

    let wait = options(waiting(ms(50), ms(60_000)));
    let outcome = b
        .run_if_leader_result("invoice-close", &wait, |_| {
            ran.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, ()>(()) }
        })
        .await;

    match outcome {
        Ok(RunOutcome::Skipped(skipped)) => {
            assert_eq!(
                skipped.holder().map(ToString::to_string).as_deref(),
                Some("a")
            );
            assert!(skipped.retry_after().is_some_and(|after| after > ms(1_000)));
        }
        other => panic!("not skipped: {other:?}"),
    }
    assert_eq!(
        ran.load(Ordering::Relaxed),
        0,
        "the body of a skipped run ran"
    );
    assert_eq!(
        b.run_if_leader("invoice-close", &wait, async |_| 1)
            .await
            .unwrap(),
        None
    );
}

async fn a02_no_wait_is_one_attempt<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &at_once()).await;
    assert!(is_skipped(&b, "x", &at_once()).await);
    lease.release().await.unwrap();
    assert!(!is_skipped(&b, "x", &at_once()).await);
}

async fn a02_a_slot_freed_within_the_wait_is_taken<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &at_once()).await;
    let waiter = tokio::spawn(async move { b.try_acquire("x", &patient()).await });
    tokio::time::sleep(ms(10)).await;
    lease.release().await.unwrap();
    assert!(waiter.await.unwrap().unwrap().is_some());
}

async fn a07_extreme_time_limits_work<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let for_ever = options(waiting(Duration::MAX, LeaseOptions::MAX_LEASE));
    let lease = lead(&a, "x", &for_ever).await;
    assert!(lease.remaining() > Duration::from_secs(360 * 24 * 60 * 60));

    let mut waiter = tokio::spawn(async move { b.try_acquire("x", &for_ever).await });
    assert!(
        tokio::time::timeout(ms(100), &mut waiter).await.is_err(),
        "a wait without end ended: {:?}",
        waiter.await
    );
    lease.release().await.unwrap();
    let lease = waiter.await.unwrap().unwrap().unwrap();
    lease.release().await.unwrap();

    // Ten milliseconds are short, but a lease: it ends by itself.
    let short = options(waiting(Duration::ZERO, LeaseOptions::MIN_LEASE));
    until(
        "a lease of ten milliseconds is had",
        ms(5_000),
        async || {
            a.try_acquire("y", &short).await.is_ok_and(|lease| {
                lease.is_some_and(|lease| {
                    assert!(lease.remaining() < ms(10));
                    std::mem::forget(lease);
                    true
                })
            })
        },
    )
    .await;
    until("and ends by itself", ms(5_000), async || {
        a.state("y").await.unwrap().holders().is_empty()
    })
    .await;
}

async fn a08_two_names_are_two_locks<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let long = "x".repeat(255);
    let names = [
        "x",
        "X",
        "x:y",
        "x.y",
        "x/y",
        "x-y",
        "x_y",
        "x:",
        long.as_str(),
    ];
    let mut leases = Vec::new();
    for name in names {
        leases.push(lead(&a, name, &at_once()).await);
    }
    for name in names {
        assert!(
            is_skipped(&b, name, &at_once()).await,
            "{name} is led by nobody"
        );
        assert_eq!(b.state(name).await.unwrap().holders().len(), 1);
    }
    for bad in ["", " ", "-x", "x{y}", "x\r\ny", "x\0", "🦀"] {
        let refused = a.try_acquire(bad, &at_once()).await;
        assert!(
            matches!(refused, Err(leader_core::LeaderError::InvalidName { .. })),
            "{bad:?}: {refused:?}"
        );
    }
}

async fn a09_tasks_of_one_name_run_one_at_a_time_and_in_order<W: World>(world: W) {
    const TASKS: usize = 64;
    let elector = world.candidate("a").await;
    let running = Arc::new(AtomicUsize::new(0));
    let order = Arc::new(Mutex::new(Vec::new()));
    let first = lead(&elector, "x", &at_once()).await;
    let options = patient();
    let mut runs: Vec<_> = (0..TASKS)
        .map(|task| {
            let (running, order) = (&running, &order);
            Box::pin(elector.run_if_leader("x", &options, async move |_| {
                assert_eq!(
                    running.fetch_add(1, Ordering::SeqCst),
                    0,
                    "two bodies at a time"
                );
                order.lock().await.push(task);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
            }))
        })
        .collect();
    // Each comes into the queue when it is first polled.
    for run in &mut runs {
        assert!(run.as_mut().now_or_never().is_none());
    }
    first.release().await.unwrap();
    for ran in futures::future::join_all(runs).await {
        assert_eq!(ran.unwrap(), Some(()), "not within the wait");
    }
    let order = order.lock().await.clone();
    assert_eq!(
        order,
        (0..TASKS).collect::<Vec<_>>(),
        "not first come, first served"
    );
}

async fn a09_tasks_of_different_names_run_all_at_once<W: World>(world: W) {
    const TASKS: usize = 64;
    let elector = world.candidate("a").await;
    let all_there = Arc::new(tokio::sync::Barrier::new(TASKS));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (elector, all_there) = (elector.clone(), all_there.clone());
        tasks.spawn(async move {
            let name = format!("x:{task}");
            elector
                .run_if_leader(name, &patient(), |_| async move {
                    all_there.wait().await;
                })
                .await
                .unwrap()
                .expect("nobody else stands");
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

async fn a16_other_tasks_run_on_while_five_hundred_wait<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &at_once()).await;
    let mut waiters = JoinSet::new();
    for _ in 0..500 {
        let b = b.clone();
        waiters.spawn(async move { b.run_if_leader("x", &patient(), async |_| ()).await });
    }
    // On the current-thread runtime of the paused world, a waiter that did not yield would stop these turns.
    let begun = Instant::now();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    lease.release().await.unwrap();
    while let Some(ended) = waiters.join_next().await {
        assert_eq!(ended.unwrap().unwrap(), Some(()));
    }
}

async fn d01_a_body_that_returns_nothing_was_elected<W: World>(world: W) {
    let a = world.candidate("a").await;
    assert_eq!(
        a.run_if_leader("x", &at_once(), async |_| ())
            .await
            .unwrap(),
        Some(())
    );
    assert_eq!(
        a.run_if_leader("x", &at_once(), async |_| None::<u8>)
            .await
            .unwrap(),
        Some(None)
    );
    let outcome = a
        .run_if_leader_result("x", &at_once(), async |_| Ok::<_, ()>(None::<u8>))
        .await;
    assert_eq!(outcome.unwrap(), RunOutcome::Elected(None));
}

async fn d02_only_the_bodys_own_error_is_action_failed<W: World>(world: W) {
    let a = world.candidate("a").await;
    let outcome = a
        .run_if_leader_result("x", &at_once(), async |_| Err::<(), _>("no money"))
        .await;
    assert_eq!(outcome.unwrap(), RunOutcome::ActionFailed("no money"));

    // A body that fails after its lease was lost has not failed under a lease.
    let short = options(waiting(Duration::from_secs(20), ms(1_000)));
    let mut ran = false;
    let outcome = a
        .run_if_leader_result("x", &short, async |lease| {
            ran = true;
            lease.lost().await;
            Err::<(), _>("too late")
        })
        .await;
    assert!(
        matches!(outcome, Err(leader_core::LeaderError::LeaseLost { .. })),
        "{outcome:?}"
    );
    assert!(ran, "it was lost before its body began");
}
