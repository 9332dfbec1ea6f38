//! Part G of the scenarios: fencing tokens, on every store. A server that forgets is in `redis_store/claim.rs`, a fenced key
//! in `redis_store/fenced.rs`; a fenced table, and failovers, are in the package `leader-tests-postgres`.

use std::collections::BTreeSet;
use std::sync::Arc;

use leader_core::fencing::{FenceGate, StaleFence};
use leader_core::{ElectorExt, FencingToken};
use leader_tests::{World, at_once, lead, on_every_store, patient};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

on_every_store!(
    g01_ten_thousand_tenures_by_twenty_candidates_are_strictly_ordered,
    g03_a_leader_that_was_overtaken_is_kept_out_with_both_numbers,
);

async fn g01_ten_thousand_tenures_by_twenty_candidates_are_strictly_ordered<W: World>(world: W) {
    const CANDIDATES: usize = 20;
    const TENURES: usize = 10_000 / CANDIDATES;
    // In the order in which the tenures happened: each is written down by its holder.
    let log = Arc::new(Mutex::new(Vec::<FencingToken>::new()));
    // All twenty take turns, and a few of them contend at any time: enough to be overtaken in every way there is.
    let turns = Arc::new(Semaphore::new(4));
    let mut tasks = JoinSet::new();
    for candidate in 0..CANDIDATES {
        let elector = world.candidate(&format!("c{candidate}")).await;
        let (log, turns) = (log.clone(), turns.clone());
        tasks.spawn(async move {
            let options = patient();
            for _ in 0..TENURES {
                let _turn = turns.acquire().await.unwrap();
                elector
                    .run_if_leader("x", &options, async |lease| {
                        log.lock().await.push(lease.fence());
                    })
                    .await
                    .unwrap()
                    .expect("within the wait");
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let log = log.lock().await;
    assert_eq!(log.len(), CANDIDATES * TENURES);
    for pair in log.windows(2) {
        assert!(pair[0] < pair[1], "{pair:?} are not in order");
    }
    assert_eq!(log.iter().collect::<BTreeSet<_>>().len(), log.len());
}

async fn g03_a_leader_that_was_overtaken_is_kept_out_with_both_numbers<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let books = FenceGate::new(Vec::new());
    let first = lead(&a, "x", &at_once()).await;
    books.enter(first.fence()).await.unwrap().push("a");

    // It asks for no extension, so it does not learn that its lease was taken from it.
    b.force_release("x").await.unwrap();
    let second = lead(&b, "x", &at_once()).await;
    books.enter(second.fence()).await.unwrap().push("b");
    assert!(first.is_valid(), "by its own reckoning");

    let refused = books.enter(first.fence()).await.err();
    let (presented, seen) = (first.fence(), second.fence());
    assert_eq!(refused, Some(StaleFence { presented, seen }));
    assert_eq!(books.into_inner(), ["a", "b"]);
}
