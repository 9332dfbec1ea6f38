//! The gate of fencing tokens: who comes late is kept out, however the two steps of a write fall.
#![allow(missing_docs, reason = "a test")]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use leader_core::FencingToken;
use leader_core::fencing::{FenceGate, FencedError, StaleFence};
use leader_core::testing::check_fenced_resource;
use tokio::task::JoinSet;

const fn token(number: u64) -> FencingToken {
    FencingToken::new(number)
}

const fn stale(presented: u64, seen: u64) -> StaleFence {
    StaleFence {
        presented: token(presented),
        seen: token(seen),
    }
}

async fn waits<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[tokio::test]
async fn the_gate_is_a_fenced_resource() {
    check_fenced_resource(&FenceGate::new(0), |number| number).await;
}

#[tokio::test]
async fn g03_a_write_that_began_in_time_ends_before_the_next_leaders() {
    let gate = FenceGate::new(Vec::new());
    let mut old = gate.enter(token(1)).await.unwrap();
    assert_eq!(old.fence(), token(1));

    // The old leader is inside, half-way. The new one waits for it,
    let mut new = Box::pin(gate.enter(token(2)));
    assert!(waits(new.as_mut()).await);
    // and from now on no older one gets in, though the new one has written nothing yet.
    assert_eq!(gate.enter(token(1)).await.err(), Some(stale(1, 2)));

    old.push("old");
    drop(old);
    new.await.unwrap().push("new");
    assert_eq!(gate.enter(token(1)).await.err(), Some(stale(1, 2)));
    assert_eq!(gate.into_inner(), ["old", "new"]);
}

#[tokio::test]
async fn g03_who_queues_when_a_newer_leader_comes_is_refused() {
    let gate = FenceGate::new(());
    let inside = gate.enter(token(1)).await.unwrap();
    let mut queued = Box::pin(gate.enter(token(1)));
    assert!(waits(queued.as_mut()).await);
    let mut newer = Box::pin(gate.enter(token(5)));
    assert!(waits(newer.as_mut()).await);
    // Not even a newer one that gives up lets the older ones in again: it was elected, and may come back.
    drop(newer);
    drop(inside);
    assert_eq!(queued.await.err(), Some(stale(1, 5)));
}

#[tokio::test]
async fn a_gate_remembers_what_it_was_told_and_not_what_it_refused() {
    let gate = FenceGate::new(());
    assert_eq!(gate.seen(), None);
    gate.check(token(7)).unwrap();
    gate.check(token(7)).unwrap();
    assert_eq!(gate.check(token(6)), Err(stale(6, 7)));
    assert_eq!(gate.seen(), Some(token(7)));

    let again = FenceGate::resume((), token(7));
    assert_eq!(again.enter(token(6)).await.err(), Some(stale(6, 7)));
    assert!(format!("{again:?}").contains("FencingToken(7)"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g01_under_contention_the_tokens_inside_never_go_back() {
    const LEADERS: u64 = 32;
    const WRITES: u64 = 200;
    let gate = Arc::new(FenceGate::new(0_u64));
    let next = Arc::new(AtomicU64::new(1));
    let mut leaders = JoinSet::new();
    for _ in 0..LEADERS {
        let (gate, next) = (gate.clone(), next.clone());
        leaders.spawn(async move {
            let mut refused = 0;
            for _ in 0..WRITES {
                let fence = next.fetch_add(1, Ordering::Relaxed);
                // Between the grant and the write, anything may happen.
                tokio::task::yield_now().await;
                match gate.enter(token(fence)).await {
                    Ok(mut written) => {
                        assert!(*written <= fence, "{fence} came after {}", *written);
                        tokio::task::yield_now().await;
                        *written = fence;
                    }
                    Err(refusal) => {
                        assert!(refusal.presented < refusal.seen, "{refusal}");
                        refused += 1;
                    }
                }
            }
            refused
        });
    }
    let refused: u64 = leaders.join_all().await.into_iter().sum();
    assert!(refused < LEADERS * WRITES);
    let gate = Arc::into_inner(gate).expect("nobody has it any more");
    assert_eq!(gate.seen(), Some(token(LEADERS * WRITES)));
    assert_eq!(gate.into_inner(), LEADERS * WRITES);
}

#[test]
fn a_refusal_is_found_in_an_error_and_is_one_of_its_own() {
    let error: FencedError<std::io::Error> = stale(1, 2).into();
    assert_eq!(error.stale(), Some(stale(1, 2)));
    assert_eq!(error.to_string(), stale(1, 2).to_string());
    let failed = FencedError::Resource(std::io::Error::other("the disk is full"));
    assert_eq!(failed.stale(), None);
    assert_eq!(failed.to_string(), "the disk is full");
}
