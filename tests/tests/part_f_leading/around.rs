//! Campaigns beside each other, behind a trait object, and seen from outside.

use std::sync::Arc;

use futures::StreamExt;
use leader_core::testing::ScriptedElector;
use leader_core::{
    BackendKind, Campaign, CampaignPhase, Elector, ElectorExt, LeaderError, LeadershipChange,
    LeaseHandle, LeaseOptions, LossReason, OnLost,
};
use leader_tests::{World, at_once, lead, ms, on_every_store, options, patient, until};
use tokio::time::sleep;

use super::{LIMIT, until_asked, until_leader};

on_every_store!(
    campaigns_share_the_slots_of_a_name,
    a_waiting_campaign_is_quiet,
    a_campaign_that_cannot_begin_says_why,
    the_designs_lines_work_behind_dyn,
    a_process_is_healthy_unless_it_works_without_a_lease,
);

async fn campaigns_share_the_slots_of_a_name<W: World>(world: W) {
    let lease = options(LeaseOptions::builder().slots(3));
    let mut campaigns = Vec::new();
    for node in ["a", "b", "c", "d", "e"] {
        campaigns.push(
            world
                .candidate(node)
                .await
                .campaign("x", &lease, until_asked),
        );
    }
    let leading = async |count| {
        until("as many lead as there are slots", LIMIT, async || {
            campaigns
                .iter()
                .filter(|campaign| campaign.is_leader())
                .count()
                == count
        })
        .await;
    };
    leading(3).await;
    for _ in 0..3 {
        let leader = campaigns
            .iter()
            .find(|campaign| campaign.is_leader())
            .unwrap();
        leader.resign().await.unwrap();
        leading(3).await;
        let mut slots: Vec<_> = campaigns
            .iter()
            .filter_map(Campaign::lease)
            .map(|lease| lease.slot())
            .collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2]);
        leader.stand();
    }
}

async fn a_waiting_campaign_is_quiet<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = lead(&a, "x", &patient()).await;
    // A wait of nothing does not make it poll.
    let campaign = b.campaign("x", &at_once(), until_asked);
    let mut status = campaign.watch();
    status.borrow_and_update();
    sleep(ms(300)).await;
    assert!(!status.has_changed().unwrap(), "{:?}", campaign.status());
    assert_eq!(campaign.status().phase(), CampaignPhase::Standing);
    lease.release().await.unwrap();
    until_leader(&campaign).await;
}

async fn a_campaign_that_cannot_begin_says_why<W: World>(world: W) {
    let a = world.candidate("a").await;
    let campaign = a.campaign("no {such} name", &patient(), until_asked);
    assert!(!campaign.is_leader());
    assert_eq!(campaign.status().phase(), CampaignPhase::Ended);
    for error in [
        campaign.ended().await.unwrap_err(),
        campaign.resign().await.unwrap_err(),
        campaign.stop().await.unwrap_err(),
    ] {
        assert!(
            matches!(error, LeaderError::InvalidName { .. }),
            "{error:?}"
        );
    }
    assert!(campaign.subscribe().next().await.is_none());
    let told = a.observe("no {such} name").collect::<Vec<_>>().await;
    assert!(
        matches!(told[..], [Err(LeaderError::InvalidName { .. })]),
        "{told:?}"
    );

    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let campaign = a.campaign("x", &patient(), until_asked);
        let _ = sender.send(campaign.status().end().cloned());
    });
    let end = receiver.recv().unwrap();
    assert!(matches!(end, Some(Err(LeaderError::NoRuntime))), "{end:?}");
}

async fn the_designs_lines_work_behind_dyn<W: World>(world: W) {
    async fn run_scheduler(lease: LeaseHandle) -> Result<(), std::io::Error> {
        until_asked(lease).await;
        Ok(())
    }
    async fn story(elector: Arc<dyn Elector>) -> Result<(), LeaderError> {
        let options = patient();
        let campaign = elector.campaign("scheduler", &options, |lease| async move {
            run_scheduler(lease).await
        });
        let _: bool = campaign.is_leader();
        let mut changes = campaign.subscribe();
        assert!(matches!(
            changes.next().await,
            Some(LeadershipChange::Granted { .. })
        ));
        campaign.resign().await?;
        assert!(matches!(
            changes.next().await,
            Some(LeadershipChange::Revoked { .. })
        ));
        // A body that never returns needs no type for what it does not return.
        let _endless = elector.campaign("other", &options, |_| async {
            loop {
                sleep(ms(1)).await;
            }
        });
        assert!(elector.health().is_healthy());
        assert!(
            elector
                .observe("scheduler")
                .next()
                .await
                .unwrap()?
                .holders()
                .is_empty()
        );
        Ok(())
    }
    story(Arc::new(world.candidate("a").await)).await.unwrap();
}

async fn a_process_is_healthy_unless_it_works_without_a_lease<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = options(
        LeaseOptions::builder()
            .lease(ms(1_000))
            .on_lost(OnLost::Notify),
    );
    let mut told = false;
    let run = a.run_if_leader("x", &lease, async |lease| {
        assert!(a.health().is_healthy());
        lease.lost().await;
        sleep(ms(5)).await;
        let health = a.health();
        assert!(!health.is_healthy());
        assert_eq!(health.unproved().len(), 1);
        assert_eq!(health.unproved()[0].tenure().fence, lease.fence());
        assert!(health.unproved()[0].overdue() >= ms(5));
        assert!(health.tolerating(LIMIT).is_healthy());
        assert!(b.health().is_healthy(), "a follower is healthy");
        told = true;
    });
    run.await.unwrap_err();
    assert!(told, "the body did not run");
    assert!(a.health().is_healthy());
    let held = lead(&a, "x", &lease).await;
    held.lost().await;
    assert!(!a.health().is_healthy());
    drop(held);
    assert!(a.health().is_healthy());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_let_go_is_no_matter_of_health_however_long_its_release_takes() {
    let elector = ScriptedElector::leader();
    let lease = lead(&elector, "x", &patient()).await;
    elector.lose(LossReason::Expired);
    elector.fail(BackendKind::Unreachable);
    assert!(!elector.health().is_healthy());
    drop(lease);
    assert!(elector.health().is_healthy());
}
