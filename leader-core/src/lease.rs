//! [`Lease`] and [`LeaseHandle`]: the right to lead, held by one owner and seen by many.

use std::fmt;
use std::future::ready;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::{Phase, Tenure};
use crate::error::LeaderError;
use crate::name::LockName;
use crate::node::NodeId;
use crate::scope;
use crate::token::FencingToken;

/// The exclusive, time-bounded right to one slot of a name, held by hand.
///
/// It has every method of [`LeaseHandle`], and [`release`](Self::release). Dropped, it is released in the background.
/// Holding it is no proof: ask [`ensure_valid`](LeaseHandle::ensure_valid) before each step that must not happen
/// twice, and send [`fence`](LeaseHandle::fence) along to resources that can check it.
///
/// ```
/// use leader_core::{ElectorExt, LeaseOptions, LocalElector};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leader_core::LeaderError> {
/// let elector = LocalElector::new();
/// if let Some(lease) = elector.try_acquire("invoice-close", &LeaseOptions::default()).await? {
///     lease.ensure_valid()?;
///     println!("leading with fencing token {}", lease.fence());
///     lease.release().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a lease that is dropped is released"]
pub struct Lease {
    handle: LeaseHandle,
    /// Cleared once its end is in other hands.
    held: bool,
}

impl Lease {
    pub(crate) fn new(tenure: Arc<Tenure>) -> Self {
        Self {
            handle: LeaseHandle { tenure },
            held: true,
        }
    }

    /// A handle to this lease, for other tasks.
    #[must_use]
    pub fn handle(&self) -> LeaseHandle {
        self.handle.clone()
    }

    /// Gives the slot back, at once or once `min_lease` is over, and waits until the store has done so.
    ///
    /// # Errors
    ///
    /// - [`LeaderError::LeaseLost`]: the lease had been lost before, so work may have run outside it. Whoever leads
    ///   now is left alone.
    /// - [`LeaderError::Backend`]: the store did not confirm. The release is tried again in the background until the
    ///   lease would have ended.
    ///
    /// # Cancellation safety
    ///
    /// Dropped half-way, the release goes on in the background.
    pub async fn release(self) -> Result<(), LeaderError> {
        let (tenure, now) = (self.tenure().clone(), Instant::now());
        let valid = tenure.close(now);
        let released = self.end(now).await;
        valid.map_err(|reason| tenure.lost_error(reason))?;
        released
    }

    /// Ends a tenure that was closed, by a look at the clock just `now`. One that was lost before is cleared away in the
    /// background: there is nothing to wait for. Begins at the call; the future is what is left to wait for.
    pub(crate) fn end(mut self, now: Instant) -> impl Future<Output = Result<(), LeaderError>> {
        let tenure = self.tenure();
        tenure.note_let_go();
        if tenure.phase_now() != Phase::Closed {
            self.let_go();
            return Either::Left(ready(Ok(())));
        }
        if let Some(released) = tenure.steward.release_now(tenure, now) {
            self.has_ended();
            return Either::Left(ready(released));
        }
        let release = tenure.steward.clone().release(tenure.clone());
        Either::Right(async move {
            let released = release.await;
            // By a method, which needs the whole of it here: dropped half-way, the lease sees to its release itself.
            self.has_ended();
            released
        })
    }

    fn has_ended(&mut self) {
        self.held = false;
    }

    /// Sees to it that a loss is told at the deadline, also when nobody looks.
    #[cfg(feature = "metrics")]
    pub(crate) fn watch(&self) {
        let tenure = self.tenure();
        tenure.steward.clone().watch_deadline(tenure);
    }

    pub(crate) fn tenure(&self) -> &Arc<Tenure> {
        &self.handle.tenure
    }

    fn let_go(&mut self) {
        if self.held {
            self.held = false;
            let tenure = &self.handle.tenure;
            tenure.note_let_go();
            // Either way it is over; whether it was still valid matters to nobody any more.
            let _ = tenure.close(Instant::now());
            tenure.steward.clone().release_behind(tenure);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Deref for Lease {
    type Target = LeaseHandle;

    fn deref(&self) -> &LeaseHandle {
        &self.handle
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.describe(f, "Lease")
    }
}

/// A view of a lease that somebody else holds: everything but the right to release it. Cheap to clone.
#[derive(Clone)]
pub struct LeaseHandle {
    tenure: Arc<Tenure>,
}

impl LeaseHandle {
    pub(crate) fn new(tenure: Arc<Tenure>) -> Self {
        Self { tenure }
    }

    pub(crate) fn inner(&self) -> &Arc<Tenure> {
        &self.tenure
    }

    /// The grant's fencing token, to be sent along with every write to a resource that checks it.
    #[must_use]
    pub fn fence(&self) -> FencingToken {
        self.tenure.id.fence
    }

    /// The slot, from 0; always 0 when the name has one slot.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.tenure.id.slot
    }

    /// The name that is led.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.tenure.id.name
    }

    /// Who leads: this candidate.
    #[must_use]
    pub fn node_id(&self) -> &NodeId {
        &self.tenure.id.node_id
    }

    /// How long the lease is still valid by this candidate's own, conservative reckoning; zero when it is not. No I/O.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.is_valid() {
            self.tenure.end().saturating_duration_since(Instant::now())
        } else {
            Duration::ZERO
        }
    }

    /// Whether the lease is valid now, by this candidate's own, conservative reckoning. No I/O.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.tenure.phase() == Phase::Held
    }

    /// Checks that the lease is valid now. No I/O.
    ///
    /// # Errors
    ///
    /// [`LeaderError::LeaseLost`] says how it was lost.
    pub fn ensure_valid(&self) -> Result<(), LeaderError> {
        self.tenure.ensure_valid()
    }

    /// For tests that check the reckoning itself: until when this candidate relies on the lease, `None` when it no
    /// longer does. Unlike [`is_valid`](Self::is_valid) it only looks: a lease whose deadline has passed unnoticed
    /// stays unnoticed.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn reckoning(&self) -> Option<Instant> {
        (self.tenure.phase_now() == Phase::Held).then(|| self.tenure.end())
    }

    /// Lets the lease live for `lease` from now, unless it lives longer anyway: of two extensions, the later deadline
    /// holds. `max_tenure` still ends it.
    ///
    /// # Errors
    ///
    /// - [`LeaderError::InvalidOptions`]: below 10 ms or above 365 days. Nothing was sent.
    /// - [`LeaderError::LeaseLost`]: it is not this candidate's any more. It is never revived.
    /// - [`LeaderError::Backend`]: the store did not answer; the present deadline stands.
    ///
    /// # Cancellation safety
    ///
    /// Dropped half-way, the store may have extended the lease; this candidate goes by the earlier deadline.
    pub async fn extend(&self, lease: Duration) -> Result<(), LeaderError> {
        self.tenure
            .steward
            .clone()
            .extend(self.tenure.clone(), lease)
            .await
    }

    /// A token that fires when the lease has ended, however: lost, at its deadline at the latest, or released. And when
    /// the elector is shut down and the work is asked to come to an end.
    ///
    /// Each call gives a token of its own; cancelling it does nothing to the lease.
    #[must_use]
    pub fn cancellation_token(&self) -> CancellationToken {
        self.tenure.steward.clone().watch_deadline(&self.tenure);
        self.tenure.signal().child_token()
    }

    /// Waits until the lease is no longer valid: lost, or released. Ends at once when it is not.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future changes nothing.
    pub async fn lost(&self) {
        while self.tenure.phase() == Phase::Held {
            let end = self.tenure.end();
            tokio::select! {
                biased;
                () = self.tenure.has_ended().cancelled() => {}
                () = tokio::time::sleep_until(end) => {}
            }
        }
    }

    /// Runs `future` with this lease as its [`current_lease`](crate::current_lease()), in a spawned task say. It does
    /// not stop the future when the lease is lost: check [`ensure_leader`](crate::ensure_leader), or select on
    /// [`lost`](Self::lost).
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        scope::with_lease(self.clone(), future)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        let id = &self.tenure.id;
        f.debug_struct(what)
            .field("name", &id.name)
            .field("node_id", &id.node_id)
            .field("slot", &id.slot)
            .field("fence", &id.fence)
            .field("phase", &self.tenure.phase_now())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LeaseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f, "LeaseHandle")
    }
}
