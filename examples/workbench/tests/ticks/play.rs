//! The same rows each time, from a task as from a thread.

use std::thread;

use leader_workbench::ticks::{Action, Plan, Scenario, play};

#[test]
fn the_same_plan_always_gives_the_same_rows() {
    for scenario in Scenario::ALL {
        let first = play(scenario.plan()).expect("the plan is played");
        for time in 1..50 {
            let again = play(scenario.plan()).expect("the plan is played");
            assert_eq!(again, first, "{}, time {time}", scenario.name());
        }
    }
}

#[test]
fn plans_that_play_at_the_same_time_do_not_disturb_each_other() {
    let plans = || Scenario::ALL.iter().map(Scenario::plan);
    let expected: Vec<_> = plans().map(|plan| play(plan).expect("played")).collect();
    let playing: Vec<_> = plans()
        .map(|plan| thread::spawn(move || play(plan).expect("played")))
        .collect();
    let rows: Vec<_> = playing
        .into_iter()
        .map(|playing| playing.join().expect("no panic"))
        .collect();
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn a_task_can_play_it() {
    let rows = play(Plan::default()).expect("played");
    assert_eq!(rows[0].action, Action::Elected);
}
