//! [`GuardedStream`] and [`GuardedTryStream`]: streams that run only inside a lease.

pub(crate) mod annotated;
mod guarded;

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::FusedStream;
use futures::{Stream, TryStream};
use pin_project_lite::pin_project;

use self::guarded::{Given, Guarded, Sorted, Standing, WhenFailing, standing};
use crate::elector::Elector;
use crate::error::LeaderError;
use crate::lease::LeaseHandle;
use crate::name::LockName;
use crate::options::LeaseOptions;
use crate::outcome::Skipped;

pin_project! {
    /// A stream under a lease, made by [`ElectorExt::guard_stream`](crate::ElectorExt::guard_stream).
    ///
    /// It claims at its first poll, holds the lease across items, and ends, after the release, when the inner stream
    /// ends or the lease is lost. Each poll looks at the clock before it polls the inner stream: an item that comes out
    /// was asked for under a valid lease, and no item that came out is ever dropped.
    #[must_use = "streams do nothing unless polled: nothing is claimed"]
    pub struct GuardedStream<'e, S: Stream, F> {
        #[pin]
        guarded: Guarded<Standing<'e>, S, F, Infallible>,
    }
}

pin_project! {
    /// A stream of `Result`s under a lease, made by
    /// [`ElectorExt::guard_try_stream`](crate::ElectorExt::guard_try_stream).
    ///
    /// It claims and holds as [`GuardedStream`] does, and the first error is the last item, be it the inner stream's or
    /// a [`LeaderError`]. An error of the inner stream is given after the release; when the lease turns out to be lost
    /// by then, the [`LeaderError`] that says so stands in its place. No other item is ever dropped.
    #[must_use = "streams do nothing unless polled: nothing is claimed"]
    pub struct GuardedTryStream<'e, S: TryStream, F> {
        #[pin]
        guarded: Guarded<Standing<'e>, S, F, S::Error>,
        over: bool,
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

impl<'e, S: Stream, F> GuardedStream<'e, S, F> {
    pub(crate) fn new<E: Elector + 'e>(
        elector: E,
        name: Result<LockName, LeaderError>,
        options: LeaseOptions,
        make: F,
    ) -> Self {
        Self {
            guarded: Guarded::new(
                Box::pin(standing(Ok(elector), name, Ok(options))),
                WhenFailing::Fail,
                make,
            ),
        }
    }
}

impl<S: Stream, F> GuardedStream<'_, S, F> {
    /// Why the stream ended; `None` before it has, and when it ended by a panic.
    #[must_use]
    pub fn outcome(&self) -> Option<&StreamOutcome> {
        self.guarded.outcome()
    }

    /// The lease, from the election until the stream's end.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseHandle> {
        self.guarded.lease()
    }
}

impl<'e, S: TryStream, F> GuardedTryStream<'e, S, F> {
    pub(crate) fn new<E: Elector + 'e>(
        elector: E,
        name: Result<LockName, LeaderError>,
        options: LeaseOptions,
        make: F,
    ) -> Self {
        Self {
            guarded: Guarded::new(
                Box::pin(standing(Ok(elector), name, Ok(options))),
                WhenFailing::Fail,
                make,
            ),
            over: false,
        }
    }
}

impl<S: TryStream, F> GuardedTryStream<'_, S, F> {
    /// Why the stream ended; `None` before it has, and when it ended by a panic.
    #[must_use]
    pub fn outcome(&self) -> Option<&StreamOutcome> {
        self.guarded.outcome()
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
        if guarded.is_over() {
            return Poll::Ready(None);
        }
        let given = ready!(guarded.as_mut().poll(cx, made, Sorted::Item));
        if let Some(StreamOutcome::Failed(error)) = guarded.outcome() {
            tracing::warn!(%error, "a guarded stream ended early");
        }
        Poll::Ready(match given {
            Given::Item(item) => Some(item),
            Given::Last(never) => match never {},
            Given::End => None,
        })
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
        if *this.over {
            return Poll::Ready(None);
        }
        let sort = |item| match item {
            Ok(value) => Sorted::Item(Ok(value)),
            Err(error) => Sorted::Last(error),
        };
        match ready!(this.guarded.as_mut().poll(cx, made, sort)) {
            Given::Item(item) => return Poll::Ready(Some(item)),
            Given::Last(error) => return Poll::Ready(Some(Err(error))),
            Given::End => *this.over = true,
        }
        let error = this.guarded.outcome().and_then(StreamOutcome::error);
        Poll::Ready(error.map(|error| Err(error.clone().into())))
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
        self.over
    }
}

impl<S: Stream, F> fmt::Debug for GuardedStream<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guarded.describe(f, "GuardedStream")
    }
}

impl<S: TryStream, F> fmt::Debug for GuardedTryStream<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guarded.describe(f, "GuardedTryStream")
    }
}

fn made<S>(make: impl FnOnce(LeaseHandle) -> S, lease: Option<LeaseHandle>) -> Option<S> {
    lease.map(make)
}
