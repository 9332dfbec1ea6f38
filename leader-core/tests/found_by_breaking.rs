//! What an attempt to break the guarantees found, each as a story of its own.
#![allow(missing_docs, reason = "a test")]
use leader_core::testing::{Fault, Faults, FaultyStore};
use leader_core::{
    BackendKind, Elector, ElectorExt, Lease, LeaseOptions, LeaseOptionsBuilder, LocalElector,
    LocalStore, OnLost, Step, StoreElector,
};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const fn ms(m: u64) -> Duration {
    Duration::from_millis(m)
}
const fn s(m: u64) -> Duration {
    Duration::from_secs(m)
}
fn options(wait: Duration, lease: Duration) -> LeaseOptionsBuilder {
    LeaseOptions::builder().wait(wait).lease(lease)
}
fn pair() -> (
    StoreElector<FaultyStore<LocalStore>>,
    Faults,
    StoreElector<LocalStore>,
) {
    let local = LocalStore::new();
    let store = FaultyStore::new(local.clone());
    let faults = store.faults();
    (
        StoreElector::builder(store).build(),
        faults,
        StoreElector::builder(local).build(),
    )
}
async fn lead(e: &impl Elector, o: LeaseOptionsBuilder) -> Lease {
    e.try_acquire("x", &o.build().unwrap())
        .await
        .unwrap()
        .expect("nobody else leads")
}
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_spawned_task_learns_that_the_tenure_has_ended() {
    let elector = LocalElector::new();
    let o = options(s(0), s(60)).auto_extend(true).build().unwrap();
    let mut task = None;
    elector
        .run_if_leader("x", &o, async |lease| {
            let token = lease.cancellation_token();
            task = Some(tokio::spawn(async move {
                (
                    timeout(s(5), lease.lost()).await.is_ok(),
                    timeout(s(500), token.cancelled()).await.is_ok(),
                )
            }));
            sleep(s(1)).await;
        })
        .await
        .unwrap()
        .unwrap();
    let _successor = lead(&elector.node("b"), options(s(0), s(600))).await;
    assert_eq!(
        task.unwrap().await.unwrap(),
        (true, true),
        "(lost() ended, the token fired)"
    );
}

#[test]
fn an_extension_by_hand_is_bounded_when_the_keeper_is_gone() {
    let (elector, faults, _) = pair();
    let (main, other) = (runtime(), runtime());
    let lease = other.block_on(async {
        let lease = lead(&elector, options(s(0), s(9)).auto_extend(true)).await;
        faults.once(Step::Extend, Fault::HoldRequest);
        faults.until_asked(Step::Extend, 1).await;
        lease
    });
    drop(other);
    faults.heal();
    main.block_on(async {
        assert!(
            timeout(s(3), lease.extend(s(600))).await.is_ok(),
            "extend() hangs"
        );
    });
}

#[tokio::test(start_paused = true)]
async fn one_failed_watch_does_not_blind_a_whole_wait() {
    let (elector, faults, peer) = pair();
    faults.once(Step::Watch, Fault::Refuse(BackendKind::Unreachable));
    let lease = lead(&peer, options(s(0), s(60))).await;
    let waiter = tokio::spawn(async move { lead(&elector, options(s(30), s(60))).await });
    sleep(s(1)).await;
    let freed = Instant::now();
    lease.release().await.unwrap();
    let _next = waiter.await.unwrap();
    assert!(
        freed.elapsed() < s(5),
        "elected {:?} after the release",
        freed.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn releases_under_way_do_not_fail_a_claim() {
    let (elector, faults, _) = pair();
    let many = options(s(0), s(600)).slots(200);
    let mut leases = vec![];
    for _ in 0..100 {
        leases.push(lead(&elector, many.clone()).await);
    }
    faults.always(Step::Release, Fault::DelayRequest(ms(20)));
    let drops = async {
        for lease in leases {
            drop(lease);
            sleep(ms(10)).await;
        }
    };
    let claim = async {
        sleep(ms(5)).await;
        elector
            .try_acquire("x", &many.clone().build().unwrap())
            .await
    };
    let ((), got) = tokio::join!(drops, claim);
    assert!(
        matches!(got, Ok(Some(_))),
        "100 of 200 slots free, a healthy store: {got:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_behind_another_takes_what_is_freed() {
    let (elector, faults, peer) = pair();
    faults.always(Step::Watch, Fault::LoseHints);
    let lease = lead(&peer, options(s(0), s(60))).await;
    let e = elector.clone();
    let _first = tokio::spawn(async move { lead(&e, options(s(30), s(60))).await });
    sleep(ms(1)).await;
    let second = tokio::spawn(async move {
        elector
            .try_acquire("x", &options(ms(30), s(60)).build().unwrap())
            .await
    });
    sleep(ms(10)).await;
    lease.release().await.unwrap();
    assert!(
        second.await.unwrap().unwrap().is_some(),
        "freed after 10 of 30 ms"
    );
}

#[tokio::test(start_paused = true)]
async fn max_tenure_bounds_an_extension_by_hand() {
    let (elector, _, peer) = pair();
    let o = options(s(0), s(10))
        .max_tenure(s(20))
        .on_lost(OnLost::Notify)
        .build()
        .unwrap();
    tokio::spawn(async move {
        elector
            .run_if_leader("x", &o, async |l| {
                l.extend(s(3600)).await.unwrap();
                std::future::pending::<()>().await;
            })
            .await
    });
    sleep(ms(10)).await;
    let begun = Instant::now();
    let _next = lead(&peer, options(s(10_000), s(60))).await;
    assert!(
        begun.elapsed() < s(40),
        "a stuck body kept the slot for {:?}",
        begun.elapsed()
    );
}

/// With leases held that outlive it: their keeper was made anew by each one that the runtime dropped, until the stack
/// was full.
#[test]
fn a_runtime_that_a_panic_ends_takes_its_leases_keeper_along() {
    let elector = LocalElector::new();
    let mut kept = None;
    let story = std::panic::AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let o = options(s(0), s(60)).auto_extend(true).build().unwrap();
            kept = elector.try_acquire("x", &o).await.unwrap();
            sleep(ms(10)).await;
        });
        let panic: Box<dyn std::any::Any + Send> = Box::new("as asked");
        std::panic::resume_unwind(panic);
    });
    let panic = std::panic::catch_unwind(story).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"as asked"));
    assert!(kept.unwrap().is_valid());
}
