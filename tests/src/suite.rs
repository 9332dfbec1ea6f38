//! The conformance suite as a list, for stores whose servers are too many to start anew for each case.

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use leader_core::testing::conformance;
use leader_redis::{RedisElectorBuilder, RedisStore};

/// A case of the suite, run on a store that it closes at its end.
type Case = for<'a> fn(&'a RedisStore) -> LocalBoxFuture<'a, ()>;

macro_rules! cases {
    (() $($topic:ident { $($case:ident)* })*) => {
        /// Each by its name, boxed: all together are too much for a stack.
        const CASES: &[(&str, Case)] = &[$($((stringify!($case), |store| {
            conformance::run(stringify!($case), store, conformance::$case(store)).boxed_local()
        })),*),*];
    };
}

leader_core::__conformance_cases!([cases]);

/// Holds a store to every promise of the trait. Each case has a store of its own, from `builder`, and keys of its own.
///
/// # Panics
///
/// When a promise is broken, in the words of the case, or there is no store.
pub async fn every_promise_is_kept(builder: impl Fn() -> RedisElectorBuilder) {
    for (name, case) in CASES {
        match builder().key_prefix(*name).connect_store().await {
            Ok(store) => case(&store).await,
            Err(error) => panic!("no store for {name}: {error}"),
        }
    }
}
