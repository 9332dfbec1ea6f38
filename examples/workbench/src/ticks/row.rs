//! [`Row`]: one thing that happened, in the field's terms.

use serde::Serialize;

use super::plan::Candidate;

/// What a candidate did, or what happened to it. The order is that of rows of the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// None of its tasks runs any more.
    Frozen,
    /// Its tasks run again.
    Thawed,
    /// It could not rely on its lease any more.
    Lost,
    /// The fenced resource took the write that ends its work.
    WroteLast,
    /// The fenced resource refused the write that ends its work.
    LastWriteRefused,
    /// It gave its slot back.
    Released,
    /// Its work ended after the lease was lost: there was nothing of its own to give back any more.
    ReleaseRefused,
    /// It was elected.
    Elected,
    /// The fenced resource took the write that begins its work.
    WroteFirst,
    /// The fenced resource refused the write that begins its work.
    FirstWriteRefused,
    /// Its lease was extended.
    Extended,
    /// It stood, was not elected, and waits.
    Waits,
    /// Its wait ended without election; its work did not run.
    Skipped,
    /// The engine told an error.
    Failed,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The tick it belongs to.
    pub tick: u32,
    /// To whom.
    pub candidate: Candidate,
    /// What.
    pub action: Action,
    /// The fencing token of its tenure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The slot of its tenure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// In how many ticks, by the store's record: the lease ends that was granted, extended or lost; the first lease ends
    /// that this candidate waits for; a minimum lease ends that keeps the slot which was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u32>,
    /// Who leads: the one whose lease ends first, where this candidate does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Candidate>,
    /// How the lease was lost: [`LossReason::as_str`](leader_core::LossReason::as_str).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The greatest fencing token that the resource has seen, where that is why it refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// The engine's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Row {
    pub(super) fn new(tick: u32, candidate: Candidate, action: Action) -> Self {
        Self {
            tick,
            candidate,
            action,
            token: None,
            slot: None,
            remaining: None,
            holder: None,
            reason: None,
            seen: None,
            error: None,
        }
    }
}
