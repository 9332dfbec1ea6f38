//! [`Campaign`]: leading for long. It stands for election until it is stopped, runs its body while it leads, and stands
//! again when it has lost.

mod body;
mod change;
mod options;
mod pace;
mod runner;
mod shared;
mod status;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

pub use self::body::{BodyEnd, IntoBodyEnd};
pub use self::change::{Changes, LeadershipChange, Revocation};
pub use self::options::{CampaignOptions, CampaignOptionsBuilder, WhenBodyEnds};
pub(crate) use self::pace::Pace;
use self::runner::Runner;
use self::shared::Shared;
pub use self::status::{CampaignEnd, CampaignPhase, CampaignStatus};
use crate::elector::Elector;
use crate::error::LeaderError;
use crate::event::TenureId;
use crate::lease::LeaseHandle;
use crate::name::LockName;
use crate::scope;

/// A candidate that leads for long, made by [`ElectorExt::campaign`](crate::ElectorExt::campaign).
///
/// It lives in a task of its own, on the runtime on which it was begun. **Dropped, it ends**: its body is asked to stop,
/// and its slot is free once the body has. [`stop`](Self::stop) does the same and waits for it.
#[must_use = "a campaign ends when this is dropped"]
pub struct Campaign {
    shared: Arc<Shared>,
}

/// How much longer than its grace a body may take to be dropped, before it counts as stuck.
const SLACK: Duration = Duration::from_secs(1);

impl Campaign {
    pub(crate) fn begin<E, F, Fut>(
        elector: E,
        name: Result<LockName, LeaderError>,
        options: CampaignOptions,
        body: F,
    ) -> Self
    where
        E: Elector + 'static,
        F: FnMut(LeaseHandle) -> Fut + Send + 'static,
        Fut: Future<Output: IntoBodyEnd> + Send + 'static,
    {
        let place = name.and_then(|name| {
            let runtime = Handle::try_current().map_err(|_| LeaderError::NoRuntime)?;
            Ok((name, runtime))
        });
        match place {
            Ok((name, runtime)) => {
                let shared = Shared::new(options.grace(), CampaignStatus::new());
                let runner = Runner::new(elector, name, options, body, shared.clone());
                runtime.spawn(runner.run());
                Self { shared }
            }
            Err(error) => {
                tracing::error!(%error, "a campaign that cannot begin");
                let shared = Shared::new(options.grace(), CampaignStatus::over(Err(error)));
                shared.changes.close();
                Self { shared }
            }
        }
    }

    /// Whether this candidate leads, provably and now: the clock is compared with the lease's deadline at each call. It
    /// is `false` from the deadline on, also when every task of the process is stuck. No I/O.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.shared.lease().is_some_and(|lease| lease.is_valid())
    }

    /// The lease, while this candidate leads, provably and now.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseHandle> {
        self.shared.lease().filter(LeaseHandle::is_valid)
    }

    /// Where the campaign stands.
    pub fn status(&self) -> CampaignStatus {
        self.shared.status.borrow().clone()
    }

    /// Where the campaign stands, to be watched: who looks rarely sees the latest only.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<CampaignStatus> {
        self.shared.status.subscribe()
    }

    /// When this candidate begins to lead and when it no longer does, one by one: `Granted (Revoked Granted)*`. It begins
    /// with the grant in force, if there is one, or with one that ends in this moment, and ends with the campaign. A slow
    /// reader loses the oldest and is told; it never slows the campaign.
    ///
    /// `Granted` is told before the body begins, `Revoked` after the body has ended and the slot was given back.
    pub fn subscribe(&self) -> Changes {
        self.shared.changes.subscribe()
    }

    /// Hands over: the body is asked to stop by its cancellation token, and dropped when it has not within the grace;
    /// then the slot is given back, and a waiter is told. Returns after that.
    ///
    /// Afterwards this candidate rests, so that it does not win again at once: for one lease, unless
    /// [`rest`](CampaignOptionsBuilder::rest) says otherwise, or until [`stand`](Self::stand). With a `min_lease` the
    /// slot stays taken until that is over. A candidate that does not lead has nothing to hand over, and goes on
    /// standing.
    ///
    /// The body itself may call this, too. It is not waited for then: this returns at once, with the cancellation token
    /// fired, and the slot is given back when the body has ended.
    ///
    /// # Errors
    ///
    /// - [`LeaderError::Backend`]: the store did not confirm the release, which is tried again in the background.
    /// - [`LeaderError::BodyStillRuns`]: the body blocks its thread, so that it cannot be dropped. Its lease goes on.
    /// - Whatever kept the campaign from beginning, an invalid name say.
    ///
    /// # Cancellation safety
    ///
    /// Dropped half-way, the hand-over goes on.
    pub async fn resign(&self) -> Result<(), LeaderError> {
        if let Some(Err(error)) = self.status().end {
            return Err(error);
        }
        let mut status = self.watch();
        let Some(lease) = self.shared.resign() else {
            return Ok(());
        };
        if scope::is_inside(lease.inner()) {
            return Ok(());
        }
        let tenure = &lease.inner().id;
        self.body_ends(&mut status, tenure).await?;
        let over = status.wait_for(|status| status.tenure.as_ref() != Some(tenure));
        // The sender is in this value, so the wait cannot fail.
        over.await.map_or(Ok(()), |status| status.released(tenure))
    }

    /// Stands for election again at once, if it rests or pauses.
    pub fn stand(&self) {
        self.shared.stand();
    }

    /// Ends the campaign: as [`resign`](Self::resign), and it does not stand again. The body itself may call this, too.
    ///
    /// # Errors
    ///
    /// As [`resign`](Self::resign).
    ///
    /// # Cancellation safety
    ///
    /// Dropped half-way, the campaign ends all the same.
    pub async fn stop(&self) -> Result<(), LeaderError> {
        let mut status = self.watch();
        self.shared.stop();
        let lease = self.shared.lease();
        if lease.is_some_and(|lease| scope::is_inside(lease.inner())) {
            return Ok(());
        }
        // Elected in the same moment, it leads once more, and its body has the grace as any other.
        let leads = status.wait_for(|status| status.tenure.is_some() || status.end.is_some());
        let tenure = leads.await.ok().and_then(|status| status.tenure.clone());
        if let Some(tenure) = &tenure {
            self.body_ends(&mut status, tenure).await?;
        }
        self.ended().await?;
        tenure.map_or(Ok(()), |tenure| self.status().released(&tenure))
    }

    /// Waits until the campaign is over, and says how it ended. It does not end by itself, unless its options say so.
    ///
    /// # Errors
    ///
    /// Whatever kept it from beginning: [`LeaderError::InvalidName`], [`LeaderError::NoRuntime`].
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future changes nothing.
    pub async fn ended(&self) -> Result<CampaignEnd, LeaderError> {
        let mut status = self.watch();
        let over = status.wait_for(|status| status.end.is_some()).await;
        over.ok()
            .and_then(|status| status.end.clone())
            .unwrap_or(Ok(CampaignEnd::RuntimeEnded))
    }

    /// Waits until the body of `tenure` has ended.
    async fn body_ends(
        &self,
        status: &mut watch::Receiver<CampaignStatus>,
        tenure: &TenureId,
    ) -> Result<(), LeaderError> {
        let ended = status.wait_for(|status| {
            status.tenure.as_ref() != Some(tenure) || status.phase != CampaignPhase::Leading
        });
        match timeout(self.shared.grace.saturating_add(SLACK), ended).await {
            Ok(_) => Ok(()),
            Err(_) => Err(LeaderError::BodyStillRuns {
                name: tenure.name.clone(),
                fence: tenure.fence,
            }),
        }
    }
}

impl Drop for Campaign {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl fmt::Debug for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Campaign")
            .field("status", &*self.shared.status.borrow())
            .finish_non_exhaustive()
    }
}
