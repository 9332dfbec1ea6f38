//! [`Fault`]: one way in which a call of a store can go wrong, and what several of them make of one call.

use std::time::Duration;

use crate::error::BackendKind;

/// One way in which a call of a store can go wrong.
///
/// Several faults may befall one call, a delayed request and a lost reply say: delays add up, and of two that give the
/// call its answer the later in the list does. A call of [`extend`](crate::store::LeaseStore::extend) is one call,
/// however many leases are in its batch.
///
/// A request that is delayed or held is on its way: it arrives when its time comes, also when its caller has given up
/// by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The store refuses with an error of this kind, at once, and does nothing. The error says that nothing was done.
    Refuse(BackendKind),
    /// The request never arrives, and its caller is told with an error of this kind that leaves open whether it has.
    /// Together with [`DelayReply`](Self::DelayReply) it is told late, as by a timeout.
    LoseRequest(BackendKind),
    /// The store does what it is asked, but its caller is told an error of this kind that leaves open whether it has.
    LoseReply(BackendKind),
    /// The request arrives this much later.
    DelayRequest(Duration),
    /// The reply arrives this much later.
    DelayReply(Duration),
    /// The request arrives when it is [let go](crate::testing::Faults::let_go).
    HoldRequest,
    /// The store does what it is asked; its reply arrives when it is [let go](crate::testing::Faults::let_go). Until
    /// then the caller has no answer.
    HoldReply,
    /// The request arrives once more, this much after the first time; at zero before the first reply. The caller gets
    /// the first reply.
    Repeat(Duration),
    /// The request arrives once more when that copy is [let go](crate::testing::Faults::let_go).
    HoldRepeat,
    /// Of a watch: what the store tells is lost, until it is [let go](crate::testing::Faults::let_go); then the
    /// watcher is told that it may have missed something, and is told everything from then on.
    LoseHints,
    /// Of a watch: what the store tells arrives this much later.
    DelayHints(Duration),
}

/// A single fault stands where several are asked for.
impl IntoIterator for Fault {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

impl Fault {
    /// # Panics
    ///
    /// When a step that may have taken effect would be answered with a refusal: no store does that, and no engine
    /// could know.
    #[track_caller]
    pub(super) fn check(self) -> Self {
        if let Self::LoseRequest(kind) | Self::LoseReply(kind) = self {
            let open = crate::store::StoreError::new(kind, "").may_have_run();
            assert!(
                open,
                "{self:?}: a step whose reply is lost may have run, and `{kind:?}` says that it has not; \
                 use `Refuse`, or a kind that leaves it open"
            );
        }
        self
    }
}

/// Why a call is answered with an error that is not the store's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Refused(BackendKind),
    RequestLost(BackendKind),
    ReplyLost(BackendKind),
}

/// When a copy of a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    After(Duration),
    WhenLetGo,
}

/// What one call goes through.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    pub(super) request_delay: Duration,
    pub(super) request_held: bool,
    pub(super) copies: Vec<Copy>,
    pub(super) failure: Option<Failure>,
    pub(super) reply_delay: Duration,
    pub(super) reply_held: bool,
    pub(super) hints_lost: bool,
    pub(super) hints_delay: Duration,
}

impl Course {
    pub(super) fn of(faults: &[Fault]) -> Self {
        let mut course = Self::default();
        for fault in faults {
            match fault.check() {
                Fault::Refuse(kind) => course.failure = Some(Failure::Refused(kind)),
                Fault::LoseRequest(kind) => course.failure = Some(Failure::RequestLost(kind)),
                Fault::LoseReply(kind) => course.failure = Some(Failure::ReplyLost(kind)),
                Fault::DelayRequest(delay) => course.request_delay += delay,
                Fault::DelayReply(delay) => course.reply_delay += delay,
                Fault::HoldRequest => course.request_held = true,
                Fault::HoldReply => course.reply_held = true,
                Fault::Repeat(delay) => course.copies.push(Copy::After(delay)),
                Fault::HoldRepeat => course.copies.push(Copy::WhenLetGo),
                Fault::LoseHints => course.hints_lost = true,
                Fault::DelayHints(delay) => course.hints_delay += delay,
            }
        }
        course
    }

    /// Whether the request arrives later than it is sent.
    pub(super) fn travels(&self) -> bool {
        self.request_held || !self.request_delay.is_zero()
    }
}
