//! Part A: being elected by a server that misbehaves, or over a network that does.

use std::time::Duration;

use leader_core::{BackendKind, ElectorExt, LeaderError};
use leader_tests::{
    Proxy, Server, at_once, elector_at, is_skipped, lead, ms, options, patient, until, waiting,
};
use tokio::time::{Instant, sleep, timeout};

use super::{COMMAND, LIMIT, behind_proxy, connect, warm_up};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a02_waiting_five_seconds_for_a_held_lease_takes_two_claims() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let _lease = lead(&a, "x", &at_once()).await;
    server.reset_stats().await;
    let begun = Instant::now();
    let wait = options(waiting(Duration::from_secs(5), Duration::from_secs(60)));
    assert!(is_skipped(&b, "x", &wait).await);
    assert!(begun.elapsed() >= Duration::from_secs(5));
    let claims = server.command_calls("evalsha").await + server.command_calls("eval").await;
    assert!(claims <= 2, "{claims} claims in five seconds of waiting");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a02_no_wait_is_exactly_one_claim() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let _lease = lead(&a, "x", &at_once()).await;
    server.reset_stats().await;
    assert!(is_skipped(&b, "x", &at_once()).await);
    let commands = server.commands().await;
    let scripts = commands.get("evalsha").copied().unwrap_or_default();
    assert_eq!(scripts, 1, "{commands:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_run_is_two_commands() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    // Once, to load the scripts.
    a.run_if_leader("x", &at_once(), async |_| ())
        .await
        .unwrap();
    server.reset_stats().await;
    for _ in 0..100 {
        assert_eq!(
            a.run_if_leader("x", &at_once(), async |_| ())
                .await
                .unwrap(),
            Some(())
        );
    }
    let commands = server.commands().await;
    // What the scripts call inside the server is counted too; a client's commands are these.
    let sent: Vec<_> = [
        "evalsha",
        "eval",
        "script|load",
        "subscribe",
        "hget",
        "get",
        "set",
        "publish",
        "ping",
    ]
    .iter()
    .filter_map(|command| commands.get(*command).map(|calls| (*command, *calls)))
    .filter(|(command, _)| *command != "publish")
    .collect();
    assert_eq!(sent, [("evalsha", 200)], "{commands:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a03_a_reply_that_was_lost_is_recognised_by_the_next_claim() {
    let (_server, proxy, through, direct) = behind_proxy().await;
    // Once before, so that the script is loaded.
    warm_up(&through).await;
    let lost = proxy.lose_reply_to("EVALSHA");
    let lease = lead(&through, "x", &patient()).await;
    timeout(LIMIT, lost.happened())
        .await
        .expect("the reply was lost");
    let state = direct.state("x").await.unwrap();
    assert_eq!(state.holders().len(), 1, "{state:?}");
    assert_eq!(state.holders()[0].fence(), lease.fence());
    assert_eq!(state.holders()[0].node_id(), "through");
    lease.release().await.unwrap();
    assert!(!is_skipped(&direct, "x", &at_once()).await);

    // The same when the slots are full but for its own.
    let two = options(waiting(LIMIT, Duration::from_secs(60)).slots(2));
    let peer = lead(&direct, "y", &two).await;
    let lost = proxy.lose_reply_to("EVALSHA");
    let lease = lead(&through, "y", &two).await;
    timeout(LIMIT, lost.happened())
        .await
        .expect("the reply was lost");
    assert_eq!((peer.slot(), lease.slot()), (0, 1));
    assert_eq!(direct.state("y").await.unwrap().holders().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a04_an_attempt_dropped_in_flight_leaves_the_slot_free() {
    let (_server, proxy, through, direct) = behind_proxy().await;
    warm_up(&through).await;
    for _ in 0..20 {
        proxy.hold_replies();
        let attempt = {
            let through = through.clone();
            tokio::spawn(async move { through.try_acquire("x", &patient()).await })
        };
        // Executed by the server, but the answer is on its way.
        until("the claim was executed", LIMIT, async || {
            direct.state("x").await.unwrap().holders().len() == 1
        })
        .await;
        attempt.abort();
        assert!(attempt.await.unwrap_err().is_cancelled());
        proxy.release_replies();
        // Its lease of a minute is far from its end.
        let next = lead(&direct, "x", &patient()).await;
        next.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a05_a_grant_that_comes_after_its_lease_is_none_and_is_given_back() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let builder = elector_at(proxy.url());
    let through = builder.command_timeout(LIMIT).connect().await.unwrap();
    let direct = connect(&server.url(), "direct").await;
    warm_up(&through).await;
    // The claim is executed when its lease, counted from when it was sent, is over already.
    proxy.delay_requests(ms(3_200));
    let late = tokio::spawn(async move {
        let brief = options(waiting(Duration::ZERO, ms(3_000)));
        through.try_acquire("x", &brief).await
    });
    // By then it is on its way; what follows it is not delayed.
    sleep(ms(1_000)).await;
    proxy.delay_requests(Duration::ZERO);
    match late.await.unwrap() {
        Err(LeaderError::Backend {
            kind: BackendKind::TimedOut,
            ..
        }) => {}
        other => panic!("elected, or skipped, by an answer that came too late: {other:?}"),
    }
    // The store has just granted it three seconds. It is given back long before they are over.
    let wait = options(waiting(ms(2_000), Duration::from_secs(60)));
    let _next = lead(&direct, "x", &wait).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a05_a_stalled_server_gives_no_lease_and_keeps_none() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    warm_up(&a).await;
    server.command(&["CLIENT", "PAUSE", "60000", "WRITE"]).await;
    let stalled = a.try_acquire("x", &at_once()).await;
    assert!(
        matches!(
            stalled,
            Err(LeaderError::Backend {
                kind: BackendKind::TimedOut,
                ..
            })
        ),
        "{stalled:?}"
    );
    // What undoes the claim meets the stall as well.
    sleep(COMMAND * 3 / 2).await;
    server.command(&["CLIENT", "UNPAUSE"]).await;
    // When the server goes on, the claim may be executed; what undoes it follows. Its lease is a minute.
    let next = lead(&b, "x", &patient()).await;
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a07_no_key_is_without_an_expiry() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    let longest = options(waiting(
        Duration::ZERO,
        leader_core::LeaseOptions::MAX_LEASE,
    ));
    let _long = lead(&a, "long", &longest).await;
    let _short = lead(&a, "short", &options(waiting(Duration::ZERO, ms(1_000)))).await;
    lead(&a, "over", &at_once()).await.release().await.unwrap();
    let keys = server.command(&["KEYS", "*"]).await;
    assert!(keys.array().len() >= 3, "{keys:?}");
    for key in keys.array() {
        let left = server.command(&["PTTL", &key.text()]).await.integer();
        assert!(left > 0, "{} has no expiry: {left}", key.text());
        if key.text().contains("{long}") {
            assert!(
                left >= 365 * 24 * 60 * 60 * 1000,
                "{left} is less than the lease"
            );
        }
    }
}
