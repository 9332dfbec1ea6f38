//! Part A: a server that is not there, refuses, or keeps something else where the record would be.

use std::time::Duration;

use leader_core::{BackendKind, ElectorExt, LeaderError};
use leader_redis::RedisElector;
use leader_tests::{Proxy, Server, at_once, lead, ms, options, patient, waiting};
use tokio::time::Instant;

use super::{COMMAND, connect};

/// One attempt while the server is in some bad state: an error of this kind, in bounded time, that names the server.
async fn fails_as(elector: &RedisElector, addr: &str, expected: &[BackendKind], wait: Duration) {
    let begun = Instant::now();
    let stand = options(waiting(wait, Duration::from_secs(60)));
    let failed = elector.run_if_leader("x", &stand, async |_| ()).await;
    let took = begun.elapsed();
    match failed {
        Err(error @ LeaderError::Backend { kind, .. }) if expected.contains(&kind) => {
            let message = error.to_string();
            assert!(message.contains(addr), "no address in {message:?}");
            assert!(!message.contains("s3cret"), "a password in {message:?}");
        }
        other => panic!("not {expected:?}: {other:?}"),
    }
    // The bound is the wait and one command timeout; what is over it is this machine's slowness.
    assert!(took < wait + COMMAND + Duration::from_secs(3), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a06_a_server_that_is_down_hung_or_half_open_is_an_error() {
    for wait in [Duration::ZERO, ms(300)] {
        let server = Server::builder().password("s3cret").start().await;
        let a = connect(&server.url(), "a").await;
        let addr = server.addr().to_string();
        lead(&a, "x", &at_once()).await.release().await.unwrap();
        server.freeze().await;
        fails_as(
            &a,
            &addr,
            &[BackendKind::TimedOut, BackendKind::Unreachable],
            wait,
        )
        .await;
        server.thaw().await;
        lead(&a, "x", &patient()).await.release().await.unwrap();
        server.kill().await;
        let down = [BackendKind::Unreachable, BackendKind::TimedOut];
        fails_as(&a, &addr, &down, wait).await;
        fails_as(&a, &addr, &down, wait).await;
        server.restart().await;
        lead(&a, "x", &patient()).await.release().await.unwrap();

        let proxy = Proxy::start(server.addr());
        let half = connect(&server.url_at(proxy.addr()), "half-open").await;
        lead(&half, "x", &at_once()).await.release().await.unwrap();
        proxy.blackhole();
        fails_as(&half, &proxy.addr().to_string(), &down, wait).await;
        proxy.heal().await;
        lead(&half, "x", &patient()).await.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a06_a_server_that_refuses_is_an_error_that_says_why() {
    let server = Server::builder().password("s3cret").start().await;
    let addr = server.addr().to_string();
    let a = connect(&server.url(), "a").await;
    lead(&a, "x", &at_once()).await.release().await.unwrap();

    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    fails_as(&a, &addr, &[BackendKind::ReadOnly], ms(100)).await;
    server
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "no"])
        .await;
    fails_as(&a, &addr, &[BackendKind::NotReady], ms(100)).await;
    server
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "yes"])
        .await;
    server.command(&["REPLICAOF", "NO", "ONE"]).await;
    lead(&a, "x", &patient()).await.release().await.unwrap();

    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    fails_as(&a, &addr, &[BackendKind::OutOfMemory], ms(100)).await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;

    server
        .command(&[
            "ACL",
            "SETUSER",
            "weak",
            "on",
            ">s3cret-too",
            "~*",
            "&*",
            "+@all",
            "-evalsha",
            "-eval",
        ])
        .await;
    let weak = connect(&server.url_for("weak", "s3cret-too"), "weak").await;
    fails_as(&weak, &addr, &[BackendKind::Denied], ms(100)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a15_what_stands_in_the_place_of_the_record_is_left_alone() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    lead(&a, "x", &at_once()).await.release().await.unwrap();
    let key = server.command(&["KEYS", "*{x}*"]).await.array()[0].text();
    let foreign: [&[&str]; 4] = [
        &["SET", &key, "theirs", "EX", "1000"],
        &["SET", &key, "theirs"],
        &["HSET", &key, "theirs", "1"],
        &["RPUSH", &key, "theirs"],
    ];
    for theirs in foreign {
        server.command(&["DEL", &key]).await;
        server.command(theirs).await;
        let before = server.command(&["DUMP", &key]).await;
        let failed = a.try_acquire("x", &at_once()).await;
        match failed {
            Err(
                error @ LeaderError::Backend {
                    kind: BackendKind::WrongType,
                    ..
                },
            ) => {
                assert!(
                    error.to_string().contains(&key),
                    "{error} does not name {key}"
                );
            }
            other => panic!("{theirs:?}: {other:?}"),
        }
        assert!(a.state("x").await.is_err());
        assert!(a.force_release("x").await.is_err());
        assert_eq!(
            server.command(&["DUMP", &key]).await,
            before,
            "{theirs:?} was changed"
        );
    }
}
