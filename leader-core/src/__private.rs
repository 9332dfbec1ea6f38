//! What the expansion of `#[leader_election]` calls. Not part of the public interface: it may change in any release.

pub use crate::stream::entry::{guard_stream, guard_try_stream};
