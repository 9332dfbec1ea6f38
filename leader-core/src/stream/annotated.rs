//! What an annotated function that gives a stream expands to. Not public: it changes without notice.

use std::borrow::Borrow;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use futures::stream::FusedStream;
use pin_project_lite::pin_project;

use super::StreamOutcome;
use super::guarded::Guarded;
pub use super::guarded::WhenFailing;
use crate::elector::Elector;
use crate::error::LeaderError;
use crate::name::LockName;
use crate::options::LeaseOptions;

pin_project! {
    /// The stream of an annotated function.
    #[must_use = "streams do nothing unless polled: nothing is claimed"]
    pub struct Annotated<'e, S: Stream, F> {
        #[pin]
        guarded: Guarded<'e, S, F>,
        last_items: Option<LastItems<S::Item>>,
        over: bool,
    }
}

/// How items say that the stream failed: the first error is the last item, be it the inner stream's or a
/// [`LeaderError`]. Pointers, so that nothing of the items' type has to cross a thread with them.
pub struct LastItems<T> {
    is_error: fn(&T) -> bool,
    failed: fn(LeaderError) -> T,
}

impl<T, E: From<LeaderError>> LastItems<Result<T, E>> {
    /// As of `Result`s.
    #[must_use]
    pub fn results() -> Self {
        Self {
            is_error: Result::is_err,
            failed: |error| Err(error.into()),
        }
    }
}

impl<T> fmt::Debug for LastItems<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastItems")
    }
}

/// Without `last_items` the items cannot say that the stream failed: it is logged.
pub fn guard_stream<'e, E, O, S, F>(
    elector: Result<E, LeaderError>,
    name: Result<LockName, LeaderError>,
    options: Result<O, LeaderError>,
    when_failing: WhenFailing,
    last_items: Option<LastItems<S::Item>>,
    make: F,
) -> Annotated<'e, S, F>
where
    E: Elector + 'e,
    O: Borrow<LeaseOptions> + Send + Sync + 'e,
    S: Stream,
    F: FnOnce() -> S,
{
    Annotated {
        guarded: Guarded::new(elector, name, options, when_failing, make),
        last_items,
        over: false,
    }
}

impl<S, F> Stream for Annotated<'_, S, F>
where
    S: Stream,
    F: FnOnce() -> S,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if *this.over {
            return Poll::Ready(None);
        }
        let last_items = this.last_items.as_ref();
        let item = ready!(this.guarded.as_mut().poll(
            cx,
            |make, _| Some(make()),
            |item| last_items.is_some_and(|last| (last.is_error)(item)),
        ));
        if item.is_some() {
            return Poll::Ready(item);
        }
        *this.over = true;
        let error = this.guarded.outcome().and_then(StreamOutcome::error);
        Poll::Ready(match (error, last_items) {
            (Some(error), Some(last)) => Some((last.failed)(error.clone())),
            (Some(error), None) => {
                tracing::warn!(%error, "a guarded stream ended early");
                None
            }
            (None, _) => None,
        })
    }
}

impl<S, F> FusedStream for Annotated<'_, S, F>
where
    S: Stream,
    F: FnOnce() -> S,
{
    fn is_terminated(&self) -> bool {
        self.over
    }
}

impl<S: Stream, F> fmt::Debug for Annotated<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guarded.describe(f, "Annotated")
    }
}
