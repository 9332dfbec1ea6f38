//! A primary behind sentinels as a store: it is killed, frozen and replaced.

mod acknowledged;
mod conformance;
mod connect;
mod failover;

use std::time::Duration;

use leader_redis::{RedisElector, RedisElectorBuilder};
use leader_tests::{Sentinels, elector_at};

/// A shared machine stalls for longer than servers do.
const LIMIT: Duration = Duration::from_secs(30);

fn builder(all: &Sentinels, node_id: &str) -> RedisElectorBuilder {
    elector_at(all.url())
        .node_id(node_id)
        .command_timeout(Duration::from_secs(1))
}

async fn candidate(all: &Sentinels, node_id: &str) -> RedisElector {
    match builder(all, node_id).connect().await {
        Ok(elector) => elector,
        Err(error) => panic!("no candidate on {all:?}: {error}"),
    }
}
