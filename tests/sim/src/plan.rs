//! A [`Plan`]: everything that will happen in one run, as plain data. Times are milliseconds.

use std::fmt;

/// One run: who stands for what, when, and what goes wrong meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the plan comes from, and what decides each message's fate.
    pub seed: u64,
    /// What stands behind the network.
    pub server: ServerKind,
    /// The store's command timeout.
    pub command_timeout: u64,
    /// How long a message takes on a good day, at most, one way.
    pub latency: u64,
    /// The candidates.
    pub candidates: Vec<CandidatePlan>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// What stands behind the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// The simulation's own store.
    Model,
    /// `leader_core::LocalStore`.
    Local,
}

/// One candidate: a process with an elector and some tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidatePlan {
    /// How much longer, in millionths, the store's clock takes a second of this candidate to be.
    pub rate_ppm: i64,
    /// Whether its store can release without waiting.
    pub releases_now: bool,
    /// Whether its store can claim without waiting.
    pub claims_now: bool,
    /// Its tasks, which all run at the same time.
    pub tasks: Vec<Vec<Step>>,
}

/// One thing that a task does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long it waits before.
    pub pause: u64,
    /// What it does.
    pub deed: Deed,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Runs a guarded body.
    Run {
        /// What it stands for.
        stand: Stand,
        /// The body.
        body: Vec<Act>,
        /// How the body ends.
        end: End,
        /// How the run is ended from outside.
        cut: Option<Cut>,
    },
    /// Holds a lease by hand.
    Hold {
        /// What it stands for.
        stand: Stand,
        /// What it does while it holds.
        acts: Vec<Act>,
        /// How it lets go.
        letting_go: LettingGo,
        /// How it is ended from outside.
        cut: Option<Cut>,
    },
    /// Shuts its elector down.
    Shutdown,
}

/// Standing for election: the name's number, and the options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// Which name.
    pub name: usize,
    /// `wait`.
    pub wait: u64,
    /// `lease`.
    pub lease: u64,
    /// `min_lease`.
    pub min_lease: u64,
    /// `auto_extend`.
    pub auto_extend: bool,
    /// Whether `on_lost` is `Notify`.
    pub notify: bool,
    /// `slots`.
    pub slots: u32,
    /// `max_tenure`.
    pub max_tenure: Option<u64>,
}

/// What is done inside a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Takes its time.
    Work(u64),
    /// Extends by hand.
    Extend(u64),
    /// Extends by hand, and gives it up after a while.
    ExtendCutShort(u64, u64),
    /// Asks for the cancellation token, and waits for it this long at most.
    Watch(u64),
    /// Counts the fenced register up.
    Write,
    /// A run of the same name inside this one.
    Nested(u64),
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It returns.
    Return,
    /// It fails with an error of its own.
    Fail,
    /// It panics.
    Panic,
    /// It does not.
    Never,
}

/// How a holder by hand lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LettingGo {
    /// It releases and waits.
    Release,
    /// It drops the lease.
    Drop,
    /// It begins to release, and drops that after so many polls.
    ReleaseCutShort(u64),
}

/// How something is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its future is dropped after this long.
    DropAfter(u64),
    /// Its future is dropped after so many polls.
    DropAtPoll(u64),
    /// Its task is aborted after this long.
    AbortAfter(u64),
}

/// Something goes wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From when.
    pub at: u64,
    /// Until when.
    pub until: u64,
    /// What.
    pub kind: FaultKind,
}

/// What can go wrong. Percentages are of the messages sent meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Messages take up to so much longer, each way, each by itself: they overtake each other.
    Slow(u64),
    /// Requests are lost.
    LoseRequests(u64),
    /// Replies are lost: the client hears nothing.
    LoseReplies(u64),
    /// The connection is cut after the request ran: the client hears that at once.
    CutReplies(u64),
    /// Requests arrive twice, the second up to so much later.
    Duplicate(u64, u64),
    /// The server refuses, in the way of the number.
    Refuse(u64, Refusal),
    /// Released-hints are lost.
    LoseHints(u64),
    /// The server is down; what was under way is lost, what it knew is kept.
    Stop,
    /// The server does not move; what arrives meanwhile is done afterwards.
    Hang,
    /// The server forgets everything.
    Forget,
    /// The server is down, and then a replica takes over that is this much behind.
    Failover(u64),
    /// An operator frees a name.
    Evict(usize),
    /// The server's clock steps back by this much.
    ClockBack(u64),
    /// A candidate's process is frozen.
    Freeze(usize),
}

/// How a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It may not write.
    ReadOnly,
    /// It is not ready.
    NotReady,
    /// No connection; nothing was sent.
    Unreachable,
    /// It has no memory left.
    OutOfMemory,
    /// It fails in another way, and may have done it.
    Other,
}

impl Plan {
    /// Whether nothing goes wrong at all.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// How many names there are.
    #[must_use]
    pub fn names(&self) -> usize {
        self.stands().map(|stand| stand.name + 1).max().unwrap_or(1)
    }

    /// Every stand of the plan.
    pub fn stands(&self) -> impl Iterator<Item = &Stand> {
        self.candidates
            .iter()
            .flat_map(|candidate| candidate.tasks.iter().flatten())
            .filter_map(|step| match &step.deed {
                Deed::Run { stand, .. } | Deed::Hold { stand, .. } => Some(stand),
                Deed::Shutdown => None,
            })
    }

    /// When the last fault is over, and what was under way because of it.
    #[must_use]
    pub fn quiet_at(&self) -> u64 {
        let over = |fault: &Fault| match fault.kind {
            FaultKind::Slow(by) | FaultKind::Duplicate(_, by) => fault.until + 3 * by,
            _ => fault.until,
        };
        self.faults
            .iter()
            .map(|fault| over(fault) + 20 + 2 * self.latency)
            .max()
            .unwrap_or(0)
    }

    /// The lease of those who stand once the faults are over: well above a few round trips.
    #[must_use]
    pub fn last_lease(&self) -> u64 {
        let leases = self.stands().map(|stand| stand.lease);
        leases.chain([20 + 12 * self.latency]).max().unwrap_or(0)
    }

    /// The longest time for which a lease can be left in the store, by the candidates' clocks.
    #[must_use]
    pub fn longest_lease(&self) -> u64 {
        let leases = self.stands().map(|stand| stand.lease);
        let acts = self
            .candidates
            .iter()
            .flat_map(|candidate| candidate.tasks.iter().flatten())
            .filter_map(|step| match &step.deed {
                Deed::Run { body: acts, .. } | Deed::Hold { acts, .. } => Some(acts),
                Deed::Shutdown => None,
            })
            .flatten()
            .filter_map(|act| match act {
                Act::Extend(by) | Act::ExtendCutShort(by, _) => Some(*by),
                _ => None,
            });
        leases
            .chain(acts)
            .chain([self.last_lease()])
            .max()
            .unwrap_or(0)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {} on {:?}, command timeout {} ms, latency up to {} ms",
            self.seed, self.server, self.command_timeout, self.latency
        )?;
        for (index, candidate) in self.candidates.iter().enumerate() {
            writeln!(
                f,
                "  candidate {index}: clock {:+} ppm{}{}",
                candidate.rate_ppm,
                if candidate.claims_now {
                    ", claims without waiting"
                } else {
                    ""
                },
                if candidate.releases_now {
                    ", releases without waiting"
                } else {
                    ""
                }
            )?;
            for (task, steps) in candidate.tasks.iter().enumerate() {
                for step in steps {
                    writeln!(
                        f,
                        "    task {task}: after {} ms {:?}",
                        step.pause, step.deed
                    )?;
                }
            }
        }
        for fault in &self.faults {
            writeln!(f, "  {}..{} ms: {:?}", fault.at, fault.until, fault.kind)?;
        }
        Ok(())
    }
}
