//! [`GuardedStream`] and [`GuardedTryStream`]: streams that run only inside a lease.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use futures::stream::FusedStream;
use pin_project_lite::pin_project;
use tracing::Span;

use crate::elector::Elector;
use crate::engine::BoxFuture;
use crate::error::LeaderError;
use crate::ext::{Stood, stand};
use crate::guard::{Boundary, Concluded, Ended, Hold};
use crate::lease::LeaseHandle;
use crate::name::LockName;
use crate::options::LeaseOptions;
use crate::outcome::Skipped;
use crate::scope::Scoped;

pin_project! {
    /// A stream under a lease, made by [`ElectorExt::guard_stream`](crate::ElectorExt::guard_stream).
    ///
    /// It claims at its first poll, holds the lease across items, and ends, after the release, when the inner stream
    /// ends or the lease is lost. An item that comes out of the inner stream when the lease is lost is dropped:
    /// whoever leads by then may have it already.
    #[must_use = "streams do nothing unless polled: nothing is claimed"]
    pub struct GuardedStream<'e, S: Stream, F> {
        #[pin]
        guarded: Guarded<'e, S, F>,
    }
}

pin_project! {
    /// A stream of `Result`s under a lease, made by
    /// [`ElectorExt::guard_try_stream`](crate::ElectorExt::guard_try_stream).
    ///
    /// As [`GuardedStream`], and the first error is the last item, be it the inner stream's or a [`LeaderError`].
    #[must_use = "streams do nothing unless polled: nothing is claimed"]
    pub struct GuardedTryStream<'e, S: Stream, F> {
        #[pin]
        guarded: Guarded<'e, S, F>,
        // Whether the failure was given as an item.
        told: bool,
    }
}

/// How a guarded stream ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StreamOutcome {
    /// The inner stream ended by itself, under a valid lease.
    Ended,
    /// The inner stream of a [`GuardedTryStream`] gave an error, under a valid lease. It was the last item.
    ActionFailed,
    /// Somebody else led until the wait was over; there was no inner stream.
    Skipped(Skipped),
    /// The store failed, the lease was lost, the elector was shut down, or the name was invalid.
    Failed(LeaderError),
}

impl StreamOutcome {
    /// Whether the inner stream ended by itself, under a valid lease.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// Whether there was no inner stream because somebody else leads.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        matches!(self, Self::Skipped(_))
    }

    /// The store's failure, the loss of the lease, or the shutdown that ended the stream.
    #[must_use]
    pub fn error(&self) -> Option<&LeaderError> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Ended | Self::ActionFailed | Self::Skipped(_) => None,
        }
    }
}

impl<'e, S, F> GuardedStream<'e, S, F>
where
    S: Stream,
    F: FnOnce(LeaseHandle) -> S,
{
    pub(crate) fn new<E: Elector + 'e>(
        elector: Result<E, LeaderError>,
        name: Result<LockName, LeaderError>,
        options: Result<LeaseOptions, LeaderError>,
        make: F,
    ) -> Self {
        Self {
            guarded: Guarded::new(elector, name, options, make),
        }
    }
}

impl<S: Stream, F> GuardedStream<'_, S, F> {
    /// Why the stream ended; `None` before it has, and when it ended by a panic.
    #[must_use]
    pub fn outcome(&self) -> Option<&StreamOutcome> {
        self.guarded.outcome.as_ref()
    }

    /// The lease, from the election until the stream's end.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseHandle> {
        self.guarded.lease()
    }
}

impl<'e, S, F> GuardedTryStream<'e, S, F>
where
    S: Stream,
    F: FnOnce(LeaseHandle) -> S,
{
    pub(crate) fn new<E: Elector + 'e>(
        elector: Result<E, LeaderError>,
        name: Result<LockName, LeaderError>,
        options: Result<LeaseOptions, LeaderError>,
        make: F,
    ) -> Self {
        Self {
            guarded: Guarded::new(elector, name, options, make),
            told: false,
        }
    }
}

impl<S: Stream, F> GuardedTryStream<'_, S, F> {
    /// Why the stream ended; `None` before it has, and when it ended by a panic.
    #[must_use]
    pub fn outcome(&self) -> Option<&StreamOutcome> {
        self.guarded.outcome.as_ref()
    }

    /// The lease, from the election until the stream's end.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseHandle> {
        self.guarded.lease()
    }
}

impl<S, F> Stream for GuardedStream<'_, S, F>
where
    S: Stream,
    F: FnOnce(LeaseHandle) -> S,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut guarded = self.project().guarded;
        let was_over = guarded.is_over();
        let item = ready!(guarded.as_mut().poll(cx, |_| false));
        if let Some(StreamOutcome::Failed(error)) = &guarded.outcome
            && !was_over
        {
            tracing::warn!(%error, "a guarded stream ended early");
        }
        Poll::Ready(item)
    }
}

impl<S, F, T, E> Stream for GuardedTryStream<'_, S, F>
where
    S: Stream<Item = Result<T, E>>,
    F: FnOnce(LeaseHandle) -> S,
    E: From<LeaderError>,
{
    type Item = Result<T, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let item = ready!(this.guarded.as_mut().poll(cx, Result::is_err));
        if item.is_none()
            && !*this.told
            && let Some(StreamOutcome::Failed(error)) = &this.guarded.outcome
        {
            *this.told = true;
            return Poll::Ready(Some(Err(error.clone().into())));
        }
        Poll::Ready(item)
    }
}

impl<S, F> FusedStream for GuardedStream<'_, S, F>
where
    S: Stream,
    F: FnOnce(LeaseHandle) -> S,
{
    fn is_terminated(&self) -> bool {
        self.guarded.is_over()
    }
}

impl<S, F, T, E> FusedStream for GuardedTryStream<'_, S, F>
where
    S: Stream<Item = Result<T, E>>,
    F: FnOnce(LeaseHandle) -> S,
    E: From<LeaderError>,
{
    fn is_terminated(&self) -> bool {
        self.guarded.is_over()
            && (self.told || !matches!(self.guarded.outcome, Some(StreamOutcome::Failed(_))))
    }
}

impl<S: Stream, F> fmt::Debug for GuardedStream<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guarded.describe(f, "GuardedStream")
    }
}

impl<S: Stream, F> fmt::Debug for GuardedTryStream<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guarded.describe(f, "GuardedTryStream")
    }
}

pin_project! {
    /// What both have in common.
    struct Guarded<'e, S: Stream, F> {
        #[pin]
        stage: Stage<'e, S>,
        make: Option<F>,
        // Given after the release.
        last: Option<S::Item>,
        outcome: Option<StreamOutcome>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<'e, S> {
        // Has not been polled, or stands for election.
        Standing {
            standing: BoxFuture<'e, Result<Stood, LeaderError>>,
        },
        // In the order in which they are dropped: the inner stream before the lease.
        Leading {
            #[pin]
            boundary: Boundary,
            #[pin]
            stream: Scoped<S>,
            span: Span,
            hold: Option<Hold>,
        },
        // The inner stream is gone; the lease is being let go of.
        Ending {
            ending: BoxFuture<'static, Concluded<StreamOutcome>>,
        },
        Over,
    }
}

impl<'e, S, F> Guarded<'e, S, F>
where
    S: Stream,
    F: FnOnce(LeaseHandle) -> S,
{
    fn new<E: Elector + 'e>(
        elector: Result<E, LeaderError>,
        name: Result<LockName, LeaderError>,
        options: Result<LeaseOptions, LeaderError>,
        make: F,
    ) -> Self {
        let standing = Box::pin(async move { stand(&elector?, name?, &options?).await });
        Self {
            stage: Stage::Standing { standing },
            make: Some(make),
            last: None,
            outcome: None,
        }
    }

    /// The next item. Once there is none, `outcome` says why. An item that `is_last` is the last one.
    fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        is_last: impl Fn(&S::Item) -> bool,
    ) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProj::Standing { standing } => match ready!(standing.as_mut().poll(cx)) {
                    Ok(Stood::Leading(hold)) => this
                        .make
                        .take()
                        .map_or(Stage::Over, |make| lead(hold, make)),
                    Ok(Stood::Skipped(skipped)) => {
                        *this.outcome = Some(StreamOutcome::Skipped(skipped));
                        Stage::Over
                    }
                    Err(error) => {
                        *this.outcome = Some(StreamOutcome::Failed(error));
                        Stage::Over
                    }
                },
                StageProj::Leading {
                    boundary,
                    mut stream,
                    span,
                    hold,
                } => {
                    let polled = boundary.poll_next_inside(cx, |cx| {
                        let _entered = span.enter();
                        stream.as_mut().poll_next(cx)
                    });
                    let ended = match ready!(polled) {
                        Ended::Returned(Some(item)) if !is_last(&item) => {
                            return Poll::Ready(Some(item));
                        }
                        Ended::Returned(Some(item)) => {
                            *this.last = Some(item);
                            Ended::Returned(StreamOutcome::ActionFailed)
                        }
                        Ended::Returned(None) => Ended::Returned(StreamOutcome::Ended),
                        Ended::Lost(reason) => Ended::Lost(reason),
                        Ended::Stopped => Ended::Stopped,
                        Ended::Panicked(panic) => Ended::Panicked(panic),
                    };
                    let ended = match catch_unwind(AssertUnwindSafe(|| stream.end())) {
                        Ok(()) => ended,
                        Err(panic) => Ended::Panicked(panic),
                    };
                    hold.take().map_or(Stage::Over, |hold| end(hold, ended))
                }
                StageProj::Ending { ending } => {
                    let concluded = ready!(ending.as_mut().poll(cx));
                    this.stage.set(Stage::Over);
                    let last = this.last.take();
                    match concluded {
                        Ok(Ok(outcome)) => {
                            *this.outcome = Some(outcome);
                            return Poll::Ready(last);
                        }
                        // As for runs: a loss comes before the body's own error.
                        Ok(Err(error)) => *this.outcome = Some(StreamOutcome::Failed(error)),
                        Err(panic) => resume_unwind(panic),
                    }
                    return Poll::Ready(None);
                }
                StageProj::Over => return Poll::Ready(None),
            };
            this.stage.set(next);
        }
    }
}

impl<S: Stream, F> Guarded<'_, S, F> {
    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    fn lease(&self) -> Option<LeaseHandle> {
        match &self.stage {
            Stage::Leading { hold, .. } => hold.as_ref().map(Hold::handle),
            Stage::Standing { .. } | Stage::Ending { .. } | Stage::Over => None,
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        f.debug_struct(what)
            .field("lease", &self.lease())
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

/// Elected: makes the inner stream.
fn lead<'e, S, F>(hold: Hold, make: F) -> Stage<'e, S>
where
    F: FnOnce(LeaseHandle) -> S,
{
    let lease = hold.handle();
    let span = match hold.begin() {
        Ok(span) => span,
        // The lease around this one is lost; to conclude it says so.
        Err(_) => return end(hold, Ended::Returned(StreamOutcome::Ended)),
    };
    let made = {
        let _entered = span.enter();
        catch_unwind(AssertUnwindSafe(|| Scoped::made(lease, make)))
    };
    match made {
        Ok(stream) => Stage::Leading {
            boundary: Boundary::new(hold.tenure().clone()),
            stream,
            span,
            hold: Some(hold),
        },
        Err(panic) => end(hold, Ended::Panicked(panic)),
    }
}

/// The inner stream is gone: lets go of the lease.
fn end<'e, S>(hold: Hold, ended: Ended<StreamOutcome>) -> Stage<'e, S> {
    Stage::Ending {
        ending: Box::pin(hold.conclude(ended)),
    }
}

/// What an annotated function that gives a stream expands to.
pub(crate) mod entry {
    use std::sync::Arc;

    use super::{
        Elector, GuardedStream, GuardedTryStream, LeaderError, LeaseHandle, LeaseOptions, LockName,
        Stream,
    };

    /// As [`ElectorExt::guard_stream`](crate::ElectorExt::guard_stream); what is wrong with its arguments is told when
    /// it is polled.
    pub fn guard_stream<S, F>(
        elector: Result<Arc<dyn Elector>, LeaderError>,
        name: Result<LockName, LeaderError>,
        options: Result<LeaseOptions, LeaderError>,
        make: F,
    ) -> GuardedStream<'static, S, F>
    where
        S: Stream,
        F: FnOnce(LeaseHandle) -> S,
    {
        GuardedStream::new(elector, name, options, make)
    }

    /// As [`ElectorExt::guard_try_stream`](crate::ElectorExt::guard_try_stream), in the same way.
    pub fn guard_try_stream<S, F, T, E>(
        elector: Result<Arc<dyn Elector>, LeaderError>,
        name: Result<LockName, LeaderError>,
        options: Result<LeaseOptions, LeaderError>,
        make: F,
    ) -> GuardedTryStream<'static, S, F>
    where
        S: Stream<Item = Result<T, E>>,
        F: FnOnce(LeaseHandle) -> S,
        E: From<LeaderError>,
    {
        GuardedTryStream::new(elector, name, options, make)
    }
}
