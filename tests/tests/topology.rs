//! The harness's cluster and sentinels do what their verbs say.

use leader_tests::{Cluster, Sentinels};

#[tokio::test]
async fn a_cluster_moves_its_slots() {
    let cluster = Cluster::start().await;
    let old = cluster.owner("a").await;
    assert_eq!(old.command(&["SET", "a", "1"]).await.text(), "OK");

    let new = cluster.migrate("a").await;
    assert_ne!(new.port(), old.port());
    assert_eq!(new.command(&["GET", "a"]).await.text(), "1");
    let moved = old.command(&["GET", "a"]).await;
    assert!(
        moved.error().is_some_and(|e| e.starts_with("MOVED")),
        "{moved:?}"
    );
}

#[tokio::test]
async fn a_cluster_outlives_a_primary() {
    let cluster = Cluster::start().await;
    let old = cluster.owner("a").await;
    old.command(&["SET", "a", "1"]).await;
    old.command(&["WAIT", "1", "5000"]).await;

    cluster.kill(old).await;
    let new = cluster.until_taken_over("a", old).await;
    assert_eq!(new.command(&["GET", "a"]).await.text(), "1");
}

#[tokio::test]
async fn a_replica_is_promoted_by_hand_and_the_old_primary_follows_it() {
    let never = [("--cluster-replica-no-failover", "yes")];
    let cluster = Cluster::start_with(&never).await;
    let old = cluster.owner("a").await;
    old.command(&["SET", "a", "1"]).await;
    old.command(&["WAIT", "1", "5000"]).await;
    let replica = cluster.replica_of(old).await;

    cluster.kill(old).await;
    cluster.promote(replica).await;
    let new = cluster.until_taken_over("a", old).await;
    assert_eq!(new.port(), replica.port());
    cluster.restart(old).await;
    assert_eq!(cluster.replica_of(new).await.port(), old.port());
    assert_eq!(new.command(&["GET", "a"]).await.text(), "1");
    // And back, in agreement.
    assert_eq!(cluster.fail_over(new, "a").await.port(), old.port());
}

#[tokio::test]
async fn sentinels_replace_a_primary() {
    let all = Sentinels::start().await;
    let old = all.primary().await;
    old.freeze().await;
    let new = all.until_replaced(old).await;
    assert_eq!(new.command(&["SET", "a", "1"]).await.text(), "OK");

    old.thaw().await;
    all.until_demoted(old).await;
}
