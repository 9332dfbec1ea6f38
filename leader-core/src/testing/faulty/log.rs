//! What a faulty store was asked and what it answered: the log that tests make their assertions on.

use std::fmt;
use std::time::Duration;

use crate::error::Step;
use crate::name::LockName;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, Release, ReleaseReply, Revision, StoreError,
};

/// One line of the log of a [`FaultyStore`](crate::testing::FaultyStore). As text it is one readable line, the same
/// in every run that takes the same course; tokens are not shown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// When it happened, counted from the making of the store, by Tokio's clock.
    pub at: Duration,
    /// The call's number, from 1, in the order in which calls were made.
    pub call: u64,
    /// The call's step.
    pub step: Step,
    /// What happened to it.
    pub happened: Happened,
}

/// What happened to a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Happened {
    /// It was made.
    Asked(Request),
    /// The store did what it was asked, and said this. A repeated request has several of these.
    Ran(Reply),
    /// The caller was told this.
    Answered(Reply),
    /// The caller did not wait for the answer.
    GivenUp,
}

/// What a store was asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Request {
    /// For a slot.
    Claim(Claim),
    /// To extend leases.
    Extend(Vec<Extension>),
    /// To end a tenure.
    Release(Release),
    /// To tell of releases.
    #[non_exhaustive]
    Watch {
        /// Of this name.
        name: LockName,
        /// After this revision.
        since: Revision,
    },
    /// Who holds a name.
    Inspect(LockName),
    /// To free a name.
    Evict(LockName),
}

impl Request {
    /// The step.
    #[must_use]
    pub fn step(&self) -> Step {
        match self {
            Self::Claim(_) => Step::Claim,
            Self::Extend(_) => Step::Extend,
            Self::Release(_) => Step::Release,
            Self::Watch { .. } => Step::Watch,
            Self::Inspect(_) => Step::Inspect,
            Self::Evict(_) => Step::Evict,
        }
    }

    /// The names that it is for; several for a batch of extensions.
    #[must_use]
    pub fn names(&self) -> Vec<&LockName> {
        match self {
            Self::Claim(claim) => vec![&claim.name],
            Self::Extend(batch) => batch.iter().map(|extension| &extension.name).collect(),
            Self::Release(release) => vec![&release.name],
            Self::Watch { name, .. } | Self::Inspect(name) | Self::Evict(name) => vec![name],
        }
    }
}

/// What a store said.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reply {
    /// To a claim.
    Claim(Result<ClaimReply, StoreError>),
    /// To a batch of extensions.
    Extend(Vec<Result<ExtendReply, StoreError>>),
    /// To a release.
    Release(Result<ReleaseReply, StoreError>),
    /// To a watch.
    Watch(Result<(), StoreError>),
    /// To an inspection.
    Inspect(Result<Vec<Holder>, StoreError>),
    /// To an eviction.
    Evict(Result<u32, StoreError>),
}

/// A call: what was asked, and which one it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The call's number, from 1, in the order in which calls were made.
    pub number: u64,
    /// What is asked.
    pub request: Request,
}

/// Something of a call that is held back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Held {
    /// The call.
    pub call: Call,
    /// What of it is held.
    pub part: Part,
}

/// What of a call is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The request.
    Request,
    /// A copy of the request, which has arrived already.
    Repeat,
    /// The reply.
    Reply,
    /// What a watch is told.
    Hints,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, call, step, .. } = self;
        write!(f, "{at:?} #{call} {step} ")?;
        match &self.happened {
            Happened::Asked(request) => write!(f, "asked: {request}"),
            Happened::Ran(reply) => write!(f, "ran: {reply}"),
            Happened::Answered(reply) => write!(f, "answered: {reply}"),
            Happened::GivenUp => f.write_str("given up"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(claim) => {
                let Claim {
                    name,
                    node_id,
                    lease,
                    slots,
                    slot,
                    at_least,
                    ..
                } = claim;
                write!(f, "{name} by {node_id} for {lease:?}, {slots} slots")?;
                if let Some(slot) = slot {
                    write!(f, ", slot {slot} only")?;
                }
                if at_least.get() > 0 {
                    write!(f, ", at least {}", at_least.get())?;
                }
                Ok(())
            }
            Self::Extend(batch) => {
                for (index, extension) in batch.iter().enumerate() {
                    let Extension {
                        name, slot, lease, ..
                    } = extension;
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{name}[{slot}] for {lease:?}")?;
                }
                Ok(())
            }
            Self::Release(release) => {
                write!(f, "{}", release.name)?;
                if let Some(slot) = release.slot {
                    write!(f, "[{slot}]")?;
                }
                if !release.keep.is_zero() {
                    write!(f, ", kept for {:?}", release.keep)?;
                }
                if let Some(mark) = release.mark {
                    write!(f, ", marked for {mark:?}")?;
                }
                Ok(())
            }
            Self::Watch { name, since } => write!(f, "{name} since {}", since.get()),
            Self::Inspect(name) | Self::Evict(name) => write!(f, "{name}"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn one<T: fmt::Debug>(
            reply: &Result<T, StoreError>,
            f: &mut fmt::Formatter<'_>,
        ) -> fmt::Result {
            match reply {
                Ok(reply) => write!(f, "{reply:?}"),
                Err(error) => write!(f, "{}: {error}", error.kind()),
            }
        }
        match self {
            Self::Claim(reply) => one(reply, f),
            Self::Extend(replies) => {
                for (index, reply) in replies.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    one(reply, f)?;
                }
                Ok(())
            }
            Self::Release(reply) => one(reply, f),
            Self::Watch(reply) => one(reply, f),
            Self::Inspect(reply) => one(reply, f),
            Self::Evict(reply) => one(reply, f),
        }
    }
}
