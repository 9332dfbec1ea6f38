//! Forged logs: for each rule one that keeps it and one that breaks it, read from files as the real ones are.

use std::collections::BTreeMap;
use std::io::Write as _;

use super::{Verdict, check};
use crate::fault::Kind;
use crate::job::{Job, Manner};
use crate::record::{Forgot, Log, Record, director_log, worker_log};
use crate::topology::Topology;

const SECOND: u64 = 1_000_000;
/// Where the forged part of a run begins, after all that a good run has.
const LATER: u64 = 100 * SECOND;

/// The logs of two workers and a director, in which all is well, and what is added to them.
struct Forgery {
    topology: Topology,
    logs: BTreeMap<(usize, u32), Vec<Record>>,
    director: Vec<Record>,
    over: u64,
}

fn jobs() -> Vec<Job> {
    let job = |name: &str, slots| Job {
        name: name.to_owned(),
        slots,
        lease_ms: 1000,
        manner: Manner::Run,
    };
    vec![job("x", 1), job("pool", 2)]
}

fn begin(name: &str, slot: u32, fence: u64, at: u64) -> Record {
    Record::Begin {
        at,
        until: at + SECOND,
        asked: None,
        name: name.to_owned(),
        slot,
        fence,
        guarded: true,
    }
}

fn asked_at(time: u64, begin: Record) -> Record {
    match begin {
        Record::Begin {
            at,
            until,
            name,
            slot,
            fence,
            guarded,
            ..
        } => Record::Begin {
            at,
            until,
            asked: Some(time),
            name,
            slot,
            fence,
            guarded,
        },
        other => other,
    }
}

fn act(name: &str, fence: u64, at: u64, until: Option<u64>) -> Record {
    let name = name.to_owned();
    Record::Act {
        at,
        until,
        name,
        fence,
    }
}

fn end(name: &str, fence: u64, at: u64) -> Record {
    let name = name.to_owned();
    Record::End { at, name, fence }
}

fn dropped(name: &str, fence: u64, at: u64, why: &str) -> Record {
    let (name, why) = (name.to_owned(), why.to_owned());
    Record::Dropped {
        at,
        name,
        fence,
        why,
    }
}

fn fault(kind: Kind, from: u64, to: u64, forgets: &[&str]) -> Record {
    Record::Fault {
        kind,
        target: 0,
        from,
        to,
        forgot: (!forgets.is_empty()).then(|| Forgot {
            names: forgets.iter().map(ToString::to_string).collect(),
            by: to,
        }),
    }
}

fn sent(write: u64, key: &str, fence: u64, at: u64) -> Record {
    let key = key.to_owned();
    Record::Sent {
        at,
        write,
        key,
        fence,
    }
}

fn answered(write: u64, at: u64, seen: Option<u64>) -> Record {
    Record::Answered { at, write, seen }
}

impl Forgery {
    fn on(topology: Topology) -> Self {
        let mut forgery = Self {
            topology,
            logs: BTreeMap::new(),
            director: Vec::new(),
            over: LATER + 60 * SECOND,
        };
        // Each kind of fault once, before anybody led; then each worker leads each name once, one after the other.
        for (kind, at) in Kind::of(topology).into_iter().zip(1..) {
            forgery.director.push(fault(kind, at, at + 1, &[]));
        }
        for (worker, at, first) in [(0, SECOND, 1), (1, 2 * SECOND, 3)] {
            for name in ["x", "pool"] {
                let fence = first + u64::from(name == "pool");
                forgery.add(worker, begin(name, 0, fence, at));
                forgery.add(worker, end(name, fence, at + SECOND / 2));
            }
        }
        for (write, fence, at, seen) in [(0, 2, 10, None), (1, 1, 20, Some(2))] {
            forgery.add(0, sent(write, "value", fence, at));
            forgery.add(0, answered(write, at + 5, seen));
        }
        forgery.director.push(Record::Value {
            key: "value".to_owned(),
            fence: 2,
        });
        // Somebody leads all the time that is forged.
        for name in ["x", "pool"] {
            let slot = u32::from(name == "pool");
            forgery.add(1, begin(name, slot, 5, 3 * SECOND));
            forgery.add(1, act(name, 5, LATER - 1, Some(LATER)));
            forgery.add(1, end(name, 5, LATER));
        }
        forgery
    }

    fn single() -> Self {
        Self::on(Topology::Single)
    }

    fn add(&mut self, worker: usize, record: Record) -> &mut Self {
        self.logs.entry((worker, 0)).or_default().push(record);
        self
    }

    fn tell(&mut self, record: Record) -> &mut Self {
        self.director.push(record);
        self
    }

    fn judged(&self) -> Verdict {
        let dir = tempfile::tempdir().expect("a folder");
        let log = Log::create(&director_log(dir.path())).expect("a log");
        log.write(&Record::Run {
            topology: self.topology,
            seed: 1,
            workers: 2,
            jobs: jobs(),
        });
        self.director.iter().for_each(|record| log.write(record));
        log.write(&Record::Over { at: self.over });
        for ((worker, life), records) in &self.logs {
            let path = worker_log(dir.path(), *worker, *life);
            let log = Log::create(&path).expect("a log");
            log.write(&Record::Life {
                worker: *worker,
                life: *life,
                at: 0,
            });
            records.iter().for_each(|record| log.write(record));
            // As of a process that was killed while it wrote.
            let mut file = std::fs::OpenOptions::new()
                .append(true)
                .open(path)
                .expect("it is there");
            file.write_all(br#"{"is":"act","at":12"#)
                .expect("it is written");
        }
        check(dir.path()).expect("the logs are whole")
    }

    /// The rules that are broken, each once.
    fn broken(&self) -> Vec<&'static str> {
        let mut rules: Vec<_> = self
            .judged()
            .violations
            .iter()
            .map(|one| one.rule)
            .collect();
        rules.dedup();
        rules
    }
}

#[test]
fn a_good_run_breaks_no_rule() {
    for topology in Topology::ALL {
        let verdict = Forgery::on(topology).judged();
        assert_eq!(verdict.violations, []);
        assert_eq!(verdict.story.tenures.len(), 6);
    }
}

#[test]
fn exclusion_one_begins_while_another_is_at_work() {
    let mut forged = Forgery::single();
    forged
        .add(0, begin("x", 0, 10, LATER))
        .add(0, act("x", 10, LATER + 500, Some(LATER + SECOND)));
    forged.add(0, end("x", 10, LATER + 900));
    let mut good = Forgery {
        logs: forged.logs.clone(),
        ..forged
    };
    good.add(1, begin("x", 0, 11, LATER + 900))
        .add(1, end("x", 11, LATER + 1000));
    assert_eq!(good.broken(), [""; 0]);
    let mut bad = good;
    bad.add(0, begin("x", 0, 12, LATER + 999))
        .add(0, end("x", 12, LATER + 2000));
    assert_eq!(bad.broken(), ["exclusion"]);
    let lines = bad.judged().violations.remove(0).lines;
    assert!(
        lines[0].contains("worker-1") && lines[1].contains("worker-0"),
        "{lines:?}"
    );
}

#[test]
fn exclusion_each_slot_is_judged_by_itself_and_there_is_none_beyond() {
    let mut forged = Forgery::single();
    forged
        .add(0, begin("pool", 0, 10, LATER))
        .add(0, end("pool", 10, LATER + 900));
    forged
        .add(1, begin("pool", 1, 11, LATER + 100))
        .add(1, end("pool", 11, LATER + 800));
    assert_eq!(forged.broken(), [""; 0]);
    forged
        .add(0, begin("pool", 2, 12, LATER + 200))
        .add(0, end("pool", 12, LATER + 300));
    assert_eq!(forged.broken(), ["exclusion"]);
}

#[test]
fn exclusion_a_process_that_is_silent_believes_until_its_deadline_or_its_death() {
    // Stopped, and still so at the end of the run.
    let mut silent = Forgery::single();
    silent.add(0, begin("x", 0, 10, LATER));
    let with_successor = |forged: &Forgery, at| {
        let mut forged = Forgery {
            logs: forged.logs.clone(),
            director: forged.director.clone(),
            ..*forged
        };
        forged
            .add(1, begin("x", 0, 11, at))
            .add(1, end("x", 11, at + 100));
        forged.broken()
    };
    assert_eq!(with_successor(&silent, LATER + SECOND), [""; 0]);
    assert_eq!(with_successor(&silent, LATER + SECOND - 1), ["exclusion"]);
    // Its deadline went on with an extension that an act has seen.
    silent.add(0, act("x", 10, LATER + 300, Some(LATER + SECOND + 300)));
    assert_eq!(with_successor(&silent, LATER + SECOND), ["exclusion"]);
    // Dead, it believes nothing.
    silent.tell(Record::Gone {
        worker: 0,
        life: 0,
        at: LATER + 400,
    });
    assert_eq!(with_successor(&silent, LATER + 400), [""; 0]);
    assert_eq!(with_successor(&silent, LATER + 399), ["exclusion"]);
}

#[test]
fn exclusion_a_dropped_body_believed_as_its_reason_says() {
    let lost = |why, successor| {
        let mut forged = Forgery::single();
        forged
            .add(0, begin("x", 0, 10, LATER))
            .add(0, act("x", 10, LATER + 300, Some(LATER + SECOND)));
        forged.add(0, dropped("x", 10, LATER + 2 * SECOND, why));
        forged
            .add(1, begin("x", 0, 11, successor))
            .add(1, end("x", 11, successor + 100));
        forged.broken()
    };
    assert_eq!(lost("expired", LATER + SECOND), [""; 0]);
    assert_eq!(lost("expired", LATER + SECOND - 1), ["exclusion"]);
    // The store said so, some time after the last act.
    assert_eq!(lost("taken", LATER + 300), [""; 0]);
    assert_eq!(lost("taken", LATER + 299), ["exclusion"]);
}

#[test]
fn exclusion_a_failover_that_forgets_is_an_excuse_for_its_names_and_for_one_lease() {
    let overlap = |forgets: &[&str], first_begins: u64, second_begins: u64, first_ends: u64| {
        let mut forged = Forgery::on(Topology::Cluster);
        forged.tell(fault(Kind::Failover, LATER + 1000, LATER + 2000, forgets));
        forged
            .add(1, begin("pool", 1, 10, LATER))
            .add(1, end("pool", 10, LATER + 60 * SECOND));
        forged
            .add(0, begin("x", 0, 10, first_begins))
            .add(0, end("x", 10, first_ends));
        forged
            .add(1, begin("x", 0, 11, second_begins))
            .add(1, end("x", 11, first_ends + SECOND));
        let (verdict, broken) = (forged.judged(), forged.broken());
        (verdict.explained.len(), broken)
    };
    let (before, after, soon) = (LATER + 500, LATER + 2500, LATER + 300_000);
    assert_eq!(overlap(&["x"], before, after, soon), (1, vec![]));
    assert_eq!(
        overlap(&["pool"], before, after, soon),
        (0, vec!["exclusion"])
    );
    assert_eq!(overlap(&[], before, after, soon), (0, vec!["exclusion"]));
    // Both before it, or both after it.
    assert_eq!(
        overlap(&["x"], before, LATER + 900, soon),
        (0, vec!["exclusion"])
    );
    assert_eq!(
        overlap(&["x"], LATER + 2100, after, soon),
        (0, vec!["exclusion"])
    );
    // Not told for too long.
    let late = LATER + 2000 + SECOND + 1;
    assert_eq!(overlap(&["x"], before, after, late), (0, vec!["exclusion"]));
}

#[test]
fn fencing_tokens_grow_and_none_is_given_twice() {
    let second = |fence, asked: Option<u64>| {
        let mut forged = Forgery::single();
        forged
            .add(0, begin("x", 0, 10, LATER))
            .add(0, end("x", 10, LATER + 100));
        let later = begin("x", 0, fence, LATER + 200);
        forged.add(
            1,
            asked.map_or(later.clone(), |asked| asked_at(asked, later)),
        );
        forged.add(1, end("x", fence, LATER + 300));
        forged.broken()
    };
    assert_eq!(second(11, None), [""; 0]);
    assert_eq!(second(9, None), ["fencing"]);
    assert_eq!(second(10, None), ["fencing"]);
    assert_eq!(second(11, Some(LATER + 50)), [""; 0]);
    assert_eq!(second(9, Some(LATER + 50)), ["fencing"]);
}

#[test]
fn fencing_what_was_asked_for_later_has_the_higher_token_in_another_slot_too() {
    let second = |fence, asked| {
        let mut forged = Forgery::single();
        forged
            .add(0, begin("pool", 0, 10, LATER))
            .add(0, end("pool", 10, LATER + 500));
        forged.add(1, asked_at(asked, begin("pool", 1, fence, LATER + 200)));
        forged.add(1, end("pool", fence, LATER + 300));
        forged.broken()
    };
    assert_eq!(second(11, LATER + 50), [""; 0]);
    assert_eq!(second(9, LATER + 50), ["fencing"]);
    // Asked for before: either may have been first.
    assert_eq!(second(9, LATER - 50), [""; 0]);
}

#[test]
fn stale_write_a_lower_token_after_a_higher_one_was_seen() {
    let late = |sent_at, seen| {
        let mut forged = Forgery::single();
        forged
            .add(0, sent(7, "v", 20, LATER))
            .add(0, answered(7, LATER + 100, None));
        forged
            .add(1, sent(7, "v", 19, sent_at))
            .add(1, answered(7, LATER + 900, seen));
        forged.tell(Record::Value {
            key: "v".to_owned(),
            fence: 20,
        });
        forged.broken()
    };
    assert_eq!(late(LATER + 200, Some(20)), [""; 0]);
    assert_eq!(late(LATER + 200, None), ["stale write"]);
    // On its way at the same time: it may have come first.
    assert_eq!(late(LATER + 50, None), [""; 0]);
}

#[test]
fn stale_write_what_a_refusal_names_was_seen_as_well() {
    let mut forged = Forgery::single();
    // Nobody knows whether it was accepted, but for the refusal.
    forged.add(0, sent(7, "v", 20, LATER));
    forged
        .add(1, sent(7, "v", 19, LATER + 10))
        .add(1, answered(7, LATER + 20, Some(20)));
    forged.tell(Record::Value {
        key: "v".to_owned(),
        fence: 20,
    });
    assert_eq!(forged.broken(), [""; 0]);
    forged
        .add(1, sent(8, "v", 18, LATER + 30))
        .add(1, answered(8, LATER + 40, None));
    assert_eq!(forged.broken(), ["stale write"]);
}

#[test]
fn stale_write_no_write_is_refused_without_a_reason() {
    let refused = |fence, seen| {
        let mut forged = Forgery::single();
        forged
            .add(0, sent(7, "v", 20, LATER))
            .add(0, answered(7, LATER + 100, None));
        forged
            .add(1, sent(7, "v", fence, LATER + 200))
            .add(1, answered(7, LATER + 300, Some(seen)));
        forged.tell(Record::Value {
            key: "v".to_owned(),
            fence: 20,
        });
        forged.broken()
    };
    assert_eq!(refused(19, 20), [""; 0]);
    assert_eq!(refused(20, 20), ["stale write"]);
    assert_eq!(refused(21, 20), ["stale write"]);
    // A token that nobody has presented.
    assert_eq!(refused(19, 25), ["stale write"]);
}

#[test]
fn stale_write_the_value_ends_with_the_highest_token() {
    let ends = |value: Option<u64>| {
        let mut forged = Forgery::single();
        forged
            .add(0, sent(7, "v", 20, LATER))
            .add(0, answered(7, LATER + 100, None));
        forged.add(1, sent(7, "v", 22, LATER + 200));
        if let Some(fence) = value {
            forged.tell(Record::Value {
                key: "v".to_owned(),
                fence,
            });
        }
        forged.broken()
    };
    assert_eq!(ends(Some(20)), [""; 0]);
    // The write without an answer.
    assert_eq!(ends(Some(22)), [""; 0]);
    for wrong in [Some(19), Some(21), None] {
        assert_eq!(ends(wrong), ["stale write"], "{wrong:?}");
    }
}

#[test]
fn stopped_a_guarded_body_finds_its_lease_gone_once_at_most() {
    let mut forged = Forgery::single();
    forged
        .add(0, begin("x", 0, 10, LATER))
        .add(0, act("x", 10, LATER + 2 * SECOND, None));
    assert_eq!(forged.broken(), [""; 0]);
    forged.add(0, act("x", 10, LATER + 2 * SECOND + 10, None));
    assert_eq!(forged.broken(), ["stopped"]);
}

#[test]
fn recovery_every_name_is_led_in_time_after_the_last_fault() {
    // Without a fault, nobody has to lead; `pool` goes on.
    let led_at = |after: u64, stalled: u64| {
        let mut forged = Forgery::single();
        forged
            .add(1, begin("pool", 1, 10, LATER))
            .add(1, end("pool", 10, LATER + 60 * SECOND));
        forged.tell(fault(Kind::ServerKilled, LATER + 10, LATER + SECOND, &[]));
        forged.tell(Record::Stall {
            from: LATER + SECOND,
            to: LATER + SECOND + stalled,
        });
        let at = LATER + SECOND + after;
        forged
            .add(0, begin("x", 0, 10, at))
            .add(0, end("x", 10, at + 100));
        forged.broken()
    };
    // The lease, and the allowance.
    let due = SECOND + super::ALLOWANCE * 1000;
    assert_eq!(led_at(due, 0), [""; 0]);
    assert_eq!(led_at(due + 1, 0), ["recovery"]);
    assert_eq!(led_at(due + 300, 150), [""; 0]);
    assert_eq!(led_at(7 * due, 7 * due / 2), [""; 0]);
    // A machine that stood still for half of it is no excuse for ten times as long.
    assert_eq!(led_at(10 * due, 5 * due), ["recovery"]);
}

#[test]
fn recovery_nobody_ever_leads_again() {
    let ends = |over| {
        let mut forged = Forgery::single();
        forged.tell(fault(Kind::ServerKilled, LATER + 10, LATER + SECOND, &[]));
        forged.over = LATER + SECOND + over;
        let verdict = forged.judged();
        (verdict.recovery.cut_short, forged.broken())
    };
    assert_eq!(ends(20 * SECOND), (0, vec!["recovery"]));
    // Too short to tell, for both names.
    assert_eq!(ends(SECOND), (2, vec![]));
}

#[test]
fn happened_a_run_in_which_nothing_happened_proves_nothing() {
    let missing = |forged: &Forgery| -> Vec<String> {
        let violations = forged.judged().violations;
        violations.into_iter().map(|one| one.what).collect()
    };
    let mut lonely = Forgery::single();
    lonely.logs.remove(&(0, 0));
    assert_eq!(
        missing(&lonely),
        [
            "of the workers only these led: {1}",
            "no write was accepted"
        ]
    );
    let mut calm = Forgery::single();
    calm.director.retain(|record| {
        !matches!(
            record,
            Record::Fault {
                kind: Kind::ServerCut,
                ..
            }
        )
    });
    assert_eq!(missing(&calm), ["no server cut off"]);
    let mut prompt = Forgery::single();
    let not_refused = |record: &Record| !matches!(record, Record::Answered { seen: Some(_), .. });
    prompt
        .logs
        .values_mut()
        .for_each(|log| log.retain(not_refused));
    assert_eq!(missing(&prompt), [""; 0]);
    for write in 100..700 {
        prompt.add(0, sent(write, "value", 2, LATER + write * 10));
        prompt.add(0, answered(write, LATER + write * 10 + 5, None));
    }
    assert_eq!(missing(&prompt), ["no write was refused: nobody was late"]);
}

#[test]
fn a_line_that_is_no_record_is_an_error_and_not_passed_over() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(
        director_log(dir.path()),
        "{\"is\":\"over\",\"at\":1}\nnonsense\n",
    )
    .expect("it is written");
    assert!(check(dir.path()).is_err_and(|what| what.contains("director.jsonl:2")));
}
