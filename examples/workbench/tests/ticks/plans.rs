//! Plans that cannot be played are refused, with the field and what it takes.

use leader_workbench::ticks::{Candidate, Pause, Plan, PlayError, Scenario, Stand, play};

fn refused(change: impl FnOnce(&mut Plan)) -> (&'static str, String) {
    let mut plan = Plan::default();
    change(&mut plan);
    match play(plan) {
        Err(PlayError::Plan(error)) => (error.field(), error.to_string()),
        other => panic!("not refused: {other:?}"),
    }
}

fn candidate(letter: char) -> Candidate {
    Candidate::try_from(letter).expect("a candidate")
}

fn pause(letter: char, from: u32, until: u32) -> Pause {
    Pause {
        candidate: candidate(letter),
        from,
        until,
    }
}

#[test]
fn each_field_has_its_range() {
    let over = |text: &str| text.to_owned();
    assert_eq!(
        refused(|plan| plan.lease = 0),
        (
            "lease",
            over("`lease`: 0 is out of range; it takes 1 to 30")
        )
    );
    assert_eq!(
        refused(|plan| plan.lease = 31),
        (
            "lease",
            over("`lease`: 31 is out of range; it takes 1 to 30")
        )
    );
    assert_eq!(refused(|plan| plan.work = 0).0, "work");
    assert_eq!(refused(|plan| plan.work = u32::MAX).0, "work");
    assert_eq!(refused(|plan| plan.wait = 61).0, "wait");
    assert_eq!(
        refused(|plan| plan.min_lease = 11),
        (
            "min_lease",
            over("`min_lease`: 11 is more than the lease; it takes 0 to 10 ticks")
        )
    );
    assert_eq!(refused(|plan| plan.slots = 0).0, "slots");
    assert_eq!(refused(|plan| plan.slots = 5).0, "slots");
    assert_eq!(
        refused(|plan| plan.stands.clear()),
        (
            "stands",
            over("`stands`: there are 0; a plan takes 1 to 12")
        )
    );
    assert_eq!(
        refused(|plan| plan.stands = Plan::one_each([61])).0,
        "stands"
    );
    let often = Stand {
        candidate: Candidate::A,
        tick: 1,
    };
    assert_eq!(refused(|plan| plan.stands = vec![often; 13]).0, "stands");
}

#[test]
fn pauses_are_in_order_and_of_somebody_who_stands() {
    let refused = |pauses: Vec<Pause>| {
        let (field, text) = refused(|plan| plan.pauses = pauses);
        assert_eq!(field, "pauses");
        text
    };
    assert!(refused(vec![pause('a', 0, 3)]).contains("from 1"));
    assert!(refused(vec![pause('a', 3, 3)]).contains("a later one"));
    assert!(refused(vec![pause('a', 3, 61)]).contains("0 to 60"));
    assert!(refused(vec![pause('f', 3, 4)]).contains("f never stands"));
    assert!(refused(vec![pause('c', 8, 10)]).contains("frozen at tick 9"));
    assert!(refused(vec![pause('a', 1, 3), pause('a', 3, 5)]).contains("meet"));
}

#[test]
fn the_limits_themselves_can_be_played() {
    let mut longest = Plan {
        lease: 30,
        work: 60,
        wait: 60,
        min_lease: 30,
        slots: 4,
        stands: Plan::one_each([60; 6]),
        ..Plan::default()
    };
    longest.stands.extend(longest.stands.clone());
    let rows = play(longest).expect("it is played");
    assert!(!rows.is_empty());
}

#[test]
fn a_plan_is_read_from_json_and_unknown_fields_are_refused() {
    for scenario in Scenario::ALL {
        let json = serde_json::to_string(&scenario.plan()).expect("a plan is written");
        let plan: Plan = serde_json::from_str(&json).expect("a plan is read");
        assert_eq!(plan, scenario.plan());
    }
    let some: Plan =
        serde_json::from_str(r#"{"lease": 6, "stands": [{"candidate": "b", "tick": 3}]}"#)
            .expect("what is left out is the default");
    assert_eq!((some.lease, some.work), (6, 8));
    assert_eq!(some.stands[0].candidate, candidate('b'));
    for wrong in [
        r#"{"leases": 6}"#,
        r#"{"lease": -1}"#,
        r#"{"stands": [{"candidate": "g", "tick": 3}]}"#,
        r#"{"stands": [{"candidate": "ab", "tick": 3}]}"#,
    ] {
        assert!(serde_json::from_str::<Plan>(wrong).is_err(), "{wrong}");
    }
}
