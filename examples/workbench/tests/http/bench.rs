//! What a person does on the page, and what comes of it: the real library behind real requests.

use std::time::Duration;

use leader_core::ElectorExt;
use leader_redis::RedisElector;
use leader_tests::{Server, until};
use leader_workbench::Place;
use serde_json::json;

use crate::support::{Bench, LIMIT};

/// Less than the five seconds for which a freeze may wait for its thread.
const AT_ONCE: Duration = Duration::from_secs(4);

/// Work that does not stop when it is told that its lease is lost, and waits that outlast any lease here.
async fn stubborn(bench: &Bench) {
    let settings = json!({
        "lease_ms": 2_000, "min_lease_ms": 0, "work_ms": 60_000, "wait_ms": 60_000,
        "auto_extend": true, "on_lost": "notify",
    });
    bench.settings(settings).await;
}

async fn a_leads_and_b_waits(bench: &Bench) {
    bench.candidate("a", "start").await;
    bench.until_phase("a", "leading").await;
    bench.candidate("b", "start").await;
    bench.until_phase("b", "waiting").await;
}

#[tokio::test]
async fn a_frozen_leader_is_replaced_and_its_write_bounces() {
    let bench = Bench::in_memory();
    stubborn(&bench).await;
    a_leads_and_b_waits(&bench).await;

    bench.candidate("a", "freeze").await;
    bench.until_phase("b", "leading").await;
    bench.until_told(Some("b"), "write", "accepted").await;
    // Nothing of it runs, so it has not noticed.
    assert!(!bench.has_told("a", "lost").await);

    bench.candidate("a", "thaw").await;
    let refused = bench.until_told(Some("a"), "write", "refused").await;
    let seen: u64 = refused["detail"].as_str().unwrap().parse().unwrap();
    assert!(refused["fence"].as_u64().unwrap() < seen);
    bench.until_told(Some("a"), "lost", "expired").await;
}

#[tokio::test]
async fn a_killed_leader_gives_nothing_back() {
    let bench = Bench::in_memory();
    stubborn(&bench).await;
    bench.settings(json!({ "lease_ms": 60_000 })).await;
    a_leads_and_b_waits(&bench).await;
    bench.candidate("a", "kill").await;
    let state = bench.state().await;
    assert_eq!(state["candidates"][0]["phase"], "down");
    assert_eq!(state["record"]["holders"][0]["node_id"], "a");
    assert_eq!(state["candidates"][1]["phase"], "waiting");

    // One that stops in good order does.
    bench.store("forget").await;
    bench.until_phase("b", "leading").await;
    bench.candidate("b", "stop").await;
    bench.until_told(Some("b"), "released", "ok").await;
}

#[tokio::test]
async fn who_is_frozen_is_not_frozen_again_and_who_is_not_is_not_thawed() {
    let bench = Bench::in_memory();
    stubborn(&bench).await;
    bench.candidate("a", "start").await;
    bench.until_phase("a", "leading").await;
    bench.candidate("a", "thaw").await;
    assert_eq!(bench.count("thawed").await, 0);
    bench.candidate("a", "freeze").await;
    let again = bench.candidate("a", "freeze");
    tokio::time::timeout(AT_ONCE, again)
        .await
        .expect("nothing has to be waited for");
    assert_eq!(bench.count("frozen").await, 1);
    bench.candidate("a", "thaw").await;
    bench.candidate("a", "thaw").await;
    assert_eq!(bench.count("thawed").await, 1);
    // One that was thawed can be frozen again.
    bench.candidate("a", "freeze").await;
    assert_eq!(bench.state().await["candidates"][0]["frozen"], true);
}

#[tokio::test]
async fn a_frozen_candidate_can_be_killed_and_started_again() {
    let bench = Bench::in_memory();
    stubborn(&bench).await;
    bench.candidate("a", "start").await;
    bench.until_phase("a", "leading").await;
    bench.candidate("a", "freeze").await;
    bench.candidate("a", "kill").await;
    bench.candidate("a", "start").await;
    // It is another process: it waits for the lease of the one that was killed.
    bench.until_phase("a", "leading").await;
    bench.until_count("elected", 2).await;
}

#[tokio::test]
async fn who_is_cut_off_loses_and_a_store_that_is_stopped_is_an_error() {
    let bench = Bench::in_memory();
    stubborn(&bench).await;
    a_leads_and_b_waits(&bench).await;
    bench.candidate("a", "cut").await;
    bench.until_told(Some("a"), "failed", "timed_out").await;
    bench.until_told(Some("a"), "lost", "expired").await;
    bench.until_phase("b", "leading").await;

    bench.store("stop").await;
    let record = bench.state().await["record"].take();
    assert_eq!(
        (&record["error"], record["holders"].is_null()),
        (&json!("unreachable"), true)
    );
    bench.until_told(Some("b"), "failed", "unreachable").await;
    bench.store("start").await;
    bench.until_told(None, "store_started", "ok").await;
    assert_eq!(
        bench.count("skipped").await,
        0,
        "a store that fails is not somebody else leading"
    );
}

#[tokio::test]
async fn a_store_that_has_lost_its_memory_elects_a_second_and_fencing_keeps_their_order() {
    let bench = Bench::in_memory();
    stubborn(&bench).await;
    // Long enough that the first still believes in its own.
    bench.settings(json!({ "lease_ms": 60_000 })).await;
    a_leads_and_b_waits(&bench).await;
    bench.store("forget").await;
    bench.until_phase("b", "leading").await;
    assert_eq!(bench.phase("a").await, "believes");
    assert_eq!(bench.phase("b").await, "leading", "it alone");
    bench.until_told(Some("a"), "write", "refused").await;
    assert_eq!(bench.count("lost").await, 0);
}

#[tokio::test]
async fn who_leads_is_never_said_to_believe_so_or_to_be_late() {
    let bench = Bench::in_memory();
    bench
        .settings(json!({ "min_lease_ms": 0, "work_ms": 3, "pause_ms": 1, "wait_ms": 60_000 }))
        .await;
    bench.candidate("a", "start").await;
    bench.candidate("b", "start").await;
    let mut leading = 0;
    while leading < 200 {
        let state = bench.state().await;
        for row in state["candidates"].as_array().unwrap() {
            let phase = row["phase"].as_str().unwrap();
            assert!(!["believes", "stale"].contains(&phase), "{state}");
            leading += u32::from(phase == "leading");
        }
    }
}

#[tokio::test]
async fn two_of_five_nodes_may_stop_and_three_may_not() {
    let bench = Bench::start(Place::Memory(5));
    stubborn(&bench).await;
    for node in [0, 1] {
        bench
            .ask("/api/store", json!({ "action": "stop", "node": node }))
            .await;
    }
    bench.candidate("a", "start").await;
    bench.until_phase("a", "leading").await;
    bench
        .ask("/api/store", json!({ "action": "stop", "node": 2 }))
        .await;
    bench.until_told(Some("a"), "lost", "expired").await;
}

#[tokio::test]
async fn the_end_hands_over_what_is_held_on_a_server() {
    let server = Server::start().await;
    let bench = Bench::start(Place::Redis(vec![server.url()]));
    bench
        .settings(
            json!({ "lease_ms": 60_000, "min_lease_ms": 0, "work_ms": 60_000, "candidates": 2 }),
        )
        .await;
    a_leads_and_b_waits(&bench).await;
    // One that is frozen at the end hands over as well.
    bench.candidate("a", "freeze").await;
    let page = bench.page();
    let elector = RedisElector::builder()
        .url(server.url())
        .key_prefix("leader-workbench")
        .command_timeout(LIMIT)
        .connect();
    let elector = elector.await.unwrap();
    let holders = async || {
        elector
            .state("invoice-close")
            .await
            .unwrap()
            .holders()
            .len()
    };
    assert_eq!(holders().await, 1);
    bench.end().await;
    assert_eq!(holders().await, 0);
    drop(page);
}

#[tokio::test]
async fn what_a_server_holds_of_the_workbench_is_deleted_and_nothing_else() {
    let server = Server::start().await;
    server.command(&["SET", "accounts:7", "precious"]).await;
    let bench = Bench::start(Place::Redis(vec![server.url()]));
    bench
        .settings(json!({ "lease_ms": 60_000, "work_ms": 60_000 }))
        .await;
    bench.candidate("a", "start").await;
    bench.until_phase("a", "leading").await;
    bench.store("forget").await;
    let keys = server.command(&["KEYS", "*"]).await;
    assert_eq!(keys.array().len(), 1, "{keys:?}");
    bench.candidate("b", "start").await;
    bench.until_phase("b", "leading").await;
}

#[tokio::test]
async fn fewer_candidates_stop_those_for_whom_there_is_no_place() {
    let bench = Bench::in_memory();
    bench
        .settings(json!({ "candidates": 6, "slots": 4, "work_ms": 60_000 }))
        .await;
    bench.candidate("f", "start").await;
    bench.until_phase("f", "leading").await;
    bench.settings(json!({ "candidates": 2 })).await;
    let state = bench.state().await;
    assert_eq!(state["candidates"].as_array().unwrap().len(), 2);
    until("its slot is free", LIMIT, async || {
        bench.state().await["record"]["holders"] == json!([])
            || bench.state().await["record"]["holders"][0]["retained"] == true
    })
    .await;
}

#[tokio::test]
async fn every_slot_that_is_held_is_shown_also_beyond_the_setting() {
    let bench = Bench::in_memory();
    let settings = json!({
        "candidates": 4, "slots": 4, "lease_ms": 60_000, "min_lease_ms": 0, "work_ms": 60_000,
    });
    bench.settings(settings).await;
    for id in ["a", "b", "c", "d"] {
        bench.candidate(id, "start").await;
        bench.until_told(Some(id), "write", "accepted").await;
    }
    // What they hold is what they were granted, whatever is set now.
    bench
        .settings(json!({ "slots": 1, "lease_ms": 1_000 }))
        .await;
    let state = bench.state().await;
    let holders = state["record"]["holders"].as_array().unwrap();
    assert_eq!(holders.len(), 4);
    for holder in holders {
        assert_eq!(holder["of_ms"], 60_000, "{holder}");
    }
    let books = state["resource"]["slots"].as_array().unwrap();
    let by: Vec<_> = books
        .iter()
        .map(|book| book["by"].as_str().unwrap())
        .collect();
    assert_eq!(by, ["a", "b", "c", "d"]);
    // Of one that was killed, too.
    bench.candidate("d", "kill").await;
    let record = bench.state().await["record"].take();
    assert_eq!(record["holders"][3]["of_ms"], 60_000, "{record}");
}

#[tokio::test]
async fn a_plan_is_played_by_the_engine_and_always_the_same() {
    let bench = Bench::in_memory();
    let plans = bench.get("/api/ticks").await.json()["plans"].take();
    let plans = plans.as_array().unwrap();
    assert!(plans.len() >= 3);
    for plan in plans {
        let first = bench.post("/api/ticks", &plan["plan"]).await;
        assert_eq!(first.status, 200, "{}", first.text);
        assert_eq!(
            first.text,
            bench.post("/api/ticks", &plan["plan"]).await.text
        );
    }
    let contention = bench.post("/api/ticks", &plans[0]["plan"]).await.json();
    let rows = contention["rows"].as_array().unwrap().iter();
    let told: Vec<_> = rows
        .map(|row| {
            (
                row["tick"].as_u64().unwrap(),
                &row["candidate"],
                &row["action"],
            )
        })
        .collect();
    let (a, b, c) = (json!("a"), json!("b"), json!("c"));
    let (elected, waits, skipped, released) = (
        json!("elected"),
        json!("waits"),
        json!("skipped"),
        json!("released"),
    );
    let expected = [
        (0, &a, &elected),
        (1, &b, &waits),
        (3, &b, &skipped),
        (8, &a, &released),
        (9, &c, &elected),
    ];
    assert_eq!(told[..5], expected);
}

/// Plays a scenario to its end.
async fn play(bench: &Bench, name: &str) {
    bench.ask("/api/scenario", json!({ "name": name })).await;
    until(&format!("{name} is over"), LIMIT, async || {
        let scenario = bench.state().await["scenario"].take();
        assert_eq!(scenario["failure"], json!(null), "{scenario}");
        scenario["over"] == true && scenario["step"] == scenario["steps"]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_has_two_holders_and_with_replica_ack_it_has_one_in_twenty_seconds() {
    let bench = Bench::in_memory();
    play(&bench, "failover").await;
    bench.until_count("elected", 2).await;
    bench.until_told(Some("a"), "write", "refused").await;
    assert!(bench.has_told("a", "lost").await);
    assert_eq!(bench.state().await["store"]["kind"], "redis");

    play(&bench, "failover-replica-ack").await;
    bench.until_count("elected", 1).await;
    bench
        .until_told(Some("a"), "gave_up", "too_few_replicas")
        .await;

    // Back to where the workbench keeps its leases otherwise.
    bench.ask("/api/scenario", json!({ "name": null })).await;
    let state = bench.state().await;
    assert_eq!(
        (&state["store"]["kind"], &state["scenario"]),
        (&json!("memory"), &json!(null))
    );
    assert_eq!(state["candidates"][0]["phase"], "down");
    bench.end().await;
}
