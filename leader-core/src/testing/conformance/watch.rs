//! Watches: a release is told to whoever waits, and only that.

use std::time::Duration;

use tokio::time::Instant;

use super::support::{
    Candidate, Denial, Grant, LONG, PATIENCE, SHORT, Stage, assert_gone, less_drift, unique, until,
};
use crate::hints::News;
use crate::store::{LeaseStore, Watching};

const IN_FORCE: &str = "a lease in force is released";

/// A name that a peer holds and a waiter was denied: what comes before each watch.
async fn held<'s, S: LeaseStore>(
    stage: &Stage<'s, S>,
) -> (Candidate<'s, S>, Grant, Denial) {
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;
    let denial = stage.candidate("waiter").denied("the name is held").await;
    (peer, grant, denial)
}

/// A release is told to whoever watches, with its place in the name's history.
pub async fn a02_a_release_is_told(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    watch.told_after(denial.revision, "a release is told").await;
}

/// One watch is told of one release after the other.
pub async fn a13_each_release_is_told(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (first, grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    first.released(first.release_of(grant.slot), IN_FORCE).await;
    watch
        .told_after(denial.revision, "the first release is told")
        .await;
    for _ in 0..3 {
        let next = stage.candidate("next");
        let grant = next.elected(LONG, "a released name is free").await;
        next.released(next.release_of(grant.slot), IN_FORCE).await;
        watch
            .told_after(grant.fence.into(), "each release is told")
            .await;
    }
}

/// A release between the denial and the watch is told at once.
pub async fn a11_a_release_before_the_watch_is_told(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    let mut watch = stage.watch(denial.revision).await;
    watch
        .told_after(denial.revision, "a release between the denial and the watch is told at once")
        .await;
}

/// The same when others have led since, and one leads now: another slot may be free all the same.
pub async fn a11_a_release_before_the_watch_is_told_after_others_led(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let holders = [stage.candidate_of(2, "a"), stage.candidate_of(2, "b")];
    let mut grants = Vec::new();
    for holder in &holders {
        grants.push(holder.elected(LONG, "a free slot is granted").await);
    }
    let denial = stage
        .candidate_of(2, "waiter")
        .denied("both slots are taken")
        .await;
    for (holder, grant) in holders.iter().zip(&grants) {
        holder.released(holder.release_of(grant.slot), IN_FORCE).await;
    }
    stage
        .candidate_of(2, "next")
        .elected(LONG, "a free slot is granted")
        .await;
    let mut watch = stage.watch(denial.revision).await;
    watch
        .told_after(denial.revision, "two slots were freed between the denial and the watch, and one still is free")
        .await;
}

/// An eviction between the denial and the watch is told at once.
pub async fn a11_an_eviction_before_the_watch_is_told(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (_peer, _grant, denial) = held(&stage).await;
    stage.evict().await;
    stage
        .candidate("next")
        .elected(LONG, "an evicted name is free")
        .await;
    let mut watch = stage.watch(denial.revision).await;
    watch
        .told_after(denial.revision, "an eviction between the denial and the watch is told at once")
        .await;
}

/// While the name is held and nobody releases it, nothing is told.
pub async fn a13_a_watch_of_a_held_name_is_quiet(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    peer.extend(grant.slot, LONG).await;
    stage.candidate("other").denied("the name is held").await;
    stage.holders().await;
    let foreign = stage.candidate("foreign");
    foreign
        .not_released(foreign.release_of(grant.slot), "the slot is another's")
        .await;
    watch
        .stays_quiet("nobody has released anything: a hint costs a claim")
        .await;
}

/// A release that keeps its slot is told with the time after which it is free.
pub async fn c04_a_kept_slot_is_told_with_its_time(store: &impl LeaseStore) {
    let keep = LONG / 2;
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    let asked = Instant::now();
    peer.released(peer.release_of(grant.slot).keeping(keep), IN_FORCE)
        .await;
    let promise = "a kept slot is told with the time after which it is free";
    let news = watch.told_after(denial.revision, promise).await;
    if let News::Released { free_at, .. } = news {
        let free_in = free_at - asked;
        assert!(
            free_in >= less_drift(keep) && free_in <= keep + PATIENCE,
            "{promise}: {free_in:?}, not {keep:?}"
        );
    }
}

/// The time is never beyond the lease, as the slot is not kept beyond it.
pub async fn c04_a_kept_slot_is_told_with_no_more_than_its_lease(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    peer.released(peer.release_of(grant.slot).keeping(LONG * 10), IN_FORCE)
        .await;
    let promise = "a slot is never kept beyond its lease";
    let news = watch.told_after(denial.revision, promise).await;
    if let News::Released { free_at, .. } = news {
        let free_in = free_at.saturating_duration_since(Instant::now());
        assert!(free_in <= LONG, "{promise}: it is told for {free_in:?}");
    }
}

/// Everybody who watches a name is told, and one who leaves does not take the others' watch along.
pub async fn a12_every_watcher_is_told(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(stage.watch(denial.revision).await);
    }
    drop(watches.remove(1));
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    for watch in &mut watches {
        watch.told_after(denial.revision, "everybody who watches is told").await;
    }
}

/// A watch that was dropped leaves nothing behind: the store lets go of its sender, and tells it nothing.
pub async fn c07_a_dropped_watch_leaves_nothing_behind(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    watch.watching = Watching::unbound();
    until("the store lets go of the sender of an ended watch", async || {
        (watch.hints.senders() == 0).then_some(())
    })
    .await;
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    watch.stays_quiet("a watch that was dropped is over").await;
}

/// Releases of other names are not told, not of those that begin alike either.
pub async fn a12_other_names_are_not_told(store: &impl LeaseStore) {
    let name = unique();
    let stage = Stage::named(store, &name);
    let (peer, grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    for other in [
        name[..name.len() - 1].to_owned(),
        format!("{name}x"),
        format!("{name}:x"),
        format!("{name}/x"),
        unique(),
    ] {
        let other = Stage::named(store, &other);
        let peer = other.candidate("peer");
        let grant = peer.elected(LONG, "another name is free").await;
        peer.released(peer.release_of(grant.slot), IN_FORCE).await;
        other.candidate("peer").elected(LONG, "it is free").await;
        other.evict().await;
    }
    watch.stays_quiet("releases of other names are not told").await;
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    watch.told_after(denial.revision, "a release of the name itself is told").await;
}

/// An eviction is told like a release.
pub async fn b04_an_eviction_is_told(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    assert_eq!(stage.evict().await, 1, "one slot was taken");
    watch.told_after(denial.revision, "an eviction is told").await;
    let promise = "what was evicted is not held any more";
    let reason = peer.not_released(peer.release_of(grant.slot), promise).await;
    assert_gone(reason, promise);
}

/// A claim that is undone is told like a release: it had taken a slot.
pub async fn a04_an_undone_claim_is_told(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (peer, _grant, denial) = held(&stage).await;
    let mut watch = stage.watch(denial.revision).await;
    peer.released(peer.abandonment(LONG), IN_FORCE).await;
    watch.told_after(denial.revision, "an undone claim is told").await;
}

/// A watch of a name that is free already does not leave its waiter asleep.
pub async fn a11_a_watch_of_a_name_that_was_freed_is_told(store: &impl LeaseStore) {
    const A_WHILE: Duration = SHORT;
    let stage = Stage::new(store);
    let (peer, grant, denial) = held(&stage).await;
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    tokio::time::sleep(A_WHILE).await;
    for _ in 0..2 {
        let mut watch = stage.watch(denial.revision).await;
        watch.told_after(denial.revision, "the name was freed a while ago").await;
    }
}
