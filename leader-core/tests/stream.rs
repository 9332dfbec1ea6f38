//! Guarded streams, polled by hand under paused time: what decides is the clock, not which wake-up came first.
#![allow(missing_docs, reason = "a test")]

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::{self, FusedStream};
use futures::{FutureExt, Stream, StreamExt, TryStreamExt};
use leader_core::store::LeaseStore;
use leader_core::testing::{Fault, Faults, FaultyStore, Footprint};
use leader_core::{
    BackendKind, Elector, ElectorExt, LeaderError, LeaseHandle, LeaseOptions, LeaseOptionsBuilder,
    LocalElector, LocalStore, LockName, LossReason, OnLost, Step, StoreElector, StreamOutcome,
    current_lease, ensure_leader,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, advance, sleep, timeout};

const LEASE: Duration = Duration::from_secs(1);

fn options() -> LeaseOptionsBuilder {
    LeaseOptions::builder().lease(LEASE).wait(Duration::ZERO)
}

fn once() -> LeaseOptions {
    options().build().unwrap()
}

fn extended() -> LeaseOptions {
    options().auto_extend(true).build().unwrap()
}

fn faulty() -> (StoreElector<FaultyStore<LocalStore>>, Faults) {
    let store = FaultyStore::new(LocalStore::new());
    let faults = store.faults();
    (StoreElector::builder(store).build(), faults)
}

/// What happens to a stream, in order.
type Log = Arc<Mutex<Vec<&'static str>>>;

/// A source of items that counts its polls, and writes down its end.
struct Source {
    items: mpsc::UnboundedReceiver<u32>,
    polls: Arc<AtomicUsize>,
    log: Log,
}

#[derive(Clone)]
struct Feed {
    items: mpsc::UnboundedSender<u32>,
    polls: Arc<AtomicUsize>,
    log: Log,
}

fn source() -> (Source, Feed) {
    let (sender, items) = mpsc::unbounded_channel();
    let (polls, log) = (Arc::<AtomicUsize>::default(), Log::default());
    let feed = Feed {
        items: sender,
        polls: polls.clone(),
        log: log.clone(),
    };
    (Source { items, polls, log }, feed)
}

impl Feed {
    fn polls(&self) -> usize {
        self.polls.load(Ordering::SeqCst)
    }

    fn log(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().clone()
    }
}

impl Stream for Source {
    type Item = u32;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        self.polls.fetch_add(1, Ordering::SeqCst);
        ensure_leader().expect("polled outside the lease");
        self.items.poll_recv(cx)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.log.lock().unwrap().push("source dropped");
    }
}

#[track_caller]
fn assert_lost(outcome: Option<&StreamOutcome>, expected: LossReason) {
    match outcome {
        Some(StreamOutcome::Failed(LeaderError::LeaseLost { reason, .. }))
            if *reason == expected => {}
        other => panic!("not lost as {expected:?}: {other:?}"),
    }
}

async fn holders(elector: &impl Elector) -> usize {
    elector.state("x").await.unwrap().holders().len()
}

#[tokio::test(start_paused = true)]
async fn a_guarded_stream_has_what_it_needs_and_can_be_moved_into_a_task() {
    fn orders(lease: LeaseHandle, count: u32) -> impl Stream<Item = (u32, LeaseHandle)> {
        stream::iter(1..=count).map(move |order| (order, lease.clone()))
    }
    let elector: Arc<dyn Elector> = Arc::new(LocalElector::new());
    let options = once();
    let guarded = elector.guard_stream("order-feed", &options, |lease| orders(lease, 3));
    drop(options);
    let orders = tokio::spawn(guarded.map(|(order, _)| order).collect::<Vec<_>>());
    drop(elector);
    assert_eq!(orders.await.unwrap(), [1, 2, 3]);

    // What cannot be cloned is guarded through a reference.
    let elector: Box<dyn Elector> = Box::new(LocalElector::new());
    let options = once();
    let elector = &*elector;
    let guarded = (&elector).guard_stream("order-feed", &options, |_| stream::iter(1..=3));
    assert_eq!(guarded.count().await, 3);
}

#[tokio::test(start_paused = true)]
async fn d06_nobody_polls_nothing_is_claimed() {
    let (elector, faults) = faulty();
    let (source, feed) = source();
    let guarded = elector.guard_stream("x", &once(), move |_| source);
    sleep(LEASE * 3).await;
    assert!(guarded.outcome().is_none() && guarded.lease().is_none());
    assert!(!guarded.is_terminated());
    drop(guarded);
    assert_eq!(faults.log().len(), 0, "{:?}", faults.log());
    assert_eq!(feed.polls(), 0);
    assert_eq!(feed.log(), ["source dropped"]);
    assert_eq!(elector.footprint(), Footprint::default());
}

#[tokio::test(start_paused = true)]
async fn one_claim_and_one_release_however_many_items() {
    let (elector, faults) = faulty();
    let guarded = elector.guard_stream("x", &once(), |_| stream::iter(0..100));
    assert_eq!(guarded.count().await, 100);
    assert_eq!(faults.asked(Step::Claim), 1);
    assert_eq!(faults.asked(Step::Release), 1);
    assert_eq!(elector.footprint(), Footprint::default());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_woken_after_the_deadline_is_dropped_unpolled() {
    let elector = LocalElector::new();
    let (source, feed) = source();
    let mut guarded = Box::pin(elector.guard_stream("x", &once(), move |_| source));
    assert!(guarded.next().now_or_never().is_none());
    assert_eq!(feed.polls(), 1);
    // Frozen: time passes, nothing is polled. Thawed: the next item is there.
    advance(LEASE * 60).await;
    feed.items.send(1).unwrap();
    assert_eq!(guarded.next().now_or_never(), Some(None));
    assert_eq!(feed.polls(), 1, "the source was polled past its deadline");
    assert_eq!(feed.log(), ["source dropped"]);
    assert_lost(guarded.outcome(), LossReason::Expired);
    assert!(guarded.is_terminated());
    assert_eq!(guarded.next().now_or_never(), Some(None));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_waits_is_woken_at_the_deadline() {
    let elector = LocalElector::new();
    let (source, feed) = source();
    let begun = Instant::now();
    let mut guarded = pin!(elector.guard_stream("x", &once(), move |_| source));
    feed.items.send(1).unwrap();
    assert_eq!(guarded.next().await, Some(1));
    assert_eq!(guarded.next().await, None);
    // 1 % and 2 ms early; and a millisecond of Tokio's timer.
    let after = begun.elapsed();
    assert!(
        after >= Duration::from_millis(988) && after <= Duration::from_millis(989),
        "{after:?}"
    );
    assert_lost(guarded.outcome(), LossReason::Expired);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_was_asked_for_in_time_is_not_dropped_and_is_the_last() {
    // A source that blocks its thread past the deadline, and then has an item.
    fn late<T: Clone + 'static>(item: T) -> impl Stream<Item = T> {
        stream::repeat_with(move || {
            let _ = advance(LEASE * 2).now_or_never();
            item.clone()
        })
    }
    let elector = LocalElector::new();
    let mut guarded = pin!(elector.guard_stream("x", &once(), |_| late(1)));
    assert_eq!(guarded.next().await, Some(1));
    assert_eq!(guarded.next().await, None);
    assert_lost(guarded.outcome(), LossReason::Expired);

    let mut guarded =
        pin!(elector.guard_try_stream("x", &once(), |_| late(1).map(Ok::<_, LeaderError>)));
    assert_eq!(guarded.try_next().await.unwrap(), Some(1));
    let item = guarded.next().await;
    assert!(
        matches!(item, Some(Err(LeaderError::LeaseLost { .. }))),
        "{item:?}"
    );
    assert!(guarded.next().await.is_none());

    // An end or an error that comes too late is a loss.
    let mut guarded = pin!(
        elector.guard_stream("x", &once(), |_| late(1).take(0).chain(stream::poll_fn(
            |_| {
                let _ = advance(LEASE * 2).now_or_never();
                Poll::Ready(None)
            }
        )))
    );
    assert_eq!(guarded.next().await, None);
    assert_lost(guarded.outcome(), LossReason::Expired);
    let mut guarded = pin!(elector.guard_try_stream("x", &once(), |_| {
        late(()).map(|()| Err::<(), _>(LeaderError::NotLeading))
    }));
    let item = guarded.next().await;
    assert!(
        matches!(item, Some(Err(LeaderError::LeaseLost { .. }))),
        "{item:?}"
    );
    assert!(guarded.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn d07_a_consumer_slower_than_the_lease_keeps_it_by_auto_extension() {
    let (elector, faults) = faulty();
    let peer = StoreElector::builder(FaultyStore::new(elector.store().inner().clone())).build();
    let mut guarded = pin!(elector.guard_stream("x", &extended(), |_| stream::iter(1..=3)));
    for expected in 1..=3 {
        assert_eq!(guarded.next().await, Some(expected));
        for _ in 0..10 {
            sleep(LEASE / 2).await;
            assert!(peer.try_acquire("x", &once()).await.unwrap().is_none());
        }
        guarded.lease().unwrap().ensure_valid().unwrap();
    }
    assert_eq!(guarded.next().await, None);
    assert!(guarded.outcome().unwrap().is_ended());
    assert_eq!(faults.asked(Step::Claim), 1);
    assert!(peer.try_acquire("x", &once()).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn without_auto_extension_a_slow_consumer_loses_it() {
    let elector = LocalElector::new();
    let mut guarded = pin!(elector.guard_stream("x", &once(), |_| stream::iter(1..=3)));
    assert_eq!(guarded.next().await, Some(1));
    sleep(LEASE * 2).await;
    assert!(!guarded.lease().unwrap().is_valid());
    assert_eq!(guarded.next().await, None);
    assert_lost(guarded.outcome(), LossReason::Expired);
}

#[tokio::test(start_paused = true)]
async fn max_tenure_ends_a_stream_that_is_extended() {
    let elector = LocalElector::new();
    let (source, _feed) = source();
    let longest = options().auto_extend(true).max_tenure(LEASE * 5);
    let begun = Instant::now();
    let mut guarded = pin!(elector.guard_stream("x", &longest.build().unwrap(), move |_| source));
    assert_eq!(guarded.next().await, None);
    assert_lost(guarded.outcome(), LossReason::MaxTenure);
    assert!(begun.elapsed() >= LEASE * 5 && begun.elapsed() < LEASE * 5 + LEASE / 10);
}

#[tokio::test(start_paused = true)]
async fn the_release_is_over_and_the_source_gone_before_the_end_is_told() {
    let (elector, faults) = faulty();
    let (source, feed) = source();
    let held = Duration::from_millis(200);
    faults.always(Step::Release, Fault::DelayRequest(held));
    let mut guarded = pin!(elector.guard_stream("x", &extended(), move |_| source));
    feed.items.send(1).unwrap();
    assert_eq!(guarded.next().await, Some(1));
    let log = feed.log.clone();
    drop(feed);
    let begun = Instant::now();
    // Dropping the future of `next` in the middle of the release loses nothing.
    assert!(timeout(held / 2, guarded.next()).await.is_err());
    assert_eq!(*log.lock().unwrap(), ["source dropped"]);
    assert_eq!(holders(&elector).await, 1, "released before its time");
    assert!(!guarded.is_terminated() && guarded.outcome().is_none());
    assert_eq!(guarded.next().await, None);
    assert_eq!(begun.elapsed(), held);
    assert_eq!(holders(&elector).await, 0);
    assert!(guarded.outcome().unwrap().is_ended());
    assert_eq!(elector.footprint(), Footprint::default());
}

#[tokio::test(start_paused = true)]
async fn the_source_is_dropped_before_the_lease_however_the_stream_goes() {
    /// Writes down, when it is dropped, whether somebody holds the lease, and which is in force.
    struct Look(LocalElector, Log);

    impl Drop for Look {
        fn drop(&mut self) {
            let state = self.0.state("x").now_or_never();
            let led = state.unwrap().unwrap().holders().len() == 1;
            let scoped = current_lease().is_some();
            let word = match (led, scoped) {
                (true, true) => "led, in its scope",
                (true, false) => "led, out of its scope",
                (false, _) => "not led",
            };
            self.1.lock().unwrap().push(word);
        }
    }

    for items in 0..3_usize {
        let elector = LocalElector::new();
        let log = Log::default();
        let look = Look(elector.clone(), log.clone());
        let mut guarded = Box::pin(elector.guard_stream("x", &once(), move |_| {
            stream::iter([1, 2]).chain(stream::poll_fn(move |_| {
                let _kept = &look;
                Poll::Pending
            }))
        }));
        for _ in 0..items {
            guarded.next().await.unwrap();
        }
        if items > 0 {
            assert_eq!(holders(&elector).await, 1);
        }
        assert!(guarded.next().now_or_never().is_some() == (items < 2));
        drop(guarded);
        assert_eq!(*log.lock().unwrap(), ["led, in its scope"]);
        assert_eq!(holders(&elector).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_in_force_in_each_poll_and_only_there() {
    let elector = LocalElector::new();
    let seen = RefCell::new(Vec::new());
    let mut guarded = pin!(elector.guard_stream("x", &once(), |lease| {
        seen.borrow_mut().push(current_lease().unwrap().fence());
        let (mut polls, seen) = (0, &seen);
        stream::poll_fn(move |cx| {
            polls += 1;
            seen.borrow_mut().push(current_lease().unwrap().fence());
            assert_eq!(lease.fence(), current_lease().unwrap().fence());
            if polls % 2 == 1 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready((polls < 6).then_some(polls))
        })
    }));
    let mut items = Vec::new();
    while let Some(item) = guarded.next().await {
        assert!(current_lease().is_none());
        items.push(item);
    }
    assert_eq!(items, [2, 4]);
    let seen = seen.borrow();
    assert_eq!(seen.len(), 7);
    assert!(seen.iter().all(|fence| *fence == seen[0]));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_resumed_after_the_release() {
    #[derive(Clone, Copy, Debug)]
    enum In {
        Make,
        Poll,
        Drop,
    }

    struct Bomb(bool);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 {
                std::panic::resume_unwind(Box::new("as asked"));
            }
        }
    }

    for place in [In::Make, In::Poll, In::Drop] {
        let (elector, faults) = faulty();
        faults.always(Step::Release, Fault::DelayReply(Duration::from_millis(100)));
        let mut guarded = Box::pin(elector.guard_stream("x", &once(), |_| {
            if matches!(place, In::Make) {
                std::panic::resume_unwind(Box::new("as asked"));
            }
            let bomb = Bomb(matches!(place, In::Drop));
            stream::poll_fn(move |_| -> Poll<Option<u32>> {
                let _kept = &bomb;
                match place {
                    In::Poll => std::panic::resume_unwind(Box::new("as asked")),
                    _ => Poll::Ready(None),
                }
            })
        }));
        let begun = Instant::now();
        let ended = AssertUnwindSafe(guarded.next()).catch_unwind().await;
        let panic = ended.expect_err("no panic came through");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"as asked"), "{place:?}");
        assert_eq!(begun.elapsed(), Duration::from_millis(100), "{place:?}");
        assert_eq!(holders(&elector).await, 0, "{place:?}");
        assert_eq!(elector.footprint(), Footprint::default(), "{place:?}");
        assert!(guarded.is_terminated() && guarded.outcome().is_none());
        assert_eq!(guarded.next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_is_the_last_item_where_items_can_say_it() {
    let (elector, faults) = faulty();
    faults.always(Step::Claim, Fault::Refuse(BackendKind::Denied));
    let mut guarded = pin!(elector.guard_stream("x", &once(), |_| stream::iter(1..=3)));
    assert_eq!(guarded.next().await, None);
    match guarded.outcome() {
        Some(StreamOutcome::Failed(LeaderError::Backend {
            step: Step::Claim,
            kind: BackendKind::Denied,
            ..
        })) => {}
        other => panic!("the store did not fail: {other:?}"),
    }

    let mut guarded = pin!(elector.guard_try_stream("x", &once(), |_| {
        stream::iter([Ok::<u32, LeaderError>(1)])
    }));
    let item = guarded.next().await;
    assert!(
        matches!(item, Some(Err(LeaderError::Backend { .. }))),
        "{item:?}"
    );
    assert!(guarded.is_terminated());
    assert!(guarded.next().await.is_none());

    // So are a wrong name, and an elector that is shut down.
    let mut wrong = pin!(elector.guard_try_stream("not a name", &once(), |_| {
        stream::iter([Ok::<u32, LeaderError>(1)])
    }));
    let item = wrong.next().await;
    assert!(
        matches!(item, Some(Err(LeaderError::InvalidName { .. }))),
        "{item:?}"
    );
    elector.shutdown().await;
    let mut late = pin!(elector.guard_try_stream("x", &once(), |_| {
        stream::iter([Ok::<u32, LeaderError>(1)])
    }));
    let item = late.next().await;
    assert!(matches!(item, Some(Err(LeaderError::ShutDown))), "{item:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_error_is_the_last_item_and_the_lease_is_free_by_then() {
    #[derive(Debug, PartialEq)]
    enum FeedError {
        Garbled,
        Leader,
    }

    impl From<LeaderError> for FeedError {
        fn from(_: LeaderError) -> Self {
            Self::Leader
        }
    }

    let (elector, faults) = faulty();
    let items = [Ok(1), Err(FeedError::Garbled), Ok(2)];
    let mut guarded = pin!(elector.guard_try_stream("x", &once(), |_| stream::iter(items)));
    assert_eq!(guarded.next().await, Some(Ok(1)));
    assert_eq!(guarded.next().await, Some(Err(FeedError::Garbled)));
    assert_eq!(elector.footprint(), Footprint::default());
    assert!(matches!(
        guarded.outcome(),
        Some(StreamOutcome::ActionFailed)
    ));
    assert_eq!(guarded.next().await, None);
    assert!(guarded.is_terminated());
    assert_eq!(faults.asked(Step::Release), 1);

    // To a stream of any items, errors are items like others.
    let items = [Ok(1), Err(FeedError::Garbled), Ok(2)];
    let guarded = elector.guard_stream("x", &once(), |_| stream::iter(items));
    assert_eq!(guarded.count().await, 3);

    // Lost between items.
    let items = stream::iter([Ok::<_, FeedError>(1)]).chain(stream::pending());
    let mut guarded = pin!(elector.guard_try_stream("x", &once(), |_| items));
    assert_eq!(guarded.try_next().await, Ok(Some(1)));
    assert_eq!(guarded.try_next().await, Err(FeedError::Leader));
    assert_lost(guarded.outcome(), LossReason::Expired);
    assert_eq!(guarded.try_next().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_does_not_replace_the_end() {
    let (elector, faults) = faulty();
    faults.always(Step::Release, Fault::Refuse(BackendKind::Unreachable));
    let guarded =
        elector.guard_try_stream("x", &once(), |_| stream::iter([Ok::<_, LeaderError>(1)]));
    let items: Result<Vec<_>, _> = guarded.try_collect().await;
    assert_eq!(items.unwrap(), [1]);
    faults.heal();
    faults.disarm();
    sleep(LEASE * 2).await;
    assert_eq!(elector.footprint(), Footprint::default());
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_the_stream_and_frees_the_slot() {
    let elector = LocalElector::new();
    let peer = elector.node("peer");
    let (source, feed) = source();
    let mut guarded = Box::pin(elector.guard_stream("x", &extended(), move |_| source));
    feed.items.send(1).unwrap();
    assert_eq!(guarded.next().await, Some(1));
    let consumer = tokio::spawn(async move {
        let item = guarded.next().await;
        (item, guarded.outcome().cloned())
    });
    tokio::task::yield_now().await;
    let begun = Instant::now();
    elector.shutdown().await;
    assert!(begun.elapsed() < Duration::from_millis(10));
    let (item, outcome) = consumer.await.unwrap();
    assert_eq!(item, None);
    assert!(
        matches!(outcome, Some(StreamOutcome::Failed(LeaderError::ShutDown))),
        "{outcome:?}"
    );
    assert_eq!(feed.log(), ["source dropped"]);
    assert!(peer.try_acquire("x", &once()).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_notified_stream_comes_to_its_end_by_itself() {
    let elector = LocalElector::new();
    let notify = options().on_lost(OnLost::Notify).build().unwrap();
    let guarded = elector.guard_stream("x", &notify, |lease| {
        let lost = lease.cancellation_token();
        stream::once(async move { lost.cancelled().await }).chain(stream::iter([(), ()]))
    });
    let mut guarded = pin!(guarded);
    for _ in 0..3 {
        assert_eq!(guarded.next().await, Some(()));
        assert!(!guarded.lease().unwrap().is_valid());
    }
    assert_eq!(guarded.next().await, None);
    assert_lost(guarded.outcome(), LossReason::Expired);
}

#[tokio::test(start_paused = true)]
async fn d08_a_stream_inside_a_run_of_its_name_is_inside_its_lease() {
    let (elector, faults) = faulty();
    let escaped = elector
        .run_if_leader("x", &once(), async |outer| {
            let mut inner = Box::pin(elector.guard_stream("x", &once(), |lease| {
                stream::repeat_with(move || lease.fence())
            }));
            assert_eq!(inner.next().await, Some(outer.fence()));
            inner
        })
        .await;
    // A stream that outlives the run is over with the lease that it was in.
    let mut escaped = escaped.unwrap().unwrap();
    assert_eq!(escaped.next().await, None);
    assert_lost(escaped.outcome(), LossReason::Released);
    assert_eq!(faults.asked(Step::Claim), 1);
    assert_eq!(faults.asked(Step::Release), 1);

    // And a run inside a stream is inside the stream's lease.
    let mut around = pin!(elector.guard_stream("x", &once(), |lease| {
        let elector = &elector;
        stream::once(async move {
            let once = once();
            let inner = elector.run_if_leader("x", &once, async |inner| inner.fence());
            (lease.fence(), inner.await.unwrap())
        })
    }));
    let (outer, inner) = around.next().await.unwrap();
    assert_eq!(inner, Some(outer));
    assert_eq!(around.next().await, None);
    assert_eq!(faults.asked(Step::Claim), 2);
}

#[tokio::test(start_paused = true)]
async fn a_nested_stream_ends_with_the_outer_lease() {
    let elector = LocalElector::new();
    let notify = options().on_lost(OnLost::Notify).build().unwrap();
    let outcomes = elector
        .run_if_leader("x", &notify, async |lease| {
            let mut during = pin!(elector.guard_stream("x", &notify, |lease| {
                stream::once(async move { lease.lost().await })
            }));
            assert_eq!(during.next().await, Some(()));
            assert_eq!(during.next().await, None);
            assert_lost(during.outcome(), LossReason::Expired);
            // And none begins under a lease that is lost.
            let mut after = pin!(elector.guard_stream(
                "x",
                &notify,
                |_| -> stream::Iter<std::array::IntoIter<u32, 0>> {
                    panic!("made under a lost lease")
                }
            ));
            assert_eq!(after.next().await, None);
            assert_lost(after.outcome(), LossReason::Expired);
            assert!(!lease.is_valid());
        })
        .await;
    assert!(matches!(outcomes, Err(LeaderError::LeaseLost { .. })));
}

/// Dropped at each of its polls, whatever the store was doing: free at once, nothing left behind.
#[tokio::test(start_paused = true)]
async fn d06_dropped_at_each_poll_nothing_is_left_behind() {
    for pause in [0, 1, 5].map(Duration::from_millis) {
        let mut polls = 0;
        loop {
            let (elector, faults) = faulty();
            for step in [Step::Claim, Step::Release] {
                faults.always(step, [Fault::DelayRequest(pause), Fault::DelayReply(pause)]);
            }
            let peer = StoreElector::builder(elector.store().inner().clone()).build();
            let mut guarded = Box::pin(elector.guard_stream("x", &extended(), move |_| {
                stream::iter(1..=3).then(move |item| async move {
                    tokio::task::yield_now().await;
                    item
                })
            }));
            let mut ended = false;
            for _ in 0..polls {
                let polled = std::future::poll_fn(|cx| Poll::Ready(guarded.poll_next_unpin(cx)));
                ended = polled.await == Poll::Ready(None);
                sleep(Duration::from_micros(500)).await;
            }
            drop(guarded);
            sleep(pause * 4 + Duration::from_millis(1)).await;
            let told = format!("{pause:?}, dropped after {polls} polls");
            assert_eq!(elector.footprint(), Footprint::default(), "{told}");
            let name = LockName::new("x").unwrap();
            let holders = elector.store().inner().inspect(&name).await.unwrap();
            assert!(holders.is_empty(), "{told}: {holders:?}");
            assert!(
                peer.try_acquire("x", &once()).await.unwrap().is_some(),
                "{told}"
            );
            if ended {
                break;
            }
            polls += 1;
        }
        assert!(polls >= 7, "{polls}");
    }
}

#[test]
fn streams_are_sent_where_their_sources_are() {
    fn check<T: Send + 'static>(_: T) {}
    let elector = LocalElector::new();
    check(elector.guard_stream("x", &once(), |_| stream::iter([1])));
    check(elector.guard_try_stream("x", &once(), |_| stream::iter([Ok::<_, LeaderError>(1)])));
}

/// The alarm is not set again at each poll; whoever waits is woken all the same.
#[tokio::test(start_paused = true)]
async fn a_stream_that_changes_hands_wakes_who_has_it() {
    let elector = LocalElector::new();
    let (source, _feed) = source();
    let mut guarded = Box::pin(elector.guard_stream("x", &extended(), move |_| source));
    assert!(guarded.next().now_or_never().is_none());
    for _ in 0..3 {
        let limit = timeout(LEASE * 3, guarded.next());
        assert!(limit.await.is_err(), "ended early");
        let consumer = tokio::spawn(async move {
            assert!(timeout(LEASE / 2, guarded.next()).await.is_err());
            guarded
        });
        guarded = consumer.await.unwrap();
    }
    let consumer = tokio::spawn(async move {
        guarded.next().await;
        guarded.outcome().cloned()
    });
    tokio::task::yield_now().await;
    assert_eq!(elector.force_release("x").await.unwrap(), 1);
    let outcome = timeout(LEASE, consumer).await.unwrap().unwrap();
    assert_lost(outcome.as_ref(), LossReason::Deleted);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_has_used_up_its_tasks_budget_is_woken_at_the_deadline() {
    let elector = LocalElector::new();
    let once = once();
    let begun = Instant::now();
    let run = elector.run_if_leader("x", &once, |_| async {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        loop {
            // Always ready, until the budget is used up: then this is pending, and so is every timer.
            sender.send(()).unwrap();
            if receiver.recv().now_or_never().is_none() {
                break;
            }
        }
        std::future::pending::<()>().await;
    });
    let ended = timeout(LEASE * 10, run).await.expect("never woken");
    assert!(matches!(ended, Err(LeaderError::LeaseLost { .. })));
    assert!(begun.elapsed() < LEASE);
}

#[tokio::test(start_paused = true)]
async fn a_lease_extended_by_hand_ends_the_stream_at_its_new_deadline() {
    let elector = LocalElector::new();
    let begun = Instant::now();
    let (source, feed) = source();
    let mut guarded = pin!(elector.guard_stream("x", &once(), move |_| source));
    feed.items.send(1).unwrap();
    assert_eq!(guarded.next().await, Some(1));
    let lease = guarded.lease().unwrap();
    let extending = async {
        sleep(LEASE / 2).await;
        lease.extend(LEASE * 2).await.unwrap();
    };
    let (end, ()) = tokio::join!(guarded.next(), extending);
    assert_eq!(end, None);
    assert_lost(guarded.outcome(), LossReason::Expired);
    let after = begun.elapsed();
    assert!(after > LEASE * 2 && after < LEASE * 5 / 2, "{after:?}");
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_send_stays_so_whatever_its_items() {
    let elector = LocalElector::new();
    // Each item is made in the poll that gives it: nothing of it is kept between polls.
    let counts = || stream::iter([1, 2]).map(Rc::new);
    let mut guarded = pin!(is_send(
        elector.guard_stream("x", &once(), |_| is_send(counts()))
    ));
    assert_eq!(guarded.next().await, Some(Rc::new(1)));

    let tried = || counts().map(Ok::<_, LeaderError>);
    let mut guarded = pin!(is_send(elector.guard_try_stream(
        "y",
        &once(),
        |_| is_send(tried())
    )));
    assert_eq!(guarded.next().await.unwrap().unwrap(), Rc::new(1));
}
