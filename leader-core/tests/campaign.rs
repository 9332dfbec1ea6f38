//! Campaigns at the awkward moments: asked while they stand, while they release, from inside their own body, twice.
#![allow(missing_docs, reason = "a test")]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use leader_core::testing::{Fault, Faults, FaultyStore, Footprint};
use leader_core::{
    BodyEnd, Campaign, CampaignEnd, CampaignOptions, ElectorExt, LeadershipChange, LeaseHandle,
    LeaseOptions, LeaseOptionsBuilder, LocalStore, LossReason, Revocation, Step, StoreElector,
    WhenBodyEnds,
};
use tokio::time::{Instant, sleep};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

type Candidate = StoreElector<FaultyStore<LocalStore>>;

fn candidate() -> (Candidate, Faults) {
    let store = FaultyStore::new(LocalStore::new());
    let faults = store.faults();
    (StoreElector::builder(store).build(), faults)
}

fn lease() -> LeaseOptionsBuilder {
    LeaseOptions::builder().lease(Duration::from_secs(60))
}

async fn until_asked(lease: LeaseHandle) {
    lease.cancellation_token().cancelled().await;
}

/// Under a paused clock a condition that never comes true ends with the test's patience, and not by the machine's speed; in
/// real time after ten seconds and more.
async fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if is() {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("never: {what}");
}

async fn nothing_is_left(elector: &Candidate) {
    until("nothing is left", || {
        elector.footprint() == Footprint::default()
    })
    .await;
}

/// A campaign that its own body can speak to.
type Own = Arc<OnceLock<Arc<Campaign>>>;

#[tokio::test(start_paused = true)]
async fn a_body_may_resign_and_stop_its_own_campaign() {
    let (elector, _) = candidate();
    let (own, said) = (Own::default(), Arc::new(AtomicUsize::new(0)));
    let (mine, saying) = (own.clone(), said.clone());
    let campaign = elector.campaign("x", &lease().build().unwrap(), move |lease| {
        let (mine, saying) = (mine.clone(), saying.clone());
        async move {
            let campaign = mine.get().unwrap().clone();
            if saying.fetch_add(1, SeqCst) == 0 {
                campaign.resign().await.unwrap();
            } else {
                campaign.stop().await.unwrap();
            }
            // Reached at once, and under the lease: what is begun can be finished.
            lease.ensure_valid().unwrap();
            assert!(lease.cancellation_token().is_cancelled());
            saying.fetch_add(10, SeqCst);
        }
    });
    let campaign = Arc::new(campaign);
    let mut changes = campaign.subscribe();
    let begun = Instant::now();
    assert!(own.set(campaign.clone()).is_ok());
    let mut reasons = Vec::new();
    while reasons.is_empty() {
        if let Some(LeadershipChange::Revoked { reason, .. }) = changes.next().await {
            reasons.push(reason);
        }
    }
    assert_eq!(reasons, [Revocation::Resigned]);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "it waited for itself"
    );
    assert_eq!(said.load(SeqCst), 11, "the body was cut short");
    campaign.stand();
    assert_eq!(campaign.ended().await.unwrap(), CampaignEnd::Stopped);
    assert_eq!(said.load(SeqCst), 22, "the body was cut short");
    nothing_is_left(&elector).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ended_for_good_is_not_run_again_because_somebody_resigned_meanwhile() {
    let (elector, faults) = candidate();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let options = CampaignOptions::builder(&lease().build().unwrap())
        .when_body_returns(WhenBodyEnds::Stop)
        .build()
        .unwrap();
    faults.once(
        Step::Release,
        Fault::DelayRequest(Duration::from_millis(400)),
    );
    let campaign = elector.campaign("x", &options, move |_| {
        counted.fetch_add(1, SeqCst);
        async {}
    });
    // The body has ended, its slot is on its way back.
    until("the body has ended", || runs.load(SeqCst) == 1).await;
    assert!(campaign.status().tenure().is_some());
    campaign.resign().await.unwrap();
    let end = campaign.ended().await.unwrap();
    assert_eq!(end, CampaignEnd::BodyEnded(BodyEnd::Returned));
    assert_eq!(runs.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn who_resigns_during_the_release_of_a_body_that_ended_rests_like_others() {
    let (elector, faults) = candidate();
    let campaign = elector.campaign("x", &lease().build().unwrap(), |_| async {});
    faults.once(
        Step::Release,
        Fault::DelayRequest(Duration::from_millis(400)),
    );
    let mut changes = campaign.subscribe();
    assert!(matches!(
        changes.next().await,
        Some(LeadershipChange::Granted { .. })
    ));
    campaign.resign().await.unwrap();
    assert!(matches!(
        changes.next().await,
        Some(LeadershipChange::Revoked {
            reason: Revocation::Resigned,
            ..
        })
    ));
    // Longer than the pause after a body that ended, shorter than the rest.
    sleep(Duration::from_secs(50)).await;
    assert_eq!(campaign.status().tenures(), 1);
}

/// Resigns for its campaign while a warning is written, which may take as long as a subscriber likes.
#[derive(Clone, Default)]
struct Resigning(Own);

impl Subscriber for Resigning {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() == Level::WARN
            && metadata.target().starts_with("leader")
    }

    fn event(&self, _: &Event<'_>) {
        let campaign = self.0.get().unwrap();
        assert!(campaign.resign().now_or_never().is_none());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn who_resigns_when_a_body_has_failed_and_its_slot_is_free_rests_like_others() {
    let (elector, _) = candidate();
    let resigning = Resigning::default();
    let _told = tracing::subscriber::set_default(resigning.clone());
    let campaign = elector.campaign("x", &lease().build().unwrap(), |_| async {
        Err::<(), _>("no money")
    });
    let campaign = resigning.0.get_or_init(|| Arc::new(campaign)).clone();
    let mut changes = campaign.subscribe().skip(1);
    match changes.next().await {
        Some(LeadershipChange::Revoked { reason, .. }) => assert_eq!(reason, Revocation::Resigned),
        other => panic!("not revoked: {other:?}"),
    }
    // Longer than the pause after a body that failed, shorter than the rest.
    sleep(Duration::from_secs(50)).await;
    assert_eq!(campaign.status().tenures(), 1);
}

#[tokio::test(start_paused = true)]
async fn asked_twice_and_at_once_it_hands_over_once() {
    let (elector, faults) = candidate();
    let campaign = elector.campaign("x", &lease().build().unwrap(), until_asked);
    until("it leads", || campaign.is_leader()).await;
    let all = (0..20).map(|_| campaign.resign());
    for resigned in futures::future::join_all(all).await {
        resigned.unwrap();
    }
    campaign.resign().await.unwrap();
    assert_eq!(faults.asked(Step::Release), 1);
    assert_eq!(campaign.status().tenures(), 1);
    let all = futures::future::join_all((0..20).map(|_| campaign.stop())).await;
    assert!(all.into_iter().all(|stopped| stopped.is_ok()));
    assert_eq!(campaign.ended().await.unwrap(), CampaignEnd::Stopped);
    nothing_is_left(&elector).await;
}

#[tokio::test(start_paused = true)]
async fn resigning_before_it_leads_changes_nothing_and_stopping_leaves_nothing() {
    for stop in [false, true] {
        let (elector, faults) = candidate();
        faults.once(Step::Claim, Fault::HoldReply);
        let campaign = elector.campaign("x", &lease().build().unwrap(), until_asked);
        until("its claim has arrived", || faults.ran(Step::Claim) == 1).await;
        if stop {
            campaign.stop().await.unwrap();
            faults.let_go_all();
            assert_eq!(campaign.ended().await.unwrap(), CampaignEnd::Stopped);
            nothing_is_left(&elector).await;
            assert!(elector.state("x").await.unwrap().holders().is_empty());
        } else {
            campaign.resign().await.unwrap();
            faults.let_go_all();
            until("it leads", || campaign.is_leader()).await;
        }
    }
}

/// Who resigns waits for the end of the tenure that the status shows; without one it would be told at once that another
/// may lead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_leads_whose_tenure_the_status_does_not_show_yet() {
    let (elector, faults) = candidate();
    let options = lease().build().unwrap();
    let before = elector.try_acquire("x", &options).await.unwrap().unwrap();
    let campaign = elector.campaign("x", &options, until_asked);
    until("it waits", || faults.ran(Step::Watch) == 1).await;
    let (status, claims) = (campaign.watch(), faults.ran(Step::Claim));
    // As long as somebody reads it, nothing is written.
    let reading = status.borrow();
    let released = tokio::spawn(before.release());
    let (began, mut looks) = (std::time::Instant::now(), 0);
    while looks < 50 {
        looks += usize::from(faults.ran(Step::Claim) > claims);
        assert!(!campaign.is_leader());
        assert!(began.elapsed() < Duration::from_secs(20), "not granted");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(reading);
    released.await.unwrap().unwrap();
    until("it leads", || campaign.is_leader()).await;
    assert!(campaign.status().tenure().is_some());
    campaign.resign().await.unwrap();
    assert!(!campaign.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_campaign_that_its_own_body_drops_ends_in_good_order() {
    let (elector, _) = candidate();
    let own: Arc<std::sync::Mutex<Option<Campaign>>> = Arc::default();
    let well = Arc::new(AtomicUsize::new(0));
    let (mine, telling) = (own.clone(), well.clone());
    let campaign = elector.campaign("x", &lease().build().unwrap(), move |lease| {
        let (mine, telling) = (mine.clone(), telling.clone());
        async move {
            while mine.lock().unwrap().take().is_none() {
                sleep(Duration::from_millis(1)).await;
            }
            lease.cancellation_token().cancelled().await;
            lease.ensure_valid().unwrap();
            telling.fetch_add(1, SeqCst);
        }
    });
    let mut watched = campaign.watch();
    *own.lock().unwrap() = Some(campaign);
    let ended = watched.wait_for(|status| status.end().is_some()).await;
    assert!(matches!(
        ended.unwrap().end(),
        Some(Ok(CampaignEnd::Stopped))
    ));
    assert_eq!(well.load(SeqCst), 1, "the body was cut short");
    nothing_is_left(&elector).await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_and_a_longest_tenure_take_the_lease_and_it_stands_again() {
    let (elector, _) = candidate();
    let short = lease().lease(Duration::from_secs(3));
    let short = short.max_tenure(Duration::from_secs(10)).build().unwrap();
    let campaign = elector.campaign("x", &short, |_| std::future::pending::<()>());
    let mut changes = campaign.subscribe();
    let mut last = 0;
    for expected in [LossReason::Deleted, LossReason::MaxTenure] {
        let Some(LeadershipChange::Granted { fence, .. }) = changes.next().await else {
            panic!("no grant");
        };
        assert!(fence.get() > last);
        last = fence.get();
        if expected == LossReason::Deleted {
            elector.force_release("x").await.unwrap();
        }
        let revoked = changes.next().await;
        let Some(LeadershipChange::Revoked { reason, .. }) = revoked else {
            panic!("{revoked:?}");
        };
        assert_eq!(reason, Revocation::Lost(expected));
    }
    campaign.stop().await.unwrap();
    nothing_is_left(&elector).await;
}

#[tokio::test(start_paused = true)]
async fn with_a_min_lease_the_slot_stays_taken_until_it_is_over_and_resigning_does_not_wait_for_it()
{
    let (elector, _) = candidate();
    let least = lease().min_lease(Duration::from_secs(30)).build().unwrap();
    let campaign = elector.campaign("x", &least, until_asked);
    until("it leads", || campaign.is_leader()).await;
    let begun = Instant::now();
    campaign.resign().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    let state = elector.state("x").await.unwrap();
    assert!(state.holders().iter().all(leader_core::Holder::is_retained));
    assert_eq!(state.holders().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn waits_of_nothing_and_of_ever_are_the_same_to_a_campaign() {
    let (elector, faults) = candidate();
    for wait in [Duration::ZERO, Duration::MAX] {
        let options = lease().wait(wait).build().unwrap();
        let first = elector.campaign("x", &options, until_asked);
        until("it leads", || first.is_leader()).await;
        let second = elector.campaign("x", &options, until_asked);
        let claims = faults.asked(Step::Claim);
        sleep(Duration::from_secs(10)).await;
        assert!(
            faults.asked(Step::Claim) <= claims + 1,
            "it looks all the time"
        );
        first.stop().await.unwrap();
        until("the second leads", || second.is_leader()).await;
        second.stop().await.unwrap();
    }
    nothing_is_left(&elector).await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_campaigns_leave_nothing_behind() {
    for shut_down in [false, true] {
        let (elector, _) = candidate();
        let begin = |number| {
            elector.campaign(
                format!("name-{number}"),
                lease().build().unwrap(),
                until_asked,
            )
        };
        let campaigns: Vec<_> = (0..100).map(begin).collect();
        // Nobody ever reads these.
        let _unread: Vec<_> = campaigns.iter().map(Campaign::subscribe).collect();
        until("all lead", || campaigns.iter().all(Campaign::is_leader)).await;
        if shut_down {
            let stops = futures::future::join_all(campaigns.iter().map(Campaign::stop));
            let ((), stopped) = tokio::join!(elector.shutdown(), stops);
            assert!(stopped.into_iter().all(|stopped| stopped.is_ok()));
        } else {
            drop(campaigns);
        }
        nothing_is_left(&elector).await;
    }
}
