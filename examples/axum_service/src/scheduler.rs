//! The campaign in the background: one instance schedules, the others wait for their turn.

use std::sync::Arc;
use std::time::Duration;

use leader_core::{Campaign, Elector, ElectorExt, LeaderError, LeaseHandle, LeaseOptions};

pub(crate) const NAME: &str = "scheduler";

pub(crate) fn begin(elector: &Arc<dyn Elector>) -> Result<Campaign, LeaderError> {
    let options = LeaseOptions::builder()
        .lease(Duration::from_secs(3))
        .build()?;
    Ok(elector.campaign(NAME, &options, schedule))
}

/// Runs while this instance leads. Asked to stop, it finishes what it is at; only then another leads.
async fn schedule(lease: LeaseHandle) {
    println!("scheduling with fencing token {}", lease.fence());
    let stop = lease.cancellation_token();
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        // What is due is started here, with the fencing token sent along.
    }
    println!("scheduled until fencing token {} ended", lease.fence());
}
