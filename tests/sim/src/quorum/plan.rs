//! What will happen in one run on a quorum, as plain data that follows from a seed. Times are milliseconds.

use crate::dice::Dice;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the plan comes from, and what decides each message's fate.
    pub seed: u64,
    /// How many nodes.
    pub nodes: usize,
    /// How many slots the name has.
    pub slots: u32,
    /// A node's time limit.
    pub command_timeout: u64,
    /// How long a message takes on a good day, at most, one way.
    pub latency: u64,
    /// By how many microseconds each node's wall clock is off.
    pub clocks: Vec<u64>,
    /// How much longer, in millionths, each node takes a second to be.
    pub rates: Vec<i64>,
    /// By candidate: its tasks' turns.
    pub candidates: Vec<Vec<Vec<Turn>>>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// One attempt to lead, and what is done then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// How long it waits before.
    pub pause: u64,
    /// `wait`.
    pub wait: u64,
    /// `lease`.
    pub lease: u64,
    /// `min_lease`.
    pub min_lease: u64,
    /// `auto_extend`.
    pub auto_extend: bool,
    /// How long it works.
    pub work: u64,
    /// After how long its future is dropped.
    pub cut: Option<u64>,
}

/// Something goes wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From when.
    pub at: u64,
    /// Until when.
    pub until: u64,
    /// With which node, or candidate.
    pub whose: usize,
    /// What.
    pub kind: Kind,
}

/// What can go wrong. Percentages are of the messages sent meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Messages take up to so much longer.
    Slow(u64),
    /// Requests are lost.
    LoseRequests(u64),
    /// Replies are lost.
    LoseReplies(u64),
    /// Requests arrive twice, the second up to so much later.
    Duplicate(u64, u64),
    /// The node refuses.
    Refuse(u64),
    /// Released-hints are lost.
    LoseHints,
    /// The node is down; what it knew is kept.
    Stop,
    /// The node does not move; what arrives meanwhile is done afterwards.
    Hang,
    /// The node loses its memory in an instant.
    Forget,
    /// An operator deletes the name on one node.
    Delete,
    /// The node's wall clock is set, by so many microseconds.
    Jump(i64),
    /// The candidate's process is frozen.
    Freeze,
}

impl Plan {
    /// The plan of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::of(seed, 7, 0);
        let dice = &mut dice;
        let nodes = dice.pick(&[3, 5, 5, 5, 4]);
        let lease = dice.pick(&[30, 60, 150, 400, 1000]);
        // The shortest lease outlasts two rounds, and a claim that is put again.
        let latency = dice.pick(&[0, 0, 1, 2, 5]).min(lease / 60);
        let command_timeout = dice.pick(&[20, 50, 100, 500]).max(latency * 8 + 20);
        let candidates = (0..dice.between(1, 4))
            .map(|_| {
                let tasks = dice.pick(&[1, 1, 1, 2]);
                (0..tasks)
                    .map(|_| (0..dice.between(1, 4)).map(|_| turn(dice, lease)).collect())
                    .collect()
            })
            .collect::<Vec<Vec<Vec<Turn>>>>();
        let mut faults = if dice.chance(20) {
            Vec::new()
        } else {
            let count = dice.between(1, 8);
            (0..count)
                .map(|_| fault(dice, nodes, candidates.len(), lease, command_timeout))
                .collect()
        };
        // A number that a node forgets is made up for by the time, where clocks agree.
        let forgets = faults
            .iter()
            .any(|fault: &Fault| fault.kind == Kind::Forget);
        let off = if forgets {
            faults.retain(|fault| !matches!(fault.kind, Kind::Jump(_)));
            &[0][..]
        } else {
            &[0, 0, 5_000, 800_000, 3_600_000_000]
        };
        Self {
            seed,
            nodes,
            slots: if forgets {
                1
            } else {
                dice.pick(&[1, 1, 1, 2, 3])
            },
            command_timeout,
            latency,
            clocks: (0..nodes).map(|_| dice.pick(off)).collect(),
            rates: (0..nodes)
                .map(|_| i64::try_from(dice.between(0, 19_800)).unwrap_or_default() - 9900)
                .collect(),
            candidates,
            faults,
        }
    }

    /// When the last fault is over, and what was under way because of it.
    #[must_use]
    pub fn quiet_at(&self) -> u64 {
        let over = self.faults.iter().map(|fault| match fault.kind {
            Kind::Slow(by) | Kind::Duplicate(_, by) => fault.until + 3 * by,
            _ => fault.until,
        });
        over.max().unwrap_or_default()
    }

    /// The longest lease.
    #[must_use]
    pub fn longest_lease(&self) -> u64 {
        let turns = self.candidates.iter().flatten().flatten();
        turns.map(|turn| turn.lease).max().unwrap_or(60)
    }
}

fn turn(dice: &mut Dice, lease: u64) -> Turn {
    let lease = dice.pick(&[lease, lease, 2 * lease, (lease / 2).max(10)]);
    Turn {
        pause: dice.pick(&[0, 0, 1, lease / 3, lease]),
        wait: dice.pick(&[0, lease / 3, lease, 3 * lease, 10 * lease, 10 * lease]),
        lease,
        min_lease: dice.pick(&[0, 0, 0, 0, lease / 3]),
        auto_extend: dice.chance(60),
        work: dice.pick(&[0, 0, 1, lease / 4, lease, 3 * lease, 6 * lease]),
        cut: dice.chance(25).then(|| dice.between(0, 4 * lease)),
    }
}

fn fault(
    dice: &mut Dice,
    nodes: usize,
    candidates: usize,
    lease: u64,
    command_timeout: u64,
) -> Fault {
    let at = dice.between(0, 12 * lease);
    let length = dice
        .pick(&[1, lease / 2, lease, 2 * lease, 6 * lease])
        .max(1);
    let percent = dice.pick(&[10, 30, 60, 100]);
    let slow = dice.pick(&[3, lease, command_timeout / 2, 2 * command_timeout]);
    let by = dice.pick(&[-3_600_000_000, -20_000, 20_000, 1_500_000, 3_600_000_000]);
    let kind = match dice.between(0, 16) {
        0 | 1 => Kind::Slow(slow),
        2 => Kind::LoseRequests(percent),
        3 | 4 => Kind::LoseReplies(percent),
        5 => Kind::Duplicate(percent, slow),
        6 => Kind::Refuse(percent),
        7 => Kind::LoseHints,
        8 | 9 => Kind::Stop,
        10 | 11 => Kind::Hang,
        12 => Kind::Forget,
        13 => Kind::Delete,
        14 | 15 => Kind::Jump(by),
        _ => Kind::Freeze,
    };
    let many = if kind == Kind::Freeze {
        candidates
    } else {
        nodes
    };
    Fault {
        at,
        until: match kind {
            Kind::Forget | Kind::Delete | Kind::Jump(_) => at,
            _ => at + length,
        },
        whose: usize::try_from(dice.between(0, many as u64 - 1)).unwrap_or_default(),
        kind,
    }
}
