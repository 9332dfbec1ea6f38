//! Waiters on a cluster are woken by messages, which stay at the node that has the name.

use leader_core::ElectorExt;
use leader_tests::{Cluster, lead, patient, until};

use super::{LIMIT, candidate, record};

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
    until("the waiter listens", LIMIT, async || {
        owner.command_calls("ssubscribe").await > 0
    })
    .await;
    until("the waiter sleeps", LIMIT, async || {
        owner.command_calls("hget").await > 0
    })
    .await;
    let before = cluster.command_calls("evalsha").await;
    held.release().await.expect("the node answers");
    let b = waiter
        .await
        .expect("elected long before the lease would have ended");

    // One release, one claim, one release.
    assert_eq!(cluster.command_calls("evalsha").await - before, 3);
    assert_eq!(cluster.command_calls("spublish").await, 2);
    assert_eq!(cluster.command_calls("publish").await, 0);
    until("nobody is subscribed any more", LIMIT, async || {
        let channels = owner.command(&["PUBSUB", "SHARDCHANNELS"]).await;
        channels.array().is_empty()
    })
    .await;
    b.shutdown().await;
}
