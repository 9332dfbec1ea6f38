//! A shutdown and those who wait.
#![allow(missing_docs, reason = "a test")]

use std::time::Duration;

use futures::FutureExt;
use leader_core::{ElectorExt, LeaderError, LeaseOptions, LocalElector};
use tokio::time::Instant;

fn patient() -> LeaseOptions {
    let options = LeaseOptions::builder().wait(Duration::from_secs(60));
    options.build().unwrap()
}

/// Whoever stands first in the queue may be a future that nobody polls any more: others do not wait for it.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_one_in_front_who_is_not_polled() {
    let elector = LocalElector::new();
    let options = patient();
    let lease = elector.try_acquire("x", &options).await.unwrap().unwrap();

    let mut first = Box::pin(elector.try_acquire("x", &options));
    assert!(first.as_mut().now_or_never().is_none());
    let waiting = (0..10).map(|_| {
        let (elector, options) = (elector.clone(), options.clone());
        tokio::spawn(async move {
            let ended = elector.try_acquire("x", &options).await;
            (ended.map(drop), Instant::now())
        })
    });
    let waiting: Vec<_> = waiting.collect();
    tokio::time::sleep(Duration::from_millis(1)).await;

    let begun = Instant::now();
    let closing = tokio::spawn({
        let elector = elector.clone();
        async move { elector.shutdown().await }
    });
    for waiter in waiting {
        let (ended, at) = waiter.await.unwrap();
        assert!(matches!(ended, Err(LeaderError::ShutDown)), "{ended:?}");
        assert_eq!(at, begun);
    }
    // The first is told as soon as it asks.
    assert!(matches!(first.await, Err(LeaderError::ShutDown)));
    drop(lease);
    closing.await.unwrap();
}

/// Whoever asks once it has begun is told so, and so is who waits.
#[tokio::test(start_paused = true)]
async fn who_comes_later_is_told_at_once() {
    let elector = LocalElector::new();
    let options = patient();
    let _lease = elector.try_acquire("x", &options).await.unwrap().unwrap();
    let mut waiting = Box::pin(elector.try_acquire("x", &options));
    assert!(waiting.as_mut().now_or_never().is_none());
    let begun = Instant::now();
    let closing = elector.shutdown();
    let mut closing = std::pin::pin!(closing);
    assert!(closing.as_mut().now_or_never().is_none());
    tokio::task::yield_now().await;
    let late = elector.try_acquire("x", &options).await;
    assert!(matches!(late, Err(LeaderError::ShutDown)));
    assert_eq!(Instant::now(), begun);
    assert!(matches!(waiting.await, Err(LeaderError::ShutDown)));
}
