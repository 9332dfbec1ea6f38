//! What the guarded streams have in common: standing for election at the first poll, the boundary around each later
//! one, and the release at the end.

use std::borrow::Borrow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;
use pin_project_lite::pin_project;

use super::StreamOutcome;
use crate::elector::Elector;
use crate::engine::{BoxFuture, Tenure};
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
    ///
    /// It stands for election by a `W`. Of the items nothing is kept but an `L`, so that a stream that is `Send` stays so
    /// whatever its items are.
    pub(crate) struct Guarded<W: ?Sized, S, F, L> {
        #[pin]
        stage: Stage<W, S>,
        make: Option<F>,
        when_failing: WhenFailing,
        // Given after the release.
        last: Option<L>,
        outcome: Option<StreamOutcome>,
    }
}

/// What an item is to the stream.
pub(crate) enum Sorted<T, L> {
    /// One of many.
    Item(T),
    /// The last one, as it is kept until the lease is released.
    Last(L),
    /// The last one, which cannot be kept: it is given at once, and the release follows in the background.
    LastAtOnce(T),
}

/// What a poll comes to.
pub(crate) enum Given<T, L> {
    Item(T),
    /// The last item, after the release.
    Last(L),
    /// There is no more; `outcome` says why.
    End,
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
    enum Stage<W: ?Sized, S> {
        // Has not been polled, or stands for election.
        Standing {
            standing: Pin<Box<W>>,
        },
        // In the order in which they are dropped: the inner stream before the lease.
        Leading {
            #[pin]
            boundary: Boundary<Arc<Tenure>>,
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

/// To stand for election, of any elector.
pub(crate) type Standing<'e> = dyn Future<Output = Result<Stood, LeaderError>> + Send + 'e;

/// Stands for election with what the call has given.
pub(crate) async fn standing<E, O>(
    elector: Result<E, LeaderError>,
    name: Result<LockName, LeaderError>,
    options: Result<O, LeaderError>,
) -> Result<Stood, LeaderError>
where
    E: Elector,
    O: Borrow<LeaseOptions> + Send + Sync,
{
    stand(&elector?, name?, options?.borrow()).await
}

impl<W, S, F, L> Guarded<W, S, F, L>
where
    W: Future<Output = Result<Stood, LeaderError>> + ?Sized,
    S: Stream,
{
    pub(crate) fn new(standing: Pin<Box<W>>, when_failing: WhenFailing, make: F) -> Self {
        Self {
            stage: Stage::Standing { standing },
            make: Some(make),
            when_failing,
            last: None,
            outcome: None,
        }
    }

    /// The next item. Once there is none, `outcome` says why.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        make: impl Fn(F, Option<LeaseHandle>) -> Option<S>,
        sort: impl Fn(S::Item) -> Sorted<S::Item, L>,
    ) -> Poll<Given<S::Item, L>> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProj::Standing { standing } => {
                    let stood = ready!(standing.as_mut().poll(cx));
                    // In case that `make` panics.
                    this.stage.set(Stage::Over);
                    let make = this.make.take().map(|parts| |lease| make(parts, lease));
                    match begin(stood, *this.when_failing, make) {
                        Ok(stage) => stage,
                        Err(outcome) => {
                            *this.outcome = Some(outcome);
                            return Poll::Ready(Given::End);
                        }
                    }
                }
                StageProj::Leading {
                    boundary,
                    mut stream,
                    span,
                    hold,
                } => {
                    let polled = boundary
                        .poll_inside(cx, |cx| span.inside(|| stream.as_mut().poll_next(cx)));
                    let ended = match ready!(polled) {
                        Ended::Returned(Some(item)) => match sort(item) {
                            Sorted::Item(item) => return Poll::Ready(Given::Item(item)),
                            Sorted::Last(last) => {
                                *this.last = Some(last);
                                Ended::Returned(StreamOutcome::ActionFailed)
                            }
                            Sorted::LastAtOnce(item) => {
                                let Some(reason) = hold.as_ref().and_then(Hold::lost) else {
                                    // Dropped in the order of its parts: the inner stream before the lease.
                                    this.stage.set(Stage::Over);
                                    *this.outcome = Some(StreamOutcome::ActionFailed);
                                    return Poll::Ready(Given::Item(item));
                                };
                                Ended::Lost(reason)
                            }
                        },
                        Ended::Returned(None) => Ended::Returned(StreamOutcome::Ended),
                        Ended::Lost(reason) => Ended::Lost(reason),
                        Ended::Stopped => Ended::Stopped,
                        Ended::Panicked(panic) => Ended::Panicked(panic),
                    };
                    let ended = ended.after(|| stream.end());
                    hold.take().map_or(Stage::Over, |hold| end(hold, ended))
                }
                StageProj::Ending { ending } => {
                    let concluded = ready!(ending.as_mut().poll(cx));
                    this.stage.set(Stage::Over);
                    let last = this.last.take();
                    match concluded {
                        Ok(Ok(outcome)) => {
                            *this.outcome = Some(outcome);
                            return Poll::Ready(last.map_or(Given::End, Given::Last));
                        }
                        // As for runs: a loss comes before the body's own error.
                        Ok(Err(error)) => *this.outcome = Some(StreamOutcome::Failed(error)),
                        Err(panic) => resume_unwind(panic),
                    }
                    return Poll::Ready(Given::End);
                }
                StageProj::Open { mut stream } => {
                    let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll_next(cx)));
                    let (given, outcome) = match polled {
                        Ok(polled) => match ready!(polled).map(&sort) {
                            Some(Sorted::Item(item)) => return Poll::Ready(Given::Item(item)),
                            Some(Sorted::Last(last)) => {
                                (Given::Last(last), StreamOutcome::ActionFailed)
                            }
                            Some(Sorted::LastAtOnce(item)) => {
                                (Given::Item(item), StreamOutcome::ActionFailed)
                            }
                            None => (Given::End, StreamOutcome::Ended),
                        },
                        Err(panic) => {
                            this.stage.set(Stage::Over);
                            resume_unwind(panic);
                        }
                    };
                    *this.outcome = Some(outcome);
                    this.stage.set(Stage::Over);
                    return Poll::Ready(given);
                }
                StageProj::Over => return Poll::Ready(Given::End),
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

/// Has stood for election: makes the inner stream, if there is to be one. Else it is over.
fn begin<W: ?Sized, S>(
    stood: Result<Stood, LeaderError>,
    when_failing: WhenFailing,
    make: Option<impl FnOnce(Option<LeaseHandle>) -> Option<S>>,
) -> Result<Stage<W, S>, StreamOutcome> {
    let error = match (stood, make) {
        (Ok(Stood::Leading(hold)), Some(make)) => {
            let handle = hold.handle();
            return Ok(lead(hold, || make(Some(handle))));
        }
        (Err(error @ LeaderError::Backend { .. }), Some(make))
            if when_failing == WhenFailing::Run =>
        {
            tracing::warn!(%error, "running without a lease");
            let stream = Scoped::made(None, || make(None));
            return Ok(stream.map_or(Stage::Over, |stream| Stage::Open { stream }));
        }
        // It is made once.
        (Ok(Stood::Leading(_)), None) => return Ok(Stage::Over),
        (Ok(Stood::Skipped(skipped)), _) => return Err(StreamOutcome::Skipped(skipped)),
        (Err(error), _) => error,
    };
    if when_failing == WhenFailing::Skip && matches!(error, LeaderError::Backend { .. }) {
        tracing::warn!(%error, "skipped");
        return Err(StreamOutcome::Skipped(Skipped::default()));
    }
    Err(StreamOutcome::Failed(error))
}

/// Elected: makes the inner stream.
fn lead<W: ?Sized, S>(hold: Hold, make: impl FnOnce() -> Option<S>) -> Stage<W, S> {
    let span = match hold.begin() {
        Ok(span) => span,
        Err(reason) => return end(hold, Ended::Lost(reason).after(|| drop(make))),
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
fn end<W: ?Sized, S>(hold: Hold, ended: Ended<StreamOutcome>) -> Stage<W, S> {
    Stage::Ending {
        // Begun at its first poll: by then the inner stream's span is closed.
        ending: Box::pin(async move { hold.conclude(ended).await }),
    }
}
