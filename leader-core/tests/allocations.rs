//! A guarded poll allocates nothing: not while it is pending, not for an item.
#![allow(missing_docs, reason = "a test")]

use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, stream};
use leader_core::{ElectorExt, LeaseOptions, LocalElector, current_lease};

const POLLS: usize = 10_000;

fn allocations(mut poll: impl FnMut()) -> u64 {
    // The first polls acquire the lease, and set the alarm.
    poll();
    poll();
    let counted = allocation_counter::measure(|| {
        for _ in 0..POLLS {
            poll();
        }
    });
    counted.count_total
}

#[tokio::test]
async fn a_guarded_poll_allocates_nothing() {
    let elector = LocalElector::new();
    let options = LeaseOptions::builder()
        .lease(Duration::from_secs(3600))
        .auto_extend(true)
        .build()
        .unwrap();
    let waker = std::future::poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let mut cx = Context::from_waker(&waker);

    let mut future = pin!(elector.run_if_leader("future", &options, |_| {
        std::future::poll_fn(|_| {
            assert!(current_lease().is_some());
            Poll::<()>::Pending
        })
    }));
    let count = allocations(|| assert!(future.as_mut().poll(&mut cx).is_pending()));
    assert_eq!(count, 0, "a pending future");

    let mut idle = pin!(elector.guard_stream("idle", &options, |_| stream::pending::<u32>()));
    let count = allocations(|| assert!(idle.as_mut().poll_next(&mut cx).is_pending()));
    assert_eq!(count, 0, "a pending stream");

    let mut busy = pin!(elector.guard_stream("busy", &options, |_| stream::repeat(1)));
    let count = allocations(|| {
        let item = busy.as_mut().poll_next(&mut cx);
        assert_eq!(item, Poll::Ready(Some(1)));
    });
    assert_eq!(count, 0, "an item");

    // The counter counts.
    assert!(allocations(|| drop(std::hint::black_box(Box::new(1)))) >= POLLS as u64);
}
