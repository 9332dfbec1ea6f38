//! Part A: waiters whose hints are lost.

use std::time::Duration;

use leader_core::ElectorExt;
use leader_tests::{Proxy, Server, at_once, elector_at, lead, ms, options, until};
use tokio::time::{Instant, sleep, timeout};

use super::{LIMIT, connect, endless};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a11_a_release_between_the_claim_and_the_subscription_is_not_slept_through() {
    let server = Server::start().await;
    let direct = connect(&server.url(), "direct").await;
    let proxy = Proxy::start(server.addr());
    let builder = elector_at(proxy.url()).command_timeout(Duration::from_secs(10));
    let waiter = builder.connect().await.unwrap();
    let lease = lead(&direct, "x", &at_once()).await;
    server.reset_stats().await;
    // Each request is on its way for long: the claim is answered while the subscription has not even begun.
    proxy.delay_requests(ms(200));
    let wait = Duration::from_secs(60);
    let begun = Instant::now();
    let waiting = tokio::spawn(async move {
        waiter
            .try_acquire("x", &options(leader_tests::waiting(wait, wait)))
            .await
    });
    until("the claim has failed", LIMIT, async || {
        server.command_calls("evalsha").await + server.command_calls("eval").await > 0
    })
    .await;
    assert!(
        server
            .command(&["PUBSUB", "CHANNELS"])
            .await
            .array()
            .is_empty()
    );
    lease.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert!(next.is_some());
    assert!(
        begun.elapsed() < wait / 2,
        "it slept until its last attempt: {:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_a_waiter_whose_listening_connection_is_killed_is_not_late() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let lease = lead(&a, "x", &at_once()).await;
    let waiter = {
        let b = b.clone();
        tokio::spawn(async move { b.try_acquire("x", &endless()).await })
    };
    until("the waiter listens", LIMIT, async || {
        !server
            .command(&["PUBSUB", "CHANNELS"])
            .await
            .array()
            .is_empty()
    })
    .await;
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    lease.release().await.unwrap();
    let begun = Instant::now();
    let next = timeout(LIMIT, waiter)
        .await
        .expect("elected long before the wait ends")
        .unwrap();
    let next = next.unwrap().expect("the slot was freed within the wait");
    println!("elected {:?} after the release", begun.elapsed());
    next.release().await.unwrap();

    // A flood for others does not end the listener.
    let lease = lead(&a, "x", &at_once()).await;
    let waiter = tokio::spawn(async move { b.try_acquire("x", &endless()).await });
    until("the waiter listens", LIMIT, async || {
        !server
            .command(&["PUBSUB", "CHANNELS"])
            .await
            .array()
            .is_empty()
    })
    .await;
    let channel = server.command(&["PUBSUB", "CHANNELS"]).await.array()[0].text();
    let flood = "for i = 1, 20000 do redis.call('PUBLISH', ARGV[1], '0:' .. i) redis.call('PUBLISH', 'other', i) end";
    server.command(&["EVAL", flood, "0", &channel]).await;
    lease.release().await.unwrap();
    let next = timeout(LIMIT, waiter)
        .await
        .expect("elected long before the wait ends")
        .unwrap();
    assert!(next.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_a_waiter_that_could_not_listen_at_first_is_told_all_the_same() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let lease = lead(&a, "x", &at_once()).await;
    // No room for another connection, which is what a listener needs.
    let mut admin = server.connect().await.unwrap();
    admin
        .call(&["CONFIG", "SET", "maxclients", "3"])
        .await
        .unwrap();
    let waiter = tokio::spawn(async move { b.try_acquire("x", &endless()).await });
    sleep(Duration::from_secs(1)).await;
    admin
        .call(&["CONFIG", "SET", "maxclients", "1000"])
        .await
        .unwrap();
    until("it listens", LIMIT, async || {
        let channels = admin.call(&["PUBSUB", "CHANNELS"]).await.unwrap();
        !channels.array().is_empty()
    })
    .await;
    lease.release().await.unwrap();
    let next = timeout(LIMIT, waiter).await.expect("it is told").unwrap();
    assert!(next.unwrap().is_some());
}
