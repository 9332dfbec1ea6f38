//! `replica_ack` behind sentinels: whoever is primary has its replicas acknowledge.

use leader_tests::{Sentinels, lead, patient, until};

use super::{LIMIT, builder};

#[tokio::test]
async fn h01_the_replicas_of_whoever_is_primary_acknowledge() {
    let all = Sentinels::start().await;
    let candidate = builder(&all, "a").replica_ack(1, LIMIT);
    let candidate = candidate.connect().await.expect("the primary answers");
    let lease = lead(&candidate, "invoice-close", &patient()).await;
    assert!(all.primary().await.command_calls("wait").await > 0);

    let next = all.hand_over().await;
    next.reset_stats().await;
    until(
        "the new primary's replicas acknowledge",
        LIMIT,
        async || lease.extend(LIMIT * 2).await.is_ok(),
    )
    .await;
    assert!(next.command_calls("wait").await > 0);
    assert!(lease.is_valid());
}
