//! What cannot be honoured is refused before the first grant.

use std::time::Duration;

use leader_core::{BackendKind, ElectorExt, LeaderError, LeaseOptions};
use leader_redis::RedisElectorBuilder;
use leader_tests::{Reply, Server, ServerBuilder};

use crate::steps::*;

/// A server that writes down what it executes, at once.
fn persistent() -> ServerBuilder {
    let line = ["--appendonly", "yes", "--appendfsync", "always"];
    line.into_iter().fold(Server::builder(), ServerBuilder::arg)
}

async fn refused(builder: RedisElectorBuilder) -> LeaderError {
    match builder.connect().await {
        Ok(elector) => panic!("connected: {elector:?}"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn numbers_that_mean_nothing_are_refused() {
    let nobody = elector_at("redis://127.0.0.1:1");
    let error = refused(nobody.replica_ack(0, SOON)).await;
    assert_eq!(
        error.to_string(),
        "invalid option `replica_ack`: it asks for none; let at least one replica acknowledge, or leave it out"
    );
    for limit in [
        Duration::ZERO,
        Duration::from_micros(999),
        Duration::from_secs(61),
        Duration::MAX,
    ] {
        let nobody = elector_at("redis://127.0.0.1:1");
        let error = refused(nobody.replica_ack_on_disk(1, limit)).await;
        assert!(
            matches!(
                &error,
                LeaderError::InvalidOptions {
                    option: "replica_ack_on_disk",
                    ..
                }
            ),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_user_that_may_not_wait_is_told_so_at_once() {
    let server = Server::builder()
        .user("app on >pw ~* &* +@all -wait")
        .start()
        .await;
    let builder = elector_at(&server.url_for("app", "pw")).replica_ack(1, SOON);
    let error = refused(builder).await;
    assert!(
        matches!(
            &error,
            LeaderError::Backend {
                kind: BackendKind::Denied,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("'wait'"), "{error}");
}

#[tokio::test]
async fn acknowledged_on_disk_needs_a_server_that_can() {
    let primary = persistent().start().await;
    let on_disk =
        |server: &Server| elector_at(&server.url()).replica_ack_on_disk(1, Duration::from_secs(5));
    let has_it = primary
        .command(&["COMMAND", "INFO", "waitaof"])
        .await
        .array()[0]
        != Reply::Nil;
    if !has_it {
        let error = refused(on_disk(&primary)).await;
        assert!(
            error
                .to_string()
                .contains("no `WAITAOF`; it came with Redis 7.2"),
            "{error}"
        );
        return;
    }
    let forgetful = Server::start().await;
    let error = refused(on_disk(&forgetful)).await;
    assert!(
        error.to_string().contains("appendonly is disabled"),
        "{error}"
    );

    let builder = persistent().replica_of(&primary);
    let replica = builder.start().await;
    replica.until_in_sync_with(&primary).await;
    let store = on_disk(&primary)
        .connect_store()
        .await
        .expect("the server answers");
    candidate_for("x").wins(&store).await;
    assert!(primary.command_calls("waitaof").await >= 2);

    replica
        .command(&["CONFIG", "SET", "appendonly", "no"])
        .await;
    let hasty = elector_at(&primary.url()).replica_ack_on_disk(1, SOON);
    let hasty = hasty.connect_store().await.expect("the server answers");
    let error = candidate_for("y").claim(&hasty).await.unwrap_err();
    assert_eq!(error.kind(), BackendKind::TooFewReplicas);
    assert!(
        error.to_string().contains("acknowledged on disk"),
        "{error}"
    );
}

#[tokio::test]
async fn a_user_of_the_readmes_rule_and_its_addition_may_do_all_of_it() {
    let readme = include_str!("../../../README.md");
    let line = |words: &str| {
        let line = readme.lines().find(|line| line.contains(words));
        line.unwrap_or_else(|| panic!("the README has no `{words}`"))
    };
    let addition = line("with `replica_ack`");
    let addition = addition.split('`').nth(1).expect("it stands in ticks");
    let mut rule = vec!["ACL", "SETUSER"];
    rule.extend(line("user leader on ").split(' ').skip(1));
    rule.extend(addition.split(' '));
    let pair = Pair::start().await;
    pair.primary.command(&rule).await;

    let url = pair.primary.url_for("leader", "secret");
    let elector = elector_at(&url).replica_ack(1, LIMIT).connect().await;
    let elector = elector.expect("the user may connect");
    let options = LeaseOptions::builder().lease(LONG).build().expect("valid");
    let lease = elector.try_acquire("invoice-close", &options).await;
    let lease = lease.expect("the user may").expect("nobody else leads");
    lease.extend(LONG).await.expect("acknowledged");
    lease.release().await.expect("released");
}
