//! Chaos: real servers, real processes, faults on both sides, and a checker that reads the logs afterwards.
//!
//! ```text
//! chaos (the director)
//!   ├─ site      the servers of a topology, and a network of proxies between them and each worker
//!   ├─ crew      the worker processes, each a candidate for every job, each with a log of its own
//!   ├─ plan      storms of faults, from a seed        ── nemesis ── plays them on site and crew
//!   └─ check     reads all logs and judges            ── report  ── figures, as a table and as JSON
//! ```
//!
//! A run is storms and lulls in turn. A storm is one fault or many at once; a lull lasts until every name is led again,
//! or ought to be. The faults stay within what the topology promises to survive: a server that is killed comes back with
//! what it had acknowledged (single), has a replica that acknowledged (replicated), or is one of a minority (quorum). In
//! the cluster replication is asynchronous, and a killed primary may take grants with it; see `check`.
//!
//! # What a worker believes
//!
//! The checker compares intervals of *believed leadership*, which must be neither longer than what the worker believed,
//! or it would accuse an innocent, nor much shorter, or it would be blind. A process that is stopped writes nothing, so
//! an interval is not what a worker says about itself afterwards. It follows from what was written while it worked:
//!
//! - A tenure **begins** with the first line of its body, written when the lease was valid by the library's own word.
//! - Every few milliseconds the body **acts**: it reads the clock, asks the lease whether it is valid, reads until when
//!   the lease is relied upon, and writes these down. The clock is read *before* the question, and a lease that is
//!   valid later was valid then: up to there the belief is certain.
//! - It **ends** with the line that the body writes before it returns, which is before the release is sent.
//! - A body that is dropped instead writes a line with the reason. A lease that *expired* was believed in until its
//!   deadline, the latest that an act has seen. One that the store denied was believed in until the last act at least.
//! - A process that is killed believed until its deadline or its death, which the director writes, whichever was first.
//!   One that is stopped believes until its deadline: asked within it, it would say yes.
//!
//! What the checker does not see is then at most what happens between two acts: an extension that was answered within
//! the last few milliseconds before a process was stopped or killed, and belief between the last act and a denial.
//!
//! All times are of `CLOCK_MONOTONIC`, which all processes of one host share, in microseconds.

mod check;
mod clock;
mod crew;
mod director;
mod fault;
mod heart;
mod job;
mod nemesis;
mod options;
mod plan;
mod record;
mod report;
mod site;
mod topology;
pub mod worker;

pub use director::run;
pub use options::{HELP, Options};
