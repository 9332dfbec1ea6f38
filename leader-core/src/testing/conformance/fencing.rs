//! Fencing tokens and revisions: numbers that only grow.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::support::{Candidate, Grant, LONG, SHORT, Stage, less_drift, unique, until};
use crate::store::{LeaseStore, REACH, Revision};

/// However a tenure ended, the next one has a greater fencing token.
pub async fn g01_fencing_tokens_grow_with_every_grant(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let mut last = None;
    for end in [End::Release, End::Keep, End::Evict, End::Abandon, End::Expire] {
        for _ in 0..3 {
            let peer = stage.candidate("peer");
            let grant = peer
                .elected_in_time(end.lease(), "a name is free after each end")
                .await;
            assert!(
                Some(grant.fence) > last,
                "fencing tokens grow: {last:?} was followed by {grant:?}"
            );
            last = Some(grant.fence);
            end.bring(&stage, &peer, grant).await;
        }
    }
}

#[derive(Clone, Copy)]
enum End {
    Release,
    Keep,
    Evict,
    Abandon,
    Expire,
}

impl End {
    fn lease(self) -> Duration {
        match self {
            Self::Expire => SHORT / 2,
            _ => LONG,
        }
    }

    async fn bring<S: LeaseStore>(
        self,
        stage: &Stage<'_, S>,
        peer: &Candidate<'_, S>,
        grant: Grant,
    ) {
        let release = match self {
            Self::Release => peer.release_of(grant.slot),
            Self::Keep => peer.release_of(grant.slot).keeping(SHORT / 2),
            Self::Abandon => peer.abandonment(LONG),
            Self::Evict => {
                assert_eq!(stage.evict().await, 1, "one slot was taken");
                return;
            }
            Self::Expire => return,
        };
        peer.released(release, "a lease in force is released").await;
    }
}

/// Names that are led in turn each have growing fencing tokens.
pub async fn g01_fencing_tokens_grow_for_each_of_many_names(store: &impl LeaseStore) {
    let names: Vec<String> = (0..20).map(|_| unique()).collect();
    let mut last = vec![None; names.len()];
    for _ in 0..3 {
        for (name, last) in names.iter().zip(&mut last) {
            let peer = Stage::named(store, name).candidate("peer");
            let grant = peer.elected(LONG, "a free name is granted").await;
            assert!(
                Some(grant.fence) > *last,
                "fencing tokens grow: {last:?} was followed by {grant:?}"
            );
            *last = Some(grant.fence);
            peer.released(peer.release_of(grant.slot), "a held name is released")
                .await;
        }
    }
}

/// The slots of a name share one sequence: a later grant has a greater fencing token, whatever its slot.
pub async fn g01_slots_share_one_sequence(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let mut last = None;
    for round in 0..4 {
        let mut held = Vec::new();
        for _ in 0..3 {
            let peer = stage.candidate_of(3, "peer");
            let grant = peer.elected(LONG, "a free slot is granted").await;
            assert!(
                Some(grant.fence) > last,
                "fencing tokens grow over all slots: {last:?} was followed by {grant:?}"
            );
            last = Some(grant.fence);
            held.push((peer, grant));
        }
        // Freed in another order than taken.
        held.rotate_left(round % 3);
        for (peer, grant) in held {
            peer.released(peer.release_of(grant.slot), "a held slot is released")
                .await;
        }
    }
}

/// Each grant and each release takes a greater revision than all before, and a denial says where the history stands.
pub async fn revisions_grow_with_each_grant_and_each_release(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let mut last = Revision::default();
    for _ in 0..5 {
        let peer = stage.candidate("peer");
        let grant = peer.elected(LONG, "a free name is granted").await;
        let granted = Revision::from(grant.fence);
        // Not compared with the release between the two: where several stores are one, it may tell the number of a node
        // that had no part in this grant.
        assert!(granted > last, "a grant's revision is after all earlier grants'");

        let denial = stage.candidate("other").denied("the name is held").await;
        assert!(denial.revision >= granted, "the history has come this far");

        let released = peer
            .released(peer.release_of(grant.slot), "a held name is released")
            .await;
        assert!(
            released > denial.revision,
            "a waiter tells a later release from those it knows: {released:?} is not after {denial:?}"
        );
        last = granted;
    }
}

/// The numbers carry the store's time in microseconds, so that a store that has forgotten the last one still goes on
/// above it. They fit in 53 bits.
pub async fn g02_fencing_tokens_carry_the_time(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let mut before = None;
    for _ in 0..2 {
        let peer = stage.candidate("peer");
        let asked = Instant::now();
        let grant = peer.elected(LONG, "a free name is granted").await;
        let answered = Instant::now();
        peer.released(peer.release_of(grant.slot), "a held name is released")
            .await;
        let fence = grant.fence.get();
        assert!(fence < 1 << 53, "{fence} fits in the 53 bits of a double");
        if let Some((earlier, since)) = before {
            let passed = asked - since;
            let grown = Duration::from_micros(fence - earlier);
            assert!(
                grown >= less_drift(passed),
                "in {passed:?} the fencing token grew by {grown:?} only"
            );
        }
        before = Some((fence, answered));
        sleep(SHORT).await;
    }
}

/// Far above any number that the time of a case may bring.
const AHEAD: u64 = 3_600_000_000;

fn above(grant: Grant, by: u64) -> Revision {
    Revision::new(grant.fence.get() + by)
}

/// A floor above all numbers is the number of the grant, and what comes after it is greater.
pub async fn a_floor_lifts_a_grant(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let first = stage.candidate("first");
    let earlier = first.elected(LONG, "a free name is granted").await;
    first
        .released(first.release_of(earlier.slot), "a held name is released")
        .await;

    let floor = above(earlier, AHEAD);
    let lifted = stage.candidate("lifted");
    let claim = lifted.claim_of(LONG).at_least(floor);
    let grant = lifted.elected_by(claim, "a free name is granted").await;
    assert_eq!(Revision::from(grant.fence), floor, "the floor is the next number");
    let denial = stage.candidate("other").denied("the name is held").await;
    assert_eq!(denial.revision, floor, "the history has come this far");
    lifted
        .released(lifted.release_of(grant.slot), "a held name is released")
        .await;

    let low = stage.candidate("low");
    let claim = low.claim_of(LONG).at_least(Revision::new(1));
    let next = low.elected_by(claim, "a free name is granted").await;
    assert!(
        next.fence > grant.fence,
        "a floor lifts, and never lowers: {grant:?} was followed by {next:?}"
    );
}

/// A tenure whose number is below the floor takes the floor as its number, once and for all, and so does the name.
pub async fn a_floor_lifts_a_tenure_in_force(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let peer = stage.candidate("peer");
    let grant = peer.elected(LONG, "a free name is granted").await;
    let floor = above(grant, AHEAD);
    // A lower floor afterwards, and none, change nothing any more.
    for floor_again in [floor, floor, above(grant, 1), Revision::default()] {
        let claim = peer.claim_of(LONG).at_least(floor_again);
        let lifted = peer.elected_by(claim, "a token in force is granted again").await;
        assert_eq!(lifted.slot, grant.slot, "a tenure keeps its slot");
        assert_eq!(Revision::from(lifted.fence), floor, "the floor is its number");
    }
    let holder = stage.holder(grant.slot, "a lifted tenure is read back").await;
    assert_eq!(Revision::from(holder.fence()), floor, "the floor is its number");
    let denial = stage.candidate("other").denied("the name is held").await;
    assert_eq!(denial.revision, floor, "the history has come this far");

    let released = peer
        .released(peer.release_of(grant.slot), "a held name is released")
        .await;
    assert!(released > floor, "a release is after all before it");
    let next = stage
        .candidate("next")
        .elected(LONG, "a released name is free")
        .await;
    assert!(Revision::from(next.fence) > floor, "fencing tokens grow");
}

/// A floor that is another's number already is not given again: the tenure takes the one after it.
pub async fn a_floor_gives_no_number_twice(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (first, second) = (stage.candidate_of(2, "first"), stage.candidate_of(2, "second"));
    first.elected(LONG, "a free slot is granted").await;
    let others = second.elected(LONG, "a free slot is granted").await;
    let claim = first.claim_of(LONG).at_least(others.fence.into());
    let mut lifted = None;
    for _ in 0..2 {
        let again = first
            .elected_by(claim.clone(), "a token in force is granted again")
            .await;
        assert!(
            again.fence > others.fence,
            "no number is given twice: {again:?} is not above {others:?}"
        );
        let before = *lifted.get_or_insert(again);
        assert_eq!(again, before, "sent again, the claim changes nothing");
    }
}

/// A floor that the time has passed long since is still the number: it was found elsewhere, and is not issued here.
pub async fn a_floor_stands_in_for_the_time(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let (first, second) = (stage.candidate_of(2, "first"), stage.candidate_of(2, "second"));
    let grant = first.elected(LONG, "a free slot is granted").await;
    sleep(SHORT).await;
    let promise = "the next number that is not below the floor";
    // Of several nodes, each may have had a number of its own for the first grant, a little above the one that counts.
    for (peer, by) in [(&first, 100_000), (&second, 150_000)] {
        let floor = above(grant, by);
        let claim = peer.claim_of(LONG).at_least(floor);
        let lifted = peer.elected_by(claim, promise).await;
        assert_eq!(Revision::from(lifted.fence), floor, "{promise}");
    }
}

/// A number that is proposed stands for the time, where it is near to that, and never gives a number that is not greater
/// than all before. Of a store that does not tell its time nobody knows what is near.
pub async fn a_proposed_number_stands_for_the_time(store: &impl LeaseStore) {
    let stage = Stage::new(store);
    let led = async |claim: Option<Revision>, promise: &str| {
        let peer = stage.candidate("peer");
        let claim = peer.claim_of(LONG).proposing(claim.unwrap_or_default());
        let grant = peer.elected_by(claim.clone(), promise).await;
        let again = claim.proposing(above(grant, 1));
        let again = peer.elected_by(again, "a token in force is granted again").await;
        assert_eq!(again, grant, "sent again, the claim changes nothing");
        let release = peer.release_of(grant.slot);
        let released = peer.released(release, "a held name is released").await;
        (grant, released)
    };
    led(None, "a free name is granted").await;
    let near = async || {
        let time = store.time_by_now()? + REACH / 2;
        let number = u64::try_from(time.as_micros()).unwrap_or_default();
        Some(Revision::new(number))
    };
    if near().await.is_none() {
        return;
    }
    let promise = "a number that is near to the time is granted";
    let (grant, released) = until(promise, async || {
        let number = near().await?;
        let (grant, released) = led(Some(number), promise).await;
        (Revision::from(grant.fence) == number).then_some((grant, released))
    })
    .await;
    let (next, _) = led(Some(grant.fence.into()), "a free name is granted").await;
    assert!(
        Revision::from(next.fence) > released,
        "a number of old is not given again: {next:?} is not after {released:?}"
    );
    let far = above(next, AHEAD);
    let (last, _) = led(Some(far), "a free name is granted").await;
    assert!(
        Revision::from(last.fence) < far,
        "a number that is far from the time is not taken: {far:?} was granted"
    );
}
