//! Many names live on many nodes, and everything that was one command on one server still works.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use leader_core::{BackendKind, ElectorExt, LeaderError, LeaderEvent};
use leader_redis::RedisElector;
use leader_tests::{Cluster, Server, at_once, is_skipped, lead, ms, options, waiting};

use super::{builder, candidate};

const NAMES: usize = 40;

fn names() -> Vec<String> {
    (0..NAMES).map(|number| format!("job:{number}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_on_every_node_are_extended_together() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    let kept = options(waiting(Duration::ZERO, Duration::from_secs(6)).auto_extend(true));
    let mut events = a.events();
    let names = names();
    let leases = join_all(names.iter().map(|name| lead(&a, name, &kept))).await;

    let mut extended = HashSet::new();
    while extended.len() < NAMES {
        match events.next().await.expect("events go on") {
            LeaderEvent::Extended { tenure, .. } => {
                extended.insert(tenure.name.to_string());
            }
            LeaderEvent::Elected { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    for node in &cluster.nodes()[..3] {
        assert!(
            node.command_calls("evalsha").await > 0,
            "{} has no lease",
            node.addr()
        );
    }
    for (name, lease) in names.iter().zip(&leases) {
        assert!(lease.is_valid(), "{name}");
        assert!(is_skipped(&b, name, &at_once()).await, "{name}");
    }
    for lease in leases {
        lease.release().await.expect("the node answers");
    }
    for name in &names {
        drop(lead(&b, name, &at_once()).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h04_scripts_are_forgotten_everywhere_between_any_two_steps() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let flush = async || cluster.everywhere(&["SCRIPT", "FLUSH"]).await;
    for name in names().iter().take(6) {
        let lease = lead(&a, name, &at_once()).await;
        flush().await;
        lease
            .extend(Duration::from_secs(30))
            .await
            .expect("extended");
        flush().await;
        assert_eq!(a.state(name).await.expect("seen").holders().len(), 1);
        flush().await;
        lease.release().await.expect("released");
        flush().await;
        drop(lead(&a, name, &at_once()).await);
        flush().await;
        a.force_release(name).await.expect("evicted");
        flush().await;
    }
}

fn kind_and_words(result: Result<RedisElector, LeaderError>) -> (BackendKind, String) {
    match result {
        Err(error @ LeaderError::Backend { kind, .. }) => (kind, format!("{error:?} {error}")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_is_asked_for_a_cluster_and_is_none_says_so() {
    let server = Server::builder().password("pa55").start().await;
    let url = server.url().replace("redis://", "redis-cluster://");
    let (_, words) = kind_and_words(RedisElector::connect(&url).await);
    assert!(words.contains("not part of a cluster"), "{words}");
    assert!(words.contains(&server.addr().to_string()), "{words}");
    assert!(!words.contains("pa55"), "{words}");

    let wrong = url.replace("pa55", "pa56");
    let (kind, words) = kind_and_words(RedisElector::connect(&wrong).await);
    assert_eq!(kind, BackendKind::Denied, "{words}");
    assert!(!words.contains("pa56"), "{words}");

    server.kill().await;
    let (kind, words) = kind_and_words(RedisElector::connect(&url).await);
    assert_eq!(kind, BackendKind::Unreachable, "{words}");
}

#[tokio::test]
async fn a_node_is_no_server_of_its_own() {
    let cluster = Cluster::start().await;
    let mut owners = BTreeMap::new();
    for name in names() {
        let owner = cluster.owner(&super::record(&name)).await;
        owners.insert(owner.port(), name);
    }
    let node = &cluster.nodes()[0];
    let a = RedisElector::connect(node.url()).await.expect("it answers");
    let elsewhere = owners.iter().find(|(port, _)| **port != node.port());
    let (_, name) = elsewhere.expect("names are spread");
    let error = a.try_acquire(name, &at_once()).await.unwrap_err();
    assert!(error.to_string().contains("redis-cluster://"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_named_may_be_gone() {
    let cluster = Cluster::start().await;
    let first = &cluster.nodes()[0];
    cluster.freeze(first).await;
    let a = builder(&cluster, "a")
        .command_timeout(ms(500))
        .connect()
        .await;
    let a = a.expect("the others know the way");
    let mut led = 0;
    for name in names() {
        led += usize::from(matches!(
            a.try_acquire(&name, &at_once()).await,
            Ok(Some(_))
        ));
        if led > 0 {
            return;
        }
    }
    panic!("no name is led, although two nodes answer");
}
