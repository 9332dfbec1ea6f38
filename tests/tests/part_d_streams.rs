//! Parts D and E of the scenarios, as far as they are about guarded streams. What is exact to the millisecond is in
//! `leader-core/tests/stream.rs`.

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{FutureExt, Stream, StreamExt, TryStreamExt};
use leader_core::{
    ElectorExt, FencingToken, LeaderError, LeaseOptions, LossReason, StreamOutcome, current_lease,
    ensure_leader,
};
use leader_tests::{
    World, at_once, is_skipped, lead, ms, on_every_store, options, patient, until, waiting,
};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

on_every_store!(
    d06_a_stream_that_nobody_polls_claims_nothing,
    d06_polled_and_dropped_half_way_it_is_free_at_once,
    d06_dropped_at_each_poll_it_is_free_at_once,
    d06_each_call_is_a_run_of_its_own,
    d06_a_lease_lost_between_items_ends_it,
    d06_a_loss_is_the_last_item_where_items_can_say_it,
    d06_a_consumer_that_waits_is_told_of_the_loss,
    d07_a_consumer_slower_than_the_lease_is_still_the_leader,
    d07_a_timeout_inside_the_body_is_the_bodys_own_business,
    d08_streams_and_runs_of_one_name_nest,
    e04_guarded_streams_over_slots,
    however_a_stream_ends_the_next_is_elected_at_once,
    a_skipped_stream_is_empty_and_says_who_leads,
    a_stream_that_waits_takes_over_when_the_other_ends,
);

/// A lease that is extended in time, at the world's pace.
fn extended<W: World>(lease: u64) -> LeaseOptions {
    options(waiting(Duration::ZERO, ms(lease) * W::PACE).auto_extend(true))
}

/// An endless feed of the numbers from 0, each with the fencing token under which it was read.
fn numbers() -> impl Stream<Item = (u64, FencingToken)> {
    stream::iter(0..).map(|number| {
        ensure_leader().expect("read outside the lease");
        let lease = current_lease().expect("there is one when there is a leader");
        (number, lease.fence())
    })
}

#[track_caller]
fn assert_lost(outcome: Option<&StreamOutcome>, expected: LossReason) {
    match outcome {
        Some(StreamOutcome::Failed(LeaderError::LeaseLost { reason, .. }))
            if *reason == expected => {}
        other => panic!("not lost as {expected:?}: {other:?}"),
    }
}

async fn d06_a_stream_that_nobody_polls_claims_nothing<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let guarded = a.guard_stream("x", &at_once(), |_| numbers());
    sleep(ms(20)).await;
    assert!(b.state("x").await.unwrap().holders().is_empty());
    assert!(!is_skipped(&b, "x", &at_once()).await);
    drop(guarded);
    assert!(!is_skipped(&b, "x", &at_once()).await);
}

async fn d06_polled_and_dropped_half_way_it_is_free_at_once<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut guarded = Box::pin(a.guard_stream("x", &at_once(), |_| numbers()));
    for expected in 0..3 {
        assert_eq!(guarded.next().await.unwrap().0, expected);
        assert!(is_skipped(&b, "x", &at_once()).await);
    }
    drop(guarded);
    // The lease outlives the test: whoever is elected was let in by the release.
    lead(&b, "x", &patient()).await.release().await.unwrap();
    lead(&a, "x", &patient()).await.release().await.unwrap();
}

async fn d06_dropped_at_each_poll_it_is_free_at_once<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut polls = 0;
    loop {
        let mut guarded = Box::pin(a.guard_stream("x", &patient(), |_| {
            numbers().take(3).then(|item| async move {
                tokio::task::yield_now().await;
                item
            })
        }));
        let mut ended = false;
        for _ in 0..polls {
            let polled = std::future::poll_fn(|cx| Poll::Ready(guarded.poll_next_unpin(cx)));
            ended = polled.await == Poll::Ready(None);
            tokio::task::yield_now().await;
        }
        drop(guarded);
        let next = b.try_acquire("x", &patient()).await.unwrap();
        let next = next.unwrap_or_else(|| panic!("still led after {polls} polls"));
        next.release().await.unwrap();
        if ended {
            break;
        }
        polls += 1;
    }
    assert!(polls >= 7, "{polls}");
}

async fn d06_each_call_is_a_run_of_its_own<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let once = at_once();
    let mut first = pin!(a.guard_stream("x", &once, |_| numbers().take(2)));
    let mut second = pin!(a.guard_stream("x", &once, |_| numbers().take(2)));
    let (_, fence) = first.next().await.unwrap();
    // The same candidate, the same task: still another run, so it is kept out.
    assert_eq!(second.next().await, None);
    assert!(second.outcome().unwrap().is_skipped());
    assert_eq!(first.next().await, Some((1, fence)));
    assert_eq!(first.next().await, None);
    assert!(first.outcome().unwrap().is_ended());

    let third = a.guard_stream("x", &once, |_| numbers().take(2));
    let items: Vec<_> = third.collect().await;
    assert_eq!(items.len(), 2);
    assert!(items[0].1 > fence, "{items:?}");
    assert!(!is_skipped(&b, "x", &once).await);
}

async fn d06_a_lease_lost_between_items_ends_it<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut guarded = pin!(a.guard_stream("x", &extended::<W>(600), |_| numbers()));
    let (_, fence) = guarded.next().await.unwrap();
    assert_eq!(b.force_release("x").await.unwrap(), 1);
    let next = lead(&b, "x", &at_once()).await;
    assert!(next.fence() > fence);
    let lease = guarded.lease().unwrap();
    timeout(ms(10_000), lease.lost()).await.unwrap();
    assert_eq!(guarded.next().await, None);
    assert_lost(guarded.outcome(), LossReason::Taken);
    // The successor is left alone.
    next.release().await.unwrap();
}

async fn d06_a_loss_is_the_last_item_where_items_can_say_it<W: World>(world: W) {
    let a = world.candidate("a").await;
    let brief = options(waiting(Duration::from_secs(20), ms(1_000)));
    let mut guarded = pin!(a.guard_try_stream("x", &brief, |_| numbers().map(Ok)));
    assert_eq!(guarded.try_next().await.unwrap().unwrap().0, 0);
    // A consumer slower than the lease, which nobody extends.
    sleep(ms(1_100)).await;
    match guarded.next().await {
        Some(Err(LeaderError::LeaseLost {
            reason: LossReason::Expired,
            ..
        })) => {}
        other => panic!("the loss was not told: {other:?}"),
    }
    assert!(guarded.next().await.is_none());
    assert_lost(guarded.outcome(), LossReason::Expired);
}

async fn d06_a_consumer_that_waits_is_told_of_the_loss<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let consumer = tokio::spawn(
        a.guard_try_stream("x", &extended::<W>(600), |_| {
            stream::pending::<Result<(), LeaderError>>()
        })
        .try_collect::<Vec<_>>(),
    );
    until("a leads", ms(10_000), async || {
        b.force_release("x").await.unwrap() == 1
    })
    .await;
    let told = timeout(ms(10_000), consumer).await.unwrap().unwrap();
    assert!(
        matches!(
            told,
            Err(LeaderError::LeaseLost {
                reason: LossReason::Deleted,
                ..
            })
        ),
        "{told:?}"
    );
}

async fn d07_a_consumer_slower_than_the_lease_is_still_the_leader<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut guarded = pin!(a.guard_stream("x", &extended::<W>(600), |_| numbers().take(2)));
    let (_, fence) = guarded.next().await.unwrap();
    for _ in 0..15 {
        sleep(ms(100) * W::PACE).await;
        assert!(is_skipped(&b, "x", &at_once()).await);
    }
    assert_eq!(guarded.next().await, Some((1, fence)));
    sleep(ms(900) * W::PACE).await;
    assert_eq!(guarded.next().await, None);
    assert!(guarded.outcome().unwrap().is_ended());
    assert!(!is_skipped(&b, "x", &at_once()).await);
}

async fn d07_a_timeout_inside_the_body_is_the_bodys_own_business<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut guarded = pin!(a.guard_stream("x", &at_once(), |_| {
        stream::iter(0..2).then(|_| timeout(ms(10), std::future::pending::<()>()))
    }));
    for _ in 0..2 {
        assert!(guarded.next().await.unwrap().is_err());
        assert!(is_skipped(&b, "x", &at_once()).await);
    }
    // So is one around a poll: the stream goes on.
    let mut slow = pin!(a.guard_stream("y", &at_once(), |_| {
        stream::once(async { sleep(ms(50)).await })
    }));
    while timeout(ms(5), slow.next()).await.is_err() {}
    assert_eq!(slow.next().await, None);
    assert!(slow.outcome().unwrap().is_ended());
    assert_eq!(guarded.next().await, None);
    assert!(guarded.outcome().unwrap().is_ended());
}

async fn d08_streams_and_runs_of_one_name_nest<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let once = at_once();
    let ran = a
        .run_if_leader("x", &once, async |outer| {
            let inner = a.guard_stream("x", &once, |_| numbers().take(2));
            let fences: Vec<_> = inner.map(|(_, fence)| fence).collect().await;
            assert_eq!(fences, [outer.fence(), outer.fence()]);
            // The inner stream has not released what is the outer's.
            assert!(is_skipped(&b, "x", &once).await);
            ensure_leader().unwrap();
        })
        .await;
    assert_eq!(ran.unwrap(), Some(()));

    let mut around = pin!(a.guard_stream("x", &once, |lease| {
        let (a, once) = (&a, &once);
        stream::once(async move {
            let inner = a.run_if_leader("x", once, async |inner| inner.fence());
            assert_eq!(inner.await.unwrap(), Some(lease.fence()));
        })
    }));
    assert_eq!(around.next().await, Some(()));
    assert_eq!(around.next().await, None);
    assert!(!is_skipped(&b, "x", &once).await);
}

async fn e04_guarded_streams_over_slots<W: World>(world: W) {
    let three = waiting(Duration::ZERO, ms(600) * W::PACE).auto_extend(true);
    let three = options(three.slots(3));
    let mut candidates = Vec::new();
    for node in ["a", "b", "c", "d"] {
        candidates.push(world.candidate(node).await);
    }
    let stand = |place: usize| {
        Box::pin(candidates[place].guard_stream("x", &three, |lease| {
            numbers().map(move |(number, fence)| (number, lease.slot(), fence))
        }))
    };
    let mut streams: Vec<_> = (0..4).map(stand).collect();
    let mut slots = BTreeSet::new();
    for guarded in &mut streams[..3] {
        let (number, slot, _) = guarded.next().await.unwrap();
        assert_eq!(number, 0);
        slots.insert(slot);
    }
    assert_eq!(slots, BTreeSet::from([0, 1, 2]));
    assert_eq!(streams[3].next().await, None);
    assert!(streams[3].outcome().unwrap().is_skipped());
    // All of them slower than the lease.
    sleep(ms(1_500) * W::PACE).await;
    assert!(is_skipped(&candidates[3], "x", &three).await);
    let mut freed = None;
    for (place, guarded) in streams[..3].iter_mut().enumerate() {
        let (number, slot, _) = guarded.next().await.unwrap();
        assert_eq!(number, 1);
        freed = (place == 1).then_some(slot).or(freed);
    }
    // One goes, and its slot is the one that is free.
    drop(streams.remove(1));
    let mut late = stand(3);
    until(
        "the slot of the one that went is free",
        ms(10_000),
        async || {
            if late.outcome().is_some() {
                late = stand(3);
            }
            late.next().await.map(|(_, slot, _)| slot) == freed
        },
    )
    .await;
    for guarded in &mut streams[..2] {
        assert_eq!(guarded.next().await.unwrap().0, 2);
    }
}

/// Each way in which a guarded stream can end.
#[derive(Clone, Copy, Debug)]
enum End {
    Ends,
    Fails,
    Panics,
    IsDropped,
    IsAborted,
}

const ENDS: [End; 5] = [
    End::Ends,
    End::Fails,
    End::Panics,
    End::IsDropped,
    End::IsAborted,
];

type Items = BoxStream<'static, Result<u32, LeaderError>>;

async fn consume_until_it<E>(end: End, elector: &E)
where
    E: leader_core::Elector + Clone + 'static,
{
    let (begun, seen) = oneshot::channel();
    let mut begun = Some(begun);
    let last: Items = match end {
        End::Ends => stream::empty().boxed(),
        End::Fails => stream::iter([Err(LeaderError::NotLeading)])
            .chain(stream::pending())
            .boxed(),
        End::Panics => stream::poll_fn(|_| std::panic::resume_unwind(Box::new("as asked"))).boxed(),
        End::IsDropped | End::IsAborted => stream::pending().boxed(),
    };
    let mut guarded = Box::pin(elector.guard_try_stream("x", &patient(), move |_| {
        stream::once(async move {
            if let Some(begun) = begun.take() {
                let _ = begun.send(());
            }
            Ok(1)
        })
        .chain(last)
    }));
    if matches!(end, End::IsAborted) {
        let consumer = tokio::spawn(guarded.try_for_each(|_| async { Ok(()) }));
        seen.await.unwrap();
        consumer.abort();
        assert!(consumer.await.unwrap_err().is_cancelled());
        return;
    }
    assert_eq!(guarded.try_next().await.unwrap(), Some(1));
    match end {
        End::Ends => assert_eq!(guarded.next().await.map(|_| ()), None),
        End::Fails => {
            guarded.try_next().await.unwrap_err();
            // Free by the time at which the error is given: nothing is dropped yet.
            lead(elector, "x", &at_once())
                .await
                .release()
                .await
                .unwrap();
        }
        End::Panics => {
            let next = std::panic::AssertUnwindSafe(guarded.next()).catch_unwind();
            assert!(next.await.is_err());
        }
        End::IsDropped | End::IsAborted => drop(guarded),
    }
}

async fn however_a_stream_ends_the_next_is_elected_at_once<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    for round in 0..250 {
        let end = ENDS[round % ENDS.len()];
        consume_until_it(end, &a).await;
        let next = b.try_acquire("x", &patient()).await.unwrap();
        let next = next.unwrap_or_else(|| panic!("round {round}: still led after it {end:?}"));
        next.release().await.unwrap();
    }
}

async fn a_skipped_stream_is_empty_and_says_who_leads<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &at_once()).await;
    let mut plain = pin!(b.guard_stream("x", &at_once(), |_| numbers()));
    assert_eq!(plain.next().await, None);
    match plain.outcome() {
        Some(StreamOutcome::Skipped(skipped)) => assert_eq!(skipped.holder().unwrap(), &"a"),
        other => panic!("not skipped: {other:?}"),
    }
    // Somebody else leading is no error, so it is no item either.
    let skipped = b.guard_try_stream("x", &at_once(), |_| numbers().map(Ok::<_, LeaderError>));
    assert_eq!(skipped.try_collect::<Vec<_>>().await.unwrap(), []);
    lease.release().await.unwrap();
}

async fn a_stream_that_waits_takes_over_when_the_other_ends<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut first = Box::pin(a.guard_stream("x", &at_once(), |_| numbers()));
    let (_, fence) = first.next().await.unwrap();
    let next = tokio::spawn(
        b.guard_stream("x", &patient(), |_| numbers().take(3))
            .collect::<Vec<_>>(),
    );
    sleep(ms(20)).await;
    assert!(!next.is_finished());
    drop(first);
    let items = timeout(ms(10_000), next).await.unwrap().unwrap();
    assert_eq!(items.len(), 3);
    assert!(items.iter().all(|(_, next)| *next > fence), "{items:?}");
}
