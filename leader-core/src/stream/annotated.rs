//! What an annotated function that gives a stream expands to. Not public: it changes without notice.

use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use futures::stream::FusedStream;
use pin_project_lite::pin_project;

use super::StreamOutcome;
pub use super::guarded::WhenFailing;
use super::guarded::{Given, Guarded, Sorted, standing};
use crate::elector::Elector;
use crate::error::LeaderError;
use crate::ext::Stood;
use crate::name::LockName;
use crate::options::LeaseOptions;

pin_project! {
    /// The stream of an annotated function.
    struct Annotated<W, S: Stream, F, L> {
        #[pin]
        guarded: Guarded<W, S, F, L>,
        last_items: LastItems<S::Item, L>,
        over: bool,
    }
}

/// How items say that the stream failed, and what is kept of the last one until the release. Pointers, so that nothing
/// of the items' type has to cross a thread with them.
pub struct LastItems<T, L> {
    sort: fn(T) -> Sorted<T, L>,
    unsort: fn(L) -> T,
    failed: fn(&LeaderError) -> Option<T>,
}

impl<T, E: From<LeaderError>> LastItems<Result<T, E>, E> {
    /// Of `Result`s: the first error is the last item, be it the inner stream's or a [`LeaderError`].
    #[must_use]
    pub fn errors() -> Self {
        Self {
            sort: |item| match item {
                Ok(value) => Sorted::Item(Ok(value)),
                Err(error) => Sorted::Last(error),
            },
            unsort: Err,
            failed: |error| Some(Err(error.clone().into())),
        }
    }
}

impl<T, E: From<LeaderError>> LastItems<Result<T, E>, Infallible> {
    /// As [`errors`](Self::errors), of errors that may not wait for a release.
    #[must_use]
    pub fn errors_at_once() -> Self {
        Self {
            sort: |item| match item {
                Ok(value) => Sorted::Item(Ok(value)),
                Err(error) => Sorted::LastAtOnce(Err(error)),
            },
            unsort: |never| match never {},
            failed: |error| Some(Err(error.clone().into())),
        }
    }
}

impl<T> LastItems<T, Infallible> {
    /// Of items that cannot say that the stream failed: it is logged.
    #[must_use]
    pub fn none() -> Self {
        Self {
            sort: Sorted::Item,
            unsort: |never| match never {},
            failed: |error| {
                tracing::warn!(%error, "a guarded stream ended early");
                None
            },
        }
    }
}

impl<T, L> fmt::Debug for LastItems<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastItems")
    }
}

/// What the attribute makes of the body. It has no lifetime of its own, so that an elector of a generic type needs no
/// bound for it.
#[must_use = "streams do nothing unless polled: nothing is claimed"]
pub fn guard_stream<E, O, S, F, L>(
    elector: Result<E, LeaderError>,
    name: Result<LockName, LeaderError>,
    options: Result<O, LeaderError>,
    when_failing: WhenFailing,
    last_items: LastItems<S::Item, L>,
    make: F,
) -> impl FusedStream<Item = S::Item>
where
    E: Elector,
    O: Borrow<LeaseOptions> + Send + Sync,
    S: Stream,
    F: FnOnce() -> S,
{
    let standing = Box::pin(standing(elector, name, options));
    Annotated {
        guarded: Guarded::new(standing, when_failing, make),
        last_items,
        over: false,
    }
}

impl<W, S, F, L> Stream for Annotated<W, S, F, L>
where
    W: Future<Output = Result<Stood, LeaderError>>,
    S: Stream,
    F: FnOnce() -> S,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if *this.over {
            return Poll::Ready(None);
        }
        let last_items = &*this.last_items;
        let make = |make: F, _| Some(make());
        match ready!(this.guarded.as_mut().poll(cx, make, last_items.sort)) {
            Given::Item(item) => return Poll::Ready(Some(item)),
            Given::Last(last) => return Poll::Ready(Some((last_items.unsort)(last))),
            Given::End => *this.over = true,
        }
        let error = this.guarded.outcome().and_then(StreamOutcome::error);
        Poll::Ready(error.and_then(last_items.failed))
    }
}

impl<W, S, F, L> FusedStream for Annotated<W, S, F, L>
where
    W: Future<Output = Result<Stood, LeaderError>>,
    S: Stream,
    F: FnOnce() -> S,
{
    fn is_terminated(&self) -> bool {
        self.over
    }
}
