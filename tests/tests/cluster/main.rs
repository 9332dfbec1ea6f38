//! A Redis Cluster as a store: its slots move, its nodes die.

mod conformance;
mod failover;
mod fenced;
mod migration;
mod permissions;
mod shared;
mod spread;
mod wakeups;

use std::time::Duration;

use leader_redis::{RedisElector, RedisElectorBuilder};
use leader_tests::{Cluster, elector_at, until};

/// A shared machine stalls for longer than a cluster does.
const LIMIT: Duration = Duration::from_secs(20);

fn builder(cluster: &Cluster, node_id: &str) -> RedisElectorBuilder {
    elector_at(cluster.url())
        .node_id(node_id)
        .command_timeout(Duration::from_secs(1))
}

async fn candidate(cluster: &Cluster, node_id: &str) -> RedisElector {
    match builder(cluster, node_id).connect().await {
        Ok(elector) => elector,
        Err(error) => panic!("no candidate on {cluster:?}: {error}"),
    }
}

/// The key of a name's record, for the harness.
fn record(name: &str) -> String {
    format!("leader:{{{name}}}:lease")
}

/// Waits until somebody on the cluster listens, and has made sure that it missed nothing before.
async fn until_listened(cluster: &Cluster) {
    until("the waiter listens", LIMIT, async || {
        let sharded = cluster.command_calls("ssubscribe").await;
        let plain = cluster.command_calls("subscribe").await;
        sharded + plain > 0 && cluster.command_calls("hget").await > 0
    })
    .await;
}
