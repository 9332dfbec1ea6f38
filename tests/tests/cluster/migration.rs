//! h03: a slot goes from one node to another while somebody waits, leads, or lets go.

use std::time::Duration;

use leader_core::ElectorExt;
use leader_tests::{Cluster, at_once, is_skipped, lead, options, patient, waiting};

use super::{candidate, record, until_listened};

const NAME: &str = "invoice-close";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_waiter_is_woken_after_the_slot_has_moved() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    let held = lead(&a, NAME, &patient()).await;
    let fence = held.fence();
    let waiter = tokio::spawn(async move {
        let lease = lead(&b, NAME, &patient()).await;
        (lease.fence(), lease)
    });
    until_listened(&cluster).await;

    cluster.migrate(&record(NAME)).await;
    held.release().await.expect("the new owner answers");
    let (later, _lease) = waiter
        .await
        .expect("elected long before the lease would have ended");
    assert!(later > fence);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_lease_is_kept_while_its_slot_moves() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    let kept = options(waiting(Duration::ZERO, Duration::from_secs(6)).auto_extend(true));
    let lease = lead(&a, NAME, &kept).await;
    for _ in 0..2 {
        let migration = cluster.begin_migration(&record(NAME)).await;
        lease
            .extend(Duration::from_secs(6))
            .await
            .expect("still here");
        assert!(is_skipped(&b, NAME, &at_once()).await);
        migration.move_keys().await;
        lease
            .extend(Duration::from_secs(6))
            .await
            .expect("already there");
        assert!(is_skipped(&b, NAME, &at_once()).await);
        migration.finish().await;
        lease.extend(Duration::from_secs(6)).await.expect("moved");
        assert!(is_skipped(&b, NAME, &at_once()).await);
    }
    assert!(lease.is_valid());
    lease.release().await.expect("the node answers");
    drop(lead(&b, NAME, &at_once()).await);
}

/// How far the slot has moved when the leader lets go.
#[derive(Clone, Copy, Debug)]
enum Moved {
    Opened,
    Keys,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_release_half_way_through_a_move_frees_the_slot() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    for moved in [Moved::Opened, Moved::Keys] {
        let lease = lead(&a, NAME, &at_once()).await;
        let fence = lease.fence();
        let migration = cluster.begin_migration(&record(NAME)).await;
        if let Moved::Keys = moved {
            migration.move_keys().await;
        }
        lease.release().await.expect("one of the two nodes answers");
        let next = lead(&b, NAME, &at_once()).await;
        assert!(next.fence() > fence, "{moved:?}");
        migration.move_keys().await;
        migration.finish().await;
        assert!(is_skipped(&a, NAME, &at_once()).await, "{moved:?}");
        next.release().await.expect("the new owner answers");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_name_that_is_new_while_its_slot_moves() {
    let cluster = Cluster::start().await;
    let a = candidate(&cluster, "a").await;
    let b = candidate(&cluster, "b").await;
    let migration = cluster.begin_migration(&record(NAME)).await;
    let lease = lead(&a, NAME, &at_once()).await;
    assert!(is_skipped(&b, NAME, &at_once()).await);
    migration.finish().await;
    assert!(is_skipped(&b, NAME, &at_once()).await);
    lease.extend(Duration::from_secs(30)).await.expect("kept");
    let state = b.state(NAME).await.expect("seen");
    assert_eq!(state.holders().len(), 1);
}
