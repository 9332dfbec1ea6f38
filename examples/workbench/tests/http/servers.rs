//! Leases on real servers, of which some are dead, hang, or hold what is not the workbench's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leader_tests::{Proxy, Server, until};
use leader_workbench::Place;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

use crate::support::{Bench, LIMIT};

async fn three() -> (Vec<Server>, Place) {
    let servers = vec![
        Server::start().await,
        Server::start().await,
        Server::start().await,
    ];
    let urls = servers.iter().map(Server::url).collect();
    (servers, Place::Redis(urls))
}

async fn holds_long(bench: &Bench) {
    let settings =
        json!({ "lease_ms": 60_000, "min_lease_ms": 0, "work_ms": 60_000, "wait_ms": 60_000 });
    bench.settings(settings).await;
}

#[tokio::test]
async fn one_dead_server_of_three_stops_nobody() {
    let (servers, place) = three().await;
    servers[1].kill().await;
    let bench = Bench::start(place);
    holds_long(&bench).await;
    bench.candidate("a", "start").await;
    bench.until_phase("a", "leading").await;
    bench.until_held_by("a").await;

    // Nor does it after a new beginning, which says what it could not do.
    let answer = bench.post("/api/reset", &json!({})).await;
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (409, &json!("not_emptied"))
    );
    assert!(answer.text.contains("node 2"), "{}", answer.text);
    holds_long(&bench).await;
    bench.candidate("b", "start").await;
    bench.until_phase("b", "leading").await;
    bench.until_held_by("b").await;
}

#[tokio::test]
async fn a_server_that_comes_back_takes_part_and_two_that_are_dead_are_an_error() {
    let (servers, place) = three().await;
    servers[0].kill().await;
    servers[1].kill().await;
    let bench = Bench::start(place);
    holds_long(&bench).await;
    // Each extension writes to every server that is there.
    bench.settings(json!({ "lease_ms": 2_000 })).await;
    bench.candidate("a", "start").await;
    let failed = bench.until_told(Some("a"), "failed", "unreachable").await;
    assert_eq!(failed["detail"], "connect");
    until("the page says so", LIMIT, async || {
        bench.state().await["record"]["error"] == "unreachable"
    })
    .await;

    servers[0].restart().await;
    bench.until_phase("a", "leading").await;
    servers[1].restart().await;
    until("it is told to the one that was dead", LIMIT, async || {
        let keys = servers[1].command(&["KEYS", "*"]).await;
        !keys.array().is_empty()
    })
    .await;
}

#[tokio::test]
async fn each_node_that_can_forgets_and_the_others_are_named() {
    let (servers, place) = three().await;
    let bench = Bench::start(place);
    holds_long(&bench).await;
    bench.candidate("a", "start").await;
    bench.until_phase("a", "leading").await;
    servers[0].kill().await;
    let answer = bench
        .post("/api/store", &json!({ "action": "forget" }))
        .await;
    assert_eq!(answer.status, 409, "{}", answer.text);
    let body = answer.json();
    assert_eq!(body["code"], "not_forgotten");
    let error = body["error"].as_str().unwrap();
    assert!(
        error.starts_with("node 1 has not lost its memory: "),
        "{error}"
    );
    // A sentence, and no name of a variant.
    assert!(!error.contains("IO") && !error.contains("Error"), "{error}");
    let shown = bench.shown().await;
    let forgot: Vec<&Value> = shown["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["action"] == "store_forgot")
        .map(|event| &event["detail"])
        .collect();
    assert_eq!(forgot, ["2", "3"]);
    for server in &servers[1..] {
        assert_eq!(server.command(&["KEYS", "*"]).await.array().len(), 0);
    }
}

#[tokio::test]
async fn a_reset_that_a_server_does_not_answer_says_so_and_leaves_no_connection() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let bench = Bench::start(Place::Redis(vec![proxy.url()]));
    proxy.hold_replies();
    let answer = bench.post("/api/reset", &json!({})).await;
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (409, &json!("not_emptied"))
    );
    // The client itself would give up after ten seconds.
    until("its connections are closed", LIMIT / 12, async || {
        proxy.connections() == 0
    })
    .await;
}

#[tokio::test]
async fn a_reset_that_fails_half_way_leaves_no_connection() {
    let server = Server::start().await;
    // A user that may say hello, and not look for keys.
    let rules = "ACL SETUSER narrow on >secret ~* &* +@connection +info +ping";
    let rules: Vec<&str> = rules.split(' ').collect();
    server.command(&rules).await;
    let bench = Bench::start(Place::Redis(vec![server.url_for("narrow", "secret")]));
    let answer = bench.post("/api/reset", &json!({})).await;
    assert_eq!(answer.status, 409, "{}", answer.text);
    until("its connections are closed", LIMIT / 4, async || {
        let clients = server.command(&["CLIENT", "LIST"]).await;
        !clients.text().contains("user=narrow")
    })
    .await;
}

#[tokio::test]
async fn two_workbenches_with_names_of_their_own_leave_each_other_alone() {
    let server = Server::start().await;
    let place = Place::Redis(vec![server.url()]);
    let bench = Bench::start(place.clone());
    let other = Bench::named("invoice-close:eu", place);
    for bench in [&bench, &other] {
        holds_long(bench).await;
        bench.candidate("a", "start").await;
        bench.until_phase("a", "leading").await;
    }
    bench.ask("/api/reset", json!({})).await;
    let keys = server.command(&["KEYS", "*"]).await;
    assert_eq!(keys.array().len(), 1, "{keys:?}");
    other.until_held_by("a").await;
    until("nobody holds the other", LIMIT, async || {
        bench.state().await["record"]["holders"] == json!([])
    })
    .await;
}

#[tokio::test]
async fn what_the_library_does_not_take_has_a_code_and_a_message() {
    let bench = Bench::start(Place::Redis(vec!["nonsense".to_owned()]));
    bench.candidate("a", "start").await;
    let failed = bench.until_told(Some("a"), "failed", "options").await;
    assert_eq!(failed["detail"], "connect");
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("scheme"), "{message}");
    let record = bench.state().await["record"].take();
    assert_eq!(record["error"], "options");
    assert_eq!(record["message"], failed["message"]);
}

#[tokio::test]
async fn a_server_that_fails_is_not_connected_to_at_each_look() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            drop(stream);
        }
    });
    let bench = Bench::start(Place::Redis(vec![url]));
    assert_eq!(bench.state().await["record"]["error"], "unreachable");
    let each = connections.load(Ordering::Relaxed);
    let began = Instant::now();
    // As often as for a page that is open.
    for _ in 0..20 {
        assert_eq!(bench.state().await["record"]["error"], "unreachable");
        sleep(Duration::from_millis(100)).await;
    }
    let attempts = connections.load(Ordering::Relaxed) / each;
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap();
    assert!((2..=seconds + 2).contains(&attempts), "{attempts}");
}
