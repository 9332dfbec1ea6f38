//! The guard: runs a body under a lease, and stops it when the lease is no longer certain.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tracing::{Instrument, Span};

use crate::engine::{Phase, Tenure};
use crate::error::{LeaderError, LossReason};
use crate::lease::{Lease, LeaseHandle};
use crate::options::OnLost;
use crate::scope;

/// Under which lease a body runs.
pub(crate) enum Hold {
    /// Its own, which ends with the body.
    Own(Lease),
    /// That of a run around it, which stays.
    Outer(LeaseHandle),
}

/// What a body came to once its lease is let go of: the value or the error, or the body's panic, to be resumed.
pub(crate) type Concluded<T> = std::thread::Result<Result<T, LeaderError>>;

impl Hold {
    pub(crate) fn tenure(&self) -> &Arc<Tenure> {
        match self {
            Self::Own(lease) => lease.tenure(),
            Self::Outer(lease) => lease.inner(),
        }
    }

    pub(crate) fn handle(&self) -> LeaseHandle {
        match self {
            Self::Own(lease) => lease.handle(),
            Self::Outer(lease) => lease.clone(),
        }
    }

    /// To be called before the body is made. Gives the span that the body runs in.
    pub(crate) fn begin(&self) -> Result<Span, LeaderError> {
        let tenure = self.tenure();
        // The process may have stood still since the grant: nothing begins on a lease that is over.
        tenure.ensure_valid()?;
        match self {
            Self::Own(_) => {
                tenure.guarded.store(true, Ordering::Release);
                Ok(tracing::info_span!(
                    "leading",
                    name = tenure.label(),
                    node_id = %tenure.id.node_id,
                    slot = tenure.id.slot,
                    fence = tenure.id.fence.get(),
                ))
            }
            Self::Outer(_) => Ok(Span::none()),
        }
    }

    /// To be called once the body is gone: extension stops, the slot is given back, and only then there is a result.
    pub(crate) async fn conclude<T>(self, ended: Ended<T>) -> Concluded<T> {
        let tenure = self.tenure().clone();
        let valid = match self {
            Self::Own(lease) => {
                let valid = tenure.close().map_err(|reason| tenure.lost_error(reason));
                // A release that fails is logged, told as an event, and tried again; it never replaces the body's
                // own result.
                let _ = lease.end().await;
                valid
            }
            Self::Outer(_) => tenure.ensure_valid(),
        };
        match ended {
            Ended::Returned(output) => Ok(valid.map(|()| output)),
            Ended::Lost(reason) => Ok(Err(tenure.lost_error(reason))),
            Ended::Stopped => Ok(Err(LeaderError::ShutDown)),
            Ended::Panicked(panic) => Err(panic),
        }
    }
}

/// Runs the body that `make` makes under a lease, then ends the tenure: body ended or dropped, extension stopped, slot
/// given back, and only then the result, or the body's panic.
pub(crate) async fn run<F, Fut>(hold: Hold, make: F) -> Result<Fut::Output, LeaderError>
where
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    let span = hold.begin()?;
    let ended = guarded(hold.tenure(), make).instrument(span).await;
    match hold.conclude(ended).await {
        Ok(result) => result,
        Err(panic) => resume_unwind(panic),
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
                boundary: Boundary::new(tenure.clone()),
                body: Some(body),
            };
            guarded.await
        }
        Err(panic) => Ended::Panicked(panic),
    }
}

/// How a guarded body ended.
pub(crate) enum Ended<T> {
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
    /// A future that is polled only inside its boundary.
    struct Guarded<F> {
        #[pin]
        boundary: Boundary,
        #[pin]
        body: Option<F>,
    }
}

pin_project! {
    /// Where a body is polled only while its lease is valid: each poll looks at the clock before it polls the body,
    /// so that a process that was frozen past the deadline does not run on, even before any timer has fired.
    pub(crate) struct Boundary {
        tenure: Arc<Tenure>,
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
        let Some(body) = this.body.as_mut().as_pin_mut() else {
            // Polled after its end.
            return Poll::Pending;
        };
        let ended = ready!(this.boundary.poll_inside(cx, |cx| body.poll(cx)));
        this.body.set(None);
        Poll::Ready(ended)
    }
}

impl Boundary {
    pub(crate) fn new(tenure: Arc<Tenure>) -> Self {
        Self {
            tenure,
            alarm: None,
        }
    }

    /// Polls the body, unless its lease is over. When this gives anything but [`Ended::Returned`], the body is to be
    /// dropped. While it is pending, the task is woken at the deadline and when the tenure's signal fires.
    pub(crate) fn poll_inside<T>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        body: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Ended<T>> {
        let mut this = self.project();
        if let Some(ended) = stop(this.tenure) {
            return Poll::Ready(ended);
        }
        match catch_unwind(AssertUnwindSafe(|| body(cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(output)) => return Poll::Ready(Ended::Returned(output)),
            Err(panic) => return Poll::Ready(Ended::Panicked(panic)),
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
            return Poll::Ready(ended);
        }
        Poll::Pending
    }

    /// As [`poll_inside`](Self::poll_inside), for a body that gives more than one value: one that came out when the
    /// lease was lost is dropped, since whoever leads by then may have it already.
    pub(crate) fn poll_next_inside<T>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        body: impl FnOnce(&mut Context<'_>) -> Poll<Option<T>>,
    ) -> Poll<Ended<Option<T>>> {
        let polled = ready!(self.as_mut().poll_inside(cx, body));
        if let Ended::Returned(Some(_)) = polled
            && let Some(Ended::Lost(reason)) = stop::<T>(&self.tenure)
        {
            return Poll::Ready(Ended::Lost(reason));
        }
        Poll::Ready(polled)
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
