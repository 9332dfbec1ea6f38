//! The faults, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::topology::Topology;

/// What the nemesis does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// SIGKILL to a worker, and another in its place.
    WorkerKilled,
    /// SIGSTOP to a worker, for less than a lease.
    WorkerPaused,
    /// SIGSTOP to a worker, for longer than any lease.
    WorkerFrozen,
    /// A worker's connections are closed, and new ones refused.
    WorkerCut,
    /// A worker's connections swallow all bytes, and nobody is told.
    WorkerSilenced,
    /// Requests and replies of a worker take their time, more than a command may take at times.
    WorkerSlowed,
    /// SIGKILL to a server, which comes back with what it had acknowledged.
    ServerKilled,
    /// SIGKILL to a server that comes back empty, once the longest lease is over.
    ServerForgot,
    /// SIGSTOP to a server.
    ServerFrozen,
    /// All connections of workers to a server are closed, and new ones refused.
    ServerCut,
    /// All connections of workers to a server are slow.
    ServerSlowed,
    /// SIGKILL to a primary, whose replica is promoted at once.
    Failover,
    /// SIGSTOP to a replica that grants wait for.
    ReplicaFrozen,
    /// A replica takes over in agreement with its primary.
    HandOver,
    /// A slot of the cluster moves to another primary, with what is in it.
    SlotMoved,
}

/// Whom a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// One of the workers.
    Worker,
    /// One of the servers, or the way to it.
    Server,
}

impl Kind {
    /// Those of a topology.
    #[must_use]
    pub(crate) fn of(topology: Topology) -> Vec<Self> {
        let workers = [
            Self::WorkerKilled,
            Self::WorkerPaused,
            Self::WorkerFrozen,
            Self::WorkerCut,
            Self::WorkerSilenced,
            Self::WorkerSlowed,
        ];
        let servers: &[Self] = match topology {
            Topology::Single => &[
                Self::ServerKilled,
                Self::ServerFrozen,
                Self::ServerCut,
                Self::ServerSlowed,
            ],
            Topology::Replicated => &[
                Self::Failover,
                Self::ServerFrozen,
                Self::ReplicaFrozen,
                Self::ServerCut,
                Self::ServerSlowed,
            ],
            Topology::Quorum => &[
                Self::ServerKilled,
                Self::ServerForgot,
                Self::ServerFrozen,
                Self::ServerCut,
                Self::ServerSlowed,
            ],
            Topology::Cluster => &[
                Self::Failover,
                Self::HandOver,
                Self::SlotMoved,
                Self::ServerFrozen,
                Self::ServerCut,
                Self::ServerSlowed,
            ],
        };
        workers.into_iter().chain(servers.iter().copied()).collect()
    }

    /// Whom it hits.
    #[must_use]
    pub(crate) fn side(self) -> Side {
        match self {
            Self::WorkerKilled
            | Self::WorkerPaused
            | Self::WorkerFrozen
            | Self::WorkerCut
            | Self::WorkerSilenced
            | Self::WorkerSlowed => Side::Worker,
            _ => Side::Server,
        }
    }

    /// Its name, in words.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::WorkerKilled => "worker killed",
            Self::WorkerPaused => "worker paused",
            Self::WorkerFrozen => "worker frozen",
            Self::WorkerCut => "worker cut off",
            Self::WorkerSilenced => "worker silenced",
            Self::WorkerSlowed => "worker slowed",
            Self::ServerKilled => "server killed",
            Self::ServerForgot => "server forgot",
            Self::ServerFrozen => "server frozen",
            Self::ServerCut => "server cut off",
            Self::ServerSlowed => "server slowed",
            Self::Failover => "failover",
            Self::ReplicaFrozen => "replica frozen",
            Self::HandOver => "hand-over",
            Self::SlotMoved => "slot moved",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
