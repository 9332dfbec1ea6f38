//! How a worker stands for a job, again and again, in each manner.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leader_core::{
    CampaignOptions, ElectorExt, LeaderError, LeadershipChange, LeaseHandle, LeaseOptions,
};
use leader_sim::Dice;

use futures::StreamExt;

use super::leading::Leading;
use super::{Worker, Wrong};
use crate::job::{Job, Manner};

/// After an attempt that failed; a service would take longer.
const PAUSE: Duration = Duration::from_millis(20);
/// How long one attempt waits to be elected.
const WAIT: Duration = Duration::from_secs(2);

/// Stands for `job` until the process ends.
pub(crate) async fn candidate(worker: Arc<Worker>, job: Job, mut dice: Dice) {
    let manner = match worker.orders.wrong {
        // A guarded body cannot be this wrong: it is dropped.
        Some(Wrong::Deaf | Wrong::Hoarding) => Manner::Hand,
        _ => job.manner,
    };
    if manner == Manner::Campaign {
        return campaign(worker, job, dice).await;
    }
    let options = options(&job, manner);
    loop {
        let done = match manner {
            Manner::Hand => hand(&worker, &job, &options, &mut dice).await,
            _ => run(&worker, &job, &options, &mut dice).await,
        };
        // Somebody else is to have a chance, and an attempt that failed at once is not made again at once.
        let pause = if done.is_ok() {
            Duration::from_millis(dice.between(0, 20))
        } else {
            PAUSE
        };
        tokio::time::sleep(pause).await;
    }
}

fn options(job: &Job, manner: Manner) -> LeaseOptions {
    let options = LeaseOptions::builder()
        .wait(WAIT)
        .lease(job.lease())
        .slots(job.slots)
        .auto_extend(manner != Manner::Call)
        .build();
    options.unwrap_or_else(|error| panic!("{}: {error}", job.name))
}

/// How long the work of a tenure takes: short as a rule, so that leadership changes often.
fn length(job: &Job, manner: Manner, dice: &mut Dice) -> Duration {
    let lease = job.lease_ms;
    let millis = match manner {
        Manner::Call => dice.between(1, lease / 3),
        _ if dice.chance(25) => dice.between(lease, lease * 3),
        _ => dice.between(1, 80),
    };
    Duration::from_millis(millis)
}

async fn run(
    worker: &Arc<Worker>,
    job: &Job,
    options: &LeaseOptions,
    dice: &mut Dice,
) -> Result<(), LeaderError> {
    let length = length(job, job.manner, dice);
    let asked = Some(worker.clock.now());
    let body = |lease: LeaseHandle| async move {
        let Some(leading) = Leading::begin(worker, &lease, asked, true) else {
            return;
        };
        write_later(worker, lease, dice);
        leading.work(length, dice).await;
        leading.end();
    };
    let ran = worker
        .elector
        .run_if_leader(job.name.as_str(), options, body);
    ran.await.map(|_| ())
}

async fn hand(
    worker: &Arc<Worker>,
    job: &Job,
    options: &LeaseOptions,
    dice: &mut Dice,
) -> Result<(), LeaderError> {
    let mut length = length(job, Manner::Hand, dice);
    let asked = Some(worker.clock.now());
    let lease = worker
        .elector
        .try_acquire(job.name.as_str(), options)
        .await?;
    let Some(lease) = lease else {
        return Ok(());
    };
    if let Some(leading) = Leading::begin(worker, &lease, asked, false) {
        write_later(worker, lease.handle(), dice);
        match worker.orders.wrong {
            Some(Wrong::Deaf) => length += job.lease() * 3,
            Some(Wrong::Hoarding) => {
                leading.end();
                return std::future::pending().await;
            }
            _ => {}
        }
        leading.work(length, dice).await;
        leading.end();
    }
    lease.release().await
}

/// The campaign goes on; what is decided here is when it resigns.
async fn campaign(worker: Arc<Worker>, job: Job, mut dice: Dice) {
    let options = CampaignOptions::builder(&options(&job, Manner::Campaign))
        .grace(Duration::from_millis(50))
        .rest(Duration::from_millis(30))
        .build();
    let options = options.unwrap_or_else(|error| panic!("{}: {error}", job.name));
    let throws = Arc::new(Mutex::new(Dice::new(dice.next())));
    let body_of = worker.clone();
    let campaign = worker
        .elector
        .campaign(job.name.as_str(), &options, move |lease| {
            let (worker, throws) = (body_of.clone(), throws.clone());
            async move {
                let Some(leading) = Leading::begin(&worker, &lease, None, true) else {
                    return;
                };
                let mut dice = {
                    let mut throws = throws.lock().unwrap_or_else(PoisonError::into_inner);
                    Dice::new(throws.next())
                };
                write_later(&worker, lease.clone(), &mut dice);
                let stop = lease.cancellation_token();
                tokio::select! {
                    () = leading.work(Duration::MAX / 4, &mut dice) => {}
                    () = stop.cancelled() => {}
                }
                leading.end();
            }
        });
    let mut changes = campaign.subscribe();
    while let Some(change) = changes.next().await {
        if matches!(change, LeadershipChange::Granted { .. }) {
            tokio::time::sleep(length(&job, Manner::Campaign, &mut dice)).await;
            // One that was lost meanwhile has nothing to hand over.
            let _ = campaign.resign().await;
        }
    }
}

/// A task that the body has left behind writes when its leader's time may be over: what fencing is for.
fn write_later(worker: &Arc<Worker>, lease: LeaseHandle, dice: &mut Dice) {
    let longest = worker.orders.jobs.iter().map(|job| job.lease_ms).max();
    let longest = longest.unwrap_or_default();
    let after = if worker.orders.wrong == Some(Wrong::Unfenced) {
        dice.between(longest, longest * 3)
    } else if dice.chance(40) {
        dice.between(0, longest * 2)
    } else {
        return;
    };
    let worker = worker.clone();
    let after = Duration::from_millis(after);
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        worker.resource.write(&lease).await;
    });
}
