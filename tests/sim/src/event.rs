//! An [`Event`]: one thing that happened. The trace is made of them, the counts, and everything that the invariants
//! see.

use std::fmt;
use std::time::Duration;

use leader_core::LossReason;
use tokio::time::Instant;

use crate::server::Slot;

/// A run of a body or a hold by hand: one attempt, to its very end.
pub(crate) type RunNo = usize;
/// A token, in the order in which the network saw them.
pub(crate) type TokenNo = usize;

/// One step of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Claim {
        token: TokenNo,
        slots: u32,
        lease: Duration,
    },
    Extend {
        token: TokenNo,
        lease: Duration,
    },
    Release {
        token: TokenNo,
        keep: Duration,
        marks: bool,
    },
    Watch,
    Inspect,
    Evict,
}

/// What the store said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Granted { slot: u32, fence: u64 },
    Taken,
    Ended,
    Extended,
    Released,
    NotHeld(LossReason),
    Done,
}

/// How a body's future came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Returned,
    Panicked,
    Dropped,
}

/// How a run ended, as its caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Elected,
    ActionFailed,
    Skipped,
    Panicked,
    Lost(LossReason),
    Backend(leader_core::Step, leader_core::BackendKind),
    ShutDown,
    /// A hold by hand that was given back while valid.
    LetGo,
    /// Ended from outside.
    Cut,
    /// What no call may answer.
    Odd(String),
}

/// What may happen to a message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    RequestLost,
    ReplyLost,
    ReplyCut,
    Duplicated,
    Refused,
    Down,
    HintLost,
}

/// Something that goes wrong, or is well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Stopped,
    Started,
    Hangs,
    GoesOn,
    Forgot,
    FailedOver,
    Evicted(usize),
    ClockStepped,
    Frozen(usize),
    Thawed(usize),
    /// No more faults from here on, and nothing under way because of one.
    Quiet,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Turn(Turn),
    /// A candidate's task begins to stand.
    Stood {
        run: RunNo,
        node: usize,
        task: usize,
        name: usize,
    },
    /// A candidate sent a request. `run` is the attempt that sent it, where it is one's own task.
    Sent {
        message: u64,
        node: usize,
        name: usize,
        op: Op,
        run: Option<RunNo>,
    },
    /// Something happened to a message.
    Fate {
        message: u64,
        fate: Fate,
    },
    /// The store carried a request out.
    Applied {
        message: u64,
        node: usize,
        name: usize,
        op: Op,
        said: Said,
        before: Vec<Slot>,
        after: Vec<Slot>,
    },
    /// An answer reached the candidate; `None` where the call failed.
    Answered {
        message: u64,
        node: usize,
        name: usize,
        op: Op,
        said: Option<Said>,
    },
    /// The candidate has a lease.
    Granted {
        run: RunNo,
        node: usize,
        name: usize,
        slot: u32,
        fence: u64,
    },
    /// A body is about to be polled.
    Polled {
        run: RunNo,
    },
    /// A body is over. `valid`: by the holder's reckoning at that moment.
    BodyEnded {
        run: RunNo,
        end: BodyEnd,
        valid: bool,
    },
    /// A body of the same name began inside the body of `run`, with this lease.
    Nested {
        run: RunNo,
        fence: u64,
    },
    /// The holder begins to let go by hand.
    LettingGo {
        run: RunNo,
    },
    /// An extension by hand is over.
    ExtendedByHand {
        run: RunNo,
        result: Result<(), Outcome>,
        took: Duration,
        frozen: Duration,
    },
    /// A run is over.
    Over {
        run: RunNo,
        outcome: Outcome,
    },
    /// The elector told of an event of its own.
    Told {
        node: usize,
        event: leader_core::LeaderEvent,
    },
    /// The fenced register was asked. `value` is what it held or holds.
    Register {
        run: RunNo,
        fence: u64,
        what: Register,
    },
    /// A shutdown is over.
    ShutDown {
        node: usize,
        took: Duration,
        frozen: Duration,
    },
    /// Everybody has come to an end, and time for clearing up has passed.
    Finished {
        left: Left,
    },
}

/// What the fenced register did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    Read {
        value: u64,
    },
    Wrote {
        value: u64,
    },
    /// An old request that came again; it changed nothing.
    Repeated,
    Refused {
        seen: u64,
    },
}

/// What is left at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) footprints: Vec<leader_core::testing::Footprint>,
    pub(crate) slots: usize,
    pub(crate) watchers: usize,
    pub(crate) stores: usize,
    pub(crate) tasks: usize,
}

/// When an event happened, for the trace.
pub(crate) struct Line<'a> {
    pub(crate) since: Instant,
    pub(crate) at: Instant,
    pub(crate) event: &'a Event,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = (self.at - self.since).as_micros();
        write!(f, "{:>8}.{:03} ms  ", micros / 1000, micros % 1000)?;
        match self.event {
            Event::Turn(turn) => write!(f, "**** {turn:?}"),
            Event::Stood {
                run,
                node,
                task,
                name,
            } => {
                write!(f, "c{node} task {task} stands for n{name}: run {run}")
            }
            Event::Sent {
                message,
                node,
                name,
                op,
                run,
            } => {
                write!(f, "c{node} -> m{message} n{name} {op:?}")?;
                run.map_or(Ok(()), |run| write!(f, " (run {run})"))
            }
            Event::Fate { message, fate } => write!(f, "      m{message} {fate:?}"),
            Event::Applied {
                message,
                node,
                name,
                op,
                said,
                after,
                ..
            } => {
                write!(
                    f,
                    "store: m{message} of c{node} n{name} {op:?} => {said:?}; now"
                )?;
                for slot in after {
                    let left = slot.ends - self.at;
                    let kept = if slot.in_force { "" } else { " kept" };
                    write!(
                        f,
                        " [{} fence {}{kept} for {left:?}]",
                        slot.number, slot.fence
                    )?;
                }
                Ok(())
            }
            Event::Answered {
                message,
                node,
                said,
                ..
            } => write!(f, "c{node} <- m{message} {said:?}"),
            Event::Granted {
                run,
                node,
                name,
                slot,
                fence,
            } => {
                write!(f, "c{node} run {run} has n{name} slot {slot} fence {fence}")
            }
            Event::Polled { run } => write!(f, "      run {run}: body polled"),
            Event::BodyEnded { run, end, valid } => {
                write!(
                    f,
                    "      run {run}: body {end:?}, lease {}",
                    if *valid { "valid" } else { "not valid" }
                )
            }
            Event::Nested { run, fence } => write!(f, "      run {run}: nested, fence {fence}"),
            Event::LettingGo { run } => write!(f, "      run {run}: lets go"),
            Event::ExtendedByHand {
                run, result, took, ..
            } => {
                write!(
                    f,
                    "      run {run}: extended by hand: {result:?} after {took:?}"
                )
            }
            Event::Over { run, outcome } => write!(f, "      run {run}: over: {outcome:?}"),
            Event::Told { node, event } => write!(f, "c{node} tells {event:?}"),
            Event::Register { run, fence, what } => {
                write!(f, "register: run {run} fence {fence}: {what:?}")
            }
            Event::ShutDown { node, took, .. } => write!(f, "c{node} was shut down in {took:?}"),
            Event::Finished { left } => write!(f, "**** finished: {left:?}"),
        }
    }
}
