//! The other topology: candidates on a quorum of independent servers, each with faults, clocks and a memory of its own.
//!
//! ```text
//! seed ── plan ── play ─┬─ StoreElector<Recorder<Quorum<NodeStore>>>   the real engine on the real quorum
//!                       ├─ network    carries, loses, repeats and executes the requests to each node
//!                       └─ ledger     what was granted, and what must hold of it
//! ```

mod ledger;
mod network;
mod plan;
mod play;

pub use plan::{Fault, Kind, Plan, Turn};
pub use play::{Report, play};
