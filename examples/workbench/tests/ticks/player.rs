//! The player: the same rows each time, step by step, from a task as from a thread.

use leader_workbench::ticks::{Action, Plan, Player, Scenario, play};

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
    let mut players: Vec<_> = plans()
        .map(|plan| (Player::new(plan).expect("a player"), Vec::new()))
        .collect();
    while players.iter().any(|(player, _)| !player.is_over()) {
        for (player, rows) in &mut players {
            rows.extend(player.step().expect("a step"));
        }
    }
    let rows: Vec<_> = players.into_iter().map(|(_, rows)| rows).collect();
    assert_eq!(rows, expected);
}

#[test]
fn a_step_is_one_tick() {
    let mut player = Player::new(Plan::default()).expect("a player");
    let mut ticks = Vec::new();
    while !player.is_over() {
        let tick = player.next_tick();
        for row in player.step().expect("a step") {
            assert_eq!(row.tick, tick);
            ticks.push(tick);
        }
        assert_eq!(player.next_tick(), tick + 1);
    }
    assert_eq!(ticks, [0, 1, 3, 8, 9, 17]);
    assert_eq!(player.step().expect("a step"), []);
    assert_eq!(player.next_tick(), 18, "nothing is played once it is over");
}

#[test]
fn reset_begins_anew_also_in_the_middle() {
    let scenario = Scenario::named("pause").expect("a scenario");
    let mut player = Player::new(scenario.plan()).expect("a player");
    // While `a` is frozen, and `b` waits.
    for _ in 0..6 {
        player.step().expect("a step");
    }
    player.reset().expect("it begins anew");
    assert_eq!(player.next_tick(), 0);
    let mut rows = Vec::new();
    while !player.is_over() {
        rows.extend(player.step().expect("a step"));
    }
    assert_eq!(rows, play(scenario.plan()).expect("played"));
}

#[tokio::test]
async fn a_task_can_drive_it() {
    let mut player = Player::new(Plan::default()).expect("a player");
    let rows = player.step().expect("a step");
    assert_eq!(rows[0].action, Action::Elected);
}
