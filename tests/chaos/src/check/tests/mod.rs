//! Forged logs: for each rule one that keeps it and one that breaks it, read from files as the real ones are.

mod exclusion;
mod recovery;
mod tokens;

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
        for record in &self.director {
            log.write(record);
        }
        log.write(&Record::Over { at: self.over });
        for ((worker, life), records) in &self.logs {
            let path = worker_log(dir.path(), *worker, *life);
            let log = Log::create(&path).expect("a log");
            log.write(&Record::Life {
                worker: *worker,
                life: *life,
                at: 0,
            });
            for record in records {
                log.write(record);
            }
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
