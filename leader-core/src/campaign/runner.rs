//! The task of a campaign: stands, leads, pauses, and stands again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::body::{self, BodyEnd, IntoBodyEnd};
use super::change::Revocation;
use super::options::{CampaignOptions, WhenBodyEnds};
use super::pace::Pace;
use super::shared::Shared;
use super::status::{CampaignEnd, CampaignPhase};
use crate::elector::Elector;
use crate::engine::quietly;
use crate::error::{LeaderError, LossReason};
use crate::guard::{self, Ended};
use crate::lease::{Lease, LeaseHandle};
use crate::name::LockName;
use crate::options::LeaseOptions;
use crate::outcome::Acquisition;

/// How soon a store that failed is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Runner<E, F> {
    elector: E,
    name: LockName,
    lease: LeaseOptions,
    options: CampaignOptions,
    body: F,
    shared: Arc<Shared>,
    closing: CancellationToken,
    /// Between two questions to a store that fails.
    failing: Pace,
    /// Between a body that ended by itself and the next stand.
    ending: Pace,
    /// Dropped last.
    over: Over,
}

/// Marks the campaign as over, however its task ends, and if it never began.
struct Over(Arc<Shared>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.ended(Ok(CampaignEnd::RuntimeEnded));
    }
}

impl<E, F, Fut> Runner<E, F>
where
    E: Elector,
    F: FnMut(LeaseHandle) -> Fut,
    Fut: Future<Output: IntoBodyEnd>,
{
    pub(super) fn new(
        elector: E,
        name: LockName,
        options: CampaignOptions,
        body: F,
        shared: Arc<Shared>,
    ) -> Self {
        let pace = || Pace::new(elector.node_id(), &name);
        Self {
            failing: pace(),
            ending: pace(),
            closing: elector.closing(),
            lease: options.lease_options().clone().for_a_campaign(),
            elector,
            name,
            options,
            body,
            over: Over(shared.clone()),
            shared,
        }
    }

    pub(super) async fn run(mut self) {
        let end = self.campaign().await;
        let label = self.lease.name_pattern().unwrap_or(self.name.as_str());
        quietly(|| tracing::debug!(name = label, ?end, "the campaign has ended"));
        self.over.0.ended(Ok(end));
    }

    async fn campaign(&mut self) -> CampaignEnd {
        loop {
            let lease = match self.stand().await {
                Ok(lease) => lease,
                Err(end) => return end,
            };
            let begun = Instant::now();
            match self.lead(lease).await {
                Revocation::Lost(_) | Revocation::ShutDown | Revocation::Stopped => {}
                Revocation::Resigned => self.pause(self.options.rest()).await,
                Revocation::Ended(end) => match self.options.when(&end) {
                    WhenBodyEnds::Stop => return CampaignEnd::BodyEnded(end),
                    WhenBodyEnds::StandAgain { pause, longest } => {
                        if begun.elapsed() >= longest {
                            self.ending.reset();
                        }
                        let pause = self.ending.pause(pause, longest);
                        self.pause(pause).await;
                    }
                },
            }
        }
    }

    /// Stands until elected, or until there is nothing to stand for any more.
    async fn stand(&mut self) -> Result<Lease, CampaignEnd> {
        loop {
            self.shared.phase(CampaignPhase::Standing);
            let acquired = tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return Err(CampaignEnd::Stopped),
                acquired = self.elector.acquire(&self.name, &self.lease) => acquired,
            };
            match acquired {
                Ok(Acquisition::Elected(lease)) => {
                    self.failing.reset();
                    return Ok(lease);
                }
                // The wait has no end; nor has a campaign.
                Ok(Acquisition::Skipped(_)) => self.pause(FIRST_PAUSE).await,
                Err(LeaderError::ShutDown) => return Err(CampaignEnd::ShutDown),
                Err(error) => {
                    let failures = self.shared.failed(error.clone());
                    let label = self.lease.name_pattern().unwrap_or(self.name.as_str());
                    quietly(|| {
                        if failures == 1 {
                            tracing::warn!(name = label, %error, "cannot stand for election; asking again");
                        } else {
                            tracing::debug!(name = label, %error, failures, "cannot stand for election");
                        }
                    });
                    let longest = (self.lease.lease() / 2).min(LONGEST_PAUSE);
                    let pause = self.failing.pause(FIRST_PAUSE.min(longest), longest);
                    self.pause(pause).await;
                }
            }
        }
    }

    /// Runs the body under the lease; then gives the slot back; then tells.
    async fn lead(&mut self, lease: Lease) -> Revocation {
        let tenure = lease.tenure().clone();
        self.shared.granted(lease.handle());
        let body = &mut self.body;
        let run = async {
            let run = guard::run_with_grace(&tenure, self.options.grace(), body);
            match run.await {
                Ended::Returned(output) => Some(output.into_body_end()),
                Ended::Panicked(panic) => Some(body::panicked(panic)),
                Ended::Lost(_) | Ended::Stopped => None,
            }
        };
        // A body may panic when it is dropped, too, and so may what it returned.
        let ended = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(ended) => ended,
            Err(panic) => Some(body::panicked(panic)),
        };
        let now = Instant::now();
        let valid = tenure.close(now);
        let by_itself = !tenure.is_stopping();
        self.shared.phase(CampaignPhase::Releasing);
        let released = lease.end(now).await;
        if let Some(end @ (BodyEnd::Failed(_) | BodyEnd::Panicked(_))) = &ended {
            quietly(|| {
                tracing::warn!(
                    name = tenure.label.as_str(),
                    node_id = %tenure.id.node_id,
                    slot = tenure.id.slot,
                    fence = tenure.id.fence.get(),
                    "{end}"
                );
            });
        }
        let options = &self.options;
        let why = |asked: bool| match (valid, ended) {
            (Err(LossReason::ShutDown), _) => Some(Revocation::ShutDown),
            (Err(reason), _) => Some(Revocation::Lost(reason)),
            (Ok(()), Some(end)) if !asked => Some(Revocation::Ended(end)),
            // Asked during the release, when the body had ended already: for good, if the options say so.
            (Ok(()), Some(end)) if by_itself && options.when(&end) == WhenBodyEnds::Stop => {
                Some(Revocation::Ended(end))
            }
            (Ok(()), _) => None,
        };
        self.shared.revoked(why, released)
    }

    /// Lets others lead, until it is told to stand, or to end.
    async fn pause(&mut self, pause: Duration) {
        self.shared.pause(pause, &self.closing).await;
    }
}
