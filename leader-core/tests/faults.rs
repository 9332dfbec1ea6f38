//! Scenarios of a store that fails, on the local store under paused time, where each instant can be said exactly.
#![allow(missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use leader_core::testing::{Fault, Faults, FaultyStore, Footprint};
use leader_core::{
    BackendKind, Elector, ElectorExt, LeaderError, LeaseOptions, LeaseOptionsBuilder, LocalStore,
    LossReason, RunOutcome, Step, StoreElector,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, advance, sleep};

type Faulty = StoreElector<FaultyStore<LocalStore>>;

/// The timer's granularity.
const TICK: Duration = Duration::from_millis(1);
/// The local store's command timeout.
const COMMAND: Duration = Duration::from_millis(500);

const TRANSIENT: [BackendKind; 4] = [
    BackendKind::Unreachable,
    BackendKind::TimedOut,
    BackendKind::NotReady,
    BackendKind::ReadOnly,
];
const LASTING: [BackendKind; 5] = [
    BackendKind::OutOfMemory,
    BackendKind::Denied,
    BackendKind::WrongType,
    BackendKind::MalformedReply,
    BackendKind::Other,
];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn options(wait: Duration, lease: Duration) -> LeaseOptionsBuilder {
    LeaseOptions::builder().wait(wait).lease(lease)
}

/// A candidate whose store misbehaves on command, and one on the same store that does not.
fn pair() -> (Faulty, Faults, StoreElector<LocalStore>) {
    let local = LocalStore::new();
    let store = FaultyStore::new(local.clone());
    let faults = store.faults();
    let elector = StoreElector::builder(store).node_id("faulty").build();
    let peer = StoreElector::builder(local).node_id("peer").build();
    (elector, faults, peer)
}

async fn lead(elector: &impl Elector, options: LeaseOptionsBuilder) -> leader_core::Lease {
    let options = options.build().unwrap();
    elector
        .try_acquire("x", &options)
        .await
        .unwrap()
        .expect("nobody else leads")
}

async fn is_free(elector: &impl Elector) -> bool {
    elector.state("x").await.unwrap().holders().is_empty()
}

#[tokio::test(start_paused = true)]
async fn a02_a_wait_of_nothing_is_one_claim_and_a_wait_of_five_seconds_is_two() {
    let (elector, faults, peer) = pair();
    let _lease = lead(&peer, options(s(0), s(60))).await;
    let once = options(s(0), s(60)).build().unwrap();
    assert!(elector.try_acquire("x", &once).await.unwrap().is_none());
    assert_eq!(faults.asked(Step::Claim), 1);

    let begun = Instant::now();
    let five = options(s(5), s(60)).build().unwrap();
    assert!(elector.try_acquire("x", &five).await.unwrap().is_none());
    assert!(
        begun.elapsed() >= s(5) && begun.elapsed() <= s(5) + TICK,
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(faults.asked(Step::Claim), 3);
}

#[tokio::test(start_paused = true)]
async fn a02_a_slot_freed_a_millisecond_before_the_deadline_is_taken_without_any_hint() {
    let (elector, faults, peer) = pair();
    faults.always(Step::Watch, Fault::LoseHints);
    let lease = lead(&peer, options(s(0), s(60))).await;
    let waiter = tokio::spawn(async move {
        let wait = options(ms(30), s(60)).build().unwrap();
        elector.try_acquire("x", &wait).await
    });
    sleep(ms(29)).await;
    lease.release().await.unwrap();
    assert!(waiter.await.unwrap().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a02_a_task_that_never_became_the_first_in_its_queue_asks_at_its_deadline_too() {
    let (elector, faults, peer) = pair();
    faults.always(Step::Watch, Fault::LoseHints);
    let lease = lead(&peer, options(s(0), s(600))).await;
    let first = tokio::spawn({
        let elector = elector.clone();
        async move {
            let long = options(s(1_000), s(60)).build().unwrap();
            elector.try_acquire("x", &long).await
        }
    });
    sleep(ms(1_700)).await;
    let second = tokio::spawn(async move {
        let brief = options(ms(300), s(60)).build().unwrap();
        elector.try_acquire("x", &brief).await
    });
    sleep(ms(200)).await;
    // Nobody is told of it, and the first in the queue sleeps on.
    lease.release().await.unwrap();
    assert!(
        second.await.unwrap().unwrap().is_some(),
        "skipped beside a free slot"
    );
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn a03_a_reply_that_was_lost_is_recognised_also_when_the_slots_are_full() {
    let (elector, faults, peer) = pair();
    let _other = lead(&peer, options(s(0), s(60)).slots(2)).await;
    faults.once(Step::Claim, Fault::LoseReply(BackendKind::Unreachable));
    let lease = lead(&elector, options(s(5), s(60)).slots(2)).await;
    assert_eq!(faults.ran(Step::Claim), 2);
    let state = peer.state("x").await.unwrap();
    assert_eq!(state.holders().len(), 2, "{state:?}");
    assert_eq!(state.holders()[1].fence(), lease.fence());
    lease.release().await.unwrap();
    assert_eq!(peer.state("x").await.unwrap().holders().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a03_an_attempt_that_never_saw_its_grant_gives_it_back() {
    let (elector, faults, peer) = pair();
    faults.always(Step::Claim, Fault::LoseReply(BackendKind::TimedOut));
    let once = options(s(0), s(60)).build().unwrap();
    let failed = elector.try_acquire("x", &once).await;
    assert!(
        matches!(
            failed,
            Err(LeaderError::Backend {
                kind: BackendKind::TimedOut,
                ..
            })
        ),
        "{failed:?}"
    );
    faults.disarm();
    let _next = lead(&peer, options(s(1), s(60))).await;
}

#[tokio::test(start_paused = true)]
async fn a04_an_attempt_dropped_at_any_await_point_leaves_the_slot_free() {
    for held in [None, Some(ms(200))] {
        for polls in 1.. {
            let (elector, faults, peer) = pair();
            faults.always(
                Step::Claim,
                [Fault::DelayRequest(ms(20)), Fault::DelayReply(ms(20))],
            );
            faults.always(Step::Release, Fault::DelayRequest(ms(10)));
            let holder = match held {
                Some(lease) => Some(lead(&peer, options(s(0), lease)).await),
                None => None,
            };
            let wait = options(s(2), s(60)).build().unwrap();
            let mut attempt = Box::pin(elector.try_acquire("x", &wait));
            let mut ended = None;
            for _ in 0..polls {
                ended = attempt.as_mut().now_or_never();
                if ended.is_some() {
                    break;
                }
                advance(ms(7)).await;
            }
            let over = ended.is_some();
            drop(attempt);
            drop(ended);
            drop(holder);
            // Its lease of a minute is far from its end.
            let next = lead(&peer, options(s(5), s(60))).await;
            next.release().await.unwrap();
            sleep(s(1)).await;
            assert_eq!(
                elector.footprint(),
                Footprint::default(),
                "after {polls} polls"
            );
            if over {
                assert!(polls > 3, "the attempt was over after {polls} polls");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a04_a_claim_that_arrives_after_its_attempt_was_given_up_is_refused() {
    let (elector, faults, peer) = pair();
    faults.once(Step::Claim, Fault::HoldRequest);
    let once = options(s(0), s(60)).build().unwrap();
    let failed = elector.try_acquire("x", &once).await;
    assert!(
        matches!(
            failed,
            Err(LeaderError::Backend {
                kind: BackendKind::TimedOut,
                ..
            })
        ),
        "{failed:?}"
    );
    faults.until_asked(Step::Release, 1).await;
    sleep(TICK).await;
    // Only now does it reach the store, overtaken by what undoes it.
    faults.let_go_all();
    sleep(TICK).await;
    assert_eq!(faults.ran(Step::Claim), 1);
    assert!(is_free(&peer).await, "a claim for nobody took the slot");
}

#[tokio::test(start_paused = true)]
async fn a05_a_grant_that_is_answered_after_its_lease_is_none() {
    let (elector, faults, peer) = pair();
    faults.always(Step::Claim, Fault::DelayReply(ms(200)));
    for wait in [s(0), s(1)] {
        let brief = options(wait, ms(100)).build().unwrap();
        let late = elector.try_acquire("x", &brief).await;
        assert!(
            matches!(
                late,
                Err(LeaderError::Backend {
                    kind: BackendKind::TimedOut,
                    ..
                })
            ),
            "{late:?}"
        );
    }
    sleep(ms(50)).await;
    assert!(is_free(&peer).await);
}

#[tokio::test(start_paused = true)]
async fn g2_a_lease_counts_from_before_its_request_was_sent() {
    let (elector, faults, _) = pair();
    faults.always(Step::Claim, Fault::DelayReply(ms(200)));
    faults.always(Step::Extend, Fault::DelayReply(ms(300)));
    let lease = lead(&elector, options(s(0), s(1))).await;
    assert_eq!(lease.remaining(), ms(988 - 200));
    lease.extend(s(2)).await.unwrap();
    assert_eq!(lease.remaining(), ms(2_000 - 22 - 300));
}

#[tokio::test(start_paused = true)]
async fn a06_every_failure_is_an_error_in_time_and_never_a_skip() {
    for kind in TRANSIENT.into_iter().chain(LASTING) {
        for wait in [s(0), ms(300)] {
            let (elector, faults, _) = pair();
            faults.stop(kind);
            let begun = Instant::now();
            let stand = options(wait, s(60)).build().unwrap();
            let failed = elector.run_if_leader("x", &stand, async |_| ()).await;
            match failed {
                Err(LeaderError::Backend {
                    step: Step::Claim,
                    kind: told,
                    ..
                }) if told == kind => {}
                other => panic!("{kind:?}: {other:?}"),
            }
            assert!(
                begun.elapsed() <= wait + COMMAND + TICK,
                "{kind:?} took {:?}",
                begun.elapsed()
            );
            if !kind.is_transient() {
                assert_eq!(faults.asked(Step::Claim), 1, "{kind:?} was asked again");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_store_that_never_answers_is_an_error_for_the_first_and_for_all_who_queue() {
    let (elector, faults, _) = pair();
    faults.always(Step::Claim, Fault::HoldRequest);
    let elector = Arc::new(elector);
    let begun = Instant::now();
    let mut waiters = JoinSet::new();
    for _ in 0..50 {
        let elector = elector.clone();
        waiters.spawn(async move {
            let wait = options(ms(300), s(60)).build().unwrap();
            elector.try_acquire("x", &wait).await
        });
    }
    while let Some(ended) = waiters.join_next().await {
        let ended = ended.unwrap();
        assert!(
            matches!(
                ended,
                Err(LeaderError::Backend {
                    kind: BackendKind::TimedOut,
                    ..
                })
            ),
            "{ended:?}"
        );
    }
    assert!(
        begun.elapsed() <= ms(300) + COMMAND + TICK,
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a06_a_store_that_recovers_within_the_wait_is_used() {
    for kind in TRANSIENT {
        let (elector, faults, _) = pair();
        faults.stop(kind);
        let waiter = tokio::spawn(async move {
            let wait = options(s(5), s(60)).build().unwrap();
            elector.try_acquire("x", &wait).await
        });
        sleep(s(2)).await;
        faults.disarm();
        assert!(waiter.await.unwrap().unwrap().is_some(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a13_one_process_asks_once_for_each_release_however_many_of_its_tasks_wait() {
    const TASKS: usize = 200;
    let (elector, faults, peer) = pair();
    let lease = lead(&peer, options(s(0), s(600))).await;
    let mut waiters = JoinSet::new();
    let elector = Arc::new(elector);
    for _ in 0..TASKS {
        let elector = elector.clone();
        waiters.spawn(async move {
            let wait = options(s(500), s(600)).build().unwrap();
            elector
                .run_if_leader("x", &wait, async |_| sleep(ms(50)).await)
                .await
        });
    }
    sleep(s(100)).await;
    assert_eq!(faults.asked(Step::Claim), 1, "waiting is not quiet");
    assert_eq!(faults.asked(Step::Watch), 1);
    lease.release().await.unwrap();
    while let Some(ended) = waiters.join_next().await {
        assert_eq!(ended.unwrap().unwrap(), Some(()));
    }
    assert_eq!(
        faults.asked(Step::Claim),
        1 + TASKS,
        "more than one claim for each release"
    );
    assert_eq!(faults.asked(Step::Watch), 1);
    assert_eq!(elector.footprint(), Footprint::default());
}

#[tokio::test(start_paused = true)]
async fn a13_a_holder_that_asks_again_without_a_gap_lets_others_go_first() {
    let (_, _, a) = pair();
    let b = StoreElector::builder(a.store().clone())
        .node_id("b")
        .build();
    let greedy = tokio::spawn({
        let a = a.clone();
        async move {
            let wait = options(s(60), s(60)).build().unwrap();
            loop {
                a.run_if_leader("x", &wait, async |_| sleep(ms(1)).await)
                    .await
                    .unwrap()
                    .unwrap();
            }
        }
    });
    for _ in 0..50 {
        let lease = lead(&b, options(s(1), s(60))).await;
        lease.release().await.unwrap();
    }
    greedy.abort();
}

#[tokio::test(start_paused = true)]
async fn b01_five_thousand_leases_for_a_minute_of_churn_and_none_is_lost() {
    const LEASES: usize = 5_000;
    let (elector, faults, _) = pair();
    let extended = options(s(0), s(3)).auto_extend(true).build().unwrap();
    let mut leases = Vec::new();
    for number in 0..LEASES {
        leases.push(
            elector
                .try_acquire(format!("x:{number}"), &extended)
                .await
                .unwrap()
                .unwrap(),
        );
    }
    for second in 0..60 {
        sleep(s(1)).await;
        for number in (second..LEASES).step_by(60) {
            let new = elector
                .try_acquire(format!("y:{second}:{number}"), &extended)
                .await;
            let old = std::mem::replace(&mut leases[number], new.unwrap().unwrap());
            old.release().await.unwrap();
        }
    }
    assert!(leases.iter().all(|lease| lease.is_valid()));
    let batches = faults.asked(Step::Extend);
    // Each lease is extended once a second; those that are due together go together.
    assert!(batches < LEASES * 60 / 20, "{batches} requests");
    drop(leases);
    sleep(s(1)).await;
    assert_eq!(elector.footprint(), Footprint::default());
}

#[tokio::test(start_paused = true)]
async fn b02_one_failed_extension_is_made_up_for_and_none_that_works_is_loss_at_the_deadline() {
    for kind in TRANSIENT.into_iter().chain(LASTING) {
        let (elector, faults, peer) = pair();
        let lease = lead(&elector, options(s(0), s(3)).auto_extend(true)).await;
        faults.once(Step::Extend, Fault::Refuse(kind));
        sleep(s(30)).await;
        lease.ensure_valid().unwrap();

        faults.always(Step::Extend, Fault::Refuse(kind));
        let deadline = Instant::now() + lease.remaining();
        lease.lost().await;
        let late = Instant::now().duration_since(deadline);
        assert!(late <= TICK, "{kind:?}: lost {late:?} after the deadline");
        assert!(!is_free(&peer).await, "the store had given it away before");
        let lost = lease.ensure_valid();
        assert!(
            matches!(
                lost,
                Err(LeaderError::LeaseLost {
                    reason: LossReason::Expired,
                    ..
                })
            ),
            "{lost:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn b02_an_extension_that_hangs_is_loss_at_the_deadline() {
    let (elector, faults, _) = pair();
    let lease = lead(&elector, options(s(0), ms(300)).auto_extend(true)).await;
    faults.always(Step::Extend, Fault::HoldRequest);
    let deadline = Instant::now() + lease.remaining();
    lease.lost().await;
    assert!(Instant::now().duration_since(deadline) <= TICK);
}

#[tokio::test(start_paused = true)]
async fn c03_a_release_that_fails_is_made_up_for_and_the_bodys_result_stands() {
    let (elector, faults, peer) = pair();
    faults.always(Step::Release, Fault::Refuse(BackendKind::Unreachable));
    let once = options(s(0), s(60)).build().unwrap();
    let outcome = elector
        .run_if_leader_result("x", &once, async |_| Ok::<_, ()>("done"))
        .await;
    assert_eq!(outcome.unwrap(), RunOutcome::Elected("done"));
    sleep(s(10)).await;
    assert!(!is_free(&peer).await);
    faults.disarm();
    sleep(s(1)).await;
    assert!(is_free(&peer).await, "the release was not tried again");
    assert_eq!(elector.footprint(), Footprint::default());

    // By hand it is told, and still made up for.
    let lease = lead(&elector, options(s(0), s(60))).await;
    faults.once(Step::Release, Fault::Refuse(BackendKind::NotReady));
    let told = lease.release().await;
    assert!(
        matches!(
            told,
            Err(LeaderError::Backend {
                step: Step::Release,
                ..
            })
        ),
        "{told:?}"
    );
    sleep(s(1)).await;
    assert!(is_free(&peer).await);

    // It is given up when the lease has ended, and not before.
    faults.always(Step::Release, Fault::Refuse(BackendKind::Unreachable));
    let lease = lead(&elector, options(s(0), s(5))).await;
    drop(lease);
    sleep(ms(4_400)).await;
    assert_ne!(
        elector.footprint(),
        Footprint::default(),
        "given up too early"
    );
    sleep(s(2)).await;
    assert_eq!(elector.footprint(), Footprint::default(), "still trying");
}

#[tokio::test(start_paused = true)]
async fn c04_a_minimum_lease_is_kept_and_a_waiter_is_woken_when_it_is_over() {
    let (elector, faults, peer) = pair();
    let kept = options(s(0), s(60)).min_lease(s(1)).build().unwrap();
    let begun = Instant::now();
    peer.run_if_leader("x", &kept, async |_| sleep(ms(5)).await)
        .await
        .unwrap()
        .unwrap();
    assert!(
        begun.elapsed() <= ms(5) + TICK,
        "the run waited for its minimum lease"
    );
    let next = lead(&elector, options(s(5), s(60))).await;
    let took = begun.elapsed();
    assert!(took >= s(1) && took < s(1) + ms(20), "{took:?}");
    assert_eq!(faults.asked(Step::Claim), 2);
    next.release().await.unwrap();

    // The waiter that is there already is told of the new end, not woken in vain.
    let lease = lead(&peer, options(s(0), s(60)).min_lease(s(10))).await;
    let waiter = tokio::spawn(async move {
        let wait = options(s(30), s(60)).build().unwrap();
        elector.try_acquire("x", &wait).await.unwrap().unwrap()
    });
    sleep(s(2)).await;
    let (begun, asked) = (Instant::now(), faults.asked(Step::Claim));
    lease.release().await.unwrap();
    let _next = waiter.await.unwrap();
    assert!(
        begun.elapsed() + TICK >= s(8) && begun.elapsed() < s(8) + ms(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(faults.asked(Step::Claim), asked + 1);
}

#[tokio::test(start_paused = true)]
async fn c08_an_extension_in_flight_neither_revives_nor_lengthens_what_is_released() {
    let (elector, faults, peer) = pair();
    let lease = lead(&elector, options(s(0), s(3)).auto_extend(true)).await;
    faults.once(Step::Extend, Fault::HoldRequest);
    faults.until_asked(Step::Extend, 1).await;
    // The release waits for the request in flight, but not for ever.
    let begun = Instant::now();
    lease.release().await.unwrap();
    assert!(begun.elapsed() <= COMMAND + TICK, "{:?}", begun.elapsed());
    assert!(is_free(&peer).await);
    faults.let_go_all();
    sleep(ms(10)).await;
    assert_eq!(
        faults.ran(Step::Extend),
        1,
        "the late extension has not arrived"
    );
    assert!(is_free(&peer).await, "it revived what was released");

    // The same where a minimum lease keeps the slot.
    let lease = lead(
        &elector,
        options(s(0), s(3)).min_lease(s(2)).auto_extend(true),
    )
    .await;
    faults.once(Step::Extend, Fault::HoldRequest);
    faults
        .until_asked(Step::Extend, faults.asked(Step::Extend) + 1)
        .await;
    lease.release().await.unwrap();
    faults.let_go_all();
    sleep(ms(10)).await;
    let left = peer.state("x").await.unwrap().holders()[0].remaining();
    assert!(left <= s(1), "it lengthened what was kept: {left:?}");
}

#[tokio::test(start_paused = true)]
async fn c08_the_order_at_the_end_is_extension_then_release() {
    let (elector, faults, _) = pair();
    let lease = lead(&elector, options(s(0), s(3)).auto_extend(true)).await;
    faults.once(Step::Extend, Fault::DelayReply(ms(100)));
    faults.until_asked(Step::Extend, 1).await;
    faults.take_log();
    lease.release().await.unwrap();
    let log: Vec<String> = faults.take_log().iter().map(ToString::to_string).collect();
    let place = |what: &str| log.iter().rposition(|line| line.contains(what));
    assert!(place("extend") < place("release"), "{log:#?}");
    sleep(s(60)).await;
    assert_eq!(faults.asked(Step::Extend), 1, "extended after its end");
}

#[tokio::test(start_paused = true)]
async fn c07_ten_thousand_runs_leave_nothing() {
    let (elector, _, peer) = pair();
    let extended = options(s(5), s(60)).auto_extend(true).build().unwrap();
    for round in 0..10_000 {
        match round % 4 {
            0 => drop(elector.try_acquire("x", &extended).await.unwrap().unwrap()),
            1 => elector
                .try_acquire("x", &extended)
                .await
                .unwrap()
                .unwrap()
                .release()
                .await
                .unwrap(),
            2 => assert!(
                peer.run_if_leader("x", &extended, async |_| ())
                    .await
                    .unwrap()
                    .is_some()
            ),
            _ => assert!(
                elector
                    .run_if_leader("x", &extended, async |_| ())
                    .await
                    .unwrap()
                    .is_some()
            ),
        }
    }
    sleep(s(1)).await;
    assert_eq!(elector.footprint(), Footprint::default());
    assert_eq!(peer.footprint(), Footprint::default());
    assert_eq!(peer.store().records(), 0);
    assert_eq!(
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn c09_shutdown_with_a_hundred_leases_and_the_store_gone_ends_within_its_grace() {
    let store = FaultyStore::new(LocalStore::new());
    let faults = store.faults();
    let elector = StoreElector::builder(store).shutdown_grace(s(2)).build();
    let extended = options(s(0), s(60)).auto_extend(true).build().unwrap();
    let mut leases = Vec::new();
    for number in 0..100 {
        leases.push(
            elector
                .try_acquire(format!("x:{number}"), &extended)
                .await
                .unwrap()
                .unwrap(),
        );
    }
    faults.always(Step::Extend, Fault::HoldRequest);
    faults.always(Step::Release, Fault::HoldRequest);
    let begun = Instant::now();
    elector.shutdown().await;
    assert!(
        begun.elapsed() <= s(2) + ms(100) + TICK,
        "{:?}",
        begun.elapsed()
    );
    for lease in leases {
        let lost = lease.ensure_valid();
        assert!(
            matches!(
                lost,
                Err(LeaderError::LeaseLost {
                    reason: LossReason::ShutDown,
                    ..
                })
            ),
            "{lost:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c04_a_run_returns_at_once_however_its_body_ends_and_keeps_its_minimum() {
    let kept = options(s(0), s(60)).min_lease(s(1)).build().unwrap();
    for end in ["fails", "panics", "is dropped"] {
        let (elector, _, peer) = pair();
        let begun = Instant::now();
        let run = elector.run_if_leader_result("x", &kept, async |_| match end {
            "fails" => Err(()),
            "panics" => std::panic::resume_unwind(Box::new("as asked")),
            _ => std::future::pending::<Result<(), ()>>().await,
        });
        let run = std::panic::AssertUnwindSafe(run).catch_unwind();
        let ended = tokio::time::timeout(ms(5), run).await;
        assert_eq!(ended.is_err(), end == "is dropped");
        assert!(
            begun.elapsed() <= ms(5) + TICK,
            "a run whose body {end} waited"
        );
        sleep(ms(1)).await;
        let state = peer.state("x").await.unwrap();
        assert!(state.holders()[0].is_retained(), "{end}: {state:?}");
        let next = lead(&peer, options(s(5), s(60))).await;
        let took = begun.elapsed();
        assert!(took >= s(1) && took < s(1) + ms(20), "{end}: {took:?}");
        next.release().await.unwrap();
    }
    // Never beyond the lease.
    let (elector, _, peer) = pair();
    let begun = Instant::now();
    drop(lead(&elector, options(s(0), s(2)).min_lease(s(2))).await);
    let _next = lead(&peer, options(s(5), s(60))).await;
    assert!(begun.elapsed() <= s(2) + ms(20), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn d03_failing_open_runs_the_body_once_whatever_the_failure() {
    let refused = TRANSIENT.map(Fault::Refuse);
    let unseen = [
        Fault::LoseReply(BackendKind::Unreachable),
        Fault::LoseRequest(BackendKind::TimedOut),
        Fault::HoldRequest,
        Fault::HoldReply,
    ];
    for fault in refused.into_iter().chain(unseen) {
        for wait in [s(0), s(1)] {
            let (elector, faults, peer) = pair();
            faults.always(Step::Claim, fault);
            let stand = options(wait, s(60)).build().unwrap();
            let mut ran = 0;
            let outcome = elector
                .run_fail_open("x", &stand, async |lease| {
                    ran += 1;
                    assert!(lease.is_none() && leader_core::current_lease().is_none());
                    assert!(leader_core::ensure_leader().is_err());
                    None::<u8>
                })
                .await;
            assert_eq!(outcome.unwrap(), Some(None), "{fault:?}");
            assert_eq!(ran, 1, "{fault:?}");
            faults.heal();
            // What the unseen claims have done is undone.
            let _next = lead(&peer, options(s(5), s(60))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d08_a_nested_run_sends_no_claim_of_its_own() {
    let (elector, faults, _) = pair();
    let once = options(s(0), s(60)).build().unwrap();
    let ran = elector
        .run_if_leader("x", &once, async |_| {
            elector.run_if_leader("x", &once, async |_| 7).await
        })
        .await;
    assert_eq!(ran.unwrap().unwrap().unwrap(), Some(7));
    assert_eq!(faults.asked(Step::Claim), 1);
    assert_eq!(faults.asked(Step::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn d02_a_store_that_fails_is_no_failure_of_the_body() {
    let (elector, faults, _) = pair();
    let once = options(s(0), s(60)).build().unwrap();
    faults.once(Step::Claim, Fault::Refuse(BackendKind::Denied));
    let outcome = elector
        .run_if_leader_result("x", &once, async |_| Err::<(), _>("never run"))
        .await;
    assert!(
        matches!(outcome, Err(LeaderError::Backend { .. })),
        "{outcome:?}"
    );
    // And the body's own error stands although the release fails.
    faults.once(Step::Release, Fault::Refuse(BackendKind::Unreachable));
    let outcome = elector
        .run_if_leader_result("x", &once, async |_| Err::<(), _>("no money"))
        .await;
    assert_eq!(outcome.unwrap(), RunOutcome::ActionFailed("no money"));
}
