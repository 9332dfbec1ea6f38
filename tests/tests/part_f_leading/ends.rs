//! Nothing is left, and nobody leads, when tasks are stuck or a runtime ends.

use futures::StreamExt;
use leader_core::{CampaignEnd, ElectorExt, LeaseOptions};
use leader_tests::{ms, options, patient, until};
use tokio::time::sleep;

use super::{LIMIT, until_asked, until_leader};

/// The thread that should notice is stuck, and so is every other one of the runtime.
#[test]
fn f04_nobody_leads_past_the_deadline_when_every_task_is_stuck() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let elector = leader_core::LocalElector::new();
    let campaign = runtime.block_on(async {
        let lease = options(LeaseOptions::builder().lease(ms(1_000)));
        let campaign = elector.campaign("x", &lease, until_asked);
        until_leader(&campaign).await;
        campaign
    });
    // The runtime runs nothing any more: no extension, no timer.
    let lease = campaign.lease().unwrap();
    let begun = std::time::Instant::now();
    while campaign.is_leader() {
        assert!(begun.elapsed() < LIMIT, "it leads for ever");
        std::thread::sleep(ms(5));
    }
    assert!(lease.ensure_valid().is_err() && campaign.lease().is_none());
    assert!(!elector.health().is_healthy(), "the body was not dropped");
    drop(runtime);
    assert!(elector.health().is_healthy());
    let ended = futures::executor::block_on(campaign.ended());
    assert_eq!(ended.unwrap(), CampaignEnd::RuntimeEnded);
}

#[tokio::test(start_paused = true)]
async fn campaigns_leave_nothing_behind() {
    let elector = leader_core::StoreElector::builder(leader_core::LocalStore::new()).build();
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    for round in 0..100 {
        let campaign = elector.campaign("x", &patient(), until_asked);
        let waiting = elector.campaign("x", &patient(), until_asked);
        until_leader(&campaign).await;
        let observing = elector.observe("x").take(1).count().await;
        assert_eq!(observing, 1);
        if round % 2 == 0 {
            campaign.stop().await.unwrap();
            waiting.stop().await.unwrap();
        }
    }
    until("all is over", LIMIT, async || {
        metrics.num_alive_tasks() == before
    })
    .await;
    assert_eq!(
        elector.footprint(),
        leader_core::testing::Footprint::default()
    );
    assert_eq!(elector.store().records(), 0);
}

#[test]
fn a_runtime_may_end_with_many_campaigns_on_one_name() {
    end_with_many_campaigns(true);
}

#[test]
fn a_runtime_may_end_before_its_campaigns_have_begun() {
    end_with_many_campaigns(false);
}

fn end_with_many_campaigns(all_have_begun: bool) {
    let elector = leader_core::LocalElector::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let campaigns: Vec<_> = runtime.block_on(async {
        let begin = |_| elector.campaign("x", &patient(), until_asked);
        let campaigns: Vec<_> = (0..500).map(begin).collect();
        until_leader(&campaigns[0]).await;
        if all_have_begun {
            sleep(ms(50)).await;
        }
        campaigns
    });
    drop(runtime);
    for campaign in campaigns {
        let ended = futures::executor::block_on(campaign.ended());
        assert_eq!(ended.unwrap(), CampaignEnd::RuntimeEnded);
    }
}
