//! Requests whose client gives up before they are answered: what they began is brought to its end, and the page stays true.

use leader_tests::{Server, until};
use leader_workbench::Place;
use serde_json::json;
use tokio::time::{Duration, sleep};

use crate::support::{Bench, LIMIT};

#[tokio::test]
async fn a_stop_that_nobody_waits_for_ends_before_the_next_start() {
    let bench = Bench::in_memory();
    bench
        .settings(
            json!({ "lease_ms": 60_000, "min_lease_ms": 0, "work_ms": 60_000, "wait_ms": 60_000 }),
        )
        .await;
    bench.candidate("a", "start").await;
    bench.until_phase("a", "leading").await;
    // Its release gets lost on the way, so that it needs all the time that it is given for its end.
    bench.candidate("a", "cut").await;
    bench
        .give_up(
            "/api/candidates/a",
            json!({ "action": "stop" }),
            // It works no more, and waits for its release.
            |state| state["candidates"][0]["phase"] == "idle",
        )
        .await;
    bench.candidate("a", "start").await;
    bench.store("forget").await;
    bench.until_count("elected", 2).await;
    bench.until_phase("a", "leading").await;
    // For as long as the old one may take for its end, the row is that of the new one.
    for _ in 0..30 {
        assert_eq!(bench.phase("a").await, "leading");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_story_that_nobody_waits_for_begins() {
    let server = Server::start().await;
    let bench = Bench::start(Place::Redis(vec![server.url()]));
    // Who looks has its connection by then, and is told soon that nobody answers on it.
    bench.state().await;
    // What is deleted before the story begins takes its time.
    server.freeze().await;
    bench
        .give_up("/api/scenario", json!({ "name": "contention" }), |state| {
            state["scenario"]["name"] == "contention"
        })
        .await;
    server.thaw().await;
    until("it has begun", LIMIT / 4, async || {
        bench.state().await["scenario"]["step"].as_u64() >= Some(1)
    })
    .await;
}
