//! The guard: runs a body under a lease, and stops it when the lease is no longer certain.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tracing::Instrument;

use crate::engine::{Phase, Tenure};
use crate::error::{LeaderError, LossReason};
use crate::lease::{Lease, LeaseHandle};
use crate::options::OnLost;
use crate::scope;

/// Runs the body that `make` makes under `lease`, then ends the tenure: body ended or dropped, extension stopped,
/// slot given back, and only then the result, or the body's panic.
pub(crate) async fn run<F, Fut>(lease: Lease, make: F) -> Result<Fut::Output, LeaderError>
where
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    let tenure = lease.tenure().clone();
    tenure.guarded.store(true, Ordering::Release);
    let span = tracing::info_span!(
        "leading",
        name = tenure.label(),
        node_id = %tenure.id.node_id,
        slot = tenure.id.slot,
        fence = tenure.id.fence.get(),
    );
    let ended = guarded(&tenure, make).instrument(span).await;
    let valid = tenure.close();
    // A release that fails is logged, told as an event, and tried again; it never replaces the body's own result.
    let _ = lease.end().await;
    match ended {
        Ended::Returned(output) => match valid {
            Ok(()) => Ok(output),
            Err(reason) => Err(tenure.lost_error(reason)),
        },
        Ended::Lost(reason) => Err(tenure.lost_error(reason)),
        Ended::Stopped => Err(LeaderError::ShutDown),
        Ended::Panicked(panic) => resume_unwind(panic),
    }
}

/// Runs the body that `make` makes inside the outer lease `lease`, which stays.
pub(crate) async fn run_nested<F, Fut>(
    lease: LeaseHandle,
    make: F,
) -> Result<Fut::Output, LeaderError>
where
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    let tenure = lease.inner().clone();
    tenure.ensure_valid()?;
    match guarded(&tenure, make).await {
        Ended::Returned(output) => tenure.ensure_valid().map(|()| output),
        Ended::Lost(reason) => Err(tenure.lost_error(reason)),
        Ended::Stopped => Err(LeaderError::ShutDown),
        Ended::Panicked(panic) => resume_unwind(panic),
    }
}

async fn guarded<F, Fut>(tenure: &Arc<Tenure>, make: F) -> Ended<Fut::Output>
where
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    let handle = LeaseHandle::new(tenure.clone());
    match catch_unwind(AssertUnwindSafe(|| scope::with_lease_made(handle, make))) {
        Ok(body) => {
            let guarded = Guarded {
                tenure: tenure.clone(),
                body: Some(body),
                alarm: None,
            };
            guarded.await
        }
        Err(panic) => Ended::Panicked(panic),
    }
}

/// How a guarded body ended.
enum Ended<T> {
    /// By itself. Whether the lease was valid then is found out when it is closed.
    Returned(T),
    /// Dropped, because the lease was lost.
    Lost(LossReason),
    /// Dropped, because the elector shuts down.
    Stopped,
    /// By a panic, to be resumed after the release.
    Panicked(Box<dyn Any + Send>),
}

pin_project! {
    /// A body that is polled only while its lease is valid: each poll looks at the clock before it polls the body,
    /// so that a process that was frozen past the deadline does not run on, even before any timer has fired.
    struct Guarded<F> {
        tenure: Arc<Tenure>,
        #[pin]
        body: Option<F>,
        // Made when the body is first pending: most short bodies never need a timer.
        #[pin]
        alarm: Option<Alarm>,
    }
}

pin_project! {
    /// Wakes the guard at the deadline, or when the tenure's signal fires.
    struct Alarm {
        #[pin]
        deadline: Sleep,
        #[pin]
        signal: WaitForCancellationFutureOwned,
        signalled: bool,
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = Ended<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(ended) = stop(this.tenure) {
            this.body.set(None);
            return Poll::Ready(ended);
        }
        let Some(body) = this.body.as_mut().as_pin_mut() else {
            // Polled after its end.
            return Poll::Pending;
        };
        match catch_unwind(AssertUnwindSafe(|| body.poll(cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(output)) => {
                this.body.set(None);
                return Poll::Ready(Ended::Returned(output));
            }
            Err(panic) => {
                this.body.set(None);
                return Poll::Ready(Ended::Panicked(panic));
            }
        }
        if this.alarm.is_none() {
            this.alarm.set(Some(Alarm {
                deadline: tokio::time::sleep_until(this.tenure.end()),
                signal: this.tenure.signal().clone().cancelled_owned(),
                signalled: false,
            }));
        }
        if let Some(alarm) = this.alarm.as_mut().as_pin_mut()
            && alarm.poll_rings(this.tenure, cx)
            && let Some(ended) = stop(this.tenure)
        {
            this.body.set(None);
            return Poll::Ready(ended);
        }
        Poll::Pending
    }
}

/// Whether the body must not be polled any more.
fn stop<T>(tenure: &Tenure) -> Option<Ended<T>> {
    let phase = tenure.phase();
    if tenure.on_lost == OnLost::Notify {
        return None;
    }
    match phase {
        Phase::Held if tenure.is_stopping() => Some(Ended::Stopped),
        Phase::Held => None,
        Phase::Closed => Some(Ended::Lost(LossReason::Released)),
        Phase::Lost(LossReason::ShutDown) => Some(Ended::Stopped),
        Phase::Lost(reason) => Some(Ended::Lost(reason)),
    }
}

impl Alarm {
    /// Whether the tenure is to be looked at again; else the task is woken when it is.
    fn poll_rings(self: Pin<&mut Self>, tenure: &Tenure, cx: &mut Context<'_>) -> bool {
        let mut this = self.project();
        if !*this.signalled && this.signal.poll(cx).is_ready() {
            *this.signalled = true;
            return true;
        }
        loop {
            if tenure.phase_now() != Phase::Held {
                // Nothing more to wait for: the body alone decides when it ends.
                return false;
            }
            let end = tenure.end();
            if this.deadline.deadline() != end {
                this.deadline.as_mut().reset(end);
            }
            if this.deadline.as_mut().poll(cx).is_pending() {
                return false;
            }
            if tenure.phase() != Phase::Held {
                return true;
            }
            // Extended meanwhile: wait for the new end.
        }
    }
}
