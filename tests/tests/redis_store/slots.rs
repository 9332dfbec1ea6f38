//! Several leaders at once.

use std::time::Duration;

use leader_core::LossReason;
use leader_core::store::{ClaimReply, LeaseStore, Release, ReleaseReply};
use leader_tests::{Server, until_some};

use crate::steps::*;

fn of_three() -> Candidate {
    candidate().of_slots(3)
}

#[tokio::test]
async fn e01_three_of_five_run_and_a_fourth_when_one_leaves() {
    let server = Server::start().await;
    let store = store(&server).await;
    let five: Vec<Candidate> = (0..5).map(|_| of_three()).collect();
    for (slot, leader) in (0..).zip(&five[..3]) {
        assert_eq!(leader.wins(&store, LONG).await.0, slot);
    }
    five[3].loses(&store).await;
    five[4].loses(&store).await;

    frees(&store, &Release::new(name(NAME), five[1].token, 1)).await;
    assert_eq!(five[3].wins(&store, LONG).await.0, 1);
    five[4].loses(&store).await;
}

#[tokio::test]
async fn e01_a_crashed_leaders_slot_is_free_after_its_own_lease() {
    let server = Server::start().await;
    let store = store(&server).await;
    of_three().wins(&store, LONG).await;
    let crashed = of_three();
    assert_eq!(crashed.wins(&store, SHORT * 50).await.0, 1);
    of_three().wins(&store, LONG).await;

    let next = of_three();
    let (retry_after, holder, _) = next.loses(&store).await;
    assert!(retry_after <= SHORT * 50);
    assert_eq!(holder, crashed.node_id());
    let granted = until_some(
        "the crashed leader's lease ends",
        LIMIT,
        async || match next.claim(&store, LONG).await {
            ClaimReply::Granted { slot, .. } => Some(slot),
            _ => None,
        },
    )
    .await;
    assert_eq!(granted, 1);
}

#[tokio::test]
async fn e02_a_short_lease_beside_a_long_one() {
    let server = Server::start().await;
    let store = store(&server).await;
    let long = candidate().of_slots(2);
    let (_, fence) = long.wins(&store, LONG).await;
    for _ in 0..3 {
        let short = candidate().of_slots(2);
        until_some("the short lease before ends", LIMIT, async || {
            match short.claim(&store, SHORT).await {
                ClaimReply::Granted { slot, .. } => {
                    let _: () = assert_eq!(slot, 1);
                    Some(())
                }
                ClaimReply::Taken { .. } => None,
                other => panic!("neither granted nor taken: {other:?}"),
            }
        })
        .await;
        assert!(store.inspect(&name(NAME)).await.unwrap().len() <= 2);
    }
    let holders = store.inspect(&name(NAME)).await.unwrap();
    let longest = holders.iter().find(|holder| holder.slot() == 0).unwrap();
    assert_eq!(longest.fence(), fence);
    assert!(longest.remaining() > LONG / 2);
}

#[tokio::test]
async fn e03_candidates_that_disagree_about_slots() {
    let server = Server::start().await;
    let store = store(&server).await;
    let of_five: Vec<Candidate> = (0..6).map(|_| candidate().of_slots(5)).collect();
    let of_two = candidate().of_slots(2);
    let lease = |n: u32| LONG + Duration::from_secs(u64::from(n));
    for n in 0..5 {
        // The leases end in the order opposite to the slots.
        let slot = of_five[n as usize].wins(&store, lease(5 - n)).await.0;
        assert_eq!(slot, n);
    }
    of_five[5].loses(&store).await;

    // Free for the one with two slots when only one is taken: when four of the five leases have ended.
    let (retry_after, holder, _) = of_two.loses(&store).await;
    assert_eq!(holder, of_five[1].node_id());
    assert!(
        retry_after > lease(3) && retry_after <= lease(4),
        "{retry_after:?}"
    );

    // Slots 0 and 1 are free now, and still it is not admitted: three lead.
    frees(&store, &Release::new(name(NAME), of_five[0].token, 0)).await;
    frees(&store, &Release::new(name(NAME), of_five[1].token, 1)).await;
    of_two.loses(&store).await;
    frees(&store, &Release::new(name(NAME), of_five[2].token, 2)).await;
    of_two.loses(&store).await;
    frees(&store, &Release::new(name(NAME), of_five[3].token, 3)).await;
    assert_eq!(of_two.wins(&store, LONG).await.0, 0);

    let holders = store.inspect(&name(NAME)).await.unwrap();
    let mut slots: Vec<u32> = holders.iter().map(leader_core::Holder::slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 4]);
}

#[tokio::test]
async fn e05_a_slot_freed_twice_frees_nobody_elses() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (first, second) = (of_three(), of_three());
    first.wins(&store, LONG).await;
    frees(&store, &first.to_release()).await;
    let (slot, fence) = second.wins(&store, LONG).await;
    assert_eq!(slot, 0);

    for release in [
        first.to_release(),
        first.to_release().keeping(LONG),
        first.to_abandon(LONG),
    ] {
        let reply = send(&store, &release).await;
        assert!(
            matches!(
                reply,
                ReleaseReply::NotHeld(LossReason::Taken | LossReason::Deleted)
            ),
            "{reply:?}"
        );
        let holders = store.inspect(&name(NAME)).await.unwrap();
        assert_eq!(holders.len(), 1);
        assert_eq!(holders[0].fence(), fence);
        assert!(!holders[0].is_retained());
    }
}

#[tokio::test]
async fn a_thousand_slots_are_filled_and_freed() {
    let server = Server::start().await;
    let store = store(&server).await;
    for slot in 0..1024 {
        assert_eq!(candidate().of_slots(1024).wins(&store, LONG).await.0, slot);
    }
    candidate().of_slots(1024).loses(&store).await;
    assert_eq!(store.inspect(&name(NAME)).await.unwrap().len(), 1024);
    assert_eq!(store.evict(&name(NAME)).await.unwrap(), 1024);
    assert_eq!(candidate().of_slots(1024).wins(&store, LONG).await.0, 0);
}
