//! The keys and their values.

use leader_core::{Elector, LeaderError, LeaseOptions, LocalElector, OnLost, leader_election};
use std::sync::Arc;
use std::time::Duration;

#[leader_election(
    name = "all:{tenant}:{id:>04}/{id:?}:{N}",
    wait = "500ms",
    lease = "1m30s",
    min_lease = "PT0.5S",
    max_tenure = "2h",
    auto_extend,
    slots = 3,
    on_lost = "notify",
    on_error = "return",
    skipped = Ok(()),
    elector = elector,
    crate = "leader_core",
    kind = "future",
)]
async fn literals<const N: usize>(
    elector: Arc<dyn Elector>,
    tenant: &str,
    id: u32,
) -> Result<(), LeaderError> {
    Ok(())
}

#[leader_election(
    name = format!("all:{}", tenant.len()),
    wait = Duration::from_secs(1),
    lease = lease,
    min_lease = lease / 2,
    max_tenure = lease * 2,
    auto_extend = !tenant.is_empty(),
    slots = 1 + 2,
    on_lost = OnLost::Cancel,
    crate = ::leader_core,
)]
async fn expressions(tenant: &str, lease: Duration) -> Result<(), LeaderError> {
    Ok(())
}

#[leader_election(name = "options:{tenant}", options = options)]
async fn options(tenant: &str, options: &LeaseOptions) -> Result<(), LeaderError> {
    Ok(())
}

#[leader_election(name = "elector")]
async fn parameter(elector: &LocalElector) -> Result<(), LeaderError> {
    Ok(())
}
