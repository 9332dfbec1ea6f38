//! Waiters on a cluster are woken by messages, which stay at the node that has the name.

use leader_core::ElectorExt;
use leader_tests::{Cluster, lead, patient, until};

use super::{LIMIT, candidate, record, until_listened};

const NAME: &str = "invoice-close";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_told_by_a_message_of_the_slot_alone() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    let held = lead(&a, NAME, &patient()).await;
    let waiter = tokio::spawn(async move {
        let lease = lead(&b, NAME, &patient()).await;
        lease.release().await.expect("the node answers");
        b
    });
    let owner = cluster.owner(&record(NAME)).await;
    until_listened(&cluster).await;
    let before = cluster.command_calls("evalsha").await;
    held.release().await.expect("the node answers");
    let b = waiter
        .await
        .expect("elected long before the lease would have ended");

    // One release, one claim, one release.
    assert_eq!(cluster.command_calls("evalsha").await - before, 3);
    let (sharded, plain) = (
        cluster.command_calls("spublish").await,
        cluster.command_calls("publish").await,
    );
    if cluster.has_sharded_messages().await {
        assert_eq!((sharded, plain), (2, 0));
    } else {
        assert_eq!(sharded, 0);
        assert!(plain > 0, "the waiter was told");
    }
    until("nobody is subscribed any more", LIMIT, async || {
        let clients = owner.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).await;
        clients.text().is_empty()
    })
    .await;
    b.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_for_which_nobody_waits_is_told_to_no_other_node() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    for name in (0..20).map(|number| format!("job:{number}")) {
        drop(lead(&a, &name, &patient()).await);
    }
    a.shutdown().await;
    assert_eq!(cluster.command_calls("publish").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stops_waiting_after_the_slot_has_moved_still_hears_of_other_names() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    let old = cluster.owner(&record(NAME)).await;
    let mut other = None;
    for name in (0..100).map(|number| format!("job:{number}")) {
        if cluster.owner(&record(&name)).await.port() == old.port() {
            other = Some(name);
            break;
        }
    }
    let other = other.expect("names are spread");
    let _held = lead(&a, NAME, &patient()).await;
    let waiting = b.clone();
    let waiter = tokio::spawn(async move { lead(&waiting, NAME, &patient()).await });
    until_listened(&cluster).await;
    cluster.migrate(&record(NAME)).await;
    waiter.abort();

    let held = lead(&a, &other, &patient()).await;
    let reads = old.command_calls("hget").await;
    let waiting = b.clone();
    let name = other.clone();
    let waiter = tokio::spawn(async move { lead(&waiting, &name, &patient()).await });
    until("the waiter listens", LIMIT, async || {
        old.command_calls("hget").await > reads
    })
    .await;
    held.release().await.expect("the node answers");
    drop(
        waiter
            .await
            .expect("elected long before the lease would have ended"),
    );
}
