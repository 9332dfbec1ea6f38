//! [`Observing`]: who leads, told whenever that changes, for processes that do not stand themselves.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::campaign::Pace;
use crate::elector::Elector;
use crate::engine::quietly;
use crate::error::LeaderError;
use crate::hints::{HintSender, Hints, hints};
use crate::name::LockName;
use crate::state::LeaderState;
use crate::store::Watching;
use crate::token::FencingToken;

/// A stream of who leads a name, made by [`ElectorExt::observe`](crate::ElectorExt::observe).
#[must_use = "streams do nothing unless polled"]
pub struct Observing {
    inner: Pin<Box<dyn Stream<Item = Result<LeaderState, LeaderError>> + Send>>,
}

impl Stream for Observing {
    type Item = Result<LeaderState, LeaderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Observing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observing").finish_non_exhaustive()
    }
}

/// How soon to look again after a change, and how often at the least, where the store tells of releases only: a grant
/// usually follows at once, and what is not told is seen within this. So it is after a failure.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How often to look at the least where the store tells of grants too: hints may be lost.
const TOLD_PAUSE: Duration = Duration::from_secs(10);
/// From one look to the next at the least, however often something is told.
const GAP: Duration = Duration::from_millis(10);
/// A lease that was not extended is looked at when it is surely over.
const MARGIN: Duration = Duration::from_millis(2);

impl Observing {
    pub(crate) fn begin<E>(elector: E, name: Result<LockName, LeaderError>) -> Self
    where
        E: Elector + 'static,
    {
        let inner: Pin<Box<dyn Stream<Item = _> + Send>> = match name {
            Ok(name) => {
                let observer = Observer::new(elector, name);
                Box::pin(futures::stream::unfold(
                    observer,
                    |mut observer| async move {
                        let item = observer.next().await?;
                        Some((item, observer))
                    },
                ))
            }
            Err(error) => Box::pin(futures::stream::once(std::future::ready(Err(error)))),
        };
        Self { inner }
    }
}

struct Observer<E> {
    elector: E,
    name: LockName,
    sender: HintSender,
    hints: Hints,
    watching: Option<Watching>,
    closing: CancellationToken,
    pace: Pace,
    /// When to look again, unless something is told before.
    wake: Option<Instant>,
    /// And not before this, whatever is told.
    rested: Option<Instant>,
    told: Option<Told>,
}

/// What the reader knows.
#[derive(PartialEq, Eq)]
enum Told {
    /// Who leads: slots and fencing tokens, and whether only a minimum lease keeps the slot.
    Leaders(Vec<(u32, FencingToken, bool)>),
    /// That nobody knows.
    Failure,
}

impl<E: Elector> Observer<E> {
    fn new(elector: E, name: LockName) -> Self {
        let (sender, hints) = hints();
        Self {
            closing: elector.closing(),
            pace: Pace::new(elector.node_id(), &name),
            elector,
            name,
            sender,
            hints,
            watching: None,
            wake: None,
            rested: None,
            told: None,
        }
    }

    async fn next(&mut self) -> Option<Result<LeaderState, LeaderError>> {
        loop {
            if !self.sleep().await {
                return None;
            }
            // Before the look, so that what happens after it is told.
            if self.watching.is_none() {
                match self.elector.listen(&self.name, self.sender.clone()).await {
                    Ok(watching) => self.watching = Some(watching),
                    Err(LeaderError::ShutDown) => return None,
                    Err(error) => {
                        quietly(
                            || tracing::debug!(name = %self.name, %error, "observing without hints"),
                        );
                    }
                }
            }
            self.rested = Some(Instant::now() + GAP);
            let looked = self.elector.inspect(&self.name).await;
            let (known, left) = match &looked {
                Ok(state) => {
                    let holders = state.holders().iter();
                    let left = holders
                        .clone()
                        .map(|holder| holder.remaining() + MARGIN)
                        .min();
                    let leader = |holder: &crate::Holder| {
                        (holder.slot(), holder.fence(), holder.is_retained())
                    };
                    (Told::Leaders(holders.map(leader).collect()), left)
                }
                Err(LeaderError::ShutDown) => return None,
                Err(_) => (Told::Failure, None),
            };
            let changed = self.told.as_ref() != Some(&known);
            if changed {
                self.pace.reset();
            }
            let tells_grants = self.watching.as_ref().is_some_and(Watching::tells_grants);
            let pause = if tells_grants && looked.is_ok() {
                self.pace.pause(TOLD_PAUSE, TOLD_PAUSE)
            } else {
                self.pace.pause(FIRST_PAUSE, LONGEST_PAUSE)
            };
            self.wake = Some(Instant::now() + left.map_or(pause, |left| left.min(pause)));
            if changed {
                self.told = Some(known);
                return Some(looked);
            }
        }
    }

    /// Until looking again is worth it. Whether the elector goes on.
    async fn sleep(&mut self) -> bool {
        let Some(wake) = self.wake else {
            return true;
        };
        let told = async {
            self.hints.told().await;
            // A grant usually follows a release.
            self.pace.reset();
            if let Some(rested) = self.rested {
                tokio::time::sleep_until(rested).await;
            }
        };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => false,
            () = told => true,
            () = tokio::time::sleep_until(wake) => true,
        }
    }
}
