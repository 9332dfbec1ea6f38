//! Guarded streams, polled by hand under paused time: what decides is the clock, not which wake-up came first.
#![allow(missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use leader_core::{Elector, ElectorExt, LeaseHandle, LeaseOptions, LocalElector};

fn options() -> leader_core::LeaseOptionsBuilder {
    LeaseOptions::builder()
        .lease(Duration::from_secs(1))
        .wait(Duration::ZERO)
}

#[tokio::test(start_paused = true)]
async fn a_guarded_stream_has_what_it_needs_and_can_be_moved_into_a_task() {
    fn orders(lease: LeaseHandle) -> impl futures::Stream<Item = (u32, LeaseHandle)> {
        stream::iter(1..=3).map(move |order| (order, lease.clone()))
    }
    let elector: Arc<dyn Elector> = Arc::new(LocalElector::new());
    let options = options().build().unwrap();
    let guarded = elector.guard_stream("order-feed", &options, |lease| orders(lease));
    drop(options);
    let orders = tokio::spawn(guarded.map(|(order, _)| order).collect::<Vec<_>>());
    drop(elector);
    assert_eq!(orders.await.unwrap(), [1, 2, 3]);

    // What cannot be cloned is guarded through a reference.
    let elector: Box<dyn Elector> = Box::new(LocalElector::new());
    let options = self::options().build().unwrap();
    let guarded = (&&*elector).guard_stream("order-feed", &options, |_| stream::iter(1..=3));
    assert_eq!(guarded.count().await, 3);
}
