//! What acknowledgement costs, and whom it keeps waiting.

use std::time::Duration;

use futures::future::join_all;
use futures::poll;
use leader_core::store::{ClaimReply, ExtendReply, LeaseStore, ReleaseReply};
use leader_core::{ElectorExt, LossReason};
use leader_tests::{at_once, until};

use crate::steps::*;

#[tokio::test]
async fn an_uncontended_run_is_four_commands() {
    let pair = Pair::start().await;
    let elector = elector_at(&pair.primary.url()).replica_ack(1, LIMIT);
    let elector = elector.connect().await.expect("the server answers");
    let options = at_once();
    let run = || elector.run_if_leader("x", &options, async |_| ());
    // The scripts are loaded by then.
    run().await.unwrap().expect("nobody else leads");
    pair.primary.reset_stats().await;
    run().await.unwrap().expect("nobody else leads");

    let mut commands = pair.primary.commands().await;
    // What the scripts themselves, the replica and the harness ask for.
    commands.retain(|command, _| {
        ["evalsha", "eval", "wait", "script|load", "ping"].contains(&command.as_str())
    });
    let commands: Vec<_> = commands
        .iter()
        .map(|(name, calls)| (name.as_str(), *calls))
        .collect();
    assert_eq!(commands, [("evalsha", 3), ("wait", 1)]);
}

#[tokio::test]
async fn grants_that_come_while_others_wait_are_acknowledged_together() {
    let pair = Pair::start().await;
    let store = store(&pair, LIMIT).await;
    candidate_for("warm").wins(&store).await;
    pair.primary.reset_stats().await;

    pair.replica.freeze().await;
    let names: Vec<String> = (0..100).map(|n| format!("n{n}")).collect();
    let all: Vec<Candidate> = names.iter().map(|name| candidate_for(name)).collect();
    let (first, others) = all.split_first().unwrap();
    let first = first.wins(&store);
    tokio::pin!(first);
    until("the first waits", LIMIT, async || {
        assert!(poll!(&mut first).is_pending());
        let clients = pair.primary.command(&["INFO", "clients"]).await.text();
        clients.contains("blocked_clients:1")
    })
    .await;
    let others = join_all(others.iter().map(|other| other.wins(&store)));
    tokio::pin!(others);
    until("the others are granted", LIMIT, async || {
        assert!(poll!(&mut others).is_pending());
        pair.primary.command_calls("evalsha").await == 101
    })
    .await;
    pair.replica.thaw().await;
    futures::join!(first, others);
    assert_eq!(pair.primary.command_calls("wait").await, 2);
    assert_eq!(pair.primary.command_calls("evalsha").await, 200);
}

#[tokio::test]
async fn who_waits_for_replicas_keeps_nobody_else_waiting() {
    let pair = Pair::start().await;
    let store = store(&pair, LIMIT).await;
    let (held, other) = (candidate_for("held"), candidate_for("other"));
    held.wins(&store).await;

    pair.replica.freeze().await;
    let mut grant = Box::pin(other.claim(&store));
    until("a grant waits", LIMIT, async || {
        assert!(poll!(&mut grant).is_pending());
        let clients = pair.primary.command(&["INFO", "clients"]).await.text();
        clients.contains("blocked_clients:1")
    })
    .await;
    let peer = candidate_for("held").claim(&store).await.unwrap();
    assert!(matches!(peer, ClaimReply::Taken { .. }), "{peer:?}");
    let released = store.release(&held.to_release()).await.unwrap();
    assert!(
        matches!(released, ReleaseReply::Released { .. }),
        "{released:?}"
    );
    assert!(!held.is_held(&store).await);
    assert!(poll!(&mut grant).is_pending());

    pair.replica.thaw().await;
    assert!(matches!(grant.await, Ok(ClaimReply::Granted { .. })));
}

#[tokio::test]
async fn what_is_gone_when_its_turn_comes_was_never_granted() {
    let pair = Pair::start().await;
    let store = store(&pair, LIMIT).await;
    let (first, second) = (candidate_for("first"), candidate_for("second"));
    pair.replica.freeze().await;
    let mut first_grant = Box::pin(first.claim(&store));
    let mut second_grant = Box::pin(second.claim(&store));
    until("the first waits for replicas", LIMIT, async || {
        assert!(poll!(&mut first_grant).is_pending());
        let clients = pair.primary.command(&["INFO", "clients"]).await.text();
        clients.contains("blocked_clients:1")
    })
    .await;
    until("the second waits for its turn", LIMIT, async || {
        assert!(poll!(&mut second_grant).is_pending());
        second.is_held(&store).await
    })
    .await;
    assert_eq!(store.evict(&second.name).await.unwrap(), 1);
    pair.replica.thaw().await;
    first_grant.await.unwrap();
    let error = second_grant.await.unwrap_err();
    assert!(error.kind().is_transient());
    assert!(
        error
            .to_string()
            .contains("gone before replicas could acknowledge it"),
        "{error}"
    );
    assert_eq!(
        second.extend(&store).await.unwrap(),
        ExtendReply::NotHeld(LossReason::Deleted)
    );
}

#[tokio::test]
async fn a04_a_grant_that_nobody_waits_for_any_more_is_undone() {
    let pair = Pair::start().await;
    let elector = elector_at(&pair.primary.url()).replica_ack(1, LIMIT);
    let elector = elector.connect().await.expect("the server answers");
    let options = at_once();
    pair.replica.freeze().await;
    let mut attempt = Box::pin(elector.try_acquire("x", &options));
    until("the grant waits for replicas", LIMIT, async || {
        assert!(poll!(&mut attempt).is_pending());
        let clients = pair.primary.command(&["INFO", "clients"]).await.text();
        clients.contains("blocked_clients:1")
    })
    .await;
    drop(attempt);
    until("the slot is free", Duration::from_secs(5), async || {
        elector.state("x").await.unwrap().holders().is_empty()
    })
    .await;
    pair.replica.thaw().await;
    assert!(elector.try_acquire("x", &options).await.unwrap().is_some());
}
