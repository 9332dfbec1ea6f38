//! h02: elections with servers that are dead, hung, taken, or have forgotten.

use std::time::Duration;

use leader_core::{BackendKind, ElectorExt, LeaderError};
use leader_tests::{elector_at, lead, ms, options, patient, until, waiting};

use crate::servers::*;

/// Whoever waited for a dead server, or for five in a row, would wait for minutes here.
#[tokio::test]
async fn h02_two_of_five_dead_are_not_waited_for() {
    let servers = Servers::start(5).await;
    let candidate = servers.candidate("a").await;
    for server in &servers.0[1..3] {
        server.kill().await;
    }
    leads_and_lets_go(&candidate, "x").await;
}

#[tokio::test]
async fn h02_two_of_five_hung_are_not_waited_for() {
    let servers = Servers::start(5).await;
    let candidate = servers.candidate("a").await;
    for server in &servers.0[1..3] {
        server.freeze().await;
    }
    leads_and_lets_go(&candidate, "x").await;
    let ran = candidate
        .run_if_leader("y", &once(), async |lease| lease.fence())
        .await;
    ran.unwrap().expect("nobody else leads");
    for server in &servers.0[1..3] {
        server.thaw().await;
    }
    // What they were asked meanwhile leaves nothing.
    until("all is free", LIMIT, async || {
        servers.held_on("x").await.is_empty() && servers.held_on("y").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn h02_three_of_five_dead_are_an_error_at_once() {
    let servers = Servers::start(5).await;
    // A command that is sent in the very moment in which its connection breaks has its time limit to wait.
    let candidate = servers.builder(ms(1000)).connect().await;
    let candidate = candidate.expect("all answer");
    for server in &servers.0[1..4] {
        server.kill().await;
    }
    until("they are known to be dead", LIMIT, async || match candidate
        .try_acquire("x", &once())
        .await
    {
        Err(LeaderError::Backend { kind, .. }) => kind == BackendKind::Unreachable,
        other => panic!("{other:?}"),
    })
    .await;
    for server in &servers.0[1..4] {
        server.restart().await;
    }
    lead(&candidate, "x", &patient())
        .await
        .release()
        .await
        .unwrap();
}

#[tokio::test]
async fn h02_three_of_five_hung_are_an_error_after_one_time_limit() {
    let servers = Servers::start(5).await;
    let candidate = servers.hasty(ms(300)).await;
    for server in &servers.0[1..4] {
        server.freeze().await;
    }
    let error = candidate.try_acquire("x", &once()).await.unwrap_err();
    assert!(
        matches!(
            &error,
            LeaderError::Backend {
                kind: BackendKind::TimedOut,
                ..
            }
        ),
        "{error:?}"
    );
    for server in &servers.0[1..4] {
        server.thaw().await;
    }
    until("what the others had granted is free", LIMIT, async || {
        servers.held_on("x").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn h02_who_got_a_minority_frees_it() {
    let servers = Servers::start(5).await;
    let candidate = servers.candidate("a").await;
    let mut held = Vec::new();
    for server in &servers.0[..3] {
        let peer = elector_at(server.url()).node_id("peer");
        let peer = peer.command_timeout(NEVER);
        let peer = peer.connect().await.expect("it answers");
        held.push(lead(&peer, "x", &once()).await);
    }
    assert_eq!(who_leads(&candidate, "x").await.as_deref(), Some("peer"));
    until("the other two are free", LIMIT, async || {
        servers.held_on("x").await == [0, 1, 2]
    })
    .await;
    for lease in held {
        lease.release().await.unwrap();
    }
    leads_and_lets_go(&candidate, "x").await;
}

#[tokio::test]
async fn h02_a_server_that_forgot_lets_nobody_in_while_a_majority_stands() {
    let servers = Servers::start(5).await;
    let (holder, peer) = (servers.candidate("a").await, servers.candidate("b").await);
    let extended = options(waiting(Duration::ZERO, LONG));
    let lease = lead(&holder, "x", &extended).await;
    until("all have granted", LIMIT, async || {
        servers.held_on("x").await.len() == 5
    })
    .await;
    for forgetful in &servers.0[..2] {
        forgetful.restart().await;
    }
    until("the peer hears of the holder", LIMIT, async || {
        // Connections to the restarted ones come back by and by.
        match who_leads(&peer, "x").await {
            Some(holder) => holder == "a",
            None => panic!("two led"),
        }
    })
    .await;
    assert!(lease.is_valid());

    until(
        "an extension writes it once more where it was forgotten",
        LIMIT,
        async || {
            lease.extend(LONG).await.unwrap();
            servers.held_on("x").await.len() == 5
        },
    )
    .await;
    // So that the others may forget now.
    for forgetful in &servers.0[2..4] {
        forgetful.restart().await;
    }
    assert!(is_kept_out(&peer, "x").await);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_waiter_wakes_when_the_lease_is_released() {
    let servers = Servers::start(5).await;
    let (holder, waiter) = (servers.candidate("a").await, servers.candidate("b").await);
    let lease = lead(&holder, "x", &once()).await;
    let waiting = tokio::spawn(async move {
        let lease = waiter.try_acquire("x", &patient()).await;
        lease
            .unwrap()
            .expect("the lease of the holder does not end in time by itself")
            .fence()
    });
    until("it listens on every server", LIMIT, async || {
        let mut listening = 0;
        for server in &servers.0 {
            let channels = server.command(&["PUBSUB", "CHANNELS", "leader:*"]).await;
            listening += usize::from(!channels.array().is_empty());
        }
        listening == 5
    })
    .await;
    // Two servers tell nobody any more.
    servers.0[0].kill().await;
    servers.0[1].kill().await;
    let fence = lease.fence();
    lease.release().await.unwrap();
    assert!(waiting.await.unwrap() > fence);
}

#[tokio::test]
async fn g02_tokens_grow_whichever_majority_grants_them() {
    let servers = Servers::start(5).await;
    let candidate = servers.hasty(ms(500)).await;
    let mut last = None;
    for round in 0..10 {
        let (a, b) = (&servers.0[round % 5], &servers.0[(round + 1) % 5]);
        // One has forgotten, and another one is not there.
        a.restart().await;
        b.kill().await;
        let lease = lead(&candidate, "x", &patient()).await;
        assert!(
            last < Some(lease.fence()),
            "{last:?}, then {:?}",
            lease.fence()
        );
        last = Some(lease.fence());
        lease.release().await.unwrap();
        b.restart().await;
    }
}
