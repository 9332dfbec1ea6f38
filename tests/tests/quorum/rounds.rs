//! h05: how many rounds a run takes, counted by the servers; and what they propose, when all have forgotten.

use futures::future::join_all;
use leader_tests::{lead, until};

use crate::servers::*;

/// The first of a name takes a round more, and so may one whose predecessor's release was slow to be answered.
#[tokio::test]
async fn h02_a_run_is_one_claim_and_one_release_on_each_server() {
    let servers = Servers::start(5).await;
    let candidate = servers.candidate("a").await;
    until("no number is written back", LIMIT, async || {
        join_all(servers.0.iter().map(|server| server.reset_stats())).await;
        leads_and_lets_go(&candidate, "x").await;
        let counted = servers.0.iter();
        let counted = counted.map(|server| server.command_calls("evalsha"));
        join_all(counted).await == [2; 5]
    })
    .await;
}

#[tokio::test]
async fn g02_servers_that_have_all_forgotten_go_on_above_what_they_granted() {
    let servers = Servers::start(5).await;
    let candidates = [servers.candidate("a").await, servers.candidate("b").await];
    let mut last = None;
    for round in 0..20 {
        let lease = lead(&candidates[round % 2], "x", &once()).await;
        let fence = Some(lease.fence());
        assert!(fence > last, "{last:?} was followed by {fence:?}");
        last = fence;
        lease.release().await.expect("a majority releases");
        if round % 3 == 0 {
            join_all(servers.0.iter().map(|server| server.command(&["FLUSHALL"]))).await;
        }
    }
}
