//! How standing for election can end.

use std::convert::Infallible;
use std::time::Duration;

use crate::lease::Lease;
use crate::node::NodeId;

/// How a guarded run ended, when the store answered and the lease held.
///
/// `E` is the body's own error. A store's failure and a lost lease are the
/// [`LeaderError`](crate::LeaderError) around this outcome, never [`ActionFailed`](Self::ActionFailed).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a run may have been skipped, or its body may have failed"]
pub enum RunOutcome<T, E = Infallible> {
    /// Elected; the body ran to its end under a valid lease and returned this.
    Elected(T),
    /// Somebody else leads; the body did not run.
    Skipped(Skipped),
    /// Elected; the body ran under a valid lease and returned this error.
    ActionFailed(E),
}

impl<T, E> RunOutcome<T, E> {
    /// What the body returned, if it ran and succeeded.
    pub fn elected(self) -> Option<T> {
        match self {
            Self::Elected(value) => Some(value),
            Self::Skipped(_) | Self::ActionFailed(_) => None,
        }
    }

    /// Whether the body did not run because somebody else leads.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        matches!(self, Self::Skipped(_))
    }

    /// Whether the body ran, however it ended.
    #[must_use]
    pub fn ran(&self) -> bool {
        !self.is_skipped()
    }
}

/// The wait ended without election; nothing ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Skipped {
    holder: Option<NodeId>,
    retry_after: Option<Duration>,
}

impl Skipped {
    pub(crate) fn new(holder: Option<NodeId>, retry_after: Option<Duration>) -> Self {
        Self {
            holder,
            retry_after,
        }
    }

    /// Who leads, as far as the last answer told: with several slots, the holder whose lease ends first.
    #[must_use]
    pub fn holder(&self) -> Option<&NodeId> {
        self.holder.as_ref()
    }

    /// The time after which a slot is free if nobody extends, as of the last answer.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// What [`Elector::acquire`](crate::Elector::acquire) brings.
#[derive(Debug)]
#[must_use = "a lease that is dropped is released"]
pub enum Acquisition {
    /// Elected, with the lease.
    Elected(Lease),
    /// Somebody else leads.
    Skipped(Skipped),
}

impl Acquisition {
    /// The lease, if elected.
    #[must_use = "a lease that is dropped is released"]
    pub fn elected(self) -> Option<Lease> {
        match self {
            Self::Elected(lease) => Some(lease),
            Self::Skipped(_) => None,
        }
    }
}
