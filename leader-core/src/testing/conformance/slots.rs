//! Slots: how many may lead at once, also when candidates disagree about it.

use futures::future::join_all;
use tokio::time::Instant;

use super::support::{LONG, SHORT, Stage, assert_lasted, assert_lives};
use crate::store::{ClaimReply, LeaseStore};

const SLOT_IS_FREE: &str = "a free slot is granted";

/// Slots are granted from the lowest; one more than there are is denied.
pub async fn e01_the_lowest_free_slot_is_granted(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let mut peers = Vec::new();
    for (slot, node_id) in (0..).zip(["a", "b", "c"]) {
        let peer = stage.candidate_of(3, node_id);
        let grant = peer.elected(LONG, SLOT_IS_FREE).await;
        assert_eq!(grant.slot, slot, "the lowest free slot is granted");
        peers.push(peer);
    }
    let fourth = stage.candidate_of(3, "d");
    fourth.denied("three slots are three grants").await;

    let slots: Vec<u32> = stage.holders().await.iter().map(crate::Holder::slot).collect();
    assert_eq!(slots, [0, 1, 2], "each slot is read back");

    peers[1]
        .released(peers[1].release_of(1), "a held slot is released")
        .await;
    let grant = fourth.elected(LONG, SLOT_IS_FREE).await;
    assert_eq!(grant.slot, 1, "the slot that was freed is granted");
}

/// Of many claims at the same time, as many are granted as there are slots, each with a slot of its own.
pub async fn e01_many_claims_at_once_fill_the_slots(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peers: Vec<_> = (0..32).map(|_| stage.candidate_of(3, "peer")).collect();
    let replies = join_all(peers.iter().map(|peer| peer.claim(LONG))).await;
    let mut slots: Vec<u32> = replies
        .iter()
        .filter_map(|reply| match reply {
            ClaimReply::Granted { slot, .. } => Some(*slot),
            _ => None,
        })
        .collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2], "a claim is atomic: {replies:?}");
}

/// Leases of one name have a time each: a short one ends while a long one lives, and nobody else gets in.
pub async fn e02_each_slot_has_its_own_lease(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let long = stage
        .candidate_of(2, "long")
        .elected(LONG, SLOT_IS_FREE)
        .await;
    let asked = Instant::now();
    let short = stage
        .candidate_of(2, "short")
        .elected(SHORT, SLOT_IS_FREE)
        .await;
    let third = stage
        .candidate_of(2, "third")
        .elected_in_time(LONG, "the short lease ends")
        .await;
    assert_lasted(asked, SHORT, "the short lease lives for its time");
    assert_eq!(third.slot, short.slot, "the slot that ended is granted");
    stage
        .candidate_of(2, "fourth")
        .denied("the long lease lives on")
        .await;
    let holder = stage.holder(long.slot, "the long lease lives on").await;
    assert_eq!(holder.fence(), long.fence, "the long lease lives on");
    assert_lives(&holder, LONG, "the long lease has its own time");
}

/// Whoever finds all slots taken is told when the first of them ends, and whose it is.
pub async fn e02_a_denial_tells_of_the_lease_that_ends_first(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (sooner, later) = (stage.candidate_of(2, "sooner"), stage.candidate_of(2, "later"));
    later.elected(LONG * 10, SLOT_IS_FREE).await;
    sooner.elected(LONG, SLOT_IS_FREE).await;
    let denial = stage
        .candidate_of(2, "third")
        .denied("two slots are two grants")
        .await;
    assert!(
        denial.retry_after <= LONG * 2,
        "a slot is free when the first lease ends, not after {:?}",
        denial.retry_after
    );
    assert_eq!(
        denial.holder.as_ref(),
        Some(&sooner.node_id),
        "a denial names the holder whose lease ends first"
    );
}

/// Whoever asks for fewer slots counts all that are taken, those above its own number too.
pub async fn e03_who_asks_for_fewer_slots_counts_all_that_are_taken(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let five: Vec<_> = (0..5).map(|_| stage.candidate_of(5, "of five")).collect();
    for peer in &five[..3] {
        peer.elected(LONG, SLOT_IS_FREE).await;
    }
    let two = stage.candidate_of(2, "of two");
    two.denied("three are taken, which is not below two").await;
    five[0]
        .released(five[0].release_of(0), "a held slot is released")
        .await;
    two.denied("two are taken, which is not below two").await;
    five[1]
        .released(five[1].release_of(1), "a held slot is released")
        .await;
    let grant = two.elected(LONG, "one is taken, which is below two").await;
    assert_eq!(grant.slot, 0, "the lowest free slot is granted");

    let other = stage.candidate_of(2, "other of two");
    other.denied("two are taken again").await;
    for (peer, slot) in five[..2].iter().zip([1, 3]) {
        // Slot 2 is still held, so the third that fits is slot 3.
        let again = stage.candidate_of(5, peer.node_id.as_str());
        let grant = again.elected(LONG, "below five are taken").await;
        assert_eq!(grant.slot, slot, "the lowest free slot is granted");
    }
    five[3].elected(LONG, "below five are taken").await;
    five[4].denied("five are taken").await;
    assert_eq!(stage.holders().await.len(), 5, "never more than the larger");
}

/// Whoever asks for fewer slots than are taken is told when so many leases have ended that one is free for it.
pub async fn e03_a_denial_waits_for_as_many_as_must_leave(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    for (node_id, lease) in [("first", LONG), ("second", LONG * 10), ("third", LONG * 100)] {
        let peer = stage.candidate_of(5, node_id);
        peer.elected(lease, SLOT_IS_FREE).await;
    }
    let denial = stage
        .candidate_of(2, "of two")
        .denied("three are taken, which is not below two")
        .await;
    assert!(
        denial.retry_after > LONG * 5 && denial.retry_after <= LONG * 20,
        "one is free when two of the three have ended, not after {:?}",
        denial.retry_after
    );
    assert_eq!(
        denial.holder.as_ref().map(crate::NodeId::as_str),
        Some("second"),
        "a denial names the holder who must leave"
    );
}

/// A slot that a minimum lease keeps is taken.
pub async fn e01_a_kept_slot_counts_as_taken(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (leaver, stayer) = (stage.candidate_of(2, "leaver"), stage.candidate_of(2, "stayer"));
    let grant = leaver.elected(LONG, SLOT_IS_FREE).await;
    stayer.elected(LONG, SLOT_IS_FREE).await;
    leaver
        .released(
            leaver.release_of(grant.slot).keeping(LONG),
            "a held slot is released",
        )
        .await;
    let third = stage.candidate_of(2, "third");
    third.denied("a kept slot is taken until its time is over").await;
    let fourth = stage.candidate_of(3, "fourth");
    let grant = fourth.elected(LONG, "two of three are taken").await;
    assert_eq!(grant.slot, 2, "a kept slot is not granted");
}

/// A slot that is freed twice frees nobody else's.
pub async fn e05_a_slot_freed_twice_frees_nobody_elses(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (first, second) = (stage.candidate_of(2, "first"), stage.candidate_of(2, "second"));
    let grant = first.elected(LONG, SLOT_IS_FREE).await;
    second.elected(LONG, SLOT_IS_FREE).await;
    first
        .released(first.release_of(grant.slot), "a held slot is released")
        .await;
    let successor = stage.candidate_of(2, "successor");
    let successors = successor.elected(LONG, SLOT_IS_FREE).await;
    assert_eq!(successors.slot, grant.slot, "the slot that was freed");

    let promise = "what was released is not held any more";
    first.not_released(first.release_of(grant.slot), promise).await;
    first
        .not_released(first.abandonment(LONG), promise)
        .await;
    stage
        .candidate_of(2, "third")
        .denied("a slot that is freed twice frees nobody else's")
        .await;
    let holder = stage.holder(grant.slot, "the successor holds it").await;
    assert_eq!(holder.fence(), successors.fence, "the successor's lease");
}

/// A claim of an exact slot is granted that one, also when a lower one is free; others fill up what is left.
pub async fn an_exact_slot_is_granted(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let exact = stage.candidate_of(3, "exact");
    for _ in 0..2 {
        let grant = exact.elected_by(exact.claim_of(LONG).of_slot(1), SLOT_IS_FREE).await;
        assert_eq!(grant.slot, 1, "the exact slot is granted");
    }
    for slot in [0, 2] {
        let any = stage.candidate_of(3, "any");
        let grant = any.elected(LONG, SLOT_IS_FREE).await;
        assert_eq!(grant.slot, slot, "the lowest free slot is granted");
    }
}

/// While it is taken, no other slot will do, and the denial tells of the lease on that one.
pub async fn an_exact_slot_is_denied_while_it_is_taken(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (sooner, later) = (stage.candidate_of(3, "sooner"), stage.candidate_of(3, "later"));
    sooner.elected(LONG, SLOT_IS_FREE).await;
    let taken = later.elected(LONG * 10, SLOT_IS_FREE).await;
    for of in [2, 3] {
        let exact = stage.candidate_of(of, "exact");
        let claim = exact.claim_of(LONG).of_slot(taken.slot);
        let denial = exact.denied_by(claim, "only that slot will do").await;
        assert_eq!(
            denial.holder.as_ref(),
            Some(&later.node_id),
            "a denial names the holder of the exact slot"
        );
        assert!(
            denial.retry_after > LONG * 5,
            "the exact slot is free when its lease ends, not after {:?}",
            denial.retry_after
        );
    }
    let others = stage.holders().await.len();
    assert_eq!(others, 2, "a denied claim takes nothing");
}

/// A slot that is free is not granted when as many are taken as there are for the claimant.
pub async fn an_exact_slot_is_one_of_those_that_are_counted(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    for slot in [1, 3] {
        let peer = stage.candidate_of(5, "of five");
        peer.elected_by(peer.claim_of(LONG).of_slot(slot), SLOT_IS_FREE)
            .await;
    }
    let two = stage.candidate_of(2, "of two");
    two.denied_by(two.claim_of(LONG).of_slot(0), "two are taken, which is not below two")
        .await;
    let three = stage.candidate_of(3, "of three");
    three
        .elected_by(three.claim_of(LONG).of_slot(0), SLOT_IS_FREE)
        .await;
}

/// A token has one slot: whoever asks for another with it is told which.
pub async fn a_token_in_force_is_granted_the_slot_it_has(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate_of(3, "peer");
    let grant = peer.elected(LONG, SLOT_IS_FREE).await;
    let again = peer
        .elected_by(peer.claim_of(LONG).of_slot(2), "a token in force is granted again")
        .await;
    assert_eq!(again, grant, "a token in force keeps its slot");
    assert_eq!(stage.holders().await.len(), 1, "a token has one slot");
}
