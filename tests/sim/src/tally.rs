//! What a run went through, counted.

use std::fmt;
use std::ops::AddAssign;

use leader_core::LossReason;

use crate::event::{BodyEnd, Event, Fate, Op, Outcome, Register, Said, Turn};

macro_rules! tally {
    ($($(#[doc = $doc:literal])+ $field:ident: $words:literal,)+) => {
        /// How often what happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Tally {
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl AddAssign for Tally {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)+
            }
        }

        impl fmt::Display for Tally {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, "{:>12} {}", self.$field, $words)?;)+
                Ok(())
            }
        }
    };
}

tally! {
    /// Attempts.
    attempts: "attempts",
    /// Leases that a candidate got.
    grants: "grants",
    /// Runs and holds that were skipped.
    skipped: "skipped",
    /// Bodies that returned or failed under a valid lease.
    elected: "runs that ended well",
    /// Bodies that panicked.
    panics: "panics",
    /// Leases lost.
    losses: "losses",
    /// Leases lost because their time was over.
    expired: "losses by expiry",
    /// Leases that somebody else holds.
    taken: "losses to a successor",
    /// Leases whose record was gone.
    deleted: "losses by deletion",
    /// Leases that reached their longest tenure.
    max_tenure: "losses by longest tenure",
    /// Attempts that ended with a failure of the store.
    failed: "failures of the store reported",
    /// Runs and holds whose future was dropped or whose task was aborted.
    cut: "dropped and aborted futures",
    /// Bodies that were dropped before their end.
    bodies_dropped: "dropped bodies",
    /// Extensions that the store made.
    extensions: "extensions",
    /// Releases that the store made.
    releases: "releases",
    /// Nested runs.
    nested: "nested runs",
    /// Shutdowns.
    shutdowns: "shutdowns",
    /// Messages.
    messages: "messages",
    /// Requests lost.
    requests_lost: "lost requests",
    /// Replies lost.
    replies_lost: "lost replies",
    /// Connections cut after the request ran.
    replies_cut: "cut replies",
    /// Requests that arrived twice.
    duplicates: "duplicated requests",
    /// Requests refused.
    refused: "refused requests",
    /// Requests that found the server down.
    found_down: "requests that found the server down",
    /// Hints lost.
    hints_lost: "lost hints",
    /// Claims that came after their token's end.
    claims_after_end: "claims refused because their token was ended",
    /// Server stops.
    stops: "stops and failovers begun",
    /// Server hangs.
    hangs: "hangs",
    /// The server forgot everything.
    forgotten: "times the server forgot everything",
    /// Failovers.
    failovers: "failovers to an old copy",
    /// Evictions by an operator.
    evictions: "evictions",
    /// Clock steps.
    clock_steps: "clock steps",
    /// Frozen processes.
    freezes: "freezes",
    /// Writes accepted by the fenced register.
    writes: "fenced writes accepted",
    /// Writes and reads refused by the fenced register.
    writes_refused: "fenced requests refused",
}

impl Tally {
    pub(crate) fn count(&mut self, event: &Event) {
        let counter = match event {
            Event::Stood { .. } => &mut self.attempts,
            Event::Granted { .. } => &mut self.grants,
            Event::Sent { .. } => &mut self.messages,
            Event::Nested { .. } => &mut self.nested,
            Event::ShutDown { .. } => &mut self.shutdowns,
            Event::BodyEnded {
                end: BodyEnd::Dropped,
                ..
            } => &mut self.bodies_dropped,
            Event::Fate { fate, .. } => match fate {
                Fate::RequestLost => &mut self.requests_lost,
                Fate::ReplyLost => &mut self.replies_lost,
                Fate::ReplyCut => &mut self.replies_cut,
                Fate::Duplicated => &mut self.duplicates,
                Fate::Refused => &mut self.refused,
                Fate::Down => &mut self.found_down,
                Fate::HintLost => &mut self.hints_lost,
            },
            Event::Applied { op, said, .. } => match (op, said) {
                (Op::Extend { .. }, Said::Extended) => &mut self.extensions,
                (Op::Release { .. }, Said::Released) => &mut self.releases,
                (Op::Claim { .. }, Said::Ended) => &mut self.claims_after_end,
                _ => return,
            },
            Event::Turn(turn) => match turn {
                Turn::Stopped => &mut self.stops,
                Turn::Hangs => &mut self.hangs,
                Turn::Forgot => &mut self.forgotten,
                Turn::FailedOver => &mut self.failovers,
                Turn::Evicted(_) => &mut self.evictions,
                Turn::ClockStepped => &mut self.clock_steps,
                Turn::Frozen(_) => &mut self.freezes,
                _ => return,
            },
            Event::Register { what, .. } => match what {
                Register::Wrote { .. } => &mut self.writes,
                Register::Refused { .. } => &mut self.writes_refused,
                _ => return,
            },
            Event::Told {
                event: leader_core::LeaderEvent::Lost { reason, .. },
                ..
            } => {
                self.losses += 1;
                match reason {
                    LossReason::Expired => &mut self.expired,
                    LossReason::Taken => &mut self.taken,
                    LossReason::Deleted => &mut self.deleted,
                    LossReason::MaxTenure => &mut self.max_tenure,
                    _ => return,
                }
            }
            Event::Over { outcome, .. } => match outcome {
                Outcome::Elected | Outcome::ActionFailed | Outcome::LetGo => &mut self.elected,
                Outcome::Skipped => &mut self.skipped,
                Outcome::Panicked => &mut self.panics,
                Outcome::Backend(..) => &mut self.failed,
                Outcome::Cut => &mut self.cut,
                _ => return,
            },
            _ => return,
        };
        *counter += 1;
    }
}
