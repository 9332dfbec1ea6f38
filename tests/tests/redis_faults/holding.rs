//! Part B: holding a lease meanwhile.

use std::time::Duration;

use futures::StreamExt;
use leader_core::{BackendKind, ElectorExt, LeaderError, LeaderEvent, LossReason, OnLost};
use leader_tests::{Server, at_once, elector_at, lead, ms, options, patient, waiting};
use tokio::time::{Instant, sleep, timeout};

use super::{LIMIT, behind_proxy, connect};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_extension_survives_a_cut_and_ends_with_the_deadline() {
    let (_server, proxy, through, direct) = behind_proxy().await;
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(4)).auto_extend(true));
    let mut events = through.events();
    let lease = lead(&through, "x", &extended).await;
    proxy.cut().await;
    // The first extension fails.
    timeout(LIMIT, async {
        while !matches!(events.next().await, Some(LeaderEvent::Failed { .. })) {}
    })
    .await
    .expect("an extension failed");
    proxy.heal().await;
    timeout(LIMIT, async {
        while !matches!(events.next().await, Some(LeaderEvent::Extended { .. })) {}
    })
    .await
    .expect("and a later one succeeded");
    lease.ensure_valid().unwrap();

    // For good: lost at the deadline, and the store gives it to nobody before.
    proxy.cut().await;
    let deadline = Instant::now() + lease.remaining();
    lease.lost().await;
    assert!(Instant::now() >= deadline, "lost before its deadline");
    let next = lead(&direct, "x", &patient()).await;
    assert!(next.fence() > lease.fence());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b03_every_transient_answer_is_survived_while_extending() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(3)).auto_extend(true));
    let lease = lead(&a, "x", &extended).await;
    let mut events = a.events();

    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let kind = failed_extension(&mut events).await;
    assert_eq!(kind, BackendKind::ReadOnly);
    server
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "no"])
        .await;
    server
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "yes"])
        .await;
    server.command(&["REPLICAOF", "NO", "ONE"]).await;
    extended_again(&mut events).await;

    server.command(&["SCRIPT", "FLUSH"]).await;
    extended_again(&mut events).await;

    // BUSY: a script that runs on, until it is killed.
    server
        .command(&["CONFIG", "SET", "lua-time-limit", "10"])
        .await;
    let mut busy = server.connect().await.unwrap();
    busy.send(&["EVAL", "while true do end", "0"])
        .await
        .unwrap();
    let kind = failed_extension(&mut events).await;
    assert!(
        matches!(kind, BackendKind::NotReady | BackendKind::TimedOut),
        "{kind:?}"
    );
    server.command(&["SCRIPT", "KILL"]).await;
    extended_again(&mut events).await;

    lease.ensure_valid().unwrap();
    lease.release().await.unwrap();
}

async fn failed_extension(events: &mut leader_core::Events) -> BackendKind {
    let failed = async {
        loop {
            if let Some(LeaderEvent::Failed { kind, .. }) = events.next().await {
                return kind;
            }
        }
    };
    timeout(LIMIT, failed).await.expect("an extension failed")
}

async fn extended_again(events: &mut leader_core::Events) {
    let extended = async {
        loop {
            match events.next().await {
                Some(LeaderEvent::Extended { .. }) => return,
                Some(LeaderEvent::Lost { reason, .. }) => panic!("lost: {reason}"),
                _ => {}
            }
        }
    };
    timeout(LIMIT, extended)
        .await
        .expect("an extension succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b04_another_token_in_its_place_is_found_within_one_interval() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(3)).auto_extend(true));
    let lease = lead(&a, "x", &extended).await;
    let key = server.command(&["KEYS", "*{x}*"]).await.array()[0].text();
    // As an administrator would, past the library.
    server.command(&["DEL", &key]).await;
    let successor = lead(&b, "x", &at_once()).await;
    assert!(
        successor.fence() > lease.fence(),
        "the counter was deleted, and the order lost (g02)"
    );
    lease.lost().await;
    assert!(
        matches!(
            lease.ensure_valid(),
            Err(LeaderError::LeaseLost {
                reason: LossReason::Taken,
                ..
            })
        ),
        "{:?}",
        lease.ensure_valid()
    );
    assert!(lease.extend(Duration::from_secs(30)).await.is_err());
    assert!(lease.release().await.is_err());
    assert_eq!(
        b.state("x").await.unwrap().holders()[0].fence(),
        successor.fence()
    );
}

#[test]
fn b08_a_body_that_blocks_a_current_thread_runtime_is_not_elected_when_it_yields() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        let server = Server::start().await;
        let a = connect(&server.url(), "a").await;
        let extended = options(waiting(Duration::ZERO, Duration::from_secs(1)).auto_extend(true));
        a.run_if_leader("x", &extended, async |_| {
            std::thread::sleep(Duration::from_secs(2));
        })
        .await
    });
    assert!(
        matches!(outcome, Err(LeaderError::LeaseLost { .. })),
        "{outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b08_a_body_that_blocks_its_worker_keeps_its_lease_on_a_multi_thread_runtime() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(2)).auto_extend(true));
    let run = tokio::spawn(async move {
        a.run_if_leader("x", &extended, async |_| {
            std::thread::sleep(Duration::from_secs(4));
        })
        .await
    });
    assert_eq!(run.await.unwrap().unwrap(), Some(()));
}

#[test]
fn b08_with_a_runtime_of_its_own_the_lease_is_kept_even_on_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        let server = Server::start().await;
        let builder = elector_at(server.url()).own_runtime(true);
        let a = builder.connect().await.unwrap();
        let extended = options(waiting(Duration::ZERO, Duration::from_secs(2)).auto_extend(true));
        let run = a
            .run_if_leader("x", &extended, async |_| {
                std::thread::sleep(Duration::from_secs(4));
            })
            .await;
        a.shutdown().await;
        run
    });
    assert_eq!(outcome.unwrap(), Some(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b04_a_notified_body_of_a_deleted_lease_comes_to_its_own_end() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let notify = options(
        waiting(Duration::ZERO, Duration::from_secs(2))
            .auto_extend(true)
            .on_lost(OnLost::Notify),
    );
    let run = a.run_if_leader("x", &notify, async |lease| {
        b.force_release("x").await.unwrap();
        lease.cancellation_token().cancelled().await;
        sleep(ms(100)).await;
    });
    let outcome = run.await;
    assert!(
        matches!(
            outcome,
            Err(LeaderError::LeaseLost {
                reason: LossReason::Deleted,
                ..
            })
        ),
        "{outcome:?}"
    );
}
