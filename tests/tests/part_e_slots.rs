//! Part E of the scenarios: several leaders of one name, each in a slot of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use leader_core::{ElectorExt, Lease, LeaseOptions};
use leader_tests::{World, is_skipped, lead, ms, on_every_store, options, until, waiting};
use tokio::time::{Instant, sleep};

on_every_store!(
    e01_three_of_five_run_and_a_fourth_gets_in_when_one_leaves,
    e01_a_crashed_holders_slot_is_free_after_its_own_lease,
    e02_long_and_short_leases_stand_side_by_side,
    e03_candidates_that_disagree_about_slots_never_exceed_their_own,
    e04_auto_extended_slots_stay,
    e05_a_slot_freed_twice_frees_nobody_elses,
    tasks_of_one_elector_share_the_slots,
);

fn slots(slots: u32, wait: u64, lease: u64) -> LeaseOptions {
    options(waiting(ms(wait), ms(lease)).slots(slots))
}

fn numbers<'a>(leases: impl IntoIterator<Item = &'a Lease>) -> BTreeSet<u32> {
    leases.into_iter().map(|lease| lease.slot()).collect()
}

async fn e01_three_of_five_run_and_a_fourth_gets_in_when_one_leaves<W: World>(world: W) {
    let three = slots(3, 0, 60_000);
    let mut candidates = Vec::new();
    for node in ["a", "b", "c", "d", "e"] {
        candidates.push(world.candidate(node).await);
    }
    let mut leases = Vec::new();
    for candidate in &candidates[..3] {
        leases.push(lead(candidate, "x", &three).await);
    }
    assert_eq!(numbers(&leases), BTreeSet::from([0, 1, 2]));
    assert_eq!(candidates[0].state("x").await.unwrap().holders().len(), 3);
    for late in &candidates[3..] {
        assert!(is_skipped(late, "x", &three).await);
    }
    let (d, e) = (candidates[3].clone(), candidates[4].clone());
    let waiter = tokio::spawn(async move { d.try_acquire("x", &slots(3, 20_000, 60_000)).await });
    sleep(ms(20)).await;
    leases.remove(1).release().await.unwrap();
    let fourth = waiter
        .await
        .unwrap()
        .unwrap()
        .expect("a slot was freed within the wait");
    assert_eq!(fourth.slot(), 1, "the free slot is the one that was left");
    assert!(is_skipped(&e, "x", &three).await);
}

async fn e01_a_crashed_holders_slot_is_free_after_its_own_lease<W: World>(world: W) {
    let (a, b, c) = (
        world.candidate("a").await,
        world.candidate("b").await,
        world.candidate("c").await,
    );
    let _long = lead(&a, "x", &slots(2, 0, 60_000)).await;
    // Forgotten, as a crash forgets it: nothing is released.
    std::mem::forget(lead(&b, "x", &slots(2, 20_000, 300)).await);
    let begun = Instant::now();
    let next = lead(&c, "x", &slots(2, 20_000, 60_000)).await;
    assert_eq!(next.slot(), 1);
    assert!(begun.elapsed() < Duration::from_secs(15));
}

async fn e02_long_and_short_leases_stand_side_by_side<W: World>(world: W) {
    let (a, b, c) = (
        world.candidate("a").await,
        world.candidate("b").await,
        world.candidate("c").await,
    );
    let long = lead(&a, "x", &slots(2, 0, 60_000)).await;
    for _ in 0..3 {
        let short = lead(&b, "x", &slots(2, 20_000, 200)).await;
        assert_eq!(short.slot(), 1);
        if short.remaining() > ms(50) {
            assert!(is_skipped(&c, "x", &slots(2, 0, 200)).await || !short.is_valid());
        }
        std::mem::forget(short);
    }
    until("the short ones have ended", ms(10_000), async || {
        c.state("x").await.unwrap().holders().len() == 1
    })
    .await;
    long.ensure_valid().unwrap();
    let state = c.state("x").await.unwrap();
    assert_eq!(state.holders()[0].fence(), long.fence());
    assert!(state.holders()[0].remaining() > Duration::from_secs(40));
    long.extend(Duration::from_secs(60)).await.unwrap();
}

async fn e03_candidates_that_disagree_about_slots_never_exceed_their_own<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let (two, five) = (slots(2, 0, 60_000), slots(5, 0, 60_000));
    let mut leases = vec![lead(&b, "x", &five).await];
    leases.push(lead(&a, "x", &two).await);
    assert!(
        is_skipped(&a, "x", &two).await,
        "admitted beyond its own two"
    );
    for _ in 0..3 {
        leases.push(lead(&b, "x", &five).await);
    }
    assert!(
        is_skipped(&b, "x", &five).await,
        "admitted beyond the larger five"
    );
    assert_eq!(numbers(&leases), BTreeSet::from([0, 1, 2, 3, 4]));
    let state = a.state("x").await.unwrap();
    assert_eq!(state.holders().len(), 5);

    // The low slots leave; three are still taken, so the one that knows of two stays out.
    leases.sort_by_key(|lease| lease.slot());
    for lease in leases.drain(..2) {
        lease.release().await.unwrap();
    }
    assert!(is_skipped(&a, "x", &two).await);
    leases.pop().unwrap().release().await.unwrap();
    assert!(is_skipped(&a, "x", &two).await);
    leases.pop().unwrap().release().await.unwrap();
    assert_eq!(lead(&a, "x", &two).await.slot(), 0);
}

async fn e04_auto_extended_slots_stay<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let extended = options(
        waiting(Duration::ZERO, ms(600) * W::PACE)
            .slots(2)
            .auto_extend(true),
    );
    let (first, second) = (
        lead(&a, "x", &extended).await,
        lead(&b, "x", &extended).await,
    );
    let end = Instant::now() + ms(1_800) * W::PACE;
    while Instant::now() < end {
        assert!(is_skipped(&b, "x", &extended).await, "a third got in");
        sleep(ms(50)).await;
    }
    first.ensure_valid().unwrap();
    second.ensure_valid().unwrap();
    first.release().await.unwrap();
    second.release().await.unwrap();
}

async fn e05_a_slot_freed_twice_frees_nobody_elses<W: World>(world: W) {
    let (a, b, c) = (
        world.candidate("a").await,
        world.candidate("b").await,
        world.candidate("c").await,
    );
    let two = slots(2, 0, 60_000);
    let _first = lead(&a, "x", &two).await;
    // The second slot changes hands while its old holder still has a lease in hand.
    let old = lead(&b, "x", &slots(2, 20_000, 50)).await;
    let new = lead(&c, "x", &slots(2, 20_000, 60_000)).await;
    assert_eq!(new.slot(), old.slot());
    assert!(old.release().await.is_err());
    new.ensure_valid().unwrap();
    assert_eq!(c.state("x").await.unwrap().holders().len(), 2);
    assert!(is_skipped(&b, "x", &two).await);
}

async fn tasks_of_one_elector_share_the_slots<W: World>(world: W) {
    let a = world.candidate("a").await;
    let patient = slots(3, 20_000, 60_000);
    let running = std::sync::atomic::AtomicU32::new(0);
    let most = std::sync::atomic::AtomicU32::new(0);
    let body = async |_| {
        use std::sync::atomic::Ordering::SeqCst;
        let now = running.fetch_add(1, SeqCst) + 1;
        most.fetch_max(now, SeqCst);
        // Longer than a claim takes, so that bodies overlap.
        sleep(ms(20) * W::PACE * W::PACE).await;
        running.fetch_sub(1, SeqCst);
    };
    let runs = (0..12).map(|_| a.run_if_leader("x", &patient, body));
    for ran in futures::future::join_all(runs).await {
        assert_eq!(ran.unwrap(), Some(()));
    }
    let most = most.into_inner();
    assert!(most <= 3, "{most} at a time");
    assert!(most > 1, "the slots were used one after the other");
}
