//! [`play`]: a plan from its first tick to its last, for a table, a test, or a page.

use std::fmt;
use std::io;
use std::thread::{self, JoinHandle};

use leader_core::LeaderError;
use tokio::runtime::{Builder, Runtime};

use super::plan::{Plan, PlanError};
use super::row::Row;
use super::stage::Stage;

/// Plays `plan` to its end, on a runtime and a thread of its own: its rows, in order.
///
/// # Errors
///
/// [`PlayError::Plan`] when it cannot be played; the others when this process cannot.
pub fn play(plan: Plan) -> Result<Vec<Row>, PlayError> {
    plan.check()?;
    let playing = on_a_thread(move || {
        let (runtime, mut stage) = set(plan)?;
        let mut rows = Vec::new();
        while !stage.is_over() {
            rows.extend(runtime.block_on(stage.step()));
        }
        Ok(rows)
    });
    playing?.join().map_err(|_| PlayError::Gone)?
}

/// Whoever plays may be in a runtime, where another cannot be driven.
fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, PlayError> {
    let thread = thread::Builder::new().name("ticks".to_owned());
    thread.spawn(work).map_err(PlayError::Runtime)
}

/// The stage of a plan, and the runtime whose time it is played in.
fn set(plan: Plan) -> Result<(Runtime, Stage), PlayError> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(PlayError::Runtime)?;
    let stage = runtime.block_on(async { Stage::new(plan) });
    Ok((runtime, stage.map_err(PlayError::Engine)?))
}

/// Why a plan is not played.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlayError {
    /// The plan cannot be played.
    Plan(PlanError),
    /// There is no thread or no runtime to be had.
    Runtime(io::Error),
    /// The engine refused the plan's options.
    Engine(LeaderError),
    /// The thread that plays has panicked.
    Gone,
}

impl From<PlanError> for PlayError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl fmt::Display for PlayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => write!(f, "this plan cannot be played: {error}"),
            Self::Runtime(error) => write!(f, "no thread or runtime to play on: {error}"),
            Self::Engine(error) => write!(f, "the engine refused the plan: {error}"),
            Self::Gone => f.write_str("the thread that played has panicked; report this"),
        }
    }
}

// The messages have the errors within already: they are not sources as well.
impl std::error::Error for PlayError {}
