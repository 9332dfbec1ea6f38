//! The Redis store keeps every promise of the trait: the suite that the local store passes, unchanged.

use leader_redis::RedisStore;
use leader_tests::{Server, elector_at};

async fn store() -> (RedisStore, Server) {
    let server = Server::start().await;
    let builder = elector_at(server.url()).command_timeout(std::time::Duration::from_secs(5));
    match builder.connect_store().await {
        Ok(store) => (store, server),
        Err(error) => panic!("no store on {}: {error}", server.addr()),
    }
}

leader_core::conformance_tests!(store = store());
