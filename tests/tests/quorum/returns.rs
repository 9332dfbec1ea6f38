//! Servers that come and go, that have another password, or that are one and the same.

use leader_core::ElectorExt;
use leader_redis::RedisElector;
use leader_tests::{Server, lead, ms, patient, until};

use crate::servers::*;

/// On which servers a waiter listens.
async fn listened_to(servers: &Servers) -> Vec<usize> {
    let mut listened_to = Vec::new();
    for (number, server) in servers.0.iter().enumerate() {
        let channels = server
            .try_command(&["PUBSUB", "CHANNELS", "leader:*"])
            .await;
        if channels.is_ok_and(|channels| !channels.array().is_empty()) {
            listened_to.push(number);
        }
    }
    listened_to
}

/// Waits until a server has no connection but the harness's own.
async fn until_nobody_is_connected(server: &Server) {
    until("only the harness is connected", LIMIT, async || {
        let clients = server.command(&["INFO", "clients"]).await.text();
        clients.contains("connected_clients:1\r")
    })
    .await;
}

#[tokio::test]
async fn one_server_by_two_names_has_one_vote() {
    let servers = Servers::start(2).await;
    let [one, other] = [servers.0[0].addr(), servers.0[1].addr()];
    let by_name = format!("localhost:{}", one.port());
    let urls = [
        format!("redis://{one}"),
        format!("redis://{other}"),
        format!("redis://{by_name}"),
    ];
    let error = RedisElector::quorum(urls).connect().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "invalid option `quorum`: {one} and {by_name} are the same server, which has one vote"
        )
    );
    for server in &servers.0 {
        until_nobody_is_connected(server).await;
    }
}

#[tokio::test]
async fn h02_a_waiter_hears_of_a_release_through_a_server_that_came_later() {
    let servers = Servers::start(3).await;
    servers.0[0].kill().await;
    let (holder, waiter) = (servers.candidate("a").await, servers.candidate("b").await);
    let lease = lead(&holder, "x", &once()).await;
    let waiting = tokio::spawn(async move {
        let lease = waiter.try_acquire("x", &patient()).await;
        let lease = lease.unwrap();
        drop(lease.expect("the lease of the holder does not end in time by itself"));
    });
    until("the waiter listens", LIMIT, async || {
        listened_to(&servers).await == [1, 2]
    })
    .await;
    servers.0[0].restart().await;
    until("the one that came takes part", LIMIT, async || {
        lease.extend(LONG).await.unwrap();
        servers.held_on("x").await.contains(&0) && listened_to(&servers).await == [0, 1, 2]
    })
    .await;
    // It is needed for a majority now, which is what wakes.
    servers.0[1].kill().await;
    lease.release().await.unwrap();
    waiting.await.unwrap();
}

#[tokio::test]
async fn c09_a_shutdown_does_not_wait_for_servers_that_hang() {
    let servers = Servers::start(5).await;
    let candidate = hastily(servers.builder(ms(300)).shutdown_grace(ms(2_000))).await;
    // The servers have the scripts by then: what they are sent is done also when nobody waits for it.
    leads_and_lets_go(&candidate, "x").await;
    let _held = lead(&candidate, "x", &once()).await;
    for server in &servers.0[..3] {
        server.freeze().await;
    }
    tokio::time::timeout(LIMIT, candidate.shutdown())
        .await
        .expect("it ends within its grace");
    for server in &servers.0[..3] {
        server.thaw().await;
    }
    until("what they were told before is done", LIMIT, async || {
        servers.held_on("x").await.is_empty()
    })
    .await;
    for server in &servers.0 {
        until_nobody_is_connected(server).await;
    }
}

#[tokio::test]
async fn passwords_are_shown_nowhere() {
    let servers = Servers::start(3).await;
    for server in &servers.0 {
        let set = ["CONFIG", "SET", "requirepass", "pa55word"];
        server.command(&set).await;
    }
    let url = |number: usize, password: &str| {
        format!("redis://:{password}@{}/2", servers.0[number].addr())
    };
    let builder = RedisElector::quorum([0, 1, 2].map(|number| url(number, "wr0ng")));
    let shown = format!("{builder:?}");
    let error = builder.connect().await.unwrap_err();
    let shown = format!("{shown} {error} {error:?}");

    let urls = [url(0, "pa55word"), url(1, "pa55word"), url(2, "wr0ng")];
    let candidate = RedisElector::quorum(urls).connect().await;
    let candidate = candidate.expect("a majority lets it in");
    leads_and_lets_go(&candidate, "x").await;
    let shown = format!("{shown} {candidate:?} {:?}", candidate.store());
    assert!(
        !shown.contains("pa55word") && !shown.contains("wr0ng"),
        "{shown}"
    );
}
