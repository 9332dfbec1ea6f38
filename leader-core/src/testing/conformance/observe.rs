//! Observations: of a store that says that it tells of grants, each change is told to whoever looks on, and who looks on
//! is in nobody's way. A store that says nothing of the kind is not held to it.

use super::support::{LONG, Stage, until};
use crate::store::{LeaseStore, ReleaseReply, Watching};

const IN_FORCE: &str = "a lease in force is released";

/// A grant is told, of a name too that nobody has led before.
pub async fn a_grant_is_told_to_who_observes(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let Some(mut observation) = stage.observe().await else {
        return;
    };
    for _ in 0..3 {
        let peer = stage.candidate("peer");
        let grant = peer.elected(LONG, "a free name is granted").await;
        observation.told("each grant is told").await;
        peer.released(peer.release_of(grant.slot), IN_FORCE).await;
        observation.told("each release is told").await;
    }
}

/// So are a release that keeps its slot, and an eviction.
pub async fn a_release_is_told_to_who_observes(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let Some(mut observation) = stage.observe().await else {
        return;
    };
    let first = stage.candidate_of(2, "first");
    let grant = first.elected(LONG, "a free name is granted").await;
    observation.told("a grant is told").await;
    first
        .released(first.release_of(grant.slot).keeping(LONG / 2), IN_FORCE)
        .await;
    observation.told("a release that keeps its slot is told").await;
    stage
        .candidate_of(2, "second")
        .elected(LONG, "a second slot is free")
        .await;
    observation.told("a grant is told").await;
    assert_eq!(stage.evict().await, 2, "two slots were taken");
    observation.told("an eviction is told").await;
}

/// What changes nobody's place is not told: a look costs the store something.
pub async fn who_observes_is_not_told_of_extensions(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;
    let Some(mut observation) = stage.observe().await else {
        return;
    };
    peer.extend(grant.slot, LONG).await;
    stage.candidate("other").denied("the name is held").await;
    stage.holders().await;
    observation
        .stays_quiet("no slot was given to anybody, nor taken from anybody")
        .await;
}

/// Those whom a release has told are those who wait: whoever asks again at once lets them go first.
pub async fn who_observes_is_no_waiter(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;
    let Some(mut observation) = stage.observe().await else {
        return;
    };
    match peer.release(peer.release_of(grant.slot)).await {
        ReleaseReply::Released { told, .. } => {
            assert_eq!(told, 0, "nobody waits, though somebody observes");
        }
        reply => panic!("{IN_FORCE}: the release was answered {reply:?}"),
    }
    observation.told("a release is told").await;
}

/// A free name that is observed is a free name.
pub async fn who_observes_takes_nothing(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let Some(_observation) = stage.observe().await else {
        return;
    };
    let promise = "nobody has led this name";
    assert_eq!(stage.holders().await, [], "{promise}");
    assert_eq!(stage.evict().await, 0, "{promise}");
    let peer = stage.candidate("peer");
    peer.not_released(peer.release_of(0), promise).await;
    peer.not_extended(0, promise).await;
    peer.not_released(peer.abandonment(LONG), promise).await;
    let other = stage.candidate("other");
    let grant = other.elected(LONG, "it is free").await;
    assert_eq!(grant.slot, 0, "the lowest free slot is granted");
}

/// Changes of other names are not told.
pub async fn who_observes_is_not_told_of_other_names(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let Some(mut observation) = stage.observe().await else {
        return;
    };
    let other = Stage::named(store, &format!("{}x", stage.name));
    let _other_observation = other.observe().await;
    let peer = other.candidate("peer");
    let grant = peer.elected(LONG, "another name is free").await;
    peer.released(peer.release_of(grant.slot), IN_FORCE).await;
    observation
        .stays_quiet("changes of other names are not told")
        .await;
}

/// An observation that was dropped leaves nothing behind: the store lets go of its sender, and tells it nothing.
pub async fn a_dropped_observation_leaves_nothing_behind(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let Some(mut observation) = stage.observe().await else {
        return;
    };
    observation.watching = Watching::unbound();
    until("the store lets go of the sender of an ended observation", async || {
        (observation.hints.senders() == 0).then_some(())
    })
    .await;
    // What was told before is still there.
    observation.settles().await;
    stage
        .candidate("peer")
        .elected(LONG, "a free name is granted")
        .await;
    observation
        .stays_quiet("an observation that was dropped is over")
        .await;
}
