//! Bodies that end, fail, panic, or lose their lease.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::time::Duration;

use futures::StreamExt;
use leader_core::{
    BodyEnd, CampaignEnd, CampaignOptions, CampaignPhase, ElectorExt, LeaseOptions, OnLost,
    Revocation, WhenBodyEnds,
};
use leader_tests::{World, at_once, lead, ms, on_every_store, options, patient, until};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{LIMIT, Running, reason, until_leader};

on_every_store!(
    f05_a_body_that_ends_is_followed_by_a_pause_that_grows,
    f05_a_body_that_panics_wherever_it_can_does_not_end_the_campaign,
    f05_a_campaign_stops_when_its_options_say_so,
    a_lost_lease_drops_the_body_and_the_campaign_stands_again,
    a_body_under_notify_is_given_the_grace_when_its_lease_is_lost,
);

async fn f05_a_body_that_ends_is_followed_by_a_pause_that_grows<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let again = WhenBodyEnds::StandAgain {
        pause: ms(20),
        longest: ms(160),
    };
    let options = CampaignOptions::builder(&patient())
        .when_body_ends(again)
        .build()
        .unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let count = runs.clone();
    let begun = tokio::time::Instant::now();
    let campaign = a.campaign("x", &options, move |_| {
        let run = count.fetch_add(1, SeqCst);
        async move {
            match run % 3 {
                0 => Ok(()),
                1 => Err("out of cheese"),
                _ => quiet_panic("as asked"),
            }
        }
    });
    let changes = campaign.subscribe();
    until("it has led six times", LIMIT, async || {
        campaign.status().tenures() >= 6
    })
    .await;
    // 20 + 40 + 80 + 160 + 160, and up to a quarter less.
    assert!(begun.elapsed() >= ms(345), "{:?}", begun.elapsed());
    until("it lets others lead", LIMIT, async || {
        campaign.status().phase() == CampaignPhase::Pausing
    })
    .await;
    campaign.stop().await.unwrap();
    lead(&b, "x", &at_once()).await.release().await.unwrap();
    let told: Vec<_> = changes.collect().await;
    let reasons: Vec<_> = told.iter().filter_map(reason).take(3).collect();
    assert_eq!(
        reasons,
        [
            Revocation::Ended(BodyEnd::Returned),
            Revocation::Ended(BodyEnd::Failed("out of cheese".into())),
            Revocation::Ended(BodyEnd::Panicked("as asked".into())),
        ]
    );
}

/// A panic that prints no report.
fn quiet_panic(payload: impl std::any::Any + Send) -> ! {
    std::panic::resume_unwind(Box::new(payload))
}

/// Panics when it is dropped.
struct Grenade(bool);

impl Drop for Grenade {
    fn drop(&mut self) {
        if self.0 {
            quiet_panic("dropped");
        }
    }
}

async fn f05_a_body_that_panics_wherever_it_can_does_not_end_the_campaign<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let again = WhenBodyEnds::StandAgain {
        pause: ms(10),
        longest: ms(10),
    };
    let options = CampaignOptions::builder(&patient())
        .when_body_ends(again)
        .grace(Duration::ZERO)
        .rest(ms(1))
        .build()
        .unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let count = runs.clone();
    let campaign = a.campaign("x", &options, move |_| {
        let run = count.fetch_add(1, SeqCst);
        if run == 0 {
            quiet_panic("when made");
        }
        async move {
            let grenade = Grenade(run == 2);
            match run {
                1 => quiet_panic(Grenade(true)),
                2 => std::future::pending().await,
                _ => {}
            }
            drop(grenade);
        }
    });
    until(
        "the body that panics when it is dropped",
        LIMIT,
        async || runs.load(SeqCst) == 3 && campaign.is_leader(),
    )
    .await;
    campaign.resign().await.unwrap();
    until("it leads again", LIMIT, async || {
        campaign.status().tenures() > 4
    })
    .await;
    campaign.stop().await.unwrap();
    lead(&b, "x", &at_once()).await.release().await.unwrap();
}

async fn f05_a_campaign_stops_when_its_options_say_so<W: World>(world: W) {
    let a = world.candidate("a").await;
    let options = CampaignOptions::builder(&patient())
        .when_body_ends(WhenBodyEnds::Stop)
        .build()
        .unwrap();
    let campaign = a.campaign("x", &options, async |_| Err::<(), _>("done for"));
    let end = campaign.ended().await.unwrap();
    assert_eq!(
        end,
        CampaignEnd::BodyEnded(BodyEnd::Failed("done for".into()))
    );
    assert_eq!(campaign.status().phase(), CampaignPhase::Ended);
    assert!(a.state("x").await.unwrap().holders().is_empty());
}

async fn a_lost_lease_drops_the_body_and_the_campaign_stands_again<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, at_most) = (running.clone(), most.clone());
    let lease = options(LeaseOptions::builder().lease(ms(1_000) * W::PACE));
    let campaign = a.campaign("x", &lease, move |_| {
        at_most.fetch_max(counted.fetch_add(1, SeqCst) + 1, SeqCst);
        let running = Running(counted.clone());
        async move {
            let _running = running;
            std::future::pending::<()>().await;
        }
    });
    until_leader(&campaign).await;
    let fence = campaign.lease().unwrap().fence();
    b.force_release("x").await.unwrap();
    until("it leads again, with a body", LIMIT, async || {
        campaign.status().tenures() == 2 && running.load(SeqCst) == 1
    })
    .await;
    assert!(campaign.lease().unwrap().fence() > fence);
    assert_eq!(most.load(SeqCst), 1, "two bodies at a time");
}

async fn a_body_under_notify_is_given_the_grace_when_its_lease_is_lost<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = options(
        LeaseOptions::builder()
            .lease(ms(300) * W::PACE)
            .on_lost(OnLost::Notify),
    );
    let ended = Arc::new(Notify::new());
    let tell = ended.clone();
    let campaign = a.campaign("x", &lease, move |lease| {
        let tell = tell.clone();
        async move {
            lease.lost().await;
            sleep(ms(50)).await;
            tell.notify_one();
        }
    });
    let mut changes = campaign.subscribe();
    until_leader(&campaign).await;
    b.force_release("x").await.unwrap();
    ended.notified().await;
    changes.next().await;
    let told = changes.next().await.unwrap();
    assert!(
        matches!(reason(&told), Some(Revocation::Lost(_))),
        "{told:?}"
    );
}
