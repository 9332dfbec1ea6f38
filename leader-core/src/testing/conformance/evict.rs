//! Evictions: an operator takes a name from whoever holds it.

use super::support::{LONG, Stage, unique};
use crate::error::LossReason;
use crate::store::{ExtendReply, LeaseStore};

/// Every slot is freed, those that are kept too, and counted.
pub async fn b04_an_eviction_frees_every_slot(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let kept = stage.candidate_of(4, "kept");
    let grant = kept.elected(LONG, "a free slot is granted").await;
    for node_id in ["a", "b"] {
        let peer = stage.candidate_of(4, node_id);
        peer.elected(LONG, "a free slot is granted").await;
    }
    kept.released(
        kept.release_of(grant.slot).keeping(LONG),
        "a held slot is released",
    )
    .await;
    assert_eq!(stage.evict().await, 3, "three slots were taken");
    assert!(stage.holders().await.is_empty(), "nobody holds a slot");
    let grant = stage
        .candidate_of(4, "next")
        .elected(LONG, "an evicted name is free")
        .await;
    assert_eq!(grant.slot, 0, "the lowest slot is free too");
}

/// A name that nobody holds has nothing to evict.
pub async fn an_eviction_of_a_free_name_frees_nothing(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    assert_eq!(stage.evict().await, 0, "nobody has ever led it");
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;
    peer.released(peer.release_of(grant.slot), "a held name is released")
        .await;
    assert_eq!(stage.evict().await, 0, "nobody leads it any more");
}

/// Whoever was evicted is told that its record was deleted, can neither extend nor release, and is followed by a
/// greater fencing token.
pub async fn b04_the_evicted_is_told_that_its_lease_was_deleted(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;
    stage.evict().await;
    let deleted = LossReason::Deleted;
    assert_eq!(
        peer.extend(grant.slot, LONG).await,
        ExtendReply::NotHeld(deleted),
        "an operator has deleted the lease"
    );
    let reason = peer
        .not_released(peer.release_of(grant.slot), "an evicted lease is not held")
        .await;
    assert_eq!(reason, deleted, "an operator has deleted the lease");
    assert!(stage.holders().await.is_empty(), "it was not revived");
    let next = stage
        .candidate("next")
        .elected(LONG, "an evicted name is free")
        .await;
    assert!(next.fence > grant.fence, "fencing tokens grow");
}

/// Whoever was evicted leaves its successor alone.
pub async fn b04_the_evicted_leaves_its_successor_alone(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let evicted = stage.candidate("evicted");
    let grant = evicted.elected(LONG, "a free name is granted").await;
    stage.evict().await;
    let successor = stage.candidate("successor");
    let successors = successor.elected(LONG, "an evicted name is free").await;
    let taken = LossReason::Taken;
    assert_eq!(
        evicted.extend(grant.slot, LONG * 10).await,
        ExtendReply::NotHeld(taken),
        "the slot is another candidate's now"
    );
    let reason = evicted
        .not_released(evicted.release_of(grant.slot), "it is another's now")
        .await;
    assert_eq!(reason, taken, "the slot is another candidate's now");
    let holder = stage.holder(grant.slot, "the successor holds it").await;
    assert_eq!(holder.fence(), successors.fence, "the successor's lease");
}

/// Other names are not evicted along, not those that begin alike either.
pub async fn a08_an_eviction_leaves_other_names_alone(store: &impl LeaseStore) {
    let name = unique();
    let stage = Stage::named(store, &name);
    stage
        .candidate("peer")
        .elected(LONG, "a free name is granted")
        .await;
    let others = [
        name[..name.len() - 1].to_owned(),
        format!("{name}0"),
        format!("{name}:0"),
    ];
    for other in &others {
        Stage::named(store, other)
            .candidate("peer")
            .elected(LONG, "another name is free")
            .await;
    }
    assert_eq!(stage.evict().await, 1, "one slot of this name was taken");
    for other in &others {
        let other = Stage::named(store, other);
        other.holder(0, "another name is not evicted along").await;
    }
}
