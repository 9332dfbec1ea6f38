//! Connecting: with a majority, and not without.

use leader_core::{BackendKind, ElectorExt, LeaderError, Step};
use leader_redis::{Protocol, RedisElector};
use leader_tests::{ms, until};

use crate::servers::*;

#[tokio::test]
async fn what_is_no_quorum_is_refused_before_anything_is_sent() {
    let refused =
        async |urls: &[&str]| match RedisElector::quorum(urls.iter().copied()).connect().await {
            Err(error @ LeaderError::InvalidOptions { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        };
    let (a, b) = ("redis://127.0.0.1:1", "redis://127.0.0.1:2");
    assert_eq!(
        refused(&[a, b]).await,
        "invalid option `quorum`: 2 servers: a majority that survives the loss of one takes 3 at least"
    );
    assert!(refused(&[]).await.contains("0 servers"));
    assert_eq!(
        refused(&[a, b, "redis://user:secret@127.0.0.1:1/3"]).await,
        "invalid option `quorum`: 127.0.0.1:1 stands in it twice, but has one vote"
    );
    for (group, words) in [
        (
            "redis-cluster://127.0.0.1:3",
            "a cluster, and no single server",
        ),
        (
            "redis-sentinel://127.0.0.1:3?sentinelServiceName=x",
            "what sentinels name, and no single server",
        ),
    ] {
        let told = refused(&[a, b, group]).await;
        assert!(told.contains(words), "{told}");
    }
    assert!(refused(&[a, b, "http://127.0.0.1:3"]).await.contains("url"));
}

#[tokio::test]
async fn h02_without_a_majority_nobody_connects_and_each_server_is_told_of() {
    let servers = Servers::start(5).await;
    for server in &servers.0[..3] {
        server.kill().await;
    }
    let error = servers.builder(NEVER).connect().await.unwrap_err();
    assert!(
        matches!(
            &error,
            LeaderError::Backend {
                step: Step::Connect,
                kind: BackendKind::Unreachable,
                ..
            }
        ),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("3 of 5 servers do not answer, and 3 have to: "),
        "{text}"
    );
    for server in &servers.0[..3] {
        assert!(
            text.contains(&format!("{}: connection refused", server.addr())),
            "{text}"
        );
    }
}

#[tokio::test]
async fn h02_a_server_that_was_down_at_first_takes_part_when_it_is_back() {
    let servers = Servers::start(3).await;
    servers.0[0].kill().await;
    let candidate = servers.candidate("a").await;
    leads_and_lets_go(&candidate, "x").await;
    servers.0[0].restart().await;
    until("the one that is back grants as well", LIMIT, async || {
        let lease = candidate
            .try_acquire("x", &once())
            .await
            .unwrap()
            .expect("nobody else leads");
        let held = servers.held_on("x").await.contains(&0);
        lease.release().await.unwrap();
        held
    })
    .await;
    // It is needed now.
    servers.0[1].kill().await;
    leads_and_lets_go(&candidate, "x").await;
}

#[tokio::test]
async fn a_server_that_refuses_the_login_has_no_vote_until_it_does_not() {
    let servers = Servers::start(3).await;
    servers.0[2]
        .command(&["CONFIG", "SET", "requirepass", "secret"])
        .await;
    let candidate = servers.candidate("a").await;
    leads_and_lets_go(&candidate, "x").await;
    servers.0[1].kill().await;
    let error = candidate.try_acquire("x", &once()).await.unwrap_err();
    assert!(error.to_string().contains("NOAUTH"), "{error}");
}

#[tokio::test]
async fn a_frozen_minority_costs_a_connect_its_time_limit() {
    let servers = Servers::start(3).await;
    servers.0[1].freeze().await;
    let candidate = servers.hasty(ms(400)).await;
    leads_and_lets_go(&candidate, "x").await;
    servers.0[1].thaw().await;
    candidate.shutdown().await;
}

#[tokio::test]
async fn all_servers_are_spoken_to_in_the_protocol_that_is_chosen() {
    let servers = Servers::start(3).await;
    for (protocol, resp) in [(Protocol::Resp2, "resp=2"), (Protocol::Resp3, "resp=3")] {
        let candidate = servers.builder(NEVER).protocol(protocol);
        let candidate = candidate.connect().await.expect("all answer");
        leads_and_lets_go(&candidate, "x").await;
        for server in &servers.0 {
            let list = server.command(&["CLIENT", "LIST"]).await.text();
            let mut ours = list.lines().filter(|line| line.contains("cmd=eval"));
            // Servers before Redis 7 do not say.
            let is_chosen =
                |line: &str| !line.contains(" resp=") || line.split(' ').any(|word| word == resp);
            assert!(ours.any(is_chosen), "{list}");
        }
        candidate.shutdown().await;
    }
}

#[tokio::test]
async fn a_shutdown_leaves_no_connection() {
    let servers = Servers::start(3).await;
    servers.0[2].kill().await;
    let builder = servers.builder(NEVER).shutdown_grace(ms(3_000));
    let candidate = builder.connect().await.expect("a majority answers");
    let _held = candidate.try_acquire("x", &once()).await.unwrap();
    candidate.shutdown().await;
    servers.0[2].restart().await;
    for server in &servers.0 {
        until("only the harness is connected", LIMIT, async || {
            let clients = server.command(&["INFO", "clients"]).await.text();
            clients.contains("connected_clients:1\r")
        })
        .await;
    }
    assert!(servers.held_on("x").await.is_empty());
}

#[tokio::test]
async fn on_a_runtime_of_their_own_all_servers_share_a_thread() {
    let servers = Servers::start(3).await;
    let builder = servers.builder(NEVER).own_runtime(true);
    let candidate = builder.connect().await.expect("all answer");
    leads_and_lets_go(&candidate, "x").await;
    candidate.shutdown().await;
}
