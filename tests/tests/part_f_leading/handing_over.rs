//! Handing over: the body has ended before the slot is free.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use futures::{FutureExt, StreamExt};
use leader_core::{
    CampaignEnd, CampaignOptions, CampaignPhase, ElectorExt, LeaderError, LeadershipChange,
    LeaseHandle, Revocation,
};
use leader_tests::{World, at_once, is_skipped, lead, ms, on_every_store, patient, until};
use tokio::time::{sleep, timeout};

use super::{LIMIT, Running, until_asked, until_leader};

on_every_store!(
    f03_a_body_has_ended_before_its_slot_is_free_and_a_waiter_is_told,
    f03_who_resigns_rests_until_it_is_told_to_stand,
    f03_a_body_that_does_not_end_is_dropped_after_the_grace,
    f03_shutdown_lets_the_body_end_first,
    f03_a_dropped_campaign_hands_over,
);

/// A body that notes when it begins and when it has ended, and takes its time in between.
fn noted(
    running: &Arc<AtomicUsize>,
) -> impl FnMut(LeaseHandle) -> futures::future::BoxFuture<'static, ()> + Send + 'static {
    let running = running.clone();
    move |lease| {
        let mut noted = Noted(running.clone(), false);
        async move {
            assert_eq!(noted.0.fetch_add(1, SeqCst), 0, "two bodies at once");
            lease.cancellation_token().cancelled().await;
            // The end of a real body takes several polls, and is under a lease that goes on.
            for _ in 0..3 {
                sleep(ms(20)).await;
                lease.ensure_valid().unwrap();
            }
            noted.came_to_its_end();
        }
        .boxed()
    }
}

/// Whether a body came to its end. A campaign outlives a body that panics or is cut short, and goes on as if all were
/// well; so the count never comes back to 0 then.
struct Noted(Arc<AtomicUsize>, bool);

impl Noted {
    fn came_to_its_end(&mut self) {
        self.1 = true;
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if self.1 {
            self.0.fetch_sub(1, SeqCst);
        }
    }
}

async fn f03_a_body_has_ended_before_its_slot_is_free_and_a_waiter_is_told<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let running = Arc::new(AtomicUsize::new(0));
    // The lease outlives the test: whoever leads next was let in by the release.
    let first = a.campaign("x", &patient(), noted(&running));
    until_leader(&first).await;
    let second = b.campaign("x", &patient(), noted(&running));
    for round in 0..10 {
        let (old, new) = if round % 2 == 0 {
            (&first, &second)
        } else {
            (&second, &first)
        };
        old.resign().await.unwrap();
        assert!(!old.is_leader());
        until_leader(new).await;
        old.stand();
    }
    // The candidate that waits is told, and does not have to look.
    assert_eq!(first.status().tenures() + second.status().tenures(), 11);
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    assert_eq!(
        running.load(SeqCst),
        0,
        "a body was cut short, or not alone"
    );
}

async fn f03_who_resigns_rests_until_it_is_told_to_stand<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let campaign = a.campaign("x", &patient(), until_asked);
    until_leader(&campaign).await;
    campaign.resign().await.unwrap();
    // Nobody else stands, and it does not take the name back by itself.
    assert!(!is_skipped(&b, "x", &at_once()).await);
    sleep(ms(100)).await;
    assert_eq!(campaign.status().phase(), CampaignPhase::Pausing);
    campaign.stand();
    until_leader(&campaign).await;
    // Told at once to stand again, it does: the rest is not to be waited for first.
    for _ in 0..20 {
        campaign.resign().await.unwrap();
        campaign.stand();
        until_leader(&campaign).await;
    }
    // Who does not lead has nothing to hand over.
    campaign.stop().await.unwrap();
    campaign.resign().await.unwrap();
    assert_eq!(campaign.ended().await.unwrap(), CampaignEnd::Stopped);
}

async fn f03_a_body_that_does_not_end_is_dropped_after_the_grace<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let options = CampaignOptions::builder(&patient())
        .grace(ms(100))
        .build()
        .unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let running = dropped.clone();
    let campaign = a.campaign("x", &options, move |_| {
        running.fetch_add(1, SeqCst);
        let running = Running(running.clone());
        async move {
            let _running = running;
            std::future::pending::<()>().await;
        }
    });
    // Who leads is known a moment before the body is made.
    until("the body runs", LIMIT, async || dropped.load(SeqCst) == 1).await;
    campaign.resign().await.unwrap();
    assert_eq!(dropped.load(SeqCst), 0);
    lead(&b, "x", &at_once()).await.release().await.unwrap();
}

async fn f03_shutdown_lets_the_body_end_first<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let ended = Arc::new(AtomicBool::new(false));
    let tell = ended.clone();
    let campaign = a.campaign("x", &patient(), move |lease| {
        let tell = tell.clone();
        async move {
            lease.cancellation_token().cancelled().await;
            sleep(ms(50)).await;
            lease.ensure_valid().unwrap();
            tell.store(true, SeqCst);
        }
    });
    let changes = campaign.subscribe();
    until_leader(&campaign).await;
    // One that waits, one that leads another name and rests: all are over with their elector.
    let waiting = a.campaign("x", &patient(), until_asked);
    let resting = a.campaign("y", &patient(), until_asked);
    until_leader(&resting).await;
    resting.resign().await.unwrap();
    a.shutdown().await;
    assert!(ended.load(SeqCst), "the body was cut short");
    lead(&b, "x", &at_once()).await.release().await.unwrap();
    for campaign in [&campaign, &waiting, &resting] {
        let ended = timeout(LIMIT, campaign.ended()).await;
        let ended = ended.expect("its elector ends the campaign, whatever it waits for");
        assert_eq!(ended.unwrap(), CampaignEnd::ShutDown);
        assert!(!campaign.is_leader());
    }
    let told: Vec<_> = changes.collect().await;
    assert!(
        matches!(
            told[..],
            [
                LeadershipChange::Granted { .. },
                LeadershipChange::Revoked {
                    reason: Revocation::ShutDown,
                    ..
                }
            ]
        ),
        "{told:?}"
    );
}

async fn f03_a_dropped_campaign_hands_over<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let running = Arc::new(AtomicUsize::new(0));
    for _ in 0..5 {
        let campaign = a.campaign("x", &patient(), noted(&running));
        until_leader(&campaign).await;
        drop(campaign);
        let lease = lead(&b, "x", &patient()).await;
        assert_eq!(running.load(SeqCst), 0);
        lease.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f03_resign_is_bounded_when_the_body_blocks_its_thread() {
    let elector = leader_core::LocalElector::new();
    let options = CampaignOptions::builder(&patient())
        .grace(ms(20))
        .build()
        .unwrap();
    let blocked = Arc::new(AtomicBool::new(true));
    let flag = blocked.clone();
    let campaign = elector.campaign("x", &options, move |_| {
        let flag = flag.clone();
        async move {
            while flag.load(SeqCst) {
                std::thread::sleep(ms(1));
            }
        }
    });
    until_leader(&campaign).await;
    let error = campaign.resign().await.unwrap_err();
    assert!(
        matches!(error, LeaderError::BodyStillRuns { .. }),
        "{error:?}"
    );
    // Its slot is not given to anybody while it works.
    assert!(is_skipped(&elector.node("b"), "x", &at_once()).await);
    blocked.store(false, SeqCst);
    until("it has handed over", LIMIT, async || {
        campaign.status().tenure().is_none()
    })
    .await;
    assert!(!is_skipped(&elector.node("b"), "x", &at_once()).await);
}
