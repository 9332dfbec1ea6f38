//! Reading: who leads, without changing anything.

use tokio::time::Instant;

use super::support::{LONG, SHORT, Stage, assert_lasted};
use crate::store::LeaseStore;

/// A name that nobody holds has no holders, and reading it takes no slot.
pub async fn a_free_name_has_no_holders(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    assert!(stage.holders().await.is_empty(), "nobody has ever led it");
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;
    peer.released(peer.release_of(grant.slot), "a held name is released")
        .await;
    assert!(stage.holders().await.is_empty(), "nobody leads it any more");
}

/// Every slot that is taken is read back: who, which, since which grant.
pub async fn e01_every_holder_is_read_back(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let mut expected = Vec::new();
    for node_id in ["a", "b", "c"] {
        let peer = stage.candidate_of(3, node_id);
        let grant = peer.elected(LONG, "a free slot is granted").await;
        expected.push((peer.node_id.clone(), grant.slot, grant.fence));
    }
    let holders = stage.holders().await;
    let read: Vec<_> = holders
        .iter()
        .map(|holder| (holder.node_id().clone(), holder.slot(), holder.fence()))
        .collect();
    assert_eq!(read, expected, "who holds which slot since which grant");
}

/// A node id is for people: any printable text is read back as it was given.
pub async fn any_node_id_is_read_back(store: &impl LeaseStore) {
    let longest = "x".repeat(crate::NodeId::MAX_LEN);
    for node_id in [
        "billing-3:17:0a1b2c3d",
        "two words",
        "{\"json\": 'or', lua[[..]]} %s %d \\n",
        "Grüße 🦀",
        "-1",
        longest.as_str(),
    ] {
        let stage = Stage::new(store);
        let peer = stage.candidate(node_id);
        peer.elected(LONG, "a free name is granted").await;
        let holder = stage.holder(0, "the claimant holds it").await;
        assert_eq!(holder.node_id(), &node_id, "as it was given");
        let denial = stage.candidate("other").denied("the name is held").await;
        assert_eq!(
            denial.holder.as_ref(),
            Some(&peer.node_id),
            "as it was given"
        );
    }
}

/// Reading a thousand times changes nothing: who holds, with which fencing token, and that the lease ends.
pub async fn b10_reading_a_thousand_times_changes_nothing(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    stage
        .candidate_of(2, "long")
        .elected(LONG, "a free slot is granted")
        .await;
    let asked = Instant::now();
    let short = stage
        .candidate_of(2, "short")
        .elected(SHORT, "a free slot is granted")
        .await;
    let first = stage.holder(0, "the long lease is in force").await;
    for _ in 0..1000 {
        let now = stage.holder(0, "the long lease is in force").await;
        assert_eq!(now.fence(), first.fence(), "the same grant");
        assert!(
            now.remaining() <= first.remaining(),
            "time passes while it is read"
        );
    }
    let next = stage
        .candidate_of(2, "next")
        .elected_in_time(LONG, "a lease ends however often it is read")
        .await;
    assert_lasted(asked, SHORT, "reading does not shorten a lease");
    assert_eq!(next.slot, short.slot, "the slot that ended is granted");
    assert!(next.fence > short.fence, "fencing tokens grow");
}
