//! From a seed to a plan.

use crate::dice::Dice;
use crate::plan::{
    Act, CandidatePlan, Cut, Deed, End, Fault, FaultKind, LettingGo, Plan, Refusal, ServerKind,
    Stand, Step,
};

/// What the parts of one plan share, so that they meet: leases of like length, at like times.
struct Scale {
    lease: u64,
    names: u64,
    slots: u32,
    /// Whether the candidates disagree about the slots.
    mixed: bool,
    command_timeout: u64,
}

impl Plan {
    /// The plan of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let dice = &mut dice;
        let latency = dice.pick(&[0, 0, 1, 2, 5]);
        let scale = Scale {
            lease: dice.pick(&[10, 15, 30, 60, 150, 400, 1000]),
            names: dice.pick(&[1, 1, 1, 1, 2]),
            slots: dice.pick(&[1, 1, 1, 1, 2, 3]),
            mixed: dice.chance(10),
            command_timeout: dice.pick(&[20, 50, 100, 500]).max(latency * 8 + 20),
        };
        let server = if dice.chance(20) {
            ServerKind::Local
        } else {
            ServerKind::Model
        };
        let candidates: Vec<_> = (0..dice.between(1, 4))
            .map(|_| candidate(dice, &scale))
            .collect();
        let faults = if dice.chance(15) {
            Vec::new()
        } else {
            faults(dice, &scale, server, candidates.len())
        };
        Self {
            seed,
            server,
            command_timeout: scale.command_timeout,
            latency,
            candidates,
            faults,
        }
    }
}

fn candidate(dice: &mut Dice, scale: &Scale) -> CandidatePlan {
    let tasks = dice.pick(&[1, 1, 1, 2, 2, 4]);
    CandidatePlan {
        rate_ppm: match dice.between(0, 3) {
            0 => 0,
            1 => -9900,
            2 => 9900,
            _ => i64::try_from(dice.between(0, 19_800)).unwrap_or_default() - 9900,
        },
        releases_now: dice.chance(25),
        claims_now: dice.chance(15),
        tasks: (0..tasks)
            .map(|_| (0..dice.between(1, 4)).map(|_| step(dice, scale)).collect())
            .collect(),
    }
}

fn step(dice: &mut Dice, scale: &Scale) -> Step {
    let lease = scale.lease;
    let pause = dice.pick(&[0, 0, 1, lease / 3, lease, 2 * lease]);
    let deed = match dice.between(0, 99) {
        0..2 => Deed::Shutdown,
        2..70 => Deed::Run {
            stand: stand(dice, scale),
            body: acts(dice, scale, true),
            end: dice.pick(&[
                End::Return,
                End::Return,
                End::Return,
                End::Fail,
                End::Panic,
                End::Never,
            ]),
            cut: cut(dice, scale),
        },
        _ => Deed::Hold {
            stand: stand(dice, scale),
            acts: acts(dice, scale, false),
            letting_go: match dice.between(0, 3) {
                0 => LettingGo::Drop,
                1 => LettingGo::ReleaseCutShort(dice.between(1, 3)),
                _ => LettingGo::Release,
            },
            cut: cut(dice, scale),
        },
    };
    // A body that never ends needs something that ends it.
    let deed = match deed {
        Deed::Run {
            stand,
            body,
            end: End::Never,
            cut: None,
        } if stand.auto_extend || stand.notify => {
            let cut = Some(Cut::DropAfter(dice.between(1, 6 * lease)));
            Deed::Run {
                stand,
                body,
                end: End::Never,
                cut,
            }
        }
        deed => deed,
    };
    Step { pause, deed }
}

fn stand(dice: &mut Dice, scale: &Scale) -> Stand {
    let lease = dice.pick(&[
        scale.lease,
        scale.lease,
        scale.lease,
        2 * scale.lease,
        (scale.lease / 2).max(10),
    ]);
    Stand {
        name: usize::try_from(dice.between(0, scale.names - 1)).unwrap_or_default(),
        wait: dice.pick(&[0, 0, lease / 3, lease, 3 * lease, 10 * lease, 10 * lease]),
        lease,
        min_lease: dice.pick(&[0, 0, 0, lease / 3, lease]),
        auto_extend: dice.chance(50),
        notify: dice.chance(15),
        slots: if scale.mixed {
            dice.pick(&[1, 2, 3])
        } else {
            scale.slots
        },
        max_tenure: dice
            .chance(12)
            .then(|| dice.pick(&[lease, 2 * lease, 3 * lease])),
    }
}

fn acts(dice: &mut Dice, scale: &Scale, guarded: bool) -> Vec<Act> {
    let lease = scale.lease;
    (0..dice.pick(&[0, 1, 1, 1, 2, 2, 3, 4]))
        .map(|_| match dice.between(0, 9) {
            0 => Act::Extend(dice.pick(&[10, lease, 2 * lease, 5 * lease])),
            1 => Act::ExtendCutShort(
                dice.pick(&[10, lease, 2 * lease, 5 * lease]),
                dice.between(0, scale.command_timeout),
            ),
            2 => Act::Watch(dice.pick(&[lease / 2, 2 * lease])),
            3 | 4 => Act::Write,
            5 if guarded => Act::Nested(dice.pick(&[0, lease / 2])),
            _ => Act::Work(dice.pick(&[0, 1, lease / 4, lease / 2, lease, 3 * lease])),
        })
        .collect()
}

fn cut(dice: &mut Dice, scale: &Scale) -> Option<Cut> {
    dice.chance(35).then(|| match dice.between(0, 2) {
        0 => Cut::DropAfter(dice.between(0, 3 * scale.lease)),
        1 => Cut::DropAtPoll(dice.between(1, 6)),
        _ => Cut::AbortAfter(dice.between(0, 3 * scale.lease)),
    })
}

fn faults(dice: &mut Dice, scale: &Scale, server: ServerKind, candidates: usize) -> Vec<Fault> {
    let candidates = candidates as u64;
    let horizon = 12 * scale.lease;
    let mut faults = Vec::new();
    let mut stepped_back = false;
    let mut lost_memory = false;
    for _ in 0..dice.between(1, 5) {
        let at = dice.between(0, horizon);
        let length = dice
            .pick(&[
                1,
                scale.lease / 2,
                scale.lease,
                2 * scale.lease,
                6 * scale.lease,
            ])
            .max(1);
        let percent = dice.pick(&[10, 30, 60, 100]);
        let slow = dice.pick(&[
            3,
            scale.lease,
            scale.command_timeout / 2,
            2 * scale.command_timeout,
        ]);
        let mut until = at + length;
        let kind = match dice.between(0, 16) {
            0 | 1 => FaultKind::Slow(slow),
            2 => FaultKind::LoseRequests(percent),
            3 | 4 => FaultKind::LoseReplies(percent),
            5 => FaultKind::CutReplies(percent),
            6 => FaultKind::Duplicate(percent, slow),
            7 => FaultKind::Refuse(
                percent,
                dice.pick(&[
                    Refusal::ReadOnly,
                    Refusal::NotReady,
                    Refusal::Unreachable,
                    Refusal::OutOfMemory,
                    Refusal::Other,
                ]),
            ),
            8 => FaultKind::LoseHints(percent),
            9 => FaultKind::Stop,
            10 => FaultKind::Hang,
            11 if !stepped_back => {
                lost_memory = true;
                until = at;
                FaultKind::Forget
            }
            12 if !stepped_back && server == ServerKind::Model => {
                lost_memory = true;
                FaultKind::Failover(dice.pick(&[0, 1, scale.lease / 3, 2 * scale.lease]).min(at))
            }
            13 => {
                until = at;
                FaultKind::Evict(
                    usize::try_from(dice.between(0, scale.names - 1)).unwrap_or_default(),
                )
            }
            14 if !lost_memory && server == ServerKind::Model => {
                stepped_back = true;
                until = at;
                FaultKind::ClockBack(dice.pick(&[1, 1000, 3_600_000]))
            }
            _ => FaultKind::Freeze(
                usize::try_from(dice.between(0, candidates - 1)).unwrap_or_default(),
            ),
        };
        faults.push(Fault { at, until, kind });
    }
    faults
}
