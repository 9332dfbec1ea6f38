//! h03: the primary dies or freezes, and the sentinels make another, while somebody waits, leads, or lets go.

use std::time::Duration;

use leader_core::{ElectorExt, LeaderError};
use leader_tests::{Sentinels, Server, at_once, is_skipped, lead, options, until, waiting};

use super::{LIMIT, candidate};

const NAME: &str = "invoice-close";

/// How the primary goes.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Frozen,
}

async fn until_replicated(primary: &Server) {
    let replicas = primary.command(&["WAIT", "2", "5000"]).await;
    assert_eq!(replicas.integer(), 2);
}

/// The leader leads on, since its grant was replicated; a waiter waits on, and is elected when the leader lets go.
async fn the_lease_goes_on(end: End) {
    let all = Sentinels::start().await;
    let a = candidate(&all, "a").await;
    let b = candidate(&all, "b").await;
    let kept = options(waiting(Duration::ZERO, Duration::from_secs(25)).auto_extend(true));
    let lease = lead(&a, NAME, &kept).await;
    let fence = lease.fence();
    let old = all.primary().await;
    until_replicated(old).await;
    let long = options(waiting(Duration::from_secs(60), Duration::from_secs(120)));
    let waiter = tokio::spawn(async move {
        let lease = lead(&b, NAME, &long).await;
        (lease.fence(), lease)
    });
    until("the waiter listens", LIMIT, async || {
        let channels = old.command(&["PUBSUB", "CHANNELS", "leader:*"]).await;
        !channels.array().is_empty()
    })
    .await;

    match end {
        End::Killed => old.kill().await,
        End::Frozen => old.freeze().await,
    }
    let new = all.until_replaced(old).await;
    if let End::Frozen = end {
        old.thaw().await;
        all.until_demoted(old).await;
    }
    until("the lease can be extended again", LIMIT, async || {
        // So long that the waiter is not elected because a lease ran out.
        match lease.extend(Duration::from_secs(120)).await {
            Ok(()) => true,
            Err(LeaderError::Backend { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    })
    .await;
    assert!(lease.is_valid());
    assert!(!waiter.is_finished());
    assert!(new.command_calls("evalsha").await + new.command_calls("eval").await > 0);
    let c = candidate(&all, "c").await;
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
async fn h03_a_primary_freezes_and_comes_back_as_a_replica() {
    the_lease_goes_on(End::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h03_a_primary_is_killed_while_the_leader_lets_go() {
    let all = Sentinels::start().await;
    let a = candidate(&all, "a").await;
    let b = candidate(&all, "b").await;
    let lease = lead(&a, NAME, &at_once()).await;
    let fence = lease.fence();
    let old = all.primary().await;
    until_replicated(old).await;
    old.kill().await;
    // It goes on in the background until somebody takes it.
    drop(lease);
    let patient = options(waiting(Duration::from_secs(45), Duration::from_secs(60)));
    let next = lead(&b, NAME, &patient).await;
    assert!(next.fence() > fence);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_ends_during_a_failover_is_an_error_and_not_skipped() {
    let all = Sentinels::start().await;
    let a = candidate(&all, "a").await;
    all.primary().await.freeze().await;
    let short = options(waiting(Duration::from_millis(200), Duration::from_secs(60)));
    let error = a
        .try_acquire(NAME, &short)
        .await
        .expect_err("nobody answers");
    assert!(
        matches!(error, LeaderError::Backend { kind, .. } if kind.is_transient()),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_primary_that_was_not_told_to_let_go_is_left() {
    let all = Sentinels::start().await;
    let a = candidate(&all, "a").await;
    drop(lead(&a, NAME, &at_once()).await);
    let new = all.hand_over().await;
    until("the new primary is led on", LIMIT, async || {
        a.try_acquire(NAME, &at_once())
            .await
            .is_ok_and(|lease| lease.is_some())
    })
    .await;
    assert!(new.command_calls("eval").await > 0);
}
