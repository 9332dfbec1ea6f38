//! h03: the primary that has a name's record dies, freezes, or hands over, while somebody waits, leads, or lets go.

use std::time::Duration;

use leader_core::LeaderError;
use leader_tests::{Cluster, at_once, is_skipped, lead, options, patient, until, waiting};

use super::{LIMIT, candidate, record, until_listened};

const NAME: &str = "invoice-close";

/// How the primary goes.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Frozen,
    HandedOver,
}

/// The leader leads on, since its grant was replicated; a waiter waits on, and is elected when the leader lets go.
async fn the_lease_goes_on(end: End) {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    let kept = options(waiting(Duration::ZERO, Duration::from_secs(20)).auto_extend(true));
    let lease = lead(&a, NAME, &kept).await;
    let fence = lease.fence();
    let old = cluster.owner(&record(NAME)).await;
    old.command(&["WAIT", "1", "5000"]).await;
    let long = options(waiting(Duration::from_secs(60), Duration::from_secs(120)));
    let waiter = tokio::spawn(async move {
        let lease = lead(&b, NAME, &long).await;
        (lease.fence(), lease)
    });
    until_listened(&cluster).await;

    match end {
        End::Killed => {
            cluster.kill(old).await;
            cluster.until_taken_over(&record(NAME), old).await;
        }
        End::Frozen => {
            cluster.freeze(old).await;
            cluster.until_taken_over(&record(NAME), old).await;
        }
        End::HandedOver => {
            cluster.fail_over(old, &record(NAME)).await;
        }
    }
    until(
        "the lease can be extended again",
        LIMIT,
        async || // So long that the waiter is not elected because a lease ran out.
        match lease.extend(Duration::from_secs(120)).await {
            Ok(()) => true,
            Err(LeaderError::Backend { .. }) => false,
            Err(other) => panic!("{other}"),
        },
    )
    .await;
    if let End::Frozen = end {
        // What it still believes is of no consequence.
        cluster.thaw(old).await;
    }
    assert!(lease.is_valid());
    assert!(!waiter.is_finished());
    let c = candidate(&cluster, "c").await;
    assert!(is_skipped(&c, NAME, &at_once()).await);

    lease.release().await.expect("the new primary answers");
    let (later, _lease) = waiter.await.expect("elected");
    assert!(later > fence);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_primary_is_killed_while_somebody_leads() {
    the_lease_goes_on(End::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_primary_freezes_while_somebody_leads() {
    the_lease_goes_on(End::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_primary_hands_over_while_somebody_leads() {
    the_lease_goes_on(End::HandedOver).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_primary_is_killed_while_the_leader_lets_go() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    let lease = lead(&a, NAME, &at_once()).await;
    let fence = lease.fence();
    let old = cluster.owner(&record(NAME)).await;
    old.command(&["WAIT", "1", "5000"]).await;
    cluster.kill(old).await;
    // It goes on in the background until somebody takes it.
    drop(lease);
    let next = lead(
        &b,
        NAME,
        &options(waiting(Duration::from_secs(40), Duration::from_secs(60))),
    )
    .await;
    assert!(next.fence() > fence);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_primary_costs_no_lease_on_the_others() {
    let cluster = Cluster::start().await;
    cluster
        .everywhere(&["CONFIG", "SET", "cluster-require-full-coverage", "no"])
        .await;
    let a = candidate(&cluster, "a").await;
    let dead = cluster.owner(&record(NAME)).await;
    let mut other = None;
    for name in (0..50).map(|number| format!("job:{number}")) {
        if cluster.owner(&record(&name)).await.port() != dead.port() {
            other = Some(name);
            break;
        }
    }
    let other = other.expect("names are spread");
    let held_there = lead(&a, NAME, &patient()).await;
    // No replica may take over: the slots stay without an owner.
    let replica = cluster.replica_of(dead).await;
    cluster.kill(replica).await;
    let kept = options(waiting(Duration::ZERO, Duration::from_secs(3)).auto_extend(true));
    let lease = lead(&a, &other, &kept).await;
    cluster.kill(dead).await;
    // Twice as long as it would live unextended, with somebody who keeps asking the dead node.
    for _ in 0..12 {
        let asked = held_there.extend(Duration::from_secs(60)).await;
        assert!(asked.is_err());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(lease.is_valid());
    lease
        .extend(Duration::from_secs(3))
        .await
        .expect("its node lives");
}
