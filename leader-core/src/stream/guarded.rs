//! What the guarded streams have in common: standing for election at the first poll, the boundary around each later
//! one, and the release at the end.

use std::borrow::Borrow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use pin_project_lite::pin_project;

use super::StreamOutcome;
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
use crate::span::Around;

pin_project! {
    /// What the guarded streams have in common: everything but what their last item is. Made of an `F`, once elected.
    pub(crate) struct Guarded<'e, S: Stream, F> {
        #[pin]
        stage: Stage<'e, S>,
        make: Option<F>,
        when_failing: WhenFailing,
        // Given after the release.
        last: Option<S::Item>,
        outcome: Option<StreamOutcome>,
    }
}

/// What it means when the store cannot say who leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFailing {
    /// The stream fails.
    Fail,
    /// As if somebody else led.
    Skip,
    /// The stream runs without a lease.
    Run,
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
            span: Around,
            hold: Option<Hold>,
        },
        // The inner stream is gone; the lease is being let go of.
        Ending {
            ending: BoxFuture<'static, Concluded<StreamOutcome>>,
        },
        // The store failed, and the stream runs all the same.
        Open {
            #[pin]
            stream: Scoped<S>,
        },
        Over,
    }
}

impl<'e, S: Stream, F> Guarded<'e, S, F> {
    pub(crate) fn new<E, O>(
        elector: Result<E, LeaderError>,
        name: Result<LockName, LeaderError>,
        options: Result<O, LeaderError>,
        when_failing: WhenFailing,
        make: F,
    ) -> Self
    where
        E: Elector + 'e,
        O: Borrow<LeaseOptions> + Send + Sync + 'e,
    {
        let standing = async move { stand(&elector?, name?, options?.borrow()).await };
        Self {
            stage: Stage::Standing {
                standing: Box::pin(standing),
            },
            make: Some(make),
            when_failing,
            last: None,
            outcome: None,
        }
    }

    /// The next item. Once there is none, `outcome` says why. An item that `is_last` is the last one.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        make: impl Fn(F, Option<LeaseHandle>) -> Option<S>,
        is_last: impl Fn(&S::Item) -> bool,
    ) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProj::Standing { standing } => match ready!(standing.as_mut().poll(cx)) {
                    Ok(Stood::Leading(hold)) => match this.make.take() {
                        Some(parts) => {
                            let handle = hold.handle();
                            lead(hold, || make(parts, Some(handle)))
                        }
                        None => Stage::Over,
                    },
                    Ok(Stood::Skipped(skipped)) => {
                        *this.outcome = Some(StreamOutcome::Skipped(skipped));
                        Stage::Over
                    }
                    Err(error) => {
                        let failing = matches!(error, LeaderError::Backend { .. });
                        match (*this.when_failing, this.make.take()) {
                            (WhenFailing::Run, Some(parts)) if failing => {
                                tracing::warn!(%error, "running without a lease");
                                Scoped::made(None, || make(parts, None))
                                    .map_or(Stage::Over, |stream| Stage::Open { stream })
                            }
                            (WhenFailing::Skip, _) if failing => {
                                tracing::warn!(%error, "skipped");
                                *this.outcome = Some(StreamOutcome::Skipped(Skipped::default()));
                                Stage::Over
                            }
                            _ => {
                                *this.outcome = Some(StreamOutcome::Failed(error));
                                Stage::Over
                            }
                        }
                    }
                },
                StageProj::Leading {
                    boundary,
                    mut stream,
                    span,
                    hold,
                } => {
                    let polled = boundary
                        .poll_inside(cx, |cx| span.inside(|| stream.as_mut().poll_next(cx)));
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
                StageProj::Open { mut stream } => {
                    let item = ready!(stream.as_mut().poll_next(cx));
                    let outcome = match &item {
                        None => StreamOutcome::Ended,
                        Some(item) if is_last(item) => StreamOutcome::ActionFailed,
                        Some(_) => return Poll::Ready(item),
                    };
                    *this.outcome = Some(outcome);
                    this.stage.set(Stage::Over);
                    return Poll::Ready(item);
                }
                StageProj::Over => return Poll::Ready(None),
            };
            this.stage.set(next);
        }
    }

    /// Why it ended.
    pub(crate) fn outcome(&self) -> Option<&StreamOutcome> {
        self.outcome.as_ref()
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    pub(crate) fn lease(&self) -> Option<LeaseHandle> {
        match &self.stage {
            Stage::Leading { hold, .. } => hold.as_ref().map(Hold::handle),
            Stage::Standing { .. } | Stage::Ending { .. } | Stage::Open { .. } | Stage::Over => {
                None
            }
        }
    }

    pub(crate) fn describe(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        f.debug_struct(what)
            .field("lease", &self.lease())
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

/// Elected: makes the inner stream.
fn lead<'e, S>(hold: Hold, make: impl FnOnce() -> Option<S>) -> Stage<'e, S> {
    let Ok(span) = hold.begin() else {
        // The lease around this one is lost; to conclude it says so.
        return end(hold, Ended::Returned(StreamOutcome::Ended));
    };
    let stream =
        span.inside(|| catch_unwind(AssertUnwindSafe(|| Scoped::made(Some(hold.handle()), make))));
    match stream {
        Ok(None) => end(hold, Ended::Returned(StreamOutcome::Ended)),
        Ok(Some(stream)) => Stage::Leading {
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
