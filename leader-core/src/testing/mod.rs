//! For tests, ours and yours.
//!
//! | to test | take |
//! |---|---|
//! | a service | [`LocalElector`](crate::LocalElector) for candidates that compete, [`ScriptedElector`] for an outcome at a word |
//! | a store | [`conformance_tests!`](crate::conformance_tests): each promise of [`LeaseStore`](crate::store::LeaseStore) as a test |
//! | a resource that takes fencing tokens | [`check_fenced_resource`] |
//! | what happens when a store fails, is slow, or repeats itself | [`FaultyStore`] around any store |
//! | that nothing is left behind | [`Footprint`] |
//!
//! All of it obeys Tokio's clock, so that under
//! [`tokio::time::pause`](https://docs.rs/tokio/latest/tokio/time/fn.pause.html) hours pass in no time.

pub mod conformance;
pub mod faulty;
mod fenced;
mod scripted;

pub use faulty::{Fault, Faults, FaultyStore};
pub use fenced::check_fenced_resource;
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
