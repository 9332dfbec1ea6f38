//! Releases: they end the tenure of their token, and nobody else's.

use tokio::time::{Instant, sleep};

use super::support::{
    FEW_STEPS, GRANULARITY, LONG, SHORT, Stage, assert_gone, assert_lasted, assert_lives,
};
use crate::error::LossReason;
use crate::store::{ClaimReply, LeaseStore};

const NAME_IS_FREE: &str = "a free name is granted";
const IN_FORCE: &str = "a lease in force is released";

/// A slot that was released is free at once, a hundred times over.
pub async fn c01_a_released_slot_is_free_at_once(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    for _ in 0..100 {
        let peer = stage.candidate("peer");
        let grant = peer.elected(LONG, "a released name is free at once").await;
        assert_eq!(grant.slot, 0, "a released slot is free at once");
        peer.released(peer.release_of(grant.slot), IN_FORCE).await;
        assert!(
            stage.holders().await.is_empty(),
            "nobody holds what was released"
        );
    }
}

/// A release without a slot finds the slot that its token holds.
pub async fn c01_a_release_without_a_slot_finds_it(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (first, second) = (stage.candidate_of(2, "first"), stage.candidate_of(2, "second"));
    first.elected(LONG, "a free slot is granted").await;
    let grant = second.elected(LONG, "a free slot is granted").await;
    let mut release = second.release_of(grant.slot);
    release.slot = None;
    second.released(release, IN_FORCE).await;
    let slots: Vec<u32> = stage.holders().await.iter().map(crate::Holder::slot).collect();
    assert_eq!(slots, [0], "the token's own slot is freed, and no other");
}

/// A lease that was extended for long is free at once when it is released.
pub async fn c05_a_release_ends_an_extended_lease(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    peer.extend(grant.slot, LONG * 10).await;
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    stage.candidate("other").elected(LONG, NAME_IS_FREE).await;
}

/// A slot that is kept is taken until its time is over, and then free.
pub async fn c04_a_kept_slot_is_free_once_its_time_is_over(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    let asked = Instant::now();
    peer.released(peer.release_of(grant.slot).keeping(SHORT), IN_FORCE)
        .await;
    let next = stage
        .candidate("other")
        .elected_in_time(LONG, "a kept slot is free once its time is over")
        .await;
    assert_lasted(asked, SHORT, "a kept slot is taken until its time is over");
    assert!(next.fence > grant.fence, "fencing tokens grow");
}

/// A slot that is kept is read back as such, with who held it and for how long it is taken.
pub async fn c04_a_kept_slot_is_shown_as_retained(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG * 10, NAME_IS_FREE).await;
    peer.released(peer.release_of(grant.slot).keeping(LONG), IN_FORCE)
        .await;
    let holder = stage.holder(grant.slot, "a kept slot is taken").await;
    assert!(holder.is_retained(), "its work has ended");
    assert_eq!(holder.node_id(), &peer.node_id, "who held it");
    assert_eq!(holder.fence(), grant.fence, "its fencing token");
    assert_lives(&holder, LONG, "it is taken for the time it is kept");

    let denial = stage.candidate("other").denied("a kept slot is taken").await;
    assert!(
        denial.retry_after <= LONG + GRANULARITY,
        "it is free when the time it is kept is over, not after {:?}",
        denial.retry_after
    );
    assert_eq!(denial.holder.as_ref(), Some(&peer.node_id), "who held it");
}

/// A slot is never kept beyond the end that its lease had anyway.
pub async fn c04_a_slot_is_never_kept_beyond_its_lease(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(FEW_STEPS, NAME_IS_FREE).await;
    peer.released(peer.release_of(grant.slot).keeping(LONG), IN_FORCE)
        .await;
    stage
        .candidate("other")
        .elected_in_time(LONG, "a slot is never kept beyond its lease")
        .await;
}

/// A kept slot is nobody's: its old token can neither extend, claim nor release it.
pub async fn c04_a_kept_slot_is_nobodys(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG * 10, NAME_IS_FREE).await;
    peer.released(peer.release_of(grant.slot).keeping(LONG), IN_FORCE)
        .await;
    peer.not_extended(grant.slot, "a kept slot is not extended")
        .await;
    let reply = peer.claim(LONG * 10).await;
    assert!(
        !matches!(reply, ClaimReply::Granted { .. }),
        "a kept slot is not granted again: {reply:?}"
    );
    let promise = "a kept slot is not released again";
    peer.not_released(peer.release_of(grant.slot), promise).await;
    peer.not_released(peer.release_of(grant.slot).keeping(SHORT), promise)
        .await;
    peer.not_released(peer.abandonment(LONG), promise).await;

    let holder = stage.holder(grant.slot, "a kept slot is taken").await;
    assert!(holder.is_retained(), "it is still nobody's");
    assert_lives(&holder, LONG, "its time is what it was");
}

/// A release that arrives twice is refused the second time, and changes nothing then.
pub async fn c02_a_second_release_changes_nothing(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    let promise = "what was released is not held any more";
    peer.not_released(peer.release_of(grant.slot), promise).await;
    let successor = stage.candidate("successor");
    let successors = successor.elected(LONG, NAME_IS_FREE).await;
    peer.not_released(peer.release_of(grant.slot), promise).await;
    let holder = stage.holder(0, "the successor holds the slot").await;
    assert_eq!(holder.fence(), successors.fence, "the successor's lease");
}

/// A token that was never granted anything releases nothing.
pub async fn c02_a_foreign_token_releases_nothing(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    let foreign = stage.candidate("foreign");
    for release in [
        foreign.release_of(grant.slot),
        foreign.release_of(grant.slot).keeping(SHORT),
        foreign.release_of(grant.slot).marking(LONG),
    ] {
        let reason = foreign
            .not_released(release, "the slot is another candidate's")
            .await;
        assert_eq!(reason, LossReason::Taken, "the slot is another candidate's");
    }
    foreign
        .not_released(foreign.abandonment(LONG), "it holds no slot")
        .await;
    let holder = stage.holder(grant.slot, "the holder was left alone").await;
    assert_eq!(holder.fence(), grant.fence, "the holder's lease");
    assert!(!holder.is_retained(), "the holder's work goes on");
    assert_lives(&holder, LONG, "the holder's time is its own");

    let free = Stage::new(store);
    let nobody = free.candidate("nobody");
    let promise = "nobody holds a free name";
    let reason = nobody.not_released(nobody.release_of(0), promise).await;
    assert_gone(reason, promise);
    assert!(free.holders().await.is_empty(), "a release takes no slot");
}

/// A release that arrives after the lease has ended is refused.
pub async fn c02_a_release_after_the_end_is_refused(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(SHORT, NAME_IS_FREE).await;
    // Nothing touches the name meanwhile: a store that clears up only when it is asked must not be misled.
    sleep(SHORT * 4).await;
    let promise = "a lease that has ended is not released";
    let release = peer.release_of(grant.slot).keeping(LONG);
    assert_gone(peer.not_released(release, promise).await, promise);
    stage.candidate("other").elected(LONG, NAME_IS_FREE).await;
}

/// A release that arrives after a takeover leaves the successor alone.
pub async fn c02_a_late_release_leaves_the_successor_alone(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let late = stage.candidate("late");
    let grant = late.elected(SHORT, NAME_IS_FREE).await;
    let successor = stage.candidate("successor");
    let successors = successor
        .elected_in_time(LONG, "a lease that nobody extends ends")
        .await;
    for release in [
        late.release_of(grant.slot),
        late.release_of(grant.slot).keeping(SHORT),
    ] {
        let reason = late
            .not_released(release, "the slot is another candidate's now")
            .await;
        assert_eq!(reason, LossReason::Taken, "the slot was taken since");
    }
    late.not_released(late.abandonment(LONG), "it holds no slot any more")
        .await;
    let holder = stage.holder(grant.slot, "the successor holds it").await;
    assert_eq!(holder.fence(), successors.fence, "the successor's lease");
    assert_lives(&holder, LONG, "the successor's time is its own");
    stage
        .candidate("other")
        .denied("a late release does not free a successor's slot")
        .await;
}
