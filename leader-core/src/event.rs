//! [`LeaderEvent`]: what happened in this process's own elections.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::broadcast;

use crate::engine::quietly;
use crate::error::{BackendKind, LossReason, Step};
use crate::name::LockName;
use crate::node::NodeId;
use crate::token::FencingToken;

/// What happened in this process's own elections, told after it became true in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaderEvent {
    /// This candidate was elected.
    #[non_exhaustive]
    Elected {
        /// Who, and for what.
        tenure: TenureId,
    },
    /// Somebody else leads; nothing ran.
    #[non_exhaustive]
    Skipped {
        /// The name that was stood for.
        name: LockName,
        /// The candidate that stood.
        node_id: NodeId,
        /// Who leads, where the store told.
        holder: Option<NodeId>,
    },
    /// A lease was extended.
    #[non_exhaustive]
    Extended {
        /// Who, and for what.
        tenure: TenureId,
    },
    /// A lease was lost.
    #[non_exhaustive]
    Lost {
        /// Who, and for what.
        tenure: TenureId,
        /// How it was lost.
        reason: LossReason,
    },
    /// A lease was given back. Not told for a lost one, which has nothing to give back.
    #[non_exhaustive]
    Released {
        /// Who, and for what.
        tenure: TenureId,
    },
    /// The store failed at a step.
    #[non_exhaustive]
    Failed {
        /// The name that it was for.
        name: LockName,
        /// The candidate.
        node_id: NodeId,
        /// The tenure that it was for, if there was one already.
        tenure: Option<TenureId>,
        /// The step that failed.
        step: Step,
        /// What kind of failure it was.
        kind: BackendKind,
    },
    /// This reader was too slow and lost its oldest events.
    #[non_exhaustive]
    Missed {
        /// How many were lost.
        count: u64,
    },
}

/// One grant: who leads what, in which slot, with which fencing token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TenureId {
    /// The name that is led.
    pub name: LockName,
    /// Who leads.
    pub node_id: NodeId,
    /// The slot, from 0.
    pub slot: u32,
    /// The fencing token of the grant.
    pub fence: FencingToken,
}

/// A stream of [`LeaderEvent`]s, from the moment it was made until the elector is shut down or dropped.
///
/// A reader that lags by more than 1024 events loses the oldest and is told how many by [`LeaderEvent::Missed`]. It
/// never slows a run.
#[must_use = "streams do nothing unless polled"]
pub struct Events {
    inner: Pin<Box<dyn Stream<Item = LeaderEvent> + Send + Sync>>,
}

impl Stream for Events {
    type Item = LeaderEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(cx)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

/// Where the engine tells its events. Closed, it tells nothing and its readers end.
pub(crate) struct EventHub {
    /// Somebody has asked for them at some time: else nothing is told, which costs a run less than asking the channel.
    asked_for: AtomicBool,
    sender: Mutex<Option<broadcast::Sender<LeaderEvent>>>,
}

impl EventHub {
    const CAPACITY: usize = 1024;

    pub(crate) fn new() -> Self {
        Self {
            asked_for: AtomicBool::new(false),
            sender: Mutex::new(Some(broadcast::Sender::new(Self::CAPACITY))),
        }
    }

    /// Tells `event`, which is only made when somebody listens.
    pub(crate) fn tell(&self, event: impl FnOnce() -> LeaderEvent) {
        if !self.asked_for.load(Ordering::Acquire) {
            return;
        }
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = sender.as_ref()
            && sender.receiver_count() > 0
        {
            // Readers are woken in here. An error means that the last of them has just gone.
            quietly(|| sender.send(event()));
        }
    }

    pub(crate) fn subscribe(&self) -> Events {
        self.asked_for.store(true, Ordering::Release);
        let receiver = self
            .sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(broadcast::Sender::subscribe);
        let inner = futures::stream::unfold(receiver, |receiver| async move {
            let mut receiver = receiver?;
            match receiver.recv().await {
                Ok(event) => Some((event, Some(receiver))),
                Err(broadcast::error::RecvError::Lagged(count)) => {
                    Some((LeaderEvent::Missed { count }, Some(receiver)))
                }
                Err(broadcast::error::RecvError::Closed) => None,
            }
        });
        Events {
            inner: Box::pin(inner),
        }
    }

    pub(crate) fn close(&self) {
        self.sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    fn skipped() -> LeaderEvent {
        LeaderEvent::Skipped {
            name: LockName::new("a").unwrap(),
            node_id: NodeId::new("n"),
            holder: None,
        }
    }

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest_and_is_told_how_many() {
        let hub = EventHub::new();
        let mut events = hub.subscribe();
        for _ in 0..EventHub::CAPACITY + 3 {
            hub.tell(skipped);
        }
        assert_eq!(events.next().await, Some(LeaderEvent::Missed { count: 3 }));
        assert_eq!(events.next().await, Some(skipped()));
    }

    #[tokio::test]
    async fn a_closed_hub_ends_its_readers_after_what_was_told() {
        let hub = EventHub::new();
        let mut events = hub.subscribe();
        hub.tell(skipped);
        hub.close();
        assert_eq!(events.next().await, Some(skipped()));
        assert_eq!(events.next().await, None);
        assert_eq!(hub.subscribe().next().await, None);
    }
}
