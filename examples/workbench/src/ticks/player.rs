//! [`Player`]: plays a plan tick by tick, for a table, a test, or a page's buttons.

use std::fmt;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use leader_core::LeaderError;
use tokio::runtime::{Builder, Runtime};

use super::plan::{Plan, PlanError};
use super::row::Row;
use super::stage::Stage;

/// Plays a plan on a runtime and a thread of its own, whose time stands still between two steps.
///
/// Play and pause are its driver's: a timer that calls [`step`](Self::step), or does not. A step takes well below a
/// millisecond of real time, so it may be called from a task. Dropped, it ends its thread.
///
/// ```
/// use leader_workbench::ticks::{Action, Plan, Player};
///
/// let mut player = Player::new(Plan::default())?;
/// let first = player.step()?;
/// assert_eq!(first[0].action, Action::Elected);
/// while !player.is_over() {
///     for row in player.step()? {
///         println!("{}: {} {:?}", row.tick, row.candidate, row.action);
///     }
/// }
/// player.reset()?;
/// assert_eq!(player.step()?, first);
/// # Ok::<(), leader_workbench::ticks::PlayError>(())
/// ```
pub struct Player {
    plan: Plan,
    steps: Steps,
    next: u32,
    over: bool,
}

/// Each request is a step, and carries where its answer goes.
type Steps = SyncSender<SyncSender<Stepped>>;

struct Stepped {
    rows: Vec<Row>,
    over: bool,
}

impl Player {
    /// A player of `plan`, before its first tick.
    ///
    /// # Errors
    ///
    /// [`PlayError::Plan`] when it cannot be played; [`PlayError::Runtime`] and [`PlayError::Engine`] when this process
    /// cannot.
    pub fn new(plan: Plan) -> Result<Self, PlayError> {
        plan.check()?;
        Ok(Self {
            steps: begin(plan.clone())?,
            plan,
            next: 0,
            over: false,
        })
    }

    /// What is played.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The tick that the next step plays.
    #[must_use]
    pub fn next_tick(&self) -> u32 {
        self.next
    }

    /// Whether nothing more happens: everybody has stood, and every work has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Plays the next tick: what happened in it, in order. When it is over, nothing.
    ///
    /// # Errors
    ///
    /// [`PlayError::Gone`] when its thread has panicked.
    pub fn step(&mut self) -> Result<Vec<Row>, PlayError> {
        if self.over {
            return Ok(Vec::new());
        }
        let (answer, answered) = sync_channel(1);
        self.steps.send(answer).map_err(|_| PlayError::Gone)?;
        let Stepped { rows, over } = answered.recv().map_err(|_| PlayError::Gone)?;
        self.next += 1;
        self.over = over;
        Ok(rows)
    }

    /// Back to before the first tick.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); the player then stays where it is.
    pub fn reset(&mut self) -> Result<(), PlayError> {
        *self = Self::new(self.plan.clone())?;
        Ok(())
    }
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Player")
            .field("plan", &self.plan)
            .field("next", &self.next)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

/// Plays `plan` to its end: its rows, in order.
///
/// # Errors
///
/// As [`Player::new`] and [`Player::step`].
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

/// Plays `plan` as it is asked to.
fn begin(plan: Plan) -> Result<Steps, PlayError> {
    let (steps, requests) = sync_channel::<SyncSender<Stepped>>(1);
    let (ready, is_ready) = sync_channel(1);
    on_a_thread(move || {
        let (runtime, mut stage) = match set(plan) {
            Ok(set) => set,
            Err(error) => return drop(ready.send(Err(error))),
        };
        // Nobody receives or asks any more once the player was dropped.
        let _ = ready.send(Ok(()));
        while let Ok(answer) = requests.recv() {
            let rows = runtime.block_on(stage.step());
            let over = stage.is_over();
            let _ = answer.send(Stepped { rows, over });
        }
    })?;
    is_ready.recv().map_err(|_| PlayError::Gone)??;
    Ok(steps)
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
            Self::Gone => f.write_str("the thread that plays has ended; reset, and report this"),
        }
    }
}

// The messages have the errors within already: they are not sources as well.
impl std::error::Error for PlayError {}
