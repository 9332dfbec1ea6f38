//! A cluster keeps every promise of the trait: the suite of one server, unchanged, each case with keys of its own.

use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use leader_core::testing::conformance;
use leader_redis::RedisStore;
use leader_tests::Cluster;

use super::builder;

macro_rules! cases {
    (() $($topic:ident { $($case:ident)* })*) => {
        /// Each case by its name, boxed: all together are too much for a stack.
        const CASES: &[(&str, Case)] = &[$($((stringify!($case), |store| {
            conformance::run(stringify!($case), store, conformance::$case(store)).boxed_local()
        })),*),*];
    };
}

type Case = for<'a> fn(&'a RedisStore) -> LocalBoxFuture<'a, ()>;

leader_core::__conformance_cases!([cases]);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_keeps_every_promise() {
    let cluster = Cluster::start().await;
    for (name, case) in CASES {
        let store = builder(&cluster, "suite")
            .key_prefix(*name)
            .command_timeout(Duration::from_secs(5))
            .connect_store();
        case(&store.await.expect("the cluster answers")).await;
    }
}
