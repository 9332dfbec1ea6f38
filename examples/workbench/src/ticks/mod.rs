//! Deterministic mode: a [`Plan`] of candidates, played by the real engine under paused time, in ticks.
//!
//! It is no animation. Each candidate is a [`StoreElector`](leader_core::StoreElector) on one
//! [`LocalStore`](leader_core::LocalStore), each tenure is a `run_if_leader_result`, and each [`Row`] is an event or an
//! outcome that the engine told. Only time is not real: it is Tokio's paused clock on a runtime of one thread, and it
//! moves as [`play`] goes from tick to tick. The same plan always gives the same rows.
//!
//! ```
//! use leader_workbench::ticks::{Scenario, play};
//!
//! let scenario = Scenario::named("contention").expect("it is one of `Scenario::ALL`");
//! let rows = play(scenario.plan())?;
//! assert_eq!(rows.last().map(|row| row.tick), Some(9 + 8));
//! # Ok::<(), leader_workbench::ticks::PlayError>(())
//! ```
//!
//! # Ticks and time
//!
//! A tick is a second of paused time, and what happens less than half a second before or after the second `n` belongs to
//! tick `n`. That is wide enough for what the engine does with milliseconds, none of which is taken away:
//!
//! - A candidate relies on its lease for 1 % and 2 ms less than the store keeps it. A lease of 6 ticks that began at 0 is
//!   *lost* at 5.938 s and free in the store at 6 s; both are tick 6. This is why a lease has at most 30 ticks.
//! - A waiter asks 1 to 6 ms after a lease must have ended, and is elected then.
//! - Leases are extended at a third of their time, up to a tenth of that earlier.
//!
//! What a plan says in ticks happens in this order within each tick:
//!
//! 1. half a tick before: candidates are frozen and thawed;
//! 2. a few milliseconds before: works end, those of one begin in the order of the candidates, and their slots are released. So who stands
//!    or waits in that tick finds the slot free;
//! 3. on the second: leases end, minimum leases end, candidates stand, in the order of the plan;
//! 4. an eighth of a tick after: works end that have lost their lease and went on. So a late release finds the next
//!    leader in its place;
//! 5. a quarter of a tick after: waits end. So a slot that is freed in the last tick of a wait is taken.
//!
//! Rows are in the order of their moments; those of one moment are ordered by what they are (the order of [`Action`]),
//! then by fencing token, then by candidate.

mod actor;
mod chart;
mod freeze;
mod log;
mod plan;
mod play;
mod row;
mod scenario;
mod stage;
mod time;
mod words;

pub use chart::{Lane, Mark, lanes, table};
pub use plan::{Candidate, OnLost, Pause, Plan, PlanError, Stand};
pub use play::{PlayError, play};
pub use row::{Action, Row};
pub use scenario::Scenario;
pub use words::Language;
