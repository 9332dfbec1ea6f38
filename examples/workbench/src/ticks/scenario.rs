//! [`Scenario`]: the named plans, with a sentence each.

use super::plan::{Candidate, OnLost, Pause, Plan, Stand};
use super::words::Language;

/// A plan with a name, and a sentence that says what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    name: &'static str,
    sentence: [&'static str; 2],
    plan: fn() -> Plan,
}

impl Scenario {
    /// All of them, in the order in which they explain each other.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "contention",
            sentence: [
                "Who stands while another leads waits, is skipped when the wait is over, and that is no error.",
                "다른 후보가 이끄는 동안 나선 후보는 기다리다가, 대기 시간이 끝나면 건너뛴다. 이것은 오류가 아니다.",
            ],
            plan: Plan::default,
        },
        Self {
            name: "expiry",
            sentence: [
                "A work that outlives its lease and does not stop: others are elected, and its late release takes nothing from them.",
                "작업이 리스보다 오래 걸리고 멈추지도 않는다: 다른 후보가 선출되고, 늦은 반납은 그 후보의 것을 빼앗지 못한다.",
            ],
            plan: expiry,
        },
        Self {
            name: "extension",
            sentence: [
                "The same work with automatic extension: it leads to its end, and the others are skipped.",
                "같은 작업에 자동 연장을 켠다: 끝까지 이끌고, 다른 후보들은 건너뛴다.",
            ],
            plan: extension,
        },
        Self {
            name: "slots",
            sentence: [
                "Two slots, five candidates: two lead at once, the others wait for the first slot that is given back.",
                "슬롯 두 개, 후보 다섯: 둘이 동시에 이끌고, 나머지는 먼저 반납되는 슬롯을 기다린다.",
            ],
            plan: slots,
        },
        Self {
            name: "pause",
            sentence: [
                "A leader stands still, another is elected, and when the first goes on its write bounces off the fencing token.",
                "리더가 멈춘 사이 다른 후보가 선출되고, 다시 움직인 옛 리더의 쓰기는 펜싱 토큰에 막힌다.",
            ],
            plan: pause,
        },
        Self {
            name: "min-lease",
            sentence: [
                "A short work whose slot is kept for the minimum lease, so that clocks which disagree do not run it twice.",
                "짧은 작업이 끝나도 최소 리스 동안 슬롯을 남겨 두어, 시계가 어긋난 후보가 같은 작업을 두 번 하지 않는다.",
            ],
            plan: min_lease,
        },
    ];

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|scenario| scenario.name == name)
            .copied()
    }

    /// Its name, as a command line has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it shows.
    #[must_use]
    pub fn sentence(&self, language: Language) -> &'static str {
        language.of(self.sentence)
    }

    /// Its plan.
    #[must_use]
    pub fn plan(&self) -> Plan {
        (self.plan)()
    }
}

fn expiry() -> Plan {
    Plan {
        lease: 6,
        work: 12,
        on_lost: OnLost::Continue,
        stands: Plan::one_each([0, 6, 10]),
        ..Plan::default()
    }
}

fn extension() -> Plan {
    Plan {
        lease: 6,
        work: 12,
        auto_extend: true,
        stands: Plan::one_each([0, 1, 7]),
        ..Plan::default()
    }
}

fn slots() -> Plan {
    Plan {
        lease: 10,
        work: 6,
        wait: 3,
        slots: 2,
        stands: Plan::one_each([0, 1, 2, 4, 8]),
        ..Plan::default()
    }
}

/// `a` extends its lease, which does not help while it stands still.
fn pause() -> Plan {
    let a = Candidate::A;
    Plan {
        lease: 6,
        work: 8,
        wait: 10,
        auto_extend: true,
        on_lost: OnLost::Continue,
        writes: true,
        stands: Plan::one_each([0, 1]),
        pauses: vec![Pause {
            candidate: a,
            from: 3,
            until: 12,
        }],
        ..Plan::default()
    }
}

/// The clocks of three machines, up to three ticks apart, and the next time of the same job.
fn min_lease() -> Plan {
    let again = Stand {
        candidate: Candidate::A,
        tick: 10,
    };
    let mut stands = Plan::one_each([0, 1, 3]);
    stands.push(again);
    Plan {
        lease: 10,
        work: 1,
        wait: 0,
        min_lease: 4,
        stands,
        ..Plan::default()
    }
}
