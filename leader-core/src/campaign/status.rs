//! [`CampaignStatus`]: where a campaign stands.

use crate::error::LeaderError;
use crate::event::TenureId;

use super::BodyEnd;

/// What a campaign is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CampaignPhase {
    /// It stands for election.
    Standing,
    /// It was elected, and its body runs.
    Leading,
    /// Its body has ended; the slot is being given back.
    Releasing,
    /// It lets others lead for a while, or waits until it asks a failing store again.
    Pausing,
    /// It is over.
    Ended,
}

impl CampaignPhase {
    /// The phase as one lower-case word, for labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standing => "standing",
            Self::Leading => "leading",
            Self::Releasing => "releasing",
            Self::Pausing => "pausing",
            Self::Ended => "ended",
        }
    }
}

/// How a campaign ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CampaignEnd {
    /// It was stopped, or its [`Campaign`](crate::Campaign) was dropped.
    Stopped,
    /// Its body ended, and its options say that this is the end.
    BodyEnded(BodyEnd),
    /// Its elector was shut down.
    ShutDown,
    /// The runtime on which it lived has ended.
    RuntimeEnded,
}

/// Where a campaign stood a moment ago: for people and dashboards. Whether it leads *now* is asked with
/// [`Campaign::is_leader`](crate::Campaign::is_leader).
///
/// With the feature `serde` it serializes to `{"phase", "fence", "slot", "tenures", "failures", "failure"}`, where the
/// fence and the slot are null unless it leads, and the failure is the store's last, or null.
#[derive(Clone, Debug)]
#[must_use]
pub struct CampaignStatus {
    pub(super) phase: CampaignPhase,
    pub(super) tenure: Option<TenureId>,
    pub(super) tenures: u64,
    pub(super) failures: u64,
    pub(super) failure: Option<LeaderError>,
    /// The tenure that ended last, and what became of its release.
    pub(super) released: Option<(TenureId, Option<LeaderError>)>,
    pub(super) end: Option<Result<CampaignEnd, LeaderError>>,
}

impl CampaignStatus {
    pub(super) fn new() -> Self {
        Self {
            phase: CampaignPhase::Standing,
            tenure: None,
            tenures: 0,
            failures: 0,
            failure: None,
            released: None,
            end: None,
        }
    }

    pub(super) fn over(end: Result<CampaignEnd, LeaderError>) -> Self {
        Self {
            phase: CampaignPhase::Ended,
            end: Some(end),
            ..Self::new()
        }
    }

    /// What became of the release of `tenure`. One that was lost has nothing to give back.
    pub(super) fn released(&self, tenure: &TenureId) -> Result<(), LeaderError> {
        match &self.released {
            Some((of, Some(error @ LeaderError::Backend { .. }))) if of == tenure => {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    /// What it is doing.
    #[must_use]
    pub fn phase(&self) -> CampaignPhase {
        self.phase
    }

    /// What it leads, until its slot was given back: the slot, the fencing token.
    #[must_use]
    pub fn tenure(&self) -> Option<&TenureId> {
        self.tenure.as_ref()
    }

    /// How often it was elected so far.
    #[must_use]
    pub fn tenures(&self) -> u64 {
        self.tenures
    }

    /// How often in a row the store has failed when it was asked for a slot; 0 when it answered last time.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Why it does not get on, while [`failures`](Self::failures) is not 0.
    #[must_use]
    pub fn failure(&self) -> Option<&LeaderError> {
        self.failure.as_ref()
    }

    /// How it ended, once it has.
    #[must_use]
    pub fn end(&self) -> Option<&Result<CampaignEnd, LeaderError>> {
        self.end.as_ref()
    }
}

#[cfg(feature = "serde")]
mod serialize {
    use serde::ser::{Serialize, SerializeStruct, Serializer};

    use super::CampaignStatus;

    impl Serialize for CampaignStatus {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut status = serializer.serialize_struct("CampaignStatus", 6)?;
            status.serialize_field("phase", self.phase.as_str())?;
            status.serialize_field("fence", &self.tenure.as_ref().map(|tenure| tenure.fence))?;
            status.serialize_field("slot", &self.tenure.as_ref().map(|tenure| tenure.slot))?;
            status.serialize_field("tenures", &self.tenures)?;
            status.serialize_field("failures", &self.failures)?;
            let failure = self.failure.as_ref().map(ToString::to_string);
            status.serialize_field("failure", &failure)?;
            status.end()
        }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;

    #[test]
    fn a_status_serializes_with_its_words() {
        assert_eq!(
            serde_json::to_string(&CampaignStatus::new()).unwrap(),
            r#"{"phase":"standing","fence":null,"slot":null,"tenures":0,"failures":0,"failure":null}"#
        );
    }
}
