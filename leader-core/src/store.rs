//! [`LeaseStore`]: the narrow trait that a backend implements, and the messages of its steps.
//!
//! A store does one atomic step at a time and knows nothing of waiting, deadlines, retries or users; the engine knows
//! all of that and nothing of the store. A new backend is one file of a few hundred lines that passes the conformance
//! suite of the feature `testing` unchanged.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{BackendKind, LossReason};
use crate::name::LockName;
use crate::node::NodeId;
use crate::state::Holder;
use crate::token::{FencingToken, Token};

/// A store of leases: one atomic step at a time.
///
/// # What every store promises
///
/// - **Time** is the store's own. No request carries a point in time, only durations, and no client's wall clock is
///   compared with anything.
/// - **Atomic.** Each of `claim`, `release` and `evict`, and each entry of an `extend`, happens at once or not at all.
/// - **Every request may arrive twice, late, or not at all**, and must be safe to send again.
/// - **No policy**: nothing is retried here (beyond what the transport needs, such as loading a script), nothing waits
///   for a slot.
/// - **Bounded.** Each step ends within about [`command_timeout`](Self::command_timeout). The engine gives up then in
///   any case: the future is dropped, and whether the step took effect is then unknown.
///
/// # Revisions
///
/// Each name has one number that only grows, its [`Revision`]: every grant and every release takes the next one, as
/// `max(last + 1, store time in microseconds)`. The revision of a grant is its [`FencingToken`]. The number must
/// outlive the lease itself for as long as the store reasonably can; the time term covers the rest.
///
/// What the engine stands on is that grants exceed all earlier grants, and a release what claims were answered before
/// it. A [`Quorum`](crate::Quorum) keeps to that alone: it answers a release with the greatest number of the nodes that it
/// heard, and the next grant need not come from the one that gave it.
pub trait LeaseStore: Send + Sync + 'static {
    /// Takes a free slot of a name, if fewer than [`Claim::slots`] are taken in all.
    ///
    /// - A claim whose token is *in force* already is granted again, with the same slot and fencing token, and the
    ///   lease lives for [`Claim::lease`] from now or until its present end, whichever is later. This holds when all
    ///   slots are taken too.
    /// - A claim whose token was ended with a mark (see [`Release::mark`]) is answered [`ClaimReply::Ended`].
    /// - The slot granted is the lowest free one below `slots`. Slots at or above `slots`, taken by candidates that
    ///   ask for more, count as taken.
    /// - A claim of an exact slot ([`Claim::slot`]) is granted that one, or denied until it is free. A token in force on
    ///   another slot is granted the one that it has.
    /// - A claim with a floor ([`Claim::at_least`]) is granted with the next revision that is not below the floor,
    ///   `max(last + 1, floor)`: the time has no part in it. A token in force whose fencing token is below the floor
    ///   takes such a number too, and keeps it; sent again, the claim changes nothing.
    /// - Where a number is proposed ([`Claim::proposing`]) that is no further than [`REACH`] from the store's time, it stands
    ///   for the time in a new grant, `max(last + 1, proposed)`. A store that remembers no revision of the name, and may have
    ///   forgotten one, lets it be no less than the time.
    fn claim(&self, claim: &Claim) -> impl Future<Output = Result<ClaimReply, StoreError>> + Send;

    /// Extends each lease of the batch that is still in force: it lives for [`Extension::lease`] from now or until
    /// its present end, whichever is later. An expired lease is never revived. Answers in the order of the batch.
    fn extend(
        &self,
        batch: &[Extension],
    ) -> impl Future<Output = Vec<Result<ExtendReply, StoreError>>> + Send;

    /// Ends the tenure of a token, and only that: frees the slot at once, or, with [`Release::keep`], once that time
    /// is over (never later than the lease would have ended). After it no extension and no claim of that token may
    /// touch the slot. Tells watchers in either case.
    fn release(
        &self,
        release: &Release,
    ) -> impl Future<Output = Result<ReleaseReply, StoreError>> + Send;

    /// Tells `hints` about every release of `name` after the revision `since`, until the returned [`Watching`] is
    /// dropped. A release that happened between `since` and now is told at once. Hints may be lost, in which case
    /// the store pushes [`Hint::Missed`] as soon as it notices, after a reconnect say.
    fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> impl Future<Output = Result<Watching, StoreError>> + Send;

    /// Tells `hints` of every change of `name`, grants too, until the returned [`Watching`] is dropped: for those who
    /// look on and never wait, and do not count among those whom a release has told. What changed before is not told:
    /// the caller looks afterwards. Hints may be lost, as those of a watch.
    ///
    /// A store that cannot tell of grants leaves this as it is: it then watches, and the caller looks every now and then.
    /// One that can says so by [`Watching::tells_grants`].
    fn observe(
        &self,
        name: &LockName,
        hints: HintSender,
    ) -> impl Future<Output = Result<Watching, StoreError>> + Send {
        self.watch(name, Revision::default(), hints)
    }

    /// The slots of `name` that are taken now. Changes nothing.
    fn inspect(
        &self,
        name: &LockName,
    ) -> impl Future<Output = Result<Vec<Holder>, StoreError>> + Send;

    /// Frees every slot of `name`, whoever holds it, and tells watchers. Answers how many were taken.
    fn evict(&self, name: &LockName) -> impl Future<Output = Result<u32, StoreError>> + Send;

    /// How long one step may take.
    fn command_timeout(&self) -> Duration;

    /// What this store's clock shows by now at least, since the epoch, as far as that can be told without asking: what
    /// its last answer said, and the time since then. `None` where nothing is known. Numbers are proposed by this
    /// ([`Claim::proposing`]), and it need not be right.
    fn time_by_now(&self) -> Option<Duration> {
        None
    }

    /// Claims without waiting, for stores that can (those in memory): an election that nobody stands in the way of then
    /// costs little more than the claim. `now` is the caller's last look at Tokio's clock, for a store that goes by the
    /// same. `None` when this store cannot, or cannot now, and has done nothing; the engine then awaits
    /// [`claim`](Self::claim).
    fn claim_now(&self, claim: &Claim, now: Instant) -> Option<ClaimReply> {
        let _ = (claim, now);
        None
    }

    /// Releases without waiting, for stores that can (those in memory): a lease that is dropped where nothing can be
    /// awaited is then free at once. `now` is as for [`claim_now`](Self::claim_now). `None` when this store cannot; the
    /// engine then awaits [`release`](Self::release), in the background where it has to.
    fn release_now(&self, release: &Release, now: Instant) -> Option<ReleaseReply> {
        let _ = (release, now);
        None
    }

    /// Closes what the store has opened itself. Nothing is sent to it afterwards.
    fn close(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

pub use crate::hints::{Hint, HintSender, Hints, hints};

/// Where a name's history stands: grows with each grant and each release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(u64);

impl Revision {
    /// The revision with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<FencingToken> for Revision {
    fn from(fence: FencingToken) -> Self {
        Self(fence.get())
    }
}

/// How far from its own time a store takes a number that is proposed to it, before or behind.
pub const REACH: Duration = Duration::from_secs(1);

/// A request for a slot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claim {
    /// The name to lead.
    pub name: LockName,
    /// Who asks, for people.
    pub node_id: NodeId,
    /// The attempt's token; the same in every claim of one attempt.
    pub token: Token,
    /// How long the lease lives from the grant.
    pub lease: Duration,
    /// How many slots the name has, by this candidate's options.
    pub slots: u32,
    /// The one slot that will do, below `slots`; `None` for any.
    pub slot: Option<u32>,
    /// What the fencing token must be at least; zero for none. For a tenure whose number was found elsewhere.
    pub at_least: Revision,
    /// What stands for the store's time in the fencing token, so that several stores grant the same number; zero for
    /// nothing.
    pub proposed: Revision,
}

impl Claim {
    /// A claim of one slot of one.
    #[must_use]
    pub fn new(name: LockName, node_id: NodeId, token: Token, lease: Duration) -> Self {
        Self {
            name,
            node_id,
            token,
            lease,
            slots: 1,
            slot: None,
            at_least: Revision::default(),
            proposed: Revision::default(),
        }
    }

    /// The same claim, of one slot out of `slots`.
    #[must_use]
    pub fn of_slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// The same claim, of this slot and no other.
    #[must_use]
    pub fn of_slot(mut self, slot: u32) -> Self {
        self.slot = Some(slot);
        self
    }

    /// The same claim, with a fencing token of at least `floor`.
    #[must_use]
    pub fn at_least(mut self, floor: Revision) -> Self {
        self.at_least = floor;
        self
    }

    /// The same claim, for whose fencing token `number` stands in for the store's time, if the two are not far apart.
    #[must_use]
    pub fn proposing(mut self, number: Revision) -> Self {
        self.proposed = number;
        self
    }
}

/// The answer to a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimReply {
    /// The slot is the claimant's.
    Granted {
        /// Which slot, from 0.
        slot: u32,
        /// The grant's fencing token.
        fence: FencingToken,
    },
    /// All slots are taken.
    Taken {
        /// The shortest time after which one is free *for this claim* if nobody extends: where others ask for more
        /// slots, several leases may have to end first.
        retry_after: Duration,
        /// Who holds the lease that ends then.
        holder: Option<NodeId>,
        /// Where the name's history stands, for [`LeaseStore::watch`].
        revision: Revision,
    },
    /// The claim's token was ended before it arrived.
    Ended,
}

/// A request to extend one lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Extension {
    /// The name that is led.
    pub name: LockName,
    /// The tenure's token.
    pub token: Token,
    /// The slot that was granted.
    pub slot: u32,
    /// How long the lease lives from now, at least.
    pub lease: Duration,
    /// What was granted, for a store of several parts of which one may have lost the record.
    pub granted: Option<Granted>,
}

/// What a tenure was granted: enough to write its record once more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// Who holds the slot, for people.
    pub node_id: NodeId,
    /// How many slots the name has, by the holder's options.
    pub slots: u32,
    /// The grant's fencing token.
    pub fence: FencingToken,
}

impl Granted {
    /// A grant to `node_id` of one slot out of `slots`.
    #[must_use]
    pub fn new(node_id: NodeId, slots: u32, fence: FencingToken) -> Self {
        Self {
            node_id,
            slots,
            fence,
        }
    }
}

impl Extension {
    /// A request to extend the lease of `token` on `slot` of `name`.
    #[must_use]
    pub fn new(name: LockName, token: Token, slot: u32, lease: Duration) -> Self {
        Self {
            name,
            token,
            slot,
            lease,
            granted: None,
        }
    }

    /// The same request, with what was granted.
    #[must_use]
    pub fn of(mut self, granted: Granted) -> Self {
        self.granted = Some(granted);
        self
    }
}

/// The answer to an [`Extension`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtendReply {
    /// Extended.
    Extended,
    /// The token is not in force; nothing was changed.
    NotHeld(LossReason),
}

/// A request to end the tenure of a token.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Release {
    /// The name that is led.
    pub name: LockName,
    /// The token to end.
    pub token: Token,
    /// The slot that was granted; `None` when no grant was seen, and any slot may hold the token.
    pub slot: Option<u32>,
    /// How long the slot stays taken from now on; zero frees it at once.
    pub keep: Duration,
    /// Set when a claim of this token may still be on its way: for this long, a claim that carries it is refused.
    pub mark: Option<Duration>,
}

impl Release {
    /// A request to free the slot that was granted to `token`.
    #[must_use]
    pub fn new(name: LockName, token: Token, slot: u32) -> Self {
        Self {
            name,
            token,
            slot: Some(slot),
            keep: Duration::ZERO,
            mark: None,
        }
    }

    /// A request to end a token whose claim was given up before its answer was seen.
    #[must_use]
    pub fn abandoned(name: LockName, token: Token, mark: Duration) -> Self {
        Self {
            name,
            token,
            slot: None,
            keep: Duration::ZERO,
            mark: Some(mark),
        }
    }

    /// The same request, keeping the slot taken for `keep` from now.
    #[must_use]
    pub fn keeping(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// The same request, refusing claims of the token for `mark` from now.
    #[must_use]
    pub fn marking(mut self, mark: Duration) -> Self {
        self.mark = Some(mark);
        self
    }
}

/// The answer to a [`Release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseReply {
    /// The tenure has ended.
    Released {
        /// The release's place in the name's history.
        revision: Revision,
        /// How many watchers were told, this process's own among them, where the store knows; 0 where it does not.
        told: u32,
    },
    /// The token was not in force; no slot was changed. A mark was left all the same, if one was asked for.
    NotHeld(LossReason),
}

/// Keeps a [`LeaseStore::watch`] or [`LeaseStore::observe`] alive; dropping it ends the watch.
#[must_use = "dropping it ends the watch"]
pub struct Watching {
    _end: Option<Box<dyn Send + Sync>>,
    tells_grants: bool,
}

impl Watching {
    /// Ends the watch by dropping `end`.
    pub fn new(end: impl Send + Sync + 'static) -> Self {
        Self {
            _end: Some(Box::new(end)),
            tells_grants: false,
        }
    }

    /// A watch that needs nothing to be done at its end.
    pub fn unbound() -> Self {
        Self {
            _end: None,
            tells_grants: false,
        }
    }

    /// The same watch, of which it is said that it is told of grants too.
    pub fn of_grants(mut self) -> Self {
        self.tells_grants = true;
        self
    }

    /// Whether it is told of grants too.
    #[must_use]
    pub fn tells_grants(&self) -> bool {
        self.tells_grants
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}

/// A store's failure: what kind, in whose words, and whether the step may have taken effect.
///
/// Cheap to clone: many waiters may be told of one failure.
#[derive(Clone)]
pub struct StoreError {
    kind: BackendKind,
    may_have_run: bool,
    source: Arc<dyn Error + Send + Sync>,
}

impl StoreError {
    /// A failure of this kind. [`Unreachable`](BackendKind::Unreachable), [`TimedOut`](BackendKind::TimedOut),
    /// [`TooFewReplicas`](BackendKind::TooFewReplicas), [`MalformedReply`](BackendKind::MalformedReply) and
    /// [`Other`](BackendKind::Other) leave open whether the step took effect; the other kinds are refusals. [`not_run`](Self::not_run) says that it certainly did not.
    #[must_use]
    pub fn new(kind: BackendKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let may_have_run = matches!(
            kind,
            BackendKind::Unreachable
                | BackendKind::TimedOut
                | BackendKind::TooFewReplicas
                | BackendKind::MalformedReply
                | BackendKind::Other
        );
        Self {
            kind,
            may_have_run,
            source: Arc::from(source.into()),
        }
    }

    /// No answer within `limit`.
    #[must_use]
    pub fn no_answer(limit: Duration) -> Self {
        Self::new(
            BackendKind::TimedOut,
            format!("no answer within {limit:?}; the step may still take effect"),
        )
    }

    /// The same failure of a step that certainly took no effect: it was never sent.
    #[must_use]
    pub fn not_run(mut self) -> Self {
        self.may_have_run = false;
        self
    }

    /// The same failure, whose step may have taken effect or not, as is known.
    pub(crate) fn that_may_have_run(mut self, may_have_run: bool) -> Self {
        self.may_have_run = may_have_run;
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> BackendKind {
        self.kind
    }

    /// Whether the step may have taken effect, now or later.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        self.may_have_run
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreError")
            .field("kind", &self.kind)
            .field("may_have_run", &self.may_have_run)
            .field("source", &self.source)
            .finish()
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
