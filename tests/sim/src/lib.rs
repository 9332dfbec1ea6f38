//! The simulation: whole clusters of candidates in one process, one thread and no time, from a seed.
//!
//! A seed makes a [`Plan`]: candidates and what they do, a store and what goes wrong with it. [`play`] plays it on real
//! electors, under Tokio's paused clock, over a network whose every message has a fate of its own; the *invariants*
//! look at everything that happens, and the first that does not hold ends the run. The same plan gives the same trace,
//! byte for byte, so a failing seed can be played again with its trace, and [`shrink`]ed to what is needed to fail.
//!
//! ```text
//! seed ── generate ── Plan ── play ─┬─ candidate, body     call the real engine
//!                                   ├─ network, server     carry, lose, repeat and execute its requests
//!                                   ├─ freeze              stops a process's every task for a while
//!                                   └─ event ── facts ── invariants/*
//! ```
//!
//! What is simulated, and what is not: candidates' clocks run at rates of their own against the store's (within the
//! drift budget), but no clock of a candidate steps. A server that forgets, or a replica that takes over behind the
//! times, is exempt from exclusion for the leases that it forgot, never from fencing.

mod body;
mod candidate;
pub mod cli;
mod dice;
mod event;
mod facts;
mod freeze;
mod generate;
mod invariants;
mod model;
mod network;
mod plan;
pub mod quorum;
mod register;
mod run;
mod server;
mod shrink;
mod tally;
mod world;

pub use dice::Dice;
pub use plan::{
    Act, CandidatePlan, Cut, Deed, End, Fault, FaultKind, LettingGo, Plan, Refusal, ServerKind,
    Stand, Step,
};
pub use run::{Report, Tracing, play};
pub use shrink::shrink;
pub use tally::Tally;
pub use world::Violation;
