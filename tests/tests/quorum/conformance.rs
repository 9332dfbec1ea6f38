//! Five servers keep every promise of the trait, as one does.

use std::time::Duration;

use leader_core::Quorum;
use leader_redis::RedisStore;

use crate::servers::Servers;

async fn store() -> (Quorum<RedisStore>, Servers) {
    let servers = Servers::start(5).await;
    let builder = servers.builder(Duration::from_secs(5));
    let store = builder.connect_store().await.expect("all answer");
    (store, servers)
}

leader_core::conformance_tests!(store = store());
