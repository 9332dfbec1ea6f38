//! With a replica that acknowledges, the store keeps every promise of the trait, as without.

use std::time::Duration;

use leader_redis::RedisStore;

use crate::steps::{Pair, store as store_on};

async fn store() -> (RedisStore, Pair) {
    let pair = Pair::start().await;
    let store = store_on(&pair, Duration::from_secs(5)).await;
    (store, pair)
}

leader_core::conformance_tests!(store = store());
