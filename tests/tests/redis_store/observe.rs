//! Looking on: told of each change by a message, and in nobody's way.

use futures::StreamExt;
use leader_core::store::{Hints, LeaseStore, Watching, hints};
use leader_core::{ElectorExt, FencingToken, Observing};
use leader_redis::RedisStore;
use leader_tests::{Server, elector_at, lead, patient, until};

use crate::steps::*;

const CHANGES: &str = "leader:{invoice-close}:changed";

async fn observe(store: &RedisStore) -> (Hints, Watching) {
    let (sender, told) = hints();
    let watching = store.observe(&name(NAME), sender).await;
    let watching = watching.expect("the server answers");
    assert!(watching.tells_grants());
    (told, watching)
}

async fn is_told(told: &mut Hints) {
    let hint = tokio::time::timeout(LIMIT, told.next()).await;
    hint.expect("the observer is told");
}

async fn fences(leaders: &mut Observing) -> Vec<FencingToken> {
    let state = tokio::time::timeout(LIMIT, leaders.next()).await;
    let state = state.expect("something is told").expect("it goes on");
    let state = state.expect("the server answers");
    state
        .holders()
        .iter()
        .map(leader_core::Holder::fence)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_is_told_and_not_asked_for() {
    let server = Server::start().await;
    let connect = async |node_id| {
        let builder = elector_at(server.url()).node_id(node_id);
        let builder = builder.command_timeout(LIMIT);
        builder.connect().await.expect("the server answers")
    };
    let (a, b) = (connect("a").await, connect("b").await);
    let mut leaders = b.observe(NAME);
    assert!(fences(&mut leaders).await.is_empty());
    for _ in 0..3 {
        server.reset_stats().await;
        let lease = lead(&a, NAME, &patient()).await;
        assert_eq!(fences(&mut leaders).await, [lease.fence()]);
        lease.release().await.expect("the server answers");
        assert!(fences(&mut leaders).await.is_empty());
        // One to whoever waits, for the release, and one to the observer for each of the two.
        assert_eq!(server.command_calls("publish").await, 3);
        server.command(&["SCRIPT", "FLUSH"]).await;
    }
    b.shutdown().await;
    assert!(leaders.next().await.is_none());
}

#[tokio::test]
async fn a_name_that_nobody_observes_costs_nothing_more() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    frees(&store, &holder.to_release()).await;
    server.reset_stats().await;
    holder.wins(&store, LONG).await;
    frees(&store, &holder.to_release()).await;
    assert_eq!(server.command_calls("publish").await, 1);

    let (_told, watching) = observe(&store).await;
    server.reset_stats().await;
    holder.wins(&store, LONG).await;
    frees(&store, &holder.to_release()).await;
    assert_eq!(server.command_calls("publish").await, 3);
    drop(watching);
    until("nobody is subscribed", LIMIT, async || {
        let reply = server.command(&["PUBSUB", "NUMSUB", CHANGES]).await;
        reply.array()[1].integer() == 0
    })
    .await;
    // As it is once nobody has renewed it for a while.
    server.command(&["HSET", KEY, "o", "1"]).await;
    server.reset_stats().await;
    holder.wins(&store, LONG).await;
    frees(&store, &holder.to_release()).await;
    assert_eq!(server.command_calls("publish").await, 1);
}

#[tokio::test]
async fn a_name_that_was_only_observed_is_soon_forgotten() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (_told, _watching) = observe(&store).await;
    let lives = server.command(&["PTTL", KEY]).await.integer();
    assert!((1..=30_000).contains(&lives), "{lives} ms");
    // Whoever led before is remembered for longer than that.
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let _other = observe(&store).await;
    let lives = server.command(&["PTTL", KEY]).await.integer();
    assert!(lives > 12 * 3600 * 1000, "{lives} ms");
}

#[tokio::test]
async fn an_observer_that_was_cut_off_is_told_again() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    let (mut told, _watching) = observe(&store).await;
    for _ in 0..2 {
        let killed = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        assert_eq!(killed.integer(), 1);
        is_told(&mut told).await;
        until("the channel is subscribed", LIMIT, async || {
            let reply = server.command(&["PUBSUB", "NUMSUB", CHANGES]).await;
            reply.array()[1].integer() == 1
        })
        .await;
        while tokio::time::timeout(SHORT, told.told()).await.is_ok() {}
        holder.wins(&store, LONG).await;
        is_told(&mut told).await;
        frees(&store, &holder.to_release()).await;
        is_told(&mut told).await;
    }
}

#[tokio::test]
async fn a_server_that_forgot_its_observers_is_told_of_them_after_a_reconnect() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (_told, _watching) = observe(&store).await;
    server.command(&["FLUSHALL"]).await;
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    until("the record says so again", LIMIT, async || {
        server.command(&["HEXISTS", KEY, "o"]).await.integer() == 1
    })
    .await;
}
