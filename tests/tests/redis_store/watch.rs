//! Being told of releases: soon, for each name by itself, and never in vain for ever.

use std::time::Duration;

use leader_core::BackendKind;
use leader_core::store::{Hints, LeaseStore, Revision, Watching, hints};
use leader_redis::RedisStore;
use leader_tests::{Proxy, Server, connect_in_time, elector_at, until, until_some};

use crate::steps::*;

/// Watches `of` from where its history stands.
async fn watch(store: &RedisStore, of: &Candidate) -> (Hints, Watching) {
    let revision = candidate_for(of.name.as_str()).loses(store).await.2;
    watch_since(store, of, revision).await
}

async fn watch_since(store: &RedisStore, of: &Candidate, since: Revision) -> (Hints, Watching) {
    let (sender, told) = hints();
    let watching = store.watch(&of.name, since, sender).await;
    (told, watching.expect("the server answers a watch"))
}

async fn is_told(hints: &mut Hints) {
    let told = tokio::time::timeout(LIMIT, hints.told()).await;
    told.expect("the watcher is told");
}

/// Whether a hint is there already.
async fn has_been_told(hints: &mut Hints) -> bool {
    tokio::time::timeout(Duration::ZERO, hints.told())
        .await
        .is_ok()
}

async fn subscribers(server: &Server, channel: &str) -> i64 {
    let reply = server.command(&["PUBSUB", "NUMSUB", channel]).await;
    reply.array()[1].integer()
}

#[tokio::test]
async fn a_release_is_told() {
    let server = Server::start().await;
    let (ours, theirs) = (store(&server).await, store(&server).await);
    let holder = candidate();
    holder.wins(&theirs, LONG).await;
    let (mut told, _watching) = watch(&ours, &holder).await;
    assert!(!has_been_told(&mut told).await);
    assert_eq!(frees(&theirs, &holder.to_release()).await.1, 1);
    is_told(&mut told).await;
}

#[tokio::test]
async fn a11_a_release_between_claim_and_watch_is_told_at_once() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let (_, _, since) = candidate().loses(&store).await;
    frees(&store, &holder.to_release()).await;
    let (mut told, _watching) = watch_since(&store, &holder, since).await;
    assert!(has_been_told(&mut told).await);
}

#[tokio::test]
async fn a11_a_record_that_was_lost_between_claim_and_watch_is_told_at_once() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let (_, _, since) = candidate().loses(&store).await;
    server.command(&["FLUSHALL"]).await;
    let (mut told, _watching) = watch_since(&store, &holder, since).await;
    assert!(has_been_told(&mut told).await);
}

#[tokio::test]
async fn a12_a_release_while_the_subscriber_is_cut_off_is_not_missed() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let (mut told, _watching) = watch(&store, &holder).await;
    for _ in 0..3 {
        assert_eq!(
            server
                .command(&["CLIENT", "KILL", "TYPE", "pubsub"])
                .await
                .integer(),
            1
        );
        frees(&store, &holder.to_release()).await;
        is_told(&mut told).await;
        // And it listens again.
        until("the channel is subscribed", LIMIT, async || {
            subscribers(&server, CHANNEL).await == 1
        })
        .await;
        holder.wins(&store, LONG).await;
        while has_been_told(&mut told).await {}
        frees(&store, &holder.to_release()).await;
        is_told(&mut told).await;
        holder.wins(&store, LONG).await;
    }
}

#[tokio::test]
async fn a12_a_flood_for_other_names_does_not_end_the_listener() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (holder, other) = (candidate(), candidate_for("other"));
    holder.wins(&store, LONG).await;
    other.wins(&store, LONG).await;
    let (mut told, _watching) = watch(&store, &holder).await;
    let (mut others, _others) = watch(&store, &other).await;
    let mut flood = server.connect().await.unwrap();
    let publish: &[&str] = &["PUBLISH", "leader:{other}:released", "1:0"];
    for _ in 0..20 {
        flood.send_all(&[publish; 500]).await.unwrap();
        for _ in 0..500 {
            flood.read().await.unwrap();
        }
    }
    is_told(&mut others).await;
    // Told or not that some were missed, the next release comes through.
    while has_been_told(&mut told).await {}
    frees(&store, &holder.to_release()).await;
    is_told(&mut told).await;
}

#[tokio::test]
async fn a12_a_subscriber_that_is_half_open_is_noticed_within_seconds() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let builder = elector_at(proxy.url()).command_timeout(Duration::from_millis(200));
    let store = connect_in_time(async || builder.clone().connect_store().await).await;
    let (holder, (sender, mut told)) = (candidate(), hints());
    let _watching = until_some("the name is watched", LIMIT, async || {
        let since = Revision::default();
        store.watch(&holder.name, since, sender.clone()).await.ok()
    })
    .await;
    while has_been_told(&mut told).await {}
    proxy.strand_connections();
    is_told(&mut told).await;
    assert!(server.command_calls("hello").await >= 2);
}

#[tokio::test]
async fn a_watch_survives_the_restart_of_its_server() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let (mut told, _watching) = watch(&store, &holder).await;
    server.restart().await;
    is_told(&mut told).await;
    assert_eq!(subscribers(&server, CHANNEL).await, 1);
}

#[tokio::test]
async fn names_are_told_apart_and_a_message_that_cannot_be_read_means_ask_again() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (holder, other) = (candidate(), candidate_for("other"));
    holder.wins(&store, LONG).await;
    other.wins(&store, LONG).await;
    let (mut told, _watching) = watch(&store, &holder).await;
    let (mut others, _others) = watch(&store, &other).await;
    server.command(&["PUBLISH", CHANNEL, "what?"]).await;
    is_told(&mut told).await;
    // Both come over one connection, in order.
    assert!(!has_been_told(&mut others).await);
    frees(&store, &other.to_release()).await;
    is_told(&mut others).await;
    assert!(!has_been_told(&mut told).await);
}

#[tokio::test]
async fn c07_a_subscription_ends_with_its_last_watch() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let (mut first, watching) = watch(&store, &holder).await;
    let (mut second, also_watching) = watch(&store, &holder).await;
    // One subscription for both, and both are told; the release counts watchers, not connections.
    assert_eq!(subscribers(&server, CHANNEL).await, 1);
    assert_eq!(frees(&store, &holder.to_release()).await.1, 2);
    is_told(&mut first).await;
    is_told(&mut second).await;

    drop(watching);
    holder.wins(&store, LONG).await;
    frees(&store, &holder.to_release()).await;
    is_told(&mut second).await;
    assert!(!has_been_told(&mut first).await);
    assert_eq!(subscribers(&server, CHANNEL).await, 1);

    drop(also_watching);
    until("nobody is subscribed", LIMIT, async || {
        subscribers(&server, CHANNEL).await == 0
    })
    .await;
}

#[tokio::test]
async fn c07_watches_that_come_and_go_end_in_the_right_state() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let since = candidate().loses(&store).await.2;
    for _ in 0..100 {
        let (mut told, watching) = watch_since(&store, &holder, since).await;
        assert!(!has_been_told(&mut told).await);
        drop(watching);
        // Given up at any point.
        let (sender, _told) = hints();
        let given_up = store.watch(&holder.name, since, sender);
        let _ = tokio::time::timeout(Duration::from_micros(100), given_up).await;
    }
    let (mut told, watching) = watch_since(&store, &holder, since).await;
    frees(&store, &holder.to_release()).await;
    is_told(&mut told).await;
    assert_eq!(subscribers(&server, CHANNEL).await, 1);
    drop(watching);
    until("nobody is subscribed", LIMIT, async || {
        subscribers(&server, CHANNEL).await == 0
    })
    .await;
    let channels = server.command(&["PUBSUB", "CHANNELS"]).await;
    assert!(channels.array().is_empty(), "{channels:?}");
}

#[tokio::test]
async fn a_watch_without_a_server_is_an_error_in_time() {
    let server = Server::start().await;
    let builder = elector_at(server.url());
    let store = builder.command_timeout(Duration::from_secs(1));
    let store = store.connect_store().await.unwrap();
    let holder = candidate();
    server.kill().await;
    let (sender, _told) = hints();
    let error = store.watch(&holder.name, Revision::default(), sender).await;
    let error = error.expect_err("nobody is there");
    assert!(error.kind().is_transient(), "{error}");
    assert!(error.to_string().contains(&server.addr().to_string()));

    server.restart().await;
    until("the connection is back", LIMIT, async || {
        store.inspect(&holder.name).await.is_ok()
    })
    .await;
    holder.wins(&store, LONG).await;
    let (mut told, _watching) = watch(&store, &holder).await;
    frees(&store, &holder.to_release()).await;
    is_told(&mut told).await;
    // One that was made before is as good as new, too.
    server.freeze().await;
    let (sender, _told) = hints();
    let error = store
        .watch(&name("hung"), Revision::default(), sender)
        .await;
    assert_eq!(error.unwrap_err().kind(), BackendKind::TimedOut);
    server.thaw().await;
    until("watches work again", LIMIT, async || {
        let (sender, _told) = hints();
        let watched = store
            .watch(&name("hung"), Revision::default(), sender)
            .await;
        watched.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_watch_that_is_given_up_while_it_connects_leaves_the_connection_to_the_next() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = store_at(&proxy.url()).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let since = candidate().loses(&store).await.2;
    let connections = async || {
        let info = server.command(&["INFO", "stats"]).await.text();
        let mut lines = info.lines();
        let made = lines.find_map(|line| line.strip_prefix("total_connections_received:"));
        made.expect("servers count them").parse::<u64>().unwrap()
    };
    let before = connections().await;
    proxy.hold_replies();
    for _ in 0..5 {
        let (sender, _told) = hints();
        let given_up = store.watch(&holder.name, since, sender);
        let given_up = tokio::time::timeout(SHORT, given_up).await;
        assert!(given_up.is_err());
    }
    proxy.release_replies();
    let (mut told, _watching) = watch_since(&store, &holder, since).await;
    // The harness itself made the other one.
    assert_eq!(connections().await - before, 2);
    frees(&store, &holder.to_release()).await;
    is_told(&mut told).await;
}

#[tokio::test]
async fn a_watch_is_not_told_of_a_connection_that_failed_before_it() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = store_at(&proxy.url()).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let since = candidate().loses(&store).await.2;
    proxy.hold_replies();
    let (sender, _told) = hints();
    let given_up = store.watch(&holder.name, since, sender);
    let given_up = tokio::time::timeout(SHORT, given_up).await;
    assert!(given_up.is_err());
    proxy.cut().await;
    proxy.heal().await;
    until("the connection for commands is back", LIMIT, async || {
        store.inspect(&holder.name).await.is_ok()
    })
    .await;
    let (mut told, _watching) = watch_since(&store, &holder, since).await;
    frees(&store, &holder.to_release()).await;
    is_told(&mut told).await;
}

#[tokio::test]
async fn a_store_is_closed_while_a_watch_connects() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = store_at(&proxy.url()).await;
    proxy.hold_replies();
    let (sender, _told) = hints();
    let holder = candidate();
    let given_up = store.watch(&holder.name, Revision::default(), sender);
    let given_up = tokio::time::timeout(SHORT, given_up).await;
    assert!(given_up.is_err());
    tokio::join!(store.close(), async { proxy.release_replies() });
    until("no connection is left", LIMIT, async || {
        proxy.connections() == 0
    })
    .await;
}

#[tokio::test]
async fn a_watch_that_is_denied_says_so_and_spoils_no_other() {
    let line = "app on >pa55word ~* resetchannels &leader:{invoice-close}:released +@all";
    let server = Server::builder().user(line).start().await;
    let store = store_at(&server.url_for("app", "pa55word")).await;
    let (holder, denied) = (candidate(), candidate_for("denied"));
    holder.wins(&store, LONG).await;
    let (mut told, _watching) = watch(&store, &holder).await;
    for _ in 0..3 {
        let (sender, _told) = hints();
        let error = store.watch(&denied.name, Revision::default(), sender).await;
        assert_eq!(error.unwrap_err().kind(), BackendKind::Denied);
        // Told or not, after the new connection that this took, that something may have been missed.
        drop(watch(&store, &holder).await);
    }
    // Answers are out of step on a connection that refused a subscription; each time a new one was made.
    assert!(server.command_calls("hello").await > 3);
    until("the channel is subscribed", LIMIT, async || {
        subscribers(&server, CHANNEL).await == 1
    })
    .await;
    while has_been_told(&mut told).await {}
    frees(&store, &holder.to_release()).await;
    is_told(&mut told).await;
}
