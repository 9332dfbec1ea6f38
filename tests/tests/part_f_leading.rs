//! Part F of the scenarios: leading for long. What needs real processes is in `part_f_processes.rs`, what breaks the
//! store in `part_f_faults.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use leader_core::testing::ScriptedElector;
use leader_core::{
    BackendKind, BodyEnd, Campaign, CampaignEnd, CampaignOptions, CampaignPhase, Elector,
    ElectorExt, LeaderError, LeadershipChange, LeaseHandle, LeaseOptions, LossReason, OnLost,
    Revocation, WhenBodyEnds,
};
use leader_tests::{World, at_once, is_skipped, lead, ms, on_every_store, options, patient, until};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

on_every_store!(
    f02_each_reader_hears_grants_and_revocations_in_turn,
    f02_a_state_read_inside_the_handler_agrees,
    f03_a_body_has_ended_before_its_slot_is_free_and_a_waiter_is_told,
    f03_who_resigns_rests_until_it_is_told_to_stand,
    f03_a_body_that_does_not_end_is_dropped_after_the_grace,
    f03_shutdown_lets_the_body_end_first,
    f03_a_dropped_campaign_hands_over,
    f05_a_body_that_ends_is_followed_by_a_pause_that_grows,
    f05_a_body_that_panics_wherever_it_can_does_not_end_the_campaign,
    f05_a_campaign_stops_when_its_options_say_so,
    a_lost_lease_drops_the_body_and_the_campaign_stands_again,
    a_body_under_notify_is_given_the_grace_when_its_lease_is_lost,
    campaigns_share_the_slots_of_a_name,
    a_waiting_campaign_is_quiet,
    a_campaign_that_cannot_begin_says_why,
    the_designs_lines_work_behind_dyn,
    an_observer_is_told_when_the_leader_changes,
    a_process_is_healthy_unless_it_works_without_a_lease,
);

const LIMIT: Duration = Duration::from_secs(20);

fn brief() -> LeaseOptions {
    options(LeaseOptions::builder().lease(Duration::from_secs(5)))
}

/// A body that is a good citizen: it ends when it is asked to.
async fn until_asked(lease: LeaseHandle) {
    lease.cancellation_token().cancelled().await;
}

async fn until_leader(campaign: &Campaign) {
    until("the campaign leads", LIMIT, async || campaign.is_leader()).await;
}

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

fn reason(change: &LeadershipChange) -> Option<Revocation> {
    match change {
        LeadershipChange::Revoked { reason, .. } => Some(reason.clone()),
        _ => None,
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

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
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
    until_leader(&campaign).await;
    assert_eq!(dropped.load(SeqCst), 1);
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
    let running = Arc::new(AtomicUsize::new(0));
    let counted = running.clone();
    let lease = options(LeaseOptions::builder().lease(ms(300) * W::PACE));
    let campaign = a.campaign("x", &lease, move |_| {
        counted.fetch_add(1, SeqCst);
        let running = Running(counted.clone());
        async move {
            let _running = running;
            std::future::pending::<()>().await;
        }
    });
    until_leader(&campaign).await;
    let fence = campaign.lease().unwrap().fence();
    b.force_release("x").await.unwrap();
    until("it leads again", LIMIT, async || {
        campaign.status().tenures() == 2
    })
    .await;
    assert!(campaign.lease().unwrap().fence() > fence);
    assert_eq!(running.load(SeqCst), 1);
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

async fn an_observer_is_told_when_the_leader_changes<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = options(
        LeaseOptions::builder()
            .lease(ms(300) * W::PACE)
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
    // Extensions are no change.
    assert!(timeout(ms(700) * W::PACE, next()).await.is_err());
    first.release().await.unwrap();
    assert!(next().await.is_empty());
    let second = lead(&a, "x", &lease).await;
    assert_eq!(next().await, [second.fence()]);
    drop(second);
    assert!(next().await.is_empty());
    b.shutdown().await;
    assert!(leaders.next().await.is_none());
}

async fn a_process_is_healthy_unless_it_works_without_a_lease<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = options(
        LeaseOptions::builder()
            .lease(ms(200))
            .on_lost(OnLost::Notify),
    );
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
    });
    run.await.unwrap_err();
    assert!(a.health().is_healthy());
    let held = lead(&a, "x", &lease).await;
    held.lost().await;
    assert!(!a.health().is_healthy());
    drop(held);
    assert!(a.health().is_healthy());
}

/// The thread that should notice is stuck, and so is every other one of the runtime.
#[test]
fn f04_nobody_leads_past_the_deadline_when_every_task_is_stuck() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let elector = leader_core::LocalElector::new();
    let campaign = runtime.block_on(async {
        let lease = options(LeaseOptions::builder().lease(ms(100)));
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
