//! [`LeaderError`]: what can go wrong, which step it was, and what to do next.

use std::fmt;

use crate::name::LockName;
use crate::store::StoreError;
use crate::token::FencingToken;

/// Everything that can go wrong. Contention is not among it: somebody else leading is an outcome, never an error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderError {
    /// The name breaks a rule of [`LockName`].
    #[error("invalid name `{name}`: {reason}")]
    #[non_exhaustive]
    InvalidName {
        /// The name, made printable and cut short.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },

    /// An option cannot be honoured, or options contradict each other.
    #[error("invalid option `{option}`: {reason}")]
    #[non_exhaustive]
    InvalidOptions {
        /// The option at fault.
        option: &'static str,
        /// What is wrong with it, and what to write instead.
        reason: String,
    },

    /// No elector was given, none is in scope, and none is installed.
    #[error(
        "no elector: pass one, wrap the call in `leader_core::with_elector`, or call `leader_core::install` at start-up"
    )]
    NoElector,

    /// The call needs a Tokio runtime, with time enabled, and was made outside one.
    #[error("no Tokio runtime: call this from a task of a runtime")]
    NoRuntime,

    /// The store could not answer. Whether anybody leads is not known.
    #[error("{step} {}: the store is {kind}: {error}", Target(.name.as_ref()))]
    #[non_exhaustive]
    Backend {
        /// The step that failed.
        step: Step,
        /// The name that it was for, where there is one.
        name: Option<LockName>,
        /// What kind of failure it was.
        kind: BackendKind,
        /// The store's own words. The message has them already, so they are not this error's
        /// [`source`](std::error::Error::source) as well: a report of the whole chain says them once.
        error: StoreError,
    },

    /// The lease could not be proved valid any more while the work ran.
    #[error("lost the lease on `{name}` with fencing token {fence}: {reason}")]
    #[non_exhaustive]
    LeaseLost {
        /// The name that was led.
        name: LockName,
        /// The fencing token of the lost lease.
        fence: FencingToken,
        /// How it was lost.
        reason: LossReason,
    },

    /// The body of a campaign was asked to stop and has not ended within its grace. It cannot be dropped, since it
    /// blocks its thread: its lease goes on until it yields.
    #[error(
        "the body that leads `{name}` with fencing token {fence} has not ended within its grace, and blocks its thread"
    )]
    #[non_exhaustive]
    BodyStillRuns {
        /// The name that is led.
        name: LockName,
        /// The fencing token of its lease.
        fence: FencingToken,
    },

    /// No lease is in force here: the code runs outside any guarded run, or in a spawned task that does not inherit it.
    #[error(
        "no lease is in force here: run this inside a guarded run, or wrap a spawned future in `lease.scope`"
    )]
    NotLeading,

    /// The elector was shut down.
    #[error("the elector was shut down")]
    ShutDown,
}

impl LeaderError {
    /// A store's failure at `step`.
    #[must_use]
    pub fn backend(step: Step, name: Option<&LockName>, error: StoreError) -> Self {
        Self::Backend {
            step,
            name: name.cloned(),
            kind: error.kind(),
            error,
        }
    }

    /// An option, of a store's builder say, that cannot be honoured.
    #[must_use]
    pub fn invalid_options(option: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidOptions {
            option,
            reason: reason.into(),
        }
    }
}

struct Target<'a>(Option<&'a LockName>);

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "`{name}`"),
            None => f.write_str("to the store"),
        }
    }
}

/// A step towards a lease or away from it: where a store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Connecting to the store.
    Connect,
    /// Asking for a slot.
    Claim,
    /// Extending a lease.
    Extend,
    /// Giving a slot back.
    Release,
    /// Listening for releases.
    Watch,
    /// Reading who leads.
    Inspect,
    /// Taking a name's slots from all their holders.
    Evict,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Claim => "claim",
            Self::Extend => "extend",
            Self::Release => "release",
            Self::Watch => "watch",
            Self::Inspect => "inspect",
            Self::Evict => "evict",
        })
    }
}

/// What kind of failure a store reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendKind {
    /// No connection: nothing listens, it was refused or cut.
    Unreachable,
    /// No answer in time: hung, half-open, or too slow.
    TimedOut,
    /// Up, but not ready to serve: loading, failing over, busy with a script.
    NotReady,
    /// It refuses writes: a replica, or a primary that lost its role.
    ReadOnly,
    /// Fewer of its replicas than were asked for acknowledged a write, in their time.
    TooFewReplicas,
    /// It has no memory left for a write.
    OutOfMemory,
    /// It wants other credentials, or its user may not do this.
    Denied,
    /// Something that is not ours stands where the lease's record would be.
    WrongType,
    /// It answered what no store of this kind answers.
    MalformedReply,
    /// Anything else; the error has the store's own words.
    Other,
}

impl BackendKind {
    /// Whether the same request may well succeed a little later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Unreachable
                | Self::TimedOut
                | Self::NotReady
                | Self::ReadOnly
                | Self::TooFewReplicas
        )
    }

    /// The kind as one lower-case word, for labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::NotReady => "not_ready",
            Self::ReadOnly => "read_only",
            Self::TooFewReplicas => "too_few_replicas",
            Self::OutOfMemory => "out_of_memory",
            Self::Denied => "denied",
            Self::WrongType => "wrong_type",
            Self::MalformedReply => "malformed_reply",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "unreachable",
            Self::TimedOut => "not answering in time",
            Self::NotReady => "not ready",
            Self::ReadOnly => "read-only",
            Self::TooFewReplicas => "short of replicas",
            Self::OutOfMemory => "out of memory",
            Self::Denied => "denying access",
            Self::WrongType => "holding something else under the key",
            Self::MalformedReply => "answering something malformed",
            Self::Other => "failing",
        })
    }
}

/// How a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// Its time ran out before it was extended.
    Expired,
    /// Another candidate holds the slot.
    Taken,
    /// The record is gone: deleted by an operator, or forgotten by the store.
    Deleted,
    /// It was held for the longest time that its options allow.
    MaxTenure,
    /// The elector was shut down while the work ran.
    ShutDown,
    /// Its holder has released it already.
    Released,
}

impl LossReason {
    /// The reason as one lower-case word, for labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Taken => "taken",
            Self::Deleted => "deleted",
            Self::MaxTenure => "max_tenure",
            Self::ShutDown => "shut_down",
            Self::Released => "released",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its time ran out before it was extended",
            Self::Taken => "another candidate holds the slot",
            Self::Deleted => "its record is gone from the store",
            Self::MaxTenure => "it was held for its longest tenure",
            Self::ShutDown => "the elector was shut down",
            Self::Released => "it was released",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_can_cross_tasks() {
        fn check<T: std::error::Error + Send + Sync + 'static>() {}
        check::<LeaderError>();
    }

    #[test]
    fn a_backend_error_says_step_name_kind_and_source() {
        let name = LockName::new("invoice-close").unwrap();
        let source = StoreError::new(BackendKind::ReadOnly, "READONLY you can't write");
        let error = LeaderError::backend(Step::Claim, Some(&name), source);
        assert_eq!(
            error.to_string(),
            "claim `invoice-close`: the store is read-only: READONLY you can't write"
        );
    }
}
