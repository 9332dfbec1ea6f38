//! What the simulation found in the engine, each as a story of its own.
#![allow(missing_docs, reason = "a test")]

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use leader_core::{ElectorExt, Events, LeaderEvent, LeaseOptions, LocalElector};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What was told so far.
fn told(events: &mut Events) -> Vec<LeaderEvent> {
    std::iter::from_fn(|| events.next().now_or_never().flatten()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_not_told_as_released_too() {
    let elector = LocalElector::new();
    let mut events = elector.events();
    let short = LeaseOptions::builder().lease(ms(30)).build().unwrap();
    let run = elector.run_if_leader("x", &short, |_| std::future::pending::<()>());
    run.await.unwrap_err();
    let told = told(&mut events);
    assert!(
        matches!(
            told[..],
            [LeaderEvent::Elected { .. }, LeaderEvent::Lost { .. }]
        ),
        "{told:?}"
    );
}
