//! A guarded poll allocates nothing: not while it is pending, not for an item, and no more in an annotated function.
#![allow(missing_docs, reason = "a test")]

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, stream};
use leader_core::{
    ElectorExt, LeaderError, LeaseOptions, LocalElector, LockName, current_lease, leader_election,
};

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

#[leader_election(name = "annotated", lease = "1h", auto_extend)]
async fn annotated(elector: &LocalElector) -> Result<(), LeaderError> {
    poll_fn(|_| Poll::<()>::Pending).await;
    Ok(())
}

#[leader_election(name = "boxed:{name}", lease = "1h", auto_extend)]
fn boxed(elector: &LocalElector, name: &str) -> BoxFuture<'static, Result<(), LeaderError>> {
    Box::pin(poll_fn(|_| Poll::Pending))
}

#[leader_election(name = "annotated-idle", lease = "1h", auto_extend)]
fn idle(elector: &LocalElector) -> impl Stream<Item = Result<u32, LeaderError>> + use<> {
    stream::pending()
}

#[leader_election(name = "annotated-busy", lease = "1h", auto_extend)]
fn busy(elector: &LocalElector) -> impl Stream<Item = Result<u32, LeaderError>> + use<> {
    stream::repeat_with(|| Ok(1))
}

#[tokio::test]
async fn a_poll_of_an_annotated_function_allocates_nothing() {
    let elector = LocalElector::new();
    let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let mut cx = Context::from_waker(&waker);

    let mut future = pin!(annotated(&elector));
    let count = allocations(|| assert!(future.as_mut().poll(&mut cx).is_pending()));
    assert_eq!(count, 0, "an async function");

    let mut future = boxed(&elector, "a");
    let count = allocations(|| assert!(future.as_mut().poll(&mut cx).is_pending()));
    assert_eq!(count, 0, "a boxed future");

    let mut idle = pin!(idle(&elector));
    let count = allocations(|| assert!(idle.as_mut().poll_next(&mut cx).is_pending()));
    assert_eq!(count, 0, "a pending stream");

    let mut busy = pin!(busy(&elector));
    let count = allocations(|| {
        let item = busy.as_mut().poll_next(&mut cx);
        assert!(matches!(item, Poll::Ready(Some(Ok(1)))));
    });
    assert_eq!(count, 0, "an item");
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

#[tokio::test]
async fn a_run_that_nobody_stands_in_the_way_of_allocates_its_tenure_and_nothing_else() {
    let elector = LocalElector::new();
    let (name, options) = (
        LockName::new("settlement").unwrap(),
        LeaseOptions::default(),
    );
    let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let mut cx = Context::from_waker(&waker);
    let mut run = || {
        let mut run = pin!(elector.run_if_leader(&name, &options, |_| async {}));
        assert!(matches!(
            run.as_mut().poll(&mut cx),
            Poll::Ready(Ok(Some(())))
        ));
    };

    // The first run makes the room that the others use again.
    run();
    let counted = allocation_counter::measure(|| (0..50).for_each(|_| run()));
    assert_eq!(counted.count_total, 50);
}
