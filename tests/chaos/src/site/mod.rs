//! The servers of a topology, and the way to them.

mod cluster;
mod quorum;
mod replicated;
mod single;
mod wires;

pub(crate) use cluster::Cluster;
pub(crate) use quorum::Quorum;
pub(crate) use replicated::Replicated;
pub(crate) use single::Single;
pub(crate) use wires::{End, Trouble, Wires};

use crate::clock::Clock;
use crate::plan::Strike;
use crate::record::Forgot;
use crate::worker::Store;

/// A topology that runs, and whose servers can be hit.
pub(crate) trait Site {
    /// How that worker connects.
    fn store(&self, worker: usize) -> Store;

    /// The network between workers and servers.
    fn wires(&self) -> &Wires;

    /// The number of the server that is meant, among those that wires lead to.
    async fn server(&self, target: usize) -> usize {
        target
    }

    /// Plays a fault of the servers' side that is not one of the network, from its begin to its end. Gives what
    /// may have been forgotten.
    async fn strike(&self, strike: &Strike, clock: Clock) -> Option<Forgot>;
}
