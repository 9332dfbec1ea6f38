//! Part C of the scenarios: letting go. What needs a broken network or a broken server is in `part_c_faults.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use leader_core::{ElectorExt, LeaderError, LeaseHandle, LeaseOptions, OnLost, RunOutcome};
use leader_tests::{
    World, at_once, is_skipped, lead, ms, on_every_store, options, patient, until, waiting,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

on_every_store!(
    c01_however_a_body_ends_the_next_is_elected_at_once,
    c01_a_thousand_runs_in_a_row_are_all_elected,
    c01_a_dropped_lease_is_free_for_the_same_caller_at_once,
    c02_a_release_after_takeover_leaves_the_successor_alone,
    c04_a_minimum_lease_is_kept_however_the_work_ends,
    c05_a_long_extension_ends_with_the_body,
    c06_a_lease_outlives_its_runtime_without_harm,
    c09_shutdown_ends_what_is_held_and_refuses_what_comes,
    c10_a_slow_body_keeps_its_lease_until_it_has_ended,
    c10_a_body_is_gone_before_its_slot_is_given_up_however_it_ends,
    a_panic_is_resumed_after_the_release,
);

/// Each way in which a guarded body can end.
#[derive(Clone, Copy, Debug)]
enum End {
    Returns,
    Fails,
    Panics,
    IsAborted,
    IsDropped,
}

const ENDS: [End; 5] = [
    End::Returns,
    End::Fails,
    End::Panics,
    End::IsAborted,
    End::IsDropped,
];

/// A panic that prints no report: hundreds of them would hide the one that matters.
fn quiet_panic(payload: impl std::any::Any + Send) -> ! {
    std::panic::resume_unwind(Box::new(payload))
}

/// Runs a body that ends in this way, until it is over.
async fn run_until_it<E>(end: End, elector: &E, options: &LeaseOptions)
where
    E: leader_core::Elector + Clone + 'static,
{
    match end {
        End::Returns => {
            let outcome = elector
                .run_if_leader_result("x", options, async |_| Ok::<_, ()>(1))
                .await;
            assert_eq!(outcome.unwrap(), RunOutcome::Elected(1));
        }
        End::Fails => {
            let outcome = elector
                .run_if_leader_result("x", options, async |_| Err::<(), _>("no"))
                .await;
            assert_eq!(outcome.unwrap(), RunOutcome::ActionFailed("no"));
        }
        End::Panics => {
            let run = elector.run_if_leader("x", options, async |_| quiet_panic("as asked"));
            let panic = std::panic::AssertUnwindSafe(run).catch_unwind().await;
            assert!(panic.unwrap_err().downcast_ref::<&str>().is_some());
        }
        End::IsAborted => {
            let (elector, options) = (elector.clone(), options.clone());
            let begun = Arc::new(tokio::sync::Notify::new());
            let tell = begun.clone();
            let run = tokio::spawn(async move {
                let body = |_| async move {
                    tell.notify_one();
                    std::future::pending::<()>().await;
                };
                elector.run_if_leader("x", &options, body).await
            });
            begun.notified().await;
            run.abort();
            assert!(run.await.unwrap_err().is_cancelled());
        }
        End::IsDropped => {
            let begun = tokio::sync::Notify::new();
            let run = elector.run_if_leader("x", options, async |_| {
                begun.notify_one();
                std::future::pending::<()>().await;
            });
            tokio::select! {
                biased;
                ended = run => panic!("ended by itself: {ended:?}"),
                () = begun.notified() => {}
            }
        }
    }
}

async fn c01_however_a_body_ends_the_next_is_elected_at_once<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    for round in 0..1_000 {
        let end = ENDS[round % ENDS.len()];
        // The lease outlives the test, so whoever is elected was let in by a release.
        run_until_it(end, &a, &patient()).await;
        let next = b.try_acquire("x", &patient()).await.unwrap();
        let next =
            next.unwrap_or_else(|| panic!("round {round}: still led after a body that {end:?}"));
        next.release().await.unwrap();
    }
}

async fn c01_a_thousand_runs_in_a_row_are_all_elected<W: World>(world: W) {
    let a = world.candidate("a").await;
    for round in 0..1_000 {
        let elected = a
            .run_if_leader("x", &at_once(), async |_| round)
            .await
            .unwrap();
        assert_eq!(elected, Some(round));
    }
}

async fn c01_a_dropped_lease_is_free_for_the_same_caller_at_once<W: World>(world: W) {
    let a = world.candidate("a").await;
    for round in 0..300 {
        let lease = a.try_acquire("x", &at_once()).await.unwrap();
        drop(
            lease
                .unwrap_or_else(|| panic!("round {round}: led by the lease that was just dropped")),
        );
    }
}

async fn c02_a_release_after_takeover_leaves_the_successor_alone<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let old = lead(&a, "x", &options(waiting(Duration::from_secs(20), ms(50)))).await;
    let new = lead(&b, "x", &patient()).await;
    let released = old.release().await;
    assert!(
        matches!(released, Err(LeaderError::LeaseLost { .. })),
        "{released:?}"
    );
    new.ensure_valid().unwrap();
    assert_eq!(
        a.state("x").await.unwrap().holders()[0].fence(),
        new.fence()
    );
    assert!(is_skipped(&a, "x", &at_once()).await);
}

async fn c04_a_minimum_lease_is_kept_however_the_work_ends<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let min = ms(700);
    let kept = options(waiting(Duration::from_secs(20), ms(60_000)).min_lease(min));
    for end in ENDS {
        let begun = Instant::now();
        run_until_it(end, &a, &kept).await;
        // A slow machine may have used up the minimum lease already; then there is nothing to see.
        if begun.elapsed() < min / 2 {
            assert!(
                is_skipped(&b, "x", &at_once()).await,
                "not kept after a body that {end:?}"
            );
            // A dropped run is released behind.
            until("it is only retained", ms(5_000), async || {
                let state = b.state("x").await.unwrap();
                state.holders().iter().all(leader_core::Holder::is_retained)
            })
            .await;
        }
        let next = lead(&b, "x", &patient()).await;
        assert!(
            begun.elapsed() >= min,
            "let in {:?} after a body that {end:?}",
            begun.elapsed()
        );
        next.release().await.unwrap();
    }

    // Never beyond the lease: whoever has lost it keeps nothing.
    let whole = options(waiting(Duration::from_secs(20), ms(200)).min_lease(ms(200)));
    let lease = lead(&a, "x", &whole).await;
    let fence = lease.fence();
    drop(lease);
    let next = lead(&b, "x", &patient()).await;
    assert!(next.fence() > fence);
}

async fn c05_a_long_extension_ends_with_the_body<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let once = at_once();
    let run = a.run_if_leader("x", &once, async |lease| {
        lease.extend(Duration::from_secs(600)).await
    });
    run.await.unwrap().unwrap().unwrap();
    assert!(!is_skipped(&b, "x", &at_once()).await);
}

async fn c06_a_lease_outlives_its_runtime_without_harm<W: World>(world: W) {
    let a = world.candidate("a").await;
    // Dropped on a thread that knows no runtime.
    let lease = lead(&a, "x", &at_once()).await;
    std::thread::spawn(move || drop(lease)).join().unwrap();
    lead(&a, "x", &patient()).await.release().await.unwrap();

    // Held by a task of a runtime that is shut down, on either flavour.
    for multi_thread in [false, true] {
        let b = world.candidate("b").await;
        let held = std::thread::spawn(move || {
            let mut builder = if multi_thread {
                tokio::runtime::Builder::new_multi_thread()
            } else {
                tokio::runtime::Builder::new_current_thread()
            };
            let runtime = builder.worker_threads(1).enable_all().build().unwrap();
            let extended = options(waiting(Duration::from_secs(10), ms(60_000)).auto_extend(true));
            let lease = runtime.block_on(async { lead(&b, "y", &extended).await });
            let in_task = runtime.block_on(async { lead(&b, "z", &extended).await });
            runtime.spawn(async move {
                let _in_task = in_task;
                std::future::pending::<()>().await;
            });
            drop(runtime);
            // And dropped after its runtime is gone.
            drop(lease);
        });
        held.join()
            .expect("a lease panicked or hung at the end of its runtime");
        for freed in ["y", "z"] {
            lead(&a, freed, &patient()).await.release().await.unwrap();
        }
    }
}

async fn c09_shutdown_ends_what_is_held_and_refuses_what_comes<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let extended = options(waiting(ms(20_000), ms(60_000)).auto_extend(true));
    let by_hand = lead(&a, "by-hand", &extended).await;
    let blocker = lead(&b, "waiting", &at_once()).await;
    let (body, waiter) = {
        let (for_body, for_waiter) = (a.clone(), a.clone());
        let (of_body, of_waiter) = (extended.clone(), extended.clone());
        let body = tokio::spawn(async move {
            for_body
                .run_if_leader("body", &of_body, |_| std::future::pending::<()>())
                .await
        });
        (
            body,
            tokio::spawn(async move { for_waiter.try_acquire("waiting", &of_waiter).await }),
        )
    };
    until("the body runs", ms(10_000), async || {
        b.state("body").await.unwrap().holders().len() == 1
    })
    .await;

    let token = by_hand.cancellation_token();
    let holder = tokio::spawn(async move {
        token.cancelled().await;
        // Asked to end, but still the leader until it has.
        let valid = by_hand.is_valid();
        by_hand.release().await.unwrap();
        valid
    });
    a.shutdown().await;

    assert!(
        holder.await.unwrap(),
        "a lease was taken from its holder at once"
    );
    assert!(matches!(body.await.unwrap(), Err(LeaderError::ShutDown)));
    assert!(matches!(waiter.await.unwrap(), Err(LeaderError::ShutDown)));
    assert!(matches!(
        a.try_acquire("x", &at_once()).await,
        Err(LeaderError::ShutDown)
    ));
    for freed in ["by-hand", "body"] {
        assert!(
            !is_skipped(&b, freed, &at_once()).await,
            "{freed} is still led"
        );
    }
    blocker.release().await.unwrap();
    // Once more does nothing.
    a.shutdown().await;
}

async fn c10_a_slow_body_keeps_its_lease_until_it_has_ended<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let notify = options(
        waiting(Duration::from_secs(20), ms(1_200))
            .auto_extend(true)
            .on_lost(OnLost::Notify),
    );
    let begun = Arc::new(Notify::new());
    let runs = begun.clone();
    let ended = Arc::new(AtomicBool::new(false));
    let (end, elector) = (ended.clone(), a.clone());
    let run = tokio::spawn(async move {
        elector
            .run_if_leader("x", &notify, |lease| async move {
                runs.notify_one();
                lease.cancellation_token().cancelled().await;
                // Longer than the lease: it has to be extended meanwhile. Shorter than half the grace of a shutdown.
                sleep(ms(1_800)).await;
                end.store(true, Ordering::SeqCst);
            })
            .await
    });
    let begun = tokio::time::timeout(ms(20_000), begun.notified());
    begun.await.expect("the body runs");
    let shutdown = tokio::spawn(async move { a.shutdown().await });
    let next = lead(&b, "x", &patient()).await;
    assert!(
        ended.load(Ordering::SeqCst),
        "the slot was given up before the body had ended"
    );
    next.release().await.unwrap();
    // It came to its end under a valid lease, as it was asked to.
    assert_eq!(run.await.unwrap().unwrap(), Some(()));
    shutdown.await.unwrap();
}

async fn a_panic_is_resumed_after_the_release<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let once = at_once();
    let run = a.run_if_leader("x", &once, async |_| quiet_panic(7_u8));
    let panic = std::panic::AssertUnwindSafe(run)
        .catch_unwind()
        .await
        .unwrap_err();
    // Also before the body's future was even made.
    let run = a.run_if_leader("y", &once, |_| -> std::future::Ready<()> {
        quiet_panic(8_u8)
    });
    let early = std::panic::AssertUnwindSafe(run)
        .catch_unwind()
        .await
        .unwrap_err();
    assert_eq!(panic.downcast_ref::<u8>(), Some(&7));
    assert_eq!(early.downcast_ref::<u8>(), Some(&8));
    assert!(!is_skipped(&b, "x", &at_once()).await);
    assert!(!is_skipped(&b, "y", &at_once()).await);
}

/// Notes, when it is dropped, whether its lease was still valid.
struct Witness {
    lease: LeaseHandle,
    valid: Arc<AtomicBool>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.valid.store(self.lease.is_valid(), Ordering::SeqCst);
    }
}

async fn c10_a_body_is_gone_before_its_slot_is_given_up_however_it_ends<W: World>(world: W) {
    let a = world.candidate("a").await;
    for end in ENDS {
        let valid = Arc::new(AtomicBool::new(false));
        let begun = Notify::new();
        let body = |lease: LeaseHandle| {
            let witness = Witness {
                lease,
                valid: valid.clone(),
            };
            let begun = &begun;
            async move {
                let _witness = witness;
                begun.notify_one();
                tokio::task::yield_now().await;
                match end {
                    End::Returns => Ok(()),
                    End::Fails => Err(()),
                    End::Panics => quiet_panic("as asked"),
                    End::IsAborted | End::IsDropped => std::future::pending().await,
                }
            }
        };
        let patient = patient();
        let run = a.run_if_leader_result("x", &patient, body);
        let run = std::panic::AssertUnwindSafe(run).catch_unwind();
        // Dropped here, where it has not ended by itself.
        let dropped = async {
            begun.notified().await;
            if !matches!(end, End::IsAborted | End::IsDropped) {
                sleep(ms(20_000)).await;
            }
            sleep(ms(20)).await;
        };
        let by_itself = tokio::select! {
            _ = run => true,
            () = dropped => false,
        };
        assert_eq!(
            by_itself,
            !matches!(end, End::IsAborted | End::IsDropped),
            "{end:?}"
        );
        assert!(
            valid.load(Ordering::SeqCst),
            "a body that {end:?} outlived its lease"
        );
        lead(&a, "x", &patient).await.release().await.unwrap();
    }
}
