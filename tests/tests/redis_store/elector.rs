//! The engine on this store, as services use it.

use std::sync::Arc;
use std::time::Duration;

use leader_core::{Elector, ElectorExt, LeaseOptions, RunOutcome};
use leader_redis::RedisElector;
use leader_tests::{Server, elector_at};

use crate::steps::*;

fn options() -> leader_core::LeaseOptionsBuilder {
    LeaseOptions::builder().wait(LIMIT).lease(LONG)
}

async fn elector(server: &Server, node_id: &str) -> RedisElector {
    let builder = elector_at(server.url()).node_id(node_id);
    let builder = builder.command_timeout(Duration::from_secs(5));
    builder.connect().await.unwrap()
}

#[tokio::test]
async fn a_thousand_runs_in_a_row_are_all_elected_and_two_commands_each() {
    let server = Server::start().await;
    let elector: Arc<dyn Elector> = Arc::new(elector(&server, "node-a").await);
    let options = options().wait(Duration::ZERO).build().unwrap();
    let mut last = None;
    for run in 0..1000 {
        if run == 1 {
            server.reset_stats().await;
        }
        let fence = elector.run_if_leader(NAME, &options, |lease| async move { lease.fence() });
        let fence = fence.await.unwrap();
        assert!(
            fence.is_some() && fence > last,
            "run {run}: {fence:?} after {last:?}"
        );
        last = fence;
    }
    assert_eq!(server.command_calls("evalsha").await, 2 * 999);
    assert_eq!(server.command_calls("eval").await, 0);
}

#[tokio::test]
async fn a01_a_peers_lease_is_a_skip_and_names_it() {
    let server = Server::start().await;
    let (a, b) = (
        elector(&server, "node-a").await,
        elector(&server, "node-b").await,
    );
    let lease = a
        .try_acquire(NAME, &options().build().unwrap())
        .await
        .unwrap();
    let no_wait = options().wait(Duration::ZERO).build().unwrap();
    let ran = b.run_if_leader_result(NAME, &no_wait, |_| async { Ok::<(), ()>(()) });
    match ran.await.unwrap() {
        RunOutcome::Skipped(skip) => {
            assert_eq!(
                skip.holder().map(leader_core::NodeId::as_str),
                Some("node-a")
            );
        }
        _ => panic!("the peer leads"),
    }
    let state = b.state(NAME).await.unwrap();
    assert_eq!(state.holders().len(), 1);
    assert_eq!(*state.holders()[0].node_id(), "node-a");
    lease.unwrap().release().await.unwrap();
    assert!(b.state(NAME).await.unwrap().holders().is_empty());
}

#[tokio::test]
async fn a_waiter_is_woken_by_a_release_and_by_an_operator() {
    let server = Server::start().await;
    let (a, b) = (
        elector(&server, "node-a").await,
        elector(&server, "node-b").await,
    );
    let options = options().build().unwrap();
    let mut lease = a.try_acquire(NAME, &options).await.unwrap().unwrap();
    for by_operator in [false, true] {
        server.reset_stats().await;
        let waiter = tokio::spawn({
            let (b, options) = (b.clone(), options.clone());
            async move { b.try_acquire(NAME, &options).await }
        });
        leader_tests::until("the waiter watches", LIMIT, async || {
            let watching = server.command(&["PUBSUB", "NUMSUB", CHANNEL]).await;
            watching.array()[1].integer() == 1
        })
        .await;
        if by_operator {
            assert_eq!(a.force_release(NAME).await.unwrap(), 1);
            drop(lease);
        } else {
            lease.release().await.unwrap();
        }
        let woken = waiter
            .await
            .unwrap()
            .unwrap()
            .expect("elected within the wait");
        woken.release().await.unwrap();
        lease = a.try_acquire(NAME, &options).await.unwrap().unwrap();
    }
}

/// b08: with a runtime of its own, even a body that blocks the only thread there is keeps its lease.
#[tokio::test(flavor = "current_thread")]
async fn b08_a_blocked_thread_does_not_starve_a_runtime_of_its_own() {
    let server = Server::start().await;
    let builder = elector_at(server.url()).own_runtime(true);
    let elector = builder.connect().await.unwrap();
    let lease = Duration::from_secs(2);
    let options = LeaseOptions::builder().lease(lease).auto_extend(true);
    let options = options.build().unwrap();
    let fence = elector
        .run_if_leader(NAME, &options, |held| async move {
            std::thread::sleep(lease * 3);
            held.ensure_valid().map(|()| held.fence())
        })
        .await
        .unwrap()
        .expect("nobody else stands");
    fence.expect("the lease was kept");
}
