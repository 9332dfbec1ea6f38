//! Whoever cannot be led to a primary is told why, in time.

use std::time::Duration;

use leader_core::{BackendKind, LeaderError};
use leader_redis::{RedisElector, RedisElectorBuilder};
use leader_tests::{Sentinels, Server, at_once, lead};

async fn refused(builder: RedisElectorBuilder) -> (BackendKind, String) {
    match builder.connect().await {
        Err(error @ LeaderError::Backend { kind, .. }) => (kind, format!("{error:?} {error}")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_primary_that_is_not_found_is_an_error_that_says_why() {
    let all = Sentinels::start().await;
    let (_, words) = refused(RedisElector::builder().url(all.url_for("nobody"))).await;
    assert!(
        words.contains("no sentinel knows a primary `nobody`"),
        "{words}"
    );

    let with_password = all.url().replace("://", "://nobody:pa55@");
    let (kind, words) = refused(RedisElector::builder().url(with_password)).await;
    assert_eq!(kind, BackendKind::Denied, "{words}");
    assert!(!words.contains("pa55"), "{words}");

    for sentinel in all.sentinels() {
        sentinel.kill().await;
    }
    let (kind, words) = refused(RedisElector::builder().url(all.url())).await;
    assert_eq!(kind, BackendKind::Unreachable, "{words}");
    assert!(words.contains("no sentinel"), "{words}");
}

#[tokio::test]
async fn one_sentinel_that_answers_is_enough() {
    let all = Sentinels::start().await;
    all.sentinels()[0].kill().await;
    all.sentinels()[1].freeze().await;
    let builder = RedisElector::builder()
        .url(all.url())
        .command_timeout(Duration::from_secs(1));
    let a = builder.connect().await.expect("the third knows the way");
    drop(lead(&a, "invoice-close", &at_once()).await);
}

#[tokio::test]
async fn a_server_is_no_sentinel() {
    let server = Server::start().await;
    let url = format!(
        "redis-sentinel://{}?sentinelServiceName=mymaster",
        server.addr()
    );
    let (_, words) = refused(RedisElector::builder().url(url)).await;
    assert!(words.to_lowercase().contains("sentinel"), "{words}");
}
