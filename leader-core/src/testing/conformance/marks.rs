//! Marks: a claim that was given up and arrives late must not stay.

use super::support::{LONG, SHORT, Stage, until};
use crate::store::{ClaimReply, LeaseStore};

const NAME_IS_FREE: &str = "a free name is granted";

/// A claim that arrives after it was given up is told so, and takes nothing.
pub async fn a04_a_claim_that_arrives_after_its_end_is_refused(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let late = stage.candidate("late");
    late.not_released(late.abandonment(LONG), "it was never granted")
        .await;
    late.ended("a claim that was given up is refused").await;
    assert!(
        stage.holders().await.is_empty(),
        "a claim that was given up takes nothing"
    );
    late.ended("each copy of a claim that was given up is refused")
        .await;
}

/// A claim that was granted before it was given up is undone, and its copies are refused.
pub async fn a04_a_granted_claim_that_is_given_up_is_undone(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate_of(2, "peer");
    stage
        .candidate_of(2, "other")
        .elected(LONG, "a free slot is granted")
        .await;
    let grant = peer.elected(LONG, "a free slot is granted").await;
    peer.released(
        peer.abandonment(LONG),
        "a claim that was granted is undone by its token",
    )
    .await;
    peer.ended("its copies are refused").await;
    let next = stage
        .candidate_of(2, "next")
        .elected(LONG, "what was undone is free at once")
        .await;
    assert_eq!(next.slot, grant.slot, "the slot of the claim is freed");
}

/// A release that knows its slot can leave a mark too: it frees the slot, and copies of its claim are refused.
pub async fn a04_a_marked_release_frees_the_slot_and_refuses_the_token(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    peer.released(
        peer.release_of(grant.slot).marking(LONG),
        "a lease in force is released",
    )
    .await;
    peer.ended("a copy of its claim is refused").await;
    stage.candidate("other").elected(LONG, NAME_IS_FREE).await;
    peer.ended("a copy of its claim is refused while another leads")
        .await;
}

/// The same when a minimum lease keeps the slot.
pub async fn c04_a_marked_release_keeps_the_slot_and_refuses_the_token(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG * 10, NAME_IS_FREE).await;
    peer.released(
        peer.release_of(grant.slot).keeping(LONG).marking(LONG),
        "a lease in force is released",
    )
    .await;
    peer.ended("a copy of its claim is refused").await;
    let holder = stage.holder(grant.slot, "a kept slot is taken").await;
    assert!(holder.is_retained(), "its work has ended");
}

/// A mark is for its own token: another candidate, of the same node too, is granted the name.
pub async fn a04_a_mark_does_not_hit_another_token(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let late = stage.candidate("peer");
    late.not_released(late.abandonment(LONG), "it was never granted")
        .await;
    let other = stage.candidate("peer");
    let grant = other
        .elected(LONG, "a mark is for its own token, not for its node")
        .await;
    late.ended("the mark stands while another leads").await;
    let holder = stage.holder(grant.slot, "the other holds the slot").await;
    assert_eq!(holder.fence(), grant.fence, "a mark takes no slot");
}

/// A mark stands while others come and go.
pub async fn a04_a_mark_stands_while_others_come_and_go(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let late = stage.candidate("late");
    late.not_released(late.abandonment(LONG), "it was never granted")
        .await;
    for _ in 0..3 {
        let other = stage.candidate("other");
        let grant = other.elected(LONG, NAME_IS_FREE).await;
        other
            .released(other.release_of(grant.slot), "a held name is released")
            .await;
        late.ended("a mark outlives the tenures of others").await;
    }
    stage.candidate("other").elected(LONG, NAME_IS_FREE).await;
    assert_eq!(stage.evict().await, 1, "one slot was taken");
    late.ended("a mark is not evicted: the claim may still arrive")
        .await;
}

/// A mark is forgotten when its time is over.
pub async fn c07_a_mark_is_forgotten_after_its_time(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let late = stage.candidate("late");
    late.not_released(late.abandonment(SHORT), "it was never granted")
        .await;
    until("a mark is forgotten after its time", async || {
        let reply = late.claim(LONG).await;
        (reply != ClaimReply::Ended).then_some(())
    })
    .await;
}
