//! The service's own fred client of a cluster.

use std::time::Duration;

use futures::future::join_all;
use leader_core::ElectorExt;
use leader_redis::RedisElector;
use leader_redis::fred::clients::Client;
use leader_redis::fred::interfaces::ClientLike;
use leader_redis::fred::types::Builder;
use leader_redis::fred::types::config::{Config, ReconnectPolicy};
use leader_tests::{Cluster, at_once, is_skipped, lead, options, patient, waiting};

use super::{candidate, record, until_listened};

const NAME: &str = "invoice-close";

async fn client(cluster: &Cluster) -> Client {
    let config = Config::from_url(&cluster.url()).expect("a cluster's URL");
    let client = Builder::from_config(config)
        .set_policy(ReconnectPolicy::new_constant(0, 50))
        .build()
        .expect("a client");
    client.init().await.expect("the cluster answers");
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clients_cluster_is_a_store_as_well() {
    let cluster = Cluster::start().await;
    let client = client(&cluster).await;
    let a = RedisElector::builder()
        .client(client.clone())
        .command_timeout(Duration::from_secs(1))
        .connect()
        .await
        .expect("the client is connected");
    let b = candidate(&cluster, "b").await;

    let names: Vec<String> = (0..20).map(|number| format!("job:{number}")).collect();
    let kept = options(waiting(Duration::ZERO, Duration::from_secs(6)).auto_extend(true));
    let leases = join_all(names.iter().map(|name| lead(&a, name, &kept))).await;
    for lease in &leases {
        lease
            .extend(Duration::from_secs(8))
            .await
            .expect("extended");
    }

    // The slot moves, and a waiter over the shared client is woken by another's release.
    let held = lead(&b, NAME, &patient()).await;
    let waiting_one = a.clone();
    let waiter = tokio::spawn(async move { lead(&waiting_one, NAME, &patient()).await });
    until_listened(&cluster).await;
    cluster.migrate(&record(NAME)).await;
    held.release().await.expect("the new owner answers");
    let lease = waiter.await.expect("elected");
    assert!(is_skipped(&b, NAME, &at_once()).await);
    lease.release().await.expect("the new owner answers");

    drop(leases);
    a.shutdown().await;
    assert!(client.is_connected());
    client.quit().await.expect("it was not closed before");
}
