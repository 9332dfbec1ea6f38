//! Part F of the scenarios: leading for long. What needs real processes is in `part_f_processes.rs`, what breaks the
//! store in `part_f_faults.rs`.

mod around;
mod bodies;
mod ends;
mod handing_over;
mod told;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use leader_core::{Campaign, LeadershipChange, LeaseHandle, LeaseOptions, Revocation};
use leader_tests::{options, until};

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

fn reason(change: &LeadershipChange) -> Option<Revocation> {
    match change {
        LeadershipChange::Revoked { reason, .. } => Some(reason.clone()),
        _ => None,
    }
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
