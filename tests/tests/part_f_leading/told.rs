//! What is told of who leads: to those who campaign, and to those who observe.

use std::time::Duration;

use futures::StreamExt;
use leader_core::{
    CampaignOptions, ElectorExt, LeadershipChange, LeaseOptions, LossReason, Revocation,
};
use leader_tests::{World, lead, ms, on_every_store, options, until};
use tokio::time::timeout;

use super::{LIMIT, brief, reason, until_asked, until_leader};

on_every_store!(
    f02_each_reader_hears_grants_and_revocations_in_turn,
    f02_a_state_read_inside_the_handler_agrees,
    an_observer_is_told_when_the_leader_changes,
);

async fn f02_each_reader_hears_grants_and_revocations_in_turn<W: World>(world: W) {
    let a = world.candidate("a").await;
    let campaign = a.campaign("x", &brief(), until_asked);
    let early = campaign.subscribe();
    until_leader(&campaign).await;
    let late = campaign.subscribe();
    for _ in 0..5 {
        campaign.resign().await.unwrap();
        assert!(!campaign.is_leader());
        campaign.stand();
        until_leader(&campaign).await;
    }
    a.force_release("x").await.unwrap();
    until("it leads again", LIMIT, async || {
        campaign.status().tenures() == 7
    })
    .await;
    campaign.stop().await.unwrap();
    for changes in [early, late] {
        let told: Vec<_> = changes.collect().await;
        assert_eq!(told.len(), 14, "{told:?}");
        let mut fences = Vec::new();
        for pair in told.chunks(2) {
            match pair {
                [
                    LeadershipChange::Granted { fence, .. },
                    LeadershipChange::Revoked { fence: ended, .. },
                ] if fence == ended => fences.push(*fence),
                other => panic!("{other:?}"),
            }
        }
        assert!(fences.is_sorted_by(|a, b| a < b));
        let reasons: Vec<_> = told.iter().filter_map(reason).collect();
        assert_eq!(reasons[..5], vec![Revocation::Resigned; 5]);
        assert!(matches!(
            reasons[5],
            Revocation::Lost(LossReason::Deleted | LossReason::Taken)
        ));
        assert_eq!(reasons[6], Revocation::Stopped);
    }
}

async fn f02_a_state_read_inside_the_handler_agrees<W: World>(world: W) {
    let a = world.candidate("a").await;
    let rest = CampaignOptions::builder(&brief())
        .rest(Duration::from_secs(3600))
        .build()
        .unwrap();
    let campaign = a.campaign("x", &rest, until_asked);
    let mut changes = campaign.subscribe();
    for _ in 0..5 {
        let Some(LeadershipChange::Granted { fence, slot, .. }) = changes.next().await else {
            panic!("not granted");
        };
        assert!(campaign.is_leader());
        assert_eq!(campaign.lease().unwrap().fence(), fence);
        let holders = a.state("x").await.unwrap();
        let holders = holders.holders();
        assert!(holders.len() == 1 && holders[0].fence() == fence && holders[0].slot() == slot);
        let resigning = campaign.resign();
        let told = async {
            let told = changes.next().await;
            assert!(
                matches!(told, Some(LeadershipChange::Revoked { .. })),
                "{told:?}"
            );
            assert!(!campaign.is_leader());
            assert!(campaign.lease().is_none() && campaign.status().tenure().is_none());
            assert!(a.state("x").await.unwrap().holders().is_empty());
        };
        let (resigned, ()) = tokio::join!(resigning, told);
        resigned.unwrap();
        campaign.stand();
    }
}

async fn an_observer_is_told_when_the_leader_changes<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = options(
        LeaseOptions::builder()
            .lease(ms(1_000) * W::PACE)
            .auto_extend(true),
    );
    let mut leaders = b.observe("x");
    let mut next = async || {
        let told = timeout(LIMIT, leaders.next()).await;
        let state = told
            .expect("something is told")
            .expect("it goes on")
            .unwrap();
        state
            .holders()
            .iter()
            .map(leader_core::Holder::fence)
            .collect::<Vec<_>>()
    };
    assert!(next().await.is_empty());
    let first = lead(&a, "x", &lease).await;
    assert_eq!(next().await, [first.fence()]);
    // Extensions are no change. Longer than the lease: it is looked at where it would have ended.
    assert!(timeout(ms(2_400) * W::PACE, next()).await.is_err());
    first.release().await.unwrap();
    assert!(next().await.is_empty());
    let second = lead(&a, "x", &lease).await;
    assert_eq!(next().await, [second.fence()]);
    drop(second);
    assert!(next().await.is_empty());
    b.shutdown().await;
    assert!(leaders.next().await.is_none());
}
