//! Values that refuse a leader whose time is over.

use std::time::Duration;

use leader_core::FencingToken;
use leader_core::fencing::{FencedError, StaleFence};
use leader_core::store::{LeaseStore, StoreError};
use leader_core::testing::check_fenced_resource;
use leader_core::{BackendKind, ElectorExt};
use leader_redis::{FencedKey, RedisElector};
use leader_tests::{Server, at_once, elector_at, lead};

use crate::steps::{LIMIT, store};

const KEY: &str = "partner:rate";

const fn token(number: u64) -> FencingToken {
    FencingToken::new(number)
}

async fn fenced(server: &Server) -> FencedKey {
    store(server).await.fenced_key(KEY)
}

fn failure(written: Result<(), FencedError<StoreError>>) -> StoreError {
    match written {
        Err(FencedError::Resource(error)) => error,
        other => panic!("not a failure: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_a_fenced_resource() {
    let server = Server::start().await;
    let key = fenced(&server).await;
    check_fenced_resource(&key, |number| number.to_string().into_bytes()).await;
}

#[tokio::test]
async fn g03_a_stale_write_is_refused_with_both_numbers_and_the_successors_value_stands() {
    let server = Server::start().await;
    let connect = async || {
        let builder = elector_at(server.url()).command_timeout(LIMIT);
        builder.connect().await.unwrap()
    };
    let (a, b) = (connect().await, connect().await);
    let first = lead(&a, "x", &at_once()).await;
    let (old, key) = (first.fence(), a.store().fenced_key(KEY));
    key.set(old, "of the first").await.unwrap();

    b.force_release("x").await.unwrap();
    let second = lead(&b, "x", &at_once()).await;
    let successors = b.store().fenced_key(KEY);
    successors
        .set(second.fence(), "of the second")
        .await
        .unwrap();

    let refused = key.set(old, "late").await.unwrap_err();
    let (presented, seen) = (old, second.fence());
    assert_eq!(refused.stale(), Some(StaleFence { presented, seen }));
    let value = key.get().await.unwrap().expect("it was written");
    assert_eq!(value.value(), b"of the second");
    assert_eq!(value.fence(), second.fence());
}

#[tokio::test]
async fn what_was_written_is_read_whatever_its_bytes() {
    let server = Server::start().await;
    let key = fenced(&server).await;
    assert_eq!(key.get().await.unwrap(), None);
    let every: Vec<u8> = (0..=255).collect();
    let large = every.repeat(4097);
    for value in [
        &every[..],
        &large[..],
        b"",
        b"12",
        b"1.5",
        b"\0",
        b"\xff",
        b"+OK\r\n",
        b"nan",
    ] {
        key.set(token(1), value).await.unwrap();
        let read = key.get().await.unwrap().expect("it was written");
        assert_eq!(read.value(), value);
        assert!(!format!("{read:?}").contains("12,"), "{read:?}");
        assert_eq!(read.into_value(), value);
    }
    key.set(token(u64::MAX), "last").await.unwrap();
    assert_eq!(key.get().await.unwrap().unwrap().fence(), token(u64::MAX));
    // As people read it.
    assert_eq!(server.command(&["HGET", KEY, "value"]).await.text(), "last");
}

#[tokio::test]
async fn an_expiry_is_that_of_the_last_write_and_takes_the_fence_along() {
    let server = Server::start().await;
    let key = fenced(&server).await;
    let ttl = async || server.command(&["PTTL", KEY]).await.integer();
    key.set_expiring(token(5), "a", Duration::from_secs(60))
        .await
        .unwrap();
    assert!((1..=60_000).contains(&ttl().await));
    key.set(token(5), "b").await.unwrap();
    assert_eq!(ttl().await, -1);
    key.set_expiring(token(5), "c", Duration::MAX)
        .await
        .unwrap();
    assert!(ttl().await > 3_000_000_000_000);
    key.set_expiring(token(5), "d", Duration::ZERO)
        .await
        .unwrap();
    leader_tests::until("the key has expired", Duration::from_secs(5), async || {
        ttl().await == -2
    })
    .await;
    // As documented: what the server has forgotten keeps nobody out.
    key.set(token(1), "e").await.unwrap();
    server.command(&["FLUSHALL"]).await;
    assert_eq!(key.get().await.unwrap(), None);
}

#[tokio::test]
async fn something_else_at_the_key_is_an_error_that_names_it_and_is_left_alone() {
    let server = Server::start().await;
    let key = fenced(&server).await;
    for (made, read) in [
        (&["SET", KEY, "theirs"][..], &["GET", KEY][..]),
        (&["HSET", KEY, "rate", "theirs"], &["HGET", KEY, "rate"]),
        (&["HSET", KEY, "fence", "theirs"], &["HGET", KEY, "fence"]),
        (
            &[
                "HSET",
                KEY,
                "fence",
                "99999999999999999999999",
                "value",
                "theirs",
            ],
            &["HGET", KEY, "value"],
        ),
    ] {
        server.command(&["DEL", KEY]).await;
        server.command(made).await;
        for error in [
            failure(key.set(token(1), "ours").await),
            key.get().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), BackendKind::WrongType, "{made:?}: {error}");
            assert!(!error.may_have_run(), "{error}");
            let told = error.to_string();
            assert!(
                told.contains("`partner:rate`") && told.contains("another key"),
                "{told}"
            );
        }
        assert!(
            server.command(read).await.text().contains("9999")
                || server.command(read).await.text() == "theirs"
        );
    }
}

#[tokio::test]
async fn a_user_needs_what_the_documentation_says_and_no_more() {
    let rules = "app on >pw resetkeys ~partner:* resetchannels -@all +evalsha +eval +hget +hmget +hset +exists \
                 +pexpire +persist +hello +ping +client|id +info";
    let server = Server::builder().user(rules).start().await;
    let url = server.url_for("app", "pw");
    let store = RedisElector::builder()
        .url(url)
        .connect_store()
        .await
        .unwrap();
    let key = store.fenced_key(KEY);
    key.set(token(1), "a").await.unwrap();
    key.set_expiring(token(1), "b", Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(key.get().await.unwrap().unwrap().value(), b"b");
    let denied = failure(store.fenced_key("other").set(token(1), "a").await);
    assert_eq!(denied.kind(), BackendKind::Denied, "{denied}");
}

#[tokio::test]
async fn a_server_that_is_gone_full_or_read_only_says_so() {
    let server = Server::start().await;
    let store = store(&server).await;
    let key = store.fenced_key(KEY);
    key.set(token(2), "a").await.unwrap();

    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let full = failure(key.set(token(2), "b").await);
    assert_eq!(full.kind(), BackendKind::OutOfMemory, "{full}");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;

    server.command(&["SCRIPT", "FLUSH"]).await;
    key.set(token(2), "c").await.unwrap();

    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let replica = failure(key.set(token(2), "d").await);
    assert_eq!(replica.kind(), BackendKind::ReadOnly, "{replica}");
    server.command(&["REPLICAOF", "NO", "ONE"]).await;

    let value = key.get().await.unwrap().expect("it was written");
    assert_eq!(value.value(), b"c");
    server.kill().await;
    let gone = failure(key.set(token(2), "e").await);
    assert!(gone.kind().is_transient(), "{gone}");

    store.close().await;
    assert!(key.get().await.is_err());
}
