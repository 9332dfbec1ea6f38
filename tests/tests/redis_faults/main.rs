//! Scenarios on a real Redis whose network or server misbehaves: parts A, B, C, D and G, as far as they need that.

mod being_elected;
mod beyond;
mod holding;
mod letting_go;
mod refused;
mod woken;

use std::time::Duration;

use leader_core::ElectorExt;
use leader_redis::RedisElector;
use leader_tests::{
    Proxy, Server, at_once, connect_in_time, elector_at, lead, options, until, waiting,
};

/// Far longer than anything here takes, so that a slow machine is not taken for a broken library.
const LIMIT: Duration = Duration::from_secs(20);

const COMMAND: Duration = Duration::from_millis(500);

async fn connect(url: &str, node_id: &str) -> RedisElector {
    let builder = elector_at(url).node_id(node_id).command_timeout(COMMAND);
    connect_in_time(async || builder.clone().connect().await).await
}

/// A server, a candidate that reaches it through a proxy, and one that reaches it directly.
async fn behind_proxy() -> (Server, Proxy, RedisElector, RedisElector) {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let through = connect(&proxy.url(), "through").await;
    let direct = connect(&server.url(), "direct").await;
    (server, proxy, through, direct)
}

/// Options of a candidate whose last attempt is far beyond this test's patience: whoever waits for it within [`LIMIT`]
/// sees that it was told.
fn endless() -> leader_core::LeaseOptions {
    options(waiting(LIMIT * 10, LIMIT * 10))
}

/// Lets the server know the scripts, so that the next claim is one request.
async fn warm_up(elector: &RedisElector) {
    let lease = lead(elector, "warm-up", &at_once()).await;
    lease.release().await.unwrap();
}

async fn until_free(elector: &RedisElector, name: &str) {
    until("the slot is free", LIMIT, async || {
        elector
            .state(name)
            .await
            .is_ok_and(|state| state.holders().is_empty())
    })
    .await;
}
