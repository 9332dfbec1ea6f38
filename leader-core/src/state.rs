//! [`LeaderState`]: who leads, for people and dashboards.

use std::time::Duration;

use crate::name::LockName;
use crate::node::NodeId;
use crate::token::FencingToken;

/// Who leads a name, as the store saw it a moment ago. For people and dashboards, never to decide whether to run: by
/// the time it is read it may be over.
///
/// With the feature `serde` it serializes to
/// `{"name": "...", "holders": [{"node_id", "slot", "fence", "remaining_ms", "retained"}]}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderState {
    name: LockName,
    holders: Vec<Holder>,
}

impl LeaderState {
    pub(crate) fn new(name: LockName, mut holders: Vec<Holder>) -> Self {
        holders.sort_by_key(|holder| holder.slot);
        Self { name, holders }
    }

    /// The name that was asked about.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The slots that are taken, in order; empty when nobody leads.
    #[must_use]
    pub fn holders(&self) -> &[Holder] {
        &self.holders
    }
}

/// One taken slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    node_id: NodeId,
    slot: u32,
    fence: FencingToken,
    remaining: Duration,
    retained: bool,
}

impl Holder {
    /// The holder of `slot`, as a store reads it back.
    #[must_use]
    pub fn new(node_id: NodeId, slot: u32, fence: FencingToken, remaining: Duration) -> Self {
        Self {
            node_id,
            slot,
            fence,
            remaining,
            retained: false,
        }
    }

    /// The same slot, kept by `min_lease` after its work ended.
    #[must_use]
    pub fn retained(mut self) -> Self {
        self.retained = true;
        self
    }

    /// Who holds the slot.
    #[must_use]
    pub fn node_id(&self) -> &NodeId {
        &self.node_id
    }

    /// Which slot it is, from 0.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// The fencing token of this tenure.
    #[must_use]
    pub fn fence(&self) -> FencingToken {
        self.fence
    }

    /// How long the slot stays taken if nobody extends it.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// Whether the work has ended and only `min_lease` keeps the slot.
    #[must_use]
    pub fn is_retained(&self) -> bool {
        self.retained
    }
}

#[cfg(feature = "serde")]
mod serialize {
    use serde::ser::{Serialize, SerializeStruct, Serializer};

    use super::{Holder, LeaderState};
    use crate::name::LockName;
    use crate::node::NodeId;
    use crate::token::FencingToken;

    impl Serialize for LockName {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.as_str())
        }
    }

    impl Serialize for NodeId {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.as_str())
        }
    }

    impl Serialize for FencingToken {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u64(self.get())
        }
    }

    impl Serialize for Holder {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut holder = serializer.serialize_struct("Holder", 5)?;
            holder.serialize_field("node_id", &self.node_id)?;
            holder.serialize_field("slot", &self.slot)?;
            holder.serialize_field("fence", &self.fence)?;
            let remaining = u64::try_from(self.remaining.as_millis()).unwrap_or(u64::MAX);
            holder.serialize_field("remaining_ms", &remaining)?;
            holder.serialize_field("retained", &self.retained)?;
            holder.end()
        }
    }

    impl Serialize for LeaderState {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut state = serializer.serialize_struct("LeaderState", 2)?;
            state.serialize_field("name", &self.name)?;
            state.serialize_field("holders", &self.holders)?;
            state.end()
        }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;

    #[test]
    fn a_state_serializes_with_the_words_of_the_design() {
        let name = LockName::new("invoice-close").unwrap();
        let holder = Holder::new(
            NodeId::new("billing-3"),
            0,
            FencingToken::new(7),
            Duration::from_millis(1500),
        );
        let state = LeaderState::new(name, vec![holder]);
        assert_eq!(
            serde_json::to_string(&state).unwrap(),
            r#"{"name":"invoice-close","holders":[{"node_id":"billing-3","slot":0,"fence":7,"remaining_ms":1500,"retained":false}]}"#
        );
    }
}
