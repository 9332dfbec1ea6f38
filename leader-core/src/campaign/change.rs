//! [`LeadershipChange`]: when a campaign's candidate began to lead, and when it no longer did.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::broadcast::{self, error::RecvError};

use super::BodyEnd;
use crate::error::LossReason;
use crate::event::TenureId;
use crate::token::FencingToken;

/// What a campaign tells: each reader hears `Granted (Revoked Granted)*`, from a `Granted` on that may lie before it
/// began to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeadershipChange {
    /// This candidate leads; its body begins.
    #[non_exhaustive]
    Granted {
        /// The grant's fencing token.
        fence: FencingToken,
        /// The slot, from 0.
        slot: u32,
    },
    /// This candidate no longer leads: its body has ended, and its slot was given back or is lost.
    #[non_exhaustive]
    Revoked {
        /// The fencing token of the tenure that is over.
        fence: FencingToken,
        /// The slot that it had.
        slot: u32,
        /// Why it is over.
        reason: Revocation,
    },
    /// This reader was too slow and lost its oldest changes. What it is told next goes on from what it was told last: a
    /// `Revoked` after a `Granted`, be it of a later tenure.
    #[non_exhaustive]
    Missed {
        /// How many were lost.
        count: u64,
    },
}

/// Why a tenure of a campaign is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revocation {
    /// The lease could not be proved valid any more.
    Lost(LossReason),
    /// [`Campaign::resign`](crate::Campaign::resign).
    Resigned,
    /// The campaign was stopped.
    Stopped,
    /// The elector was shut down.
    ShutDown,
    /// The body ended by itself.
    Ended(BodyEnd),
}

impl fmt::Display for Revocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(reason) => write!(f, "the lease was lost: {reason}"),
            Self::Resigned => f.write_str("it resigned"),
            Self::Stopped => f.write_str("the campaign was stopped"),
            Self::ShutDown => f.write_str("the elector was shut down"),
            Self::Ended(end) => end.fmt(f),
        }
    }
}

/// A stream of [`LeadershipChange`]s, until the campaign has ended.
///
/// A reader that lags by more than 64 changes loses the oldest and is told how many. It never slows a campaign.
#[must_use = "streams do nothing unless polled"]
pub struct Changes {
    inner: Pin<Box<dyn Stream<Item = LeadershipChange> + Send + Sync>>,
}

impl Stream for Changes {
    type Item = LeadershipChange;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

/// Where a campaign tells its changes.
pub(super) struct ChangeHub {
    told: Mutex<Told>,
}

struct Told {
    /// `None` once the campaign has ended.
    sender: Option<broadcast::Sender<LeadershipChange>>,
    /// The grant in force, with which a new reader begins.
    granted: Option<LeadershipChange>,
}

impl ChangeHub {
    const CAPACITY: usize = 64;

    pub(super) fn new() -> Self {
        Self {
            told: Mutex::new(Told {
                sender: Some(broadcast::Sender::new(Self::CAPACITY)),
                granted: None,
            }),
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn granted(&self, tenure: &TenureId) {
        let granted = LeadershipChange::Granted {
            fence: tenure.fence,
            slot: tenure.slot,
        };
        self.told().tell(granted.clone(), Some(granted));
    }

    pub(super) fn revoked(&self, tenure: &TenureId, reason: Revocation) {
        let revoked = LeadershipChange::Revoked {
            fence: tenure.fence,
            slot: tenure.slot,
            reason,
        };
        self.told().tell(revoked, None);
    }

    pub(super) fn close(&self) {
        self.told().sender.take();
    }

    pub(super) fn subscribe(&self) -> Changes {
        let told = self.told();
        let reader = told.sender.as_ref().map(|sender| Reader {
            receiver: sender.subscribe(),
            leading: false,
            skipped: 0,
        });
        let begun = told.granted.clone();
        drop(told);
        let changes = futures::stream::unfold((reader, begun), |(reader, begun)| async move {
            let mut reader = reader?;
            let change = match begun {
                Some(granted) => {
                    reader.leading = true;
                    granted
                }
                None => reader.next().await?,
            };
            Some((change, (Some(reader), None)))
        });
        Changes {
            inner: Box::pin(changes),
        }
    }
}

impl Told {
    fn tell(&mut self, change: LeadershipChange, granted: Option<LeadershipChange>) {
        self.granted = granted;
        if let Some(sender) = &self.sender {
            // An error means that nobody listens.
            let _ = sender.send(change);
        }
    }
}

struct Reader {
    receiver: broadcast::Receiver<LeadershipChange>,
    /// Whether the last change that was told is a grant.
    leading: bool,
    /// How many changes were passed over without being told of.
    skipped: u64,
}

impl Reader {
    async fn next(&mut self) -> Option<LeadershipChange> {
        loop {
            if self.skipped > 0 && self.follows_on() {
                let count = std::mem::take(&mut self.skipped);
                return Some(LeadershipChange::Missed { count });
            }
            match self.receiver.recv().await {
                Ok(change) => {
                    let granted = matches!(change, LeadershipChange::Granted { .. });
                    if granted == self.leading {
                        self.skipped += 1;
                        continue;
                    }
                    self.leading = granted;
                    return Some(change);
                }
                Err(RecvError::Lagged(count)) => self.skipped += count,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Whether the next change to be read goes on from the last that was told: grants and revocations alternate, so
    /// that an even number of them was lost.
    fn follows_on(&self) -> bool {
        self.skipped.is_multiple_of(2)
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::name::LockName;
    use crate::node::NodeId;

    fn tenure(fence: u64) -> TenureId {
        TenureId {
            name: LockName::new("x").unwrap(),
            node_id: NodeId::new("a"),
            slot: 0,
            fence: FencingToken::new(fence),
        }
    }

    async fn told(hub: &ChangeHub, mut changes: Changes) -> String {
        hub.close();
        let mut told = Vec::new();
        while let Some(change) = changes.next().await {
            told.push(match change {
                LeadershipChange::Granted { fence, .. } => format!("+{fence}"),
                LeadershipChange::Revoked { fence, .. } => format!("-{fence}"),
                LeadershipChange::Missed { count } => format!("?{count}"),
            });
        }
        told.join(" ")
    }

    #[tokio::test]
    async fn a_reader_begins_with_the_grant_in_force() {
        let hub = ChangeHub::new();
        let early = hub.subscribe();
        hub.granted(&tenure(1));
        let late = hub.subscribe();
        hub.revoked(&tenure(1), Revocation::Resigned);
        let latest = hub.subscribe();
        hub.granted(&tenure(2));
        assert_eq!(told(&hub, early).await, "+1 -1 +2");
        assert_eq!(told(&hub, late).await, "+1 -1 +2");
        assert_eq!(told(&hub, latest).await, "+2");
        assert_eq!(told(&hub, hub.subscribe()).await, "");
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_how_many_it_missed_and_still_hears_them_in_turn() {
        for odd in [false, true] {
            let hub = ChangeHub::new();
            let mut changes = hub.subscribe();
            hub.granted(&tenure(1));
            assert!(changes.next().await.is_some());
            for fence in 1..=40 {
                hub.revoked(&tenure(fence), Revocation::Resigned);
                hub.granted(&tenure(fence + 1));
            }
            if odd {
                hub.revoked(&tenure(41), Revocation::Resigned);
            }
            let told = told(&hub, changes).await;
            assert!(
                told.starts_with(if odd { "?18 -10 +11 " } else { "?16 -9 +10 " }),
                "{told}"
            );
        }
    }
}
