//! What is led: the same names for every worker, led in different manners.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::topology::Topology;

/// A name, and how workers stand for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The name.
    pub(crate) name: String,
    /// How many may lead at once.
    pub(crate) slots: u32,
    /// The lease, in milliseconds.
    pub(crate) lease_ms: u64,
    /// How it is led.
    pub(crate) manner: Manner,
}

/// How a name is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Manner {
    /// A guarded run that is extended, often short and sometimes longer than its lease.
    Run,
    /// A guarded run without extension, shorter than its lease.
    Call,
    /// A campaign that resigns now and then.
    Campaign,
    /// A lease held by hand.
    Hand,
}

impl Job {
    /// How long a lease lives.
    #[must_use]
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// What all workers stand for on this topology.
    #[must_use]
    pub(crate) fn all(topology: Topology) -> Vec<Self> {
        // A step may take longer where replicas are waited for, or where a majority is asked twice.
        let percent = match topology {
            Topology::Single | Topology::Cluster => 100,
            Topology::Replicated | Topology::Quorum => 150,
        };
        let job = |name: &str, slots, lease_ms: u64, manner| Self {
            name: name.to_owned(),
            slots,
            lease_ms: lease_ms * percent / 100,
            manner,
        };
        vec![
            job("invoice-close", 1, 700, Manner::Run),
            job("report:daily", 1, 800, Manner::Call),
            job("scheduler", 1, 900, Manner::Campaign),
            job("migration", 1, 750, Manner::Hand),
            job("partner:eu", 2, 800, Manner::Run),
            job("importers", 3, 850, Manner::Hand),
            job("indexers", 2, 700, Manner::Campaign),
        ]
    }

    /// The longest lease of any job.
    #[must_use]
    pub(crate) fn longest_lease(jobs: &[Self]) -> Duration {
        jobs.iter().map(Self::lease).max().unwrap_or_default()
    }
}
