//! `exclusion`: what is believed, by whom, until when, and what is excused.

use super::*;

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
