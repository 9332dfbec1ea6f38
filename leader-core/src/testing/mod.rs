//! For tests, ours and yours.

pub mod conformance;
pub mod faulty;
mod scripted;

pub use faulty::{Fault, Faults, FaultyStore};
pub use scripted::ScriptedElector;

/// What an elector has at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Tenures from their grant until their release is over.
    pub held: usize,
    /// Names that somebody waits for.
    pub queues: usize,
    /// Background tasks that extend leases; one at most for each runtime.
    pub keepers: usize,
    /// Names of which a release is under way in the background.
    pub settling: usize,
    /// Background tasks that release.
    pub tasks: usize,
}
