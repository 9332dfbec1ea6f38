//! On a cluster, the README's rule and its addition suffice.

use std::time::Duration;

use leader_core::ElectorExt;
use leader_redis::RedisElector;
use leader_tests::{Cluster, Reply, lead, patient};

use super::{record, until_listened};

const README: &str = include_str!("../../../README.md");
const NAME: &str = "invoice-close";

/// The line of the README that has `words`.
fn line(words: &str) -> &'static str {
    let line = README.lines().find(|line| line.contains(words));
    line.unwrap_or_else(|| panic!("the README has no `{words}`"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_of_the_rule_and_its_addition_can_do_everything() {
    let cluster = Cluster::start().await;
    let addition = line("`+cluster").replace('\\', "");
    let addition = addition.split('`').nth(1).expect("it stands in ticks");
    let sharded = cluster.has_sharded_messages().await;
    let known =
        |rule: &&str| sharded || !["+ssubscribe", "+sunsubscribe", "+spublish"].contains(rule);
    let mut rule = vec!["ACL", "SETUSER"];
    rule.extend(line("user leader ").split(' ').skip(1));
    rule.extend(addition.split(' ').filter(known));
    cluster.everywhere(&rule).await;

    let url = cluster.url().replace("://", "://leader:secret@");
    let candidate = async || {
        let builder = RedisElector::builder().url(&url);
        let builder = builder.command_timeout(Duration::from_secs(1));
        builder.connect().await.expect("the user may connect")
    };
    let (a, b) = (candidate().await, candidate().await);
    let held = lead(&a, NAME, &patient()).await;
    let waiter = tokio::spawn(async move {
        drop(lead(&b, NAME, &patient()).await);
        b
    });
    until_listened(&cluster).await;
    let migration = cluster.begin_migration(&record(NAME)).await;
    migration.move_keys().await;
    held.extend(Duration::from_secs(60))
        .await
        .expect("extended");
    migration.finish().await;
    assert_eq!(a.state(NAME).await.expect("seen").holders().len(), 1);
    held.release().await.expect("released");
    waiter.await.expect("elected").shutdown().await;
    a.force_release(NAME).await.expect("evicted");
    for node in cluster.up() {
        let log = node.command(&["ACL", "LOG"]).await;
        for entry in log.array() {
            let fields: Vec<String> = entry.array().iter().take(8).map(Reply::text).collect();
            let object = fields.chunks(2).find(|field| field[0] == "object");
            let object = object.map(|field| field[1].clone()).unwrap_or_default();
            // What the client asks for as it connects, and goes on without.
            assert!(
                object.starts_with("client"),
                "refused at {}: {object}",
                node.addr()
            );
        }
    }
}
