//! The guard: runs a body under a lease, and stops it when the lease is no longer certain.

use std::any::Any;
use std::future::{Ready, ready};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures::FutureExt;
use futures::future::Either;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::engine::{Phase, Tenure};
use crate::error::{LeaderError, LossReason};
use crate::lease::{Lease, LeaseHandle};
use crate::options::OnLost;
use crate::scope::{self, Scoped};
use crate::span::{Around, Inside};

/// Under which lease a body runs.
#[derive(Debug)]
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

    /// Why the lease is over, if it is.
    pub(crate) fn lost(&self) -> Option<LossReason> {
        match self.tenure().phase() {
            Phase::Held => None,
            Phase::Closed => Some(LossReason::Released),
            Phase::Lost(reason) => Some(reason),
        }
    }

    /// To be called before the body is made. Gives the span that the body runs in, or why there is to be no body: the
    /// process may have stood still since the grant, and nothing begins on a lease that is over.
    pub(crate) fn begin(&self) -> Result<Around, LossReason> {
        if let Some(reason) = self.lost() {
            return Err(reason);
        }
        match self {
            Self::Own(lease) => Ok(begin(lease.tenure())),
            Self::Outer(_) => Ok(Around::nothing()),
        }
    }

    /// To be called once the body is gone: extension stops, the slot is given back, and only then there is a result.
    /// Begins at the call; the future is what is left to wait for.
    pub(crate) fn conclude<T>(self, ended: Ended<T>) -> impl Future<Output = Concluded<T>> {
        match self {
            Self::Own(lease) => {
                let now = Instant::now();
                let valid = lease.tenure().close(now);
                let concluded = ended.under(lease.tenure(), valid);
                // A release that fails is logged, told as an event, and tried again; it never replaces the body's
                // own result.
                Either::Left(lease.end(now).map(|_| concluded))
            }
            Self::Outer(lease) => {
                Either::Right(ready(ended.under(lease.inner(), lease.inner().valid())))
            }
        }
    }
}

/// A body is about to run under a tenure of its own. Gives the span that it runs in.
fn begin(tenure: &Tenure) -> Around {
    tenure.guarded.store(true, Ordering::Release);
    Around::leading(tenure)
}

/// Runs the body that `make` makes under a lease, then ends the tenure: body ended or dropped, extension stopped, slot
/// given back, and only then the result, or the body's panic.
#[expect(
    clippy::manual_async_fn,
    reason = "the future of an async function has room for each argument twice, and thousands of tasks may wait in it"
)]
pub(crate) fn run<F, Fut>(
    hold: Hold,
    make: F,
) -> impl Future<Output = Result<Fut::Output, LeaderError>>
where
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    async move {
        let ended = running(&hold, make).await;
        match hold.conclude(ended).await {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// A body in its span, or what it came to before it began.
type Running<'a, F> = Either<Inside<Guarded<'a, Scoped<F>>>, Ready<Ended<<F as Future>::Output>>>;

/// The body that `make` makes, under a lease. A plain function: whatever an async one matches on across an `await` has room
/// of its own in the future, which every task that waits to be elected would have as well.
fn running<F, Fut>(hold: &Hold, make: F) -> Running<'_, Fut>
where
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    let span = match hold.begin() {
        Ok(span) => span,
        Err(reason) => return Either::Right(ready(Ended::Lost(reason).after(|| drop(make)))),
    };
    match span.inside(|| guarded(hold.tenure(), Stopping::AtOnce, make)) {
        Ok(guarded) => Either::Left(span.future(guarded)),
        Err(panic) => Either::Right(ready(Ended::Panicked(panic))),
    }
}

/// Runs the body that `make` makes under a tenure, until it is gone. Asked to stop, it is given `grace` to end by itself,
/// under a lease that goes on meanwhile. Ending the tenure is left to the caller.
pub(crate) async fn run_with_grace<F, Fut>(
    tenure: &Arc<Tenure>,
    grace: Duration,
    make: F,
) -> Ended<Fut::Output>
where
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    if let Err(reason) = tenure.valid() {
        return Ended::Lost(reason);
    }
    let grace_is_over = async {
        tenure.signal().cancelled().await;
        tokio::time::sleep(grace).await;
    };
    let span = begin(tenure);
    let run = match span.inside(|| guarded(tenure, Stopping::ByItself, make)) {
        Ok(guarded) => span.future(guarded),
        Err(panic) => return Ended::Panicked(panic),
    };
    tokio::select! {
        biased;
        ended = run => ended,
        () = grace_is_over => Ended::Stopped,
    }
}

/// The body in its boundary, or the panic of what was to make it.
fn guarded<F, Fut>(
    tenure: &Arc<Tenure>,
    stopping: Stopping,
    make: F,
) -> std::thread::Result<Guarded<'_, Scoped<Fut>>>
where
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    let handle = LeaseHandle::new(tenure.clone());
    let body = catch_unwind(AssertUnwindSafe(|| scope::with_lease_made(handle, make)))?;
    Ok(Guarded {
        boundary: Boundary::stopping(&**tenure, stopping),
        body: Some(body),
    })
}

/// What a body that is not [`OnLost::Notify`] does when its tenure is asked to come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    /// It is dropped.
    AtOnce,
    /// It is trusted to watch the cancellation token; whoever asked sees to the bound.
    ByItself,
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

impl<T> Ended<T> {
    /// What it comes to, when the tenure was `valid` at the end of the body or was not.
    fn under(self, tenure: &Tenure, valid: Result<(), LossReason>) -> Concluded<T> {
        let lost = |reason| tenure.lost_error(reason);
        match self {
            Self::Returned(output) => Ok(valid.map(|()| output).map_err(lost)),
            Self::Lost(reason) => Ok(Err(lost(reason))),
            Self::Stopped => Ok(Err(LeaderError::ShutDown)),
            Self::Panicked(panic) => Err(panic),
        }
    }

    /// The same, once what is left of the body is dropped; that may panic as any of its code may.
    pub(crate) fn after(self, drop: impl FnOnce()) -> Self {
        match (self, catch_unwind(AssertUnwindSafe(drop))) {
            (Self::Panicked(panic), _) | (_, Err(panic)) => Self::Panicked(panic),
            (ended, Ok(())) => ended,
        }
    }
}

pin_project! {
    /// A future that is polled only inside its boundary.
    struct Guarded<'a, F> {
        #[pin]
        boundary: Boundary<&'a Tenure>,
        #[pin]
        body: Option<F>,
    }
}

pin_project! {
    /// Where a body is polled only while its lease is valid: each poll looks at the clock before it polls the body,
    /// so that a process that was frozen past the deadline does not run on, even before any timer has fired.
    pub(crate) struct Boundary<T> {
        tenure: T,
        stopping: Stopping,
        // Made when the body is first pending: most short bodies never need a timer, and who waits to be elected does
        // not need the room for one.
        alarm: Option<Pin<Box<Alarm>>>,
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
        // Whom both of the above wake, once both have been asked to.
        set_for: Option<Waker>,
    }
}

impl<F: Future> Future for Guarded<'_, F> {
    type Output = Ended<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(body) = this.body.as_mut().as_pin_mut() else {
            // Polled after its end.
            return Poll::Pending;
        };
        let ended = ready!(this.boundary.poll_inside(cx, |cx| body.poll(cx)));
        Poll::Ready(ended.after(|| this.body.set(None)))
    }
}

impl<T: Deref<Target = Tenure>> Boundary<T> {
    pub(crate) fn new(tenure: T) -> Self {
        Self::stopping(tenure, Stopping::AtOnce)
    }

    fn stopping(tenure: T, stopping: Stopping) -> Self {
        Self {
            tenure,
            stopping,
            alarm: None,
        }
    }

    /// Polls the body, unless its lease is over. When this gives anything but [`Ended::Returned`], the body is to be
    /// dropped. While it is pending, the task is woken at the deadline and when the tenure's signal fires.
    pub(crate) fn poll_inside<O>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        body: impl FnOnce(&mut Context<'_>) -> Poll<O>,
    ) -> Poll<Ended<O>> {
        let this = self.project();
        let now = Instant::now();
        if let Some(ended) = stop(this.tenure, *this.stopping, now) {
            return Poll::Ready(ended);
        }
        match catch_unwind(AssertUnwindSafe(|| body(cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(output)) => return Poll::Ready(Ended::Returned(output)),
            Err(panic) => return Poll::Ready(Ended::Panicked(panic)),
        }
        let tenure: &Tenure = this.tenure;
        let alarm = this
            .alarm
            .get_or_insert_with(|| Box::pin(Alarm::new(tenure)));
        if !alarm.is_set(now, cx)
            && alarm.as_mut().poll_rings(this.tenure, cx)
            && let Some(ended) = stop(this.tenure, *this.stopping, Instant::now())
        {
            return Poll::Ready(ended);
        }
        Poll::Pending
    }
}

/// Whether the body must not be polled any more.
fn stop<T>(tenure: &Tenure, stopping: Stopping, now: Instant) -> Option<Ended<T>> {
    let phase = tenure.phase_at(now);
    if tenure.on_lost == OnLost::Notify {
        return None;
    }
    match phase {
        Phase::Held if stopping == Stopping::AtOnce && tenure.is_stopping() => Some(Ended::Stopped),
        Phase::Held => None,
        Phase::Closed => Some(Ended::Lost(LossReason::Released)),
        Phase::Lost(LossReason::ShutDown) => Some(Ended::Stopped),
        Phase::Lost(reason) => Some(Ended::Lost(reason)),
    }
}

impl Alarm {
    fn new(tenure: &Tenure) -> Self {
        Self {
            deadline: tokio::time::sleep_until(tenure.end()),
            signal: tenure.signal().clone().cancelled_owned(),
            signalled: false,
            set_for: None,
        }
    }

    /// Whether the task is woken in time anyway, so that a busy body does not pay for setting the alarm at each of
    /// its polls. A deadline only ever moves away: an alarm that is set rings at the right one or before. It rings
    /// once; the poll that it causes comes after its time, or finds the tenure lost or stopping.
    fn is_set(&self, now: Instant, cx: &Context<'_>) -> bool {
        let waker = self.set_for.as_ref();
        waker.is_some_and(|waker| waker.will_wake(cx.waker())) && now < self.deadline.deadline()
    }

    /// Sets the alarm. Whether the tenure is to be looked at again; else the task is woken when it is.
    fn poll_rings(mut self: Pin<&mut Self>, tenure: &Tenure, cx: &mut Context<'_>) -> bool {
        let rings = self.as_mut().poll_both(tenure, cx);
        // A timer that is polled when the task has used up its budget is not set: it only asks to be polled again.
        let set = tokio::task::coop::has_budget_remaining();
        *self.project().set_for = set.then(|| cx.waker().clone());
        rings
    }

    fn poll_both(self: Pin<&mut Self>, tenure: &Tenure, cx: &mut Context<'_>) -> bool {
        let mut this = self.project();
        let mut rings = false;
        if !*this.signalled && this.signal.poll(cx).is_ready() {
            *this.signalled = true;
            rings = true;
        }
        // Once it is lost there is nothing more to wait for: the body alone decides when it ends.
        while tenure.phase_now() == Phase::Held {
            let end = tenure.end();
            if this.deadline.deadline() != end {
                this.deadline.as_mut().reset(end);
            }
            if this.deadline.as_mut().poll(cx).is_pending() {
                return rings;
            }
            // Extended meanwhile, or over.
            rings |= tenure.phase() != Phase::Held;
        }
        rings
    }
}
