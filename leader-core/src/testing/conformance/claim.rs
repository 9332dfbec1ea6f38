//! Claims: what is granted, what is denied, and what is recognised.

use futures::future::join_all;
use tokio::time::{Instant, sleep};

use super::support::{
    FEW_STEPS, GRANULARITY, LONG, SHORT, Stage, assert_lasted, assert_lives, unique,
};
use crate::store::{ClaimReply, LeaseStore, Revision};

/// A name that nobody holds is granted, and read back as it was granted.
pub async fn a_free_name_is_granted(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;
    assert_eq!(grant.slot, 0, "the lowest free slot is granted");

    let holder = stage.holder(0, "a grant is read back").await;
    assert_eq!(holder.node_id(), &peer.node_id, "the holder is the claimant");
    assert_eq!(holder.fence(), grant.fence, "the grant's fencing token");
    assert!(!holder.is_retained(), "a held slot is not a retained one");
    assert_lives(&holder, LONG, "the lease lives as long as was asked for");
}

/// Whoever finds the name held is told by whom, for how long at most, and where the name's history stands.
pub async fn a01_a_held_name_is_denied_and_says_by_whom(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;

    let denial = stage
        .candidate("other")
        .denied("a held name is not granted to another")
        .await;
    assert_eq!(
        denial.holder.as_ref(),
        Some(&peer.node_id),
        "a denial names the holder"
    );
    assert!(
        denial.retry_after > LONG / 2 && denial.retry_after <= LONG + GRANULARITY,
        "asking again is worth it when the lease has ended, not after {:?}",
        denial.retry_after
    );
    assert!(
        denial.revision >= Revision::from(grant.fence),
        "the revision of a denial is not before the grant that stands in the way"
    );
    assert_eq!(stage.holders().await.len(), 1, "a denied claim takes nothing");
}

/// A claim whose token is in force already is granted again: the same slot, the same fencing token, once.
pub async fn a03_a_claim_with_the_token_in_force_is_granted_again(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let first = peer.elected(LONG, "a free name is granted").await;
    let second = peer
        .elected(LONG, "a claim that was sent again is recognised")
        .await;
    assert_eq!(first, second, "the same slot and the same fencing token");
    assert_eq!(stage.holders().await.len(), 1, "one grant takes one slot");
}

/// The same when every slot is taken, one of them by the claim's own token.
pub async fn a03_a_claim_again_is_granted_when_all_slots_are_taken(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let mut grants = Vec::new();
    for node_id in ["a", "b", "c"] {
        let peer = stage.candidate_of(3, node_id);
        let grant = peer.elected(LONG, "a free slot is granted").await;
        grants.push((peer, grant));
    }
    for (peer, grant) in &grants {
        let again = peer
            .elected(LONG, "its own lease does not stand in a claim's way")
            .await;
        assert_eq!(again, *grant, "the same slot and the same fencing token");
    }
    stage
        .candidate_of(3, "d")
        .denied("claims that were sent again free nothing")
        .await;
}

/// A claim that was granted again lets the lease live from now on, if that is longer.
pub async fn a03_a_claim_again_lengthens_a_lease(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    peer.elected(FEW_STEPS, "a free name is granted").await;
    peer.elected(LONG, "a claim that was sent again is recognised")
        .await;
    let holder = stage.holder(0, "the lease is in force").await;
    assert_lives(&holder, LONG, "the lease lives on from the later claim");
}

/// A claim that was granted again never shortens a lease that lives longer anyway.
pub async fn a03_a_claim_again_never_shortens_a_lease(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    peer.elected(LONG, "a free name is granted").await;
    peer.elected(SHORT, "a claim that was sent again is recognised")
        .await;
    let holder = stage.holder(0, "the lease is in force").await;
    assert_lives(&holder, LONG, "the later of the two ends holds");
    sleep(SHORT * 2).await;
    stage
        .candidate("other")
        .denied("the later of the two ends holds")
        .await;
}

/// A lease lives for its time, and then the name is free: not earlier, and without anybody's help.
pub async fn a_lease_lives_for_its_time_and_then_ends(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let asked = Instant::now();
    let first = stage
        .candidate("peer")
        .elected(SHORT, "a free name is granted")
        .await;
    let second = stage
        .candidate("other")
        .elected_in_time(LONG, "a lease that nobody extends ends")
        .await;
    assert_lasted(asked, SHORT, "a lease lives for its time");
    assert!(second.fence > first.fence, "fencing tokens grow");
    assert_eq!(stage.holders().await.len(), 1, "an ended lease takes no slot");
}

/// A token whose lease has ended is not in force: its claim is a new one, with a greater fencing token.
pub async fn a_claim_after_the_end_is_a_new_grant(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let first = peer.elected(SHORT, "a free name is granted").await;
    stage.empties("a lease that nobody extends ends").await;
    let second = peer.elected(LONG, "a free name is granted").await;
    assert!(
        second.fence > first.fence,
        "each grant has a greater fencing token, to the same candidate too"
    );
}

/// A token whose lease has ended does not get its successor's slot.
pub async fn a_claim_after_a_takeover_is_denied(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let late = stage.candidate("late");
    late.elected(SHORT, "a free name is granted").await;
    let successor = stage.candidate("successor");
    let grant = successor
        .elected_in_time(LONG, "a lease that nobody extends ends")
        .await;
    late.denied("the token was in force once, and is not any more")
        .await;
    let holder = stage.holder(0, "the successor holds the slot").await;
    assert_eq!(holder.fence(), grant.fence, "the successor was left alone");
}

/// Of many claims at the same time, one is granted.
pub async fn a09_of_many_claims_at_once_one_is_granted(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peers: Vec<_> = (0..32).map(|_| stage.candidate("peer")).collect();
    let replies = join_all(peers.iter().map(|peer| peer.claim(LONG))).await;
    let granted = |reply: &&ClaimReply| matches!(reply, ClaimReply::Granted { .. });
    assert_eq!(
        replies.iter().filter(granted).count(),
        1,
        "a claim is atomic: one slot, one grant; the replies were {replies:?}"
    );
}

/// A claim that arrives many times at once is one grant.
pub async fn a03_one_claim_many_times_at_once_is_one_grant(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate_of(4, "peer");
    let promise = "each copy of a claim is granted";
    let mut grants = join_all((0..8).map(|_| peer.elected(LONG, promise))).await;
    grants.dedup();
    assert_eq!(grants.len(), 1, "the copies of a claim are one grant");
    assert_eq!(stage.holders().await.len(), 1, "and take one slot");
}

/// Claims of different names have nothing to do with each other.
pub async fn a09_many_names_are_granted_at_once(store: &impl LeaseStore) {
    let stages: Vec<_> = (0..32)
        .map(|_| Stage::named(store, &unique()))
        .collect();
    let peers: Vec<_> = stages.iter().map(|stage| stage.candidate("peer")).collect();
    let promise = "each free name is granted, whatever happens to the others";
    join_all(peers.iter().map(|peer| peer.elected(LONG, promise))).await;
}
