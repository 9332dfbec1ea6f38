//! Names and time limits at the edges of what is legal.

use std::time::Duration;

use super::support::{LONG, Stage, assert_lives, unique};
use crate::name::LockName;
use crate::options::LeaseOptions;
use crate::store::{ExtendReply, LeaseStore};

/// The longest name, and a name of every legal character, go through every step.
pub async fn a08_every_legal_name_goes_through_every_step(store: &impl LeaseStore) {
    let unique = unique();
    let longest = format!("{unique}{}", "x".repeat(LockName::MAX_LEN - unique.len()));
    let lower: String = ('a'..='z').collect();
    let every = format!("{unique}_-.:/{lower}{}0123456789", lower.to_uppercase());
    for name in [longest, every, format!("{unique}:-._/")] {
        let stage = Stage::named(store, &name);
        let peer = stage.candidate("peer");
        let grant = peer.elected(LONG, "a legal name is granted").await;
        let denial = stage.candidate("waiter").denied("it is held").await;
        let mut watch = stage.watch(denial.revision).await;
        assert_eq!(
            peer.extend(grant.slot, LONG).await,
            ExtendReply::Extended,
            "a lease of a legal name is extended"
        );
        stage.holder(grant.slot, "a legal name is read back").await;
        peer.released(peer.release_of(grant.slot), "a held name is released")
            .await;
        watch
            .told_after(denial.revision, "a release of a legal name is told")
            .await;
        stage.candidate("next").elected(LONG, "it is free").await;
        assert_eq!(stage.evict().await, 1, "a legal name is evicted");
    }
}

/// Names that look alike, or like parts of each other's records, are different names.
pub async fn a08_names_that_look_alike_are_different_names(store: &impl LeaseStore) {
    let base = format!("{}x", unique());
    let names = [
        base.clone(),
        base[..base.len() - 1].to_owned(),
        base.to_uppercase(),
        format!("{base}0"),
        format!("{base}:"),
        format!("{base}:0"),
        format!("{base}/0"),
        format!("{base}.0"),
        format!("{base}:fence"),
        format!("{base}:slots"),
        format!("{base}:{base}"),
    ];
    let stages = names.each_ref().map(|name| Stage::named(store, name));
    let mut grants = Vec::new();
    for stage in &stages {
        let peer = stage.candidate(stage.name.as_str());
        let grant = peer.elected(LONG, "another name is free").await;
        assert_eq!(grant.slot, 0, "it has slots of its own");
        grants.push((peer, grant));
    }
    for (index, stage) in stages.iter().enumerate() {
        let (peer, grant) = &grants[index];
        peer.released(peer.release_of(grant.slot), "a held name is released")
            .await;
        assert!(stage.holders().await.is_empty(), "it was released");
        for (stage, (_, grant)) in stages.iter().zip(&grants).skip(index + 1) {
            let holder = stage.holder(0, "another name was not released").await;
            assert_eq!(holder.fence(), grant.fence, "its own grant");
        }
    }
}

/// The shortest lease is granted, and ends.
pub async fn a07_the_shortest_lease_is_granted_and_ends(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let first = peer
        .elected(LeaseOptions::MIN_LEASE, "the shortest lease is granted")
        .await;
    let next = stage
        .candidate("next")
        .elected_in_time(LONG, "the shortest lease ends")
        .await;
    assert!(next.fence > first.fence, "fencing tokens grow");
}

/// The longest lease is granted, extended, kept and released like any other.
pub async fn a07_the_longest_lease_is_granted_and_released(store: &impl LeaseStore) {
    let year = LeaseOptions::MAX_LEASE;
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(year, "the longest lease is granted").await;
    let holder = stage.holder(grant.slot, "it is in force").await;
    assert_lives(&holder, year, "the longest lease lives as long as it says");
    let denial = stage.candidate("other").denied("it is in force").await;
    assert!(
        denial.retry_after > year / 2 && denial.retry_after <= year + Duration::from_secs(1),
        "it ends in a year, not after {:?}",
        denial.retry_after
    );
    assert_eq!(
        peer.extend(grant.slot, year).await,
        ExtendReply::Extended,
        "the longest lease is extended"
    );
    peer.released(peer.release_of(grant.slot), "it is released")
        .await;
    let next = stage.candidate("next");
    let grant = next.elected(year, "the longest lease is released").await;
    next.released(
        next.release_of(grant.slot).keeping(year),
        "the longest minimum lease is kept",
    )
    .await;
    let holder = stage.holder(grant.slot, "it is kept").await;
    assert_lives(&holder, year, "the longest minimum lease is kept");
}
