//! [`Health`]: whether this process can prove that it leads, wherever it believes so.

use std::time::Duration;

use crate::event::TenureId;

/// Whether an elector is well: healthy, unless something of this process still works under a lease that cannot be proved
/// valid any more. Followers are healthy, and so is a process whose store is down, as long as it does not believe that
/// it leads.
///
/// What makes it unhealthy: a body that blocks its thread past its lease's end, so that it cannot be dropped; a body
/// under [`OnLost::Notify`](crate::OnLost::Notify) that takes its time; a [`Lease`](crate::Lease) held by hand that was
/// lost and is neither released nor dropped. A liveness probe that restarts the process then ends what nothing inside it
/// can end.
///
/// ```
/// use leader_core::{ElectorExt, LocalElector};
/// use std::time::Duration;
///
/// let elector = LocalElector::new();
/// let health = elector.health();
/// assert!(health.is_healthy());
/// // For a probe: a body that is late by less is given the time to end.
/// assert!(health.tolerating(Duration::from_secs(20)).is_healthy());
/// ```
///
/// With the feature `serde` it serializes to
/// `{"healthy": false, "unproved": [{"name", "node_id", "slot", "fence", "overdue_ms"}]}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it says whether the process is well"]
pub struct Health {
    unproved: Vec<Unproved>,
}

impl Health {
    pub(crate) fn of(unproved: Vec<Unproved>) -> Self {
        Self { unproved }
    }

    /// Whether nothing works under a lease that cannot be proved.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.unproved.is_empty()
    }

    /// The leases under which something still works although they cannot be proved valid, in the order of their grants.
    #[must_use]
    pub fn unproved(&self) -> &[Unproved] {
        &self.unproved
    }

    /// The same, without what is overdue by `tolerance` or less.
    pub fn tolerating(mut self, tolerance: Duration) -> Self {
        self.unproved.retain(|lease| lease.overdue > tolerance);
        self
    }
}

/// A lease under which something still works although it cannot be proved valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unproved {
    tenure: TenureId,
    overdue: Duration,
}

impl Unproved {
    pub(crate) fn new(tenure: TenureId, overdue: Duration) -> Self {
        Self { tenure, overdue }
    }

    /// What was led, by whom, in which slot, with which fencing token.
    #[must_use]
    pub fn tenure(&self) -> &TenureId {
        &self.tenure
    }

    /// For how long it has not been provable: since its deadline, or since it was found to be somebody else's.
    #[must_use]
    pub fn overdue(&self) -> Duration {
        self.overdue
    }
}

#[cfg(feature = "serde")]
mod serialize {
    use serde::ser::{Serialize, SerializeStruct, Serializer};

    use super::{Health, Unproved};

    impl Serialize for Health {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut health = serializer.serialize_struct("Health", 2)?;
            health.serialize_field("healthy", &self.is_healthy())?;
            health.serialize_field("unproved", &self.unproved)?;
            health.end()
        }
    }

    impl Serialize for Unproved {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut unproved = serializer.serialize_struct("Unproved", 5)?;
            unproved.serialize_field("name", &self.tenure.name)?;
            unproved.serialize_field("node_id", &self.tenure.node_id)?;
            unproved.serialize_field("slot", &self.tenure.slot)?;
            unproved.serialize_field("fence", &self.tenure.fence)?;
            let overdue = u64::try_from(self.overdue.as_millis()).unwrap_or(u64::MAX);
            unproved.serialize_field("overdue_ms", &overdue)?;
            unproved.end()
        }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;
    use crate::name::LockName;
    use crate::node::NodeId;
    use crate::token::FencingToken;

    #[test]
    fn health_serializes_with_the_words_of_the_design() {
        let tenure = TenureId {
            name: LockName::new("scheduler").unwrap(),
            node_id: NodeId::new("billing-3"),
            slot: 0,
            fence: FencingToken::new(7),
        };
        let health = Health::of(vec![Unproved::new(tenure, Duration::from_millis(1500))]);
        assert_eq!(
            serde_json::to_string(&health).unwrap(),
            r#"{"healthy":false,"unproved":[{"name":"scheduler","node_id":"billing-3","slot":0,"fence":7,"overdue_ms":1500}]}"#
        );
        let health = health.tolerating(Duration::from_millis(1500));
        assert_eq!(
            serde_json::to_string(&health).unwrap(),
            r#"{"healthy":true,"unproved":[]}"#
        );
    }
}
