//! Extensions: they lengthen what is in force, and nothing else.

use tokio::time::sleep;

use super::support::{
    FEW_STEPS, LONG, SHORT, Stage, assert_gone, assert_lives, extend, unique,
};
use crate::error::LossReason;
use crate::store::{ExtendReply, Extension, LeaseStore};

const NAME_IS_FREE: &str = "a free name is granted";

/// A lease that is extended lives from now on, with the same fencing token, and past its first end.
pub async fn b01_an_extension_lengthens_a_lease(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(FEW_STEPS, NAME_IS_FREE).await;
    let reply = peer.extend(grant.slot, LONG).await;
    assert_eq!(reply, ExtendReply::Extended, "a lease in force is extended");
    let holder = stage.holder(grant.slot, "it is still held").await;
    assert_lives(&holder, LONG, "the lease lives on from the extension");
    assert_eq!(holder.fence(), grant.fence, "an extension is no new grant");

    sleep(FEW_STEPS).await;
    stage
        .candidate("other")
        .denied("an extended lease lives past its first end")
        .await;
}

/// An extension never shortens a lease that lives longer anyway.
pub async fn b06_an_extension_never_shortens_a_lease(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    let reply = peer.extend(grant.slot, SHORT).await;
    assert_eq!(reply, ExtendReply::Extended, "a lease in force is extended");
    let holder = stage.holder(grant.slot, "it is still held").await;
    assert_lives(&holder, LONG, "the later of the two ends holds");
    sleep(SHORT * 2).await;
    stage
        .candidate("other")
        .denied("the later of the two ends holds")
        .await;
}

/// An extension that arrives twice is answered twice.
pub async fn b06_an_extension_may_arrive_twice(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    for _ in 0..2 {
        let reply = peer.extend(grant.slot, LONG).await;
        assert_eq!(reply, ExtendReply::Extended, "a lease in force is extended");
    }
    let holder = stage.holder(grant.slot, "it is still held").await;
    assert_lives(&holder, LONG, "two extensions do not add up");
}

/// An extension that arrives after the lease has ended does not revive it, even when nobody has taken the slot.
pub async fn b07_an_ended_lease_is_not_revived(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(SHORT, NAME_IS_FREE).await;
    // Nothing touches the name meanwhile: a store that clears up only when it is asked must not be misled.
    sleep(SHORT * 4).await;
    let promise = "a lease that has ended is not extended";
    assert_gone(peer.not_extended(grant.slot, promise).await, promise);
    assert!(
        stage.holders().await.is_empty(),
        "a lease that has ended is not revived"
    );
    stage.candidate("other").elected(LONG, NAME_IS_FREE).await;
}

/// A late extension does not lengthen the lease of a successor, and is told that the slot was taken.
pub async fn b04_a_late_extension_leaves_the_successor_alone(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let late = stage.candidate("late");
    let grant = late.elected(SHORT, NAME_IS_FREE).await;
    let successor = stage.candidate("successor");
    let successors = successor
        .elected_in_time(LONG, "a lease that nobody extends ends")
        .await;
    let promise = "the slot is another candidate's now";
    let reply = late.extend(grant.slot, LONG * 10).await;
    assert_eq!(reply, ExtendReply::NotHeld(LossReason::Taken), "{promise}");
    let holder = stage.holder(grant.slot, "the successor holds it").await;
    assert_eq!(holder.fence(), successors.fence, "the successor's lease");
    assert_lives(&holder, LONG, "the successor's time is its own");
}

/// A token that was never granted anything extends nothing.
pub async fn b04_a_foreign_token_extends_nothing(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    let foreign = stage.candidate("foreign");
    let reply = foreign.extend(grant.slot, LONG * 10).await;
    assert_eq!(
        reply,
        ExtendReply::NotHeld(LossReason::Taken),
        "the slot is another candidate's"
    );
    let holder = stage.holder(grant.slot, "the holder was left alone").await;
    assert_eq!(holder.node_id(), &peer.node_id, "the holder is the same");
    assert_lives(&holder, LONG, "a foreign token lengthens nothing");

    let free = Stage::new(store);
    let promise = "nobody holds a free name";
    let nobody = free.candidate("nobody");
    assert_gone(nobody.not_extended(0, promise).await, promise);
    assert!(free.holders().await.is_empty(), "an extension takes no slot");
}

/// A token extends the slot that it holds, not that of another.
pub async fn b09_each_slot_is_extended_by_its_own_token(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (first, second) = (stage.candidate_of(2, "first"), stage.candidate_of(2, "second"));
    let firsts = first.elected(LONG, "a free slot is granted").await;
    let seconds = second.elected(LONG, "a free slot is granted").await;
    let reply = second.extend(firsts.slot, LONG * 10).await;
    assert_eq!(
        reply,
        ExtendReply::NotHeld(LossReason::Taken),
        "the slot is another candidate's"
    );
    let reply = second.extend(seconds.slot, LONG * 10).await;
    assert_eq!(reply, ExtendReply::Extended, "a lease in force is extended");
    let holder = stage.holder(firsts.slot, "the first holds its slot").await;
    assert_lives(&holder, LONG, "one slot's extension is not another's");
    let holder = stage.holder(seconds.slot, "the second holds its slot").await;
    assert_lives(&holder, LONG * 10, "the second was extended");
}

/// A batch is answered entry by entry, in its order, whatever each answer is.
pub async fn b01_a_batch_is_answered_in_its_order(store: &impl LeaseStore) {
    let (here, there, over, free) = (
        Stage::new(store),
        Stage::new(store),
        Stage::new(store),
        Stage::new(store),
    );
    let first = here.candidate_of(2, "first");
    let second = here.candidate_of(2, "second");
    let third = there.candidate("third");
    let late = over.candidate("late");
    late.elected(SHORT, NAME_IS_FREE).await;
    over.empties("a lease that nobody extends ends").await;
    for peer in [&first, &second, &third] {
        peer.elected(LONG, "a free slot is granted").await;
    }
    let foreign = there.candidate("foreign");
    let nobody = free.candidate("nobody");

    let lease = LONG * 10;
    let batch = [
        foreign.extension(0, lease),
        second.extension(1, lease),
        late.extension(0, lease),
        first.extension(0, lease),
        nobody.extension(0, lease),
        third.extension(0, lease),
    ];
    let replies = extend(store, &batch).await;
    let promise = "each entry of a batch has its own answer, in the batch's order";
    assert_eq!(replies.len(), batch.len(), "{promise}");
    assert_eq!(replies[0], ExtendReply::NotHeld(LossReason::Taken), "{promise}");
    for extended in [1, 3, 5] {
        assert_eq!(replies[extended], ExtendReply::Extended, "{promise}");
    }
    for gone in [2, 4] {
        match replies[gone] {
            ExtendReply::NotHeld(reason) => assert_gone(reason, promise),
            reply @ ExtendReply::Extended => panic!("{promise}: {reply:?}"),
        }
    }
    for (stage, slot) in [(&here, 0), (&here, 1), (&there, 0)] {
        let holder = stage.holder(slot, "a lease in force is extended").await;
        assert_lives(&holder, lease, "each lease of the batch was extended");
    }
}

/// A batch of nothing is answered with nothing.
pub async fn an_empty_batch_is_answered_with_nothing(store: &impl LeaseStore) {
    let replies = extend(store, &[]).await;
    assert!(replies.is_empty(), "no entry, no answer: {replies:?}");
}

/// A batch of 256 leases of 64 names is one call, and each is extended.
pub async fn b01_a_large_batch_is_answered_in_full(store: &impl LeaseStore) {
    let lease = LONG * 10;
    let mut batch: Vec<Extension> = Vec::new();
    let stages: Vec<_> = (0..64).map(|_| Stage::named(store, &unique())).collect();
    for stage in &stages {
        for _ in 0..4 {
            let peer = stage.candidate_of(4, "peer");
            let grant = peer.elected(LONG, "a free slot is granted").await;
            batch.push(peer.extension(grant.slot, lease));
        }
    }
    let replies = extend(store, &batch).await;
    let extended = |reply: &&ExtendReply| **reply == ExtendReply::Extended;
    let count = replies.iter().filter(extended).count();
    assert_eq!(count, batch.len(), "each lease of the batch is extended");
    for stage in &stages {
        for holder in stage.holders().await {
            assert_lives(&holder, lease, "each lease of the batch was extended");
        }
    }
}

/// An extension that is late against the release of its own lease changes nothing.
pub async fn c08_an_extension_after_the_release_changes_nothing(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, NAME_IS_FREE).await;
    peer.released(peer.release_of(grant.slot), "a held name is released")
        .await;
    let promise = "what was released is not extended";
    peer.not_extended(grant.slot, promise).await;
    assert!(stage.holders().await.is_empty(), "{promise}");
    stage.candidate("other").elected(LONG, NAME_IS_FREE).await;
}
