//! Requests that nobody should send: each is answered with a 4xx and a JSON error that says what would be right.

use leader_workbench::Place;
use serde_json::{Value, json};

use crate::support::{Answer, Bench};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// Refused with this status, in JSON, with a sentence.
#[track_caller]
fn refused(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(answer.header("content-type"), "application/json");
    let body = answer.json();
    assert!(
        body["error"]
            .as_str()
            .is_some_and(|error| !error.is_empty()),
        "{body}"
    );
    body
}

const CONTROLS: [&str; 6] = [
    "/api/settings",
    "/api/candidates/a",
    "/api/store",
    "/api/scenario",
    "/api/ticks",
    "/api/reset",
];

#[tokio::test]
async fn what_is_no_json_object_is_refused_everywhere() {
    let bench = Bench::in_memory();
    for path in CONTROLS {
        for body in [
            "",
            "{",
            "nonsense",
            "[]",
            "1",
            "null",
            "{\"action\": \"start\"} more",
            "\u{0}",
        ] {
            let answer = bench.request("POST", path, &JSON, body).await;
            refused(&answer, 400);
        }
        let answer = bench.request("POST", path, &JSON, vec![0xff, 0xfe]).await;
        refused(&answer, 400);
        let long = format!("{{\"action\": \"{}\"}}", "x".repeat(100_000));
        let answer = bench.request("POST", path, &JSON, long).await;
        refused(&answer, 413);
    }
}

#[tokio::test]
async fn each_number_out_of_range_is_refused_with_its_range_and_changes_nothing() {
    let bench = Bench::in_memory();
    let shown = bench.shown().await;
    let ranges = shown["about"]["ranges"].as_object().unwrap();
    assert_eq!(ranges.len(), 7);
    for (field, range) in ranges {
        let (least, most) = (range[0].as_u64().unwrap(), range[1].as_u64().unwrap());
        let wrong = [
            json!(most + 1),
            json!(u64::MAX),
            json!(-1),
            json!(0.5),
            json!(1e300),
            json!("3"),
            json!(null),
            json!([3]),
        ];
        let below = least.checked_sub(1).map(|below| json!(below));
        for value in wrong.into_iter().chain(below) {
            // A right change beside it is not taken either.
            let body = bench
                .post(
                    "/api/settings",
                    &json!({ "auto_extend": false, field: value }),
                )
                .await;
            let body = refused(&body, 422);
            assert_eq!((&body["field"], &body["range"]), (&json!(field), range));
        }
    }
    assert_eq!(bench.state().await["settings"], shown["state"]["settings"]);
}

#[tokio::test]
async fn words_that_nobody_knows_are_refused_with_those_that_are_known() {
    let bench = Bench::in_memory();
    for (path, body, field) in [
        ("/api/settings", json!({ "leese_ms": 1 }), "leese_ms"),
        ("/api/settings", json!({ "on_lost": "panic" }), "on_lost"),
        (
            "/api/settings",
            json!({ "auto_extend": "yes" }),
            "auto_extend",
        ),
        ("/api/candidates/a", json!({ "action": "fly" }), "action"),
        ("/api/candidates/a", json!({ "action": 1 }), "action"),
        ("/api/candidates/a", json!({}), "action"),
        (
            "/api/candidates/a",
            json!({ "action": "start", "who": "b" }),
            "who",
        ),
        ("/api/store", json!({ "action": "burn" }), "action"),
        ("/api/scenario", json!({ "name": "hamlet" }), "name"),
        ("/api/reset", json!({ "all": true }), "all"),
    ] {
        let body = refused(&bench.post(path, &body).await, 422);
        assert_eq!(body["field"], field, "{body}");
        assert!(body["range"].is_array(), "{body}");
    }
    // The four time limits are checked against each other.
    let body = bench
        .post(
            "/api/settings",
            &json!({ "lease_ms": 500, "min_lease_ms": 600 }),
        )
        .await;
    let body = refused(&body, 422);
    assert_eq!(
        (&body["field"], &body["range"]),
        (&json!("min_lease_ms"), &json!([0, 500]))
    );
}

#[tokio::test]
async fn who_and_what_is_not_there_is_said() {
    let bench = Bench::start(Place::Memory(3));
    refused(
        &bench
            .post("/api/candidates/z", &json!({ "action": "start" }))
            .await,
        404,
    );
    refused(
        &bench
            .post("/api/candidates/%2e%2e", &json!({ "action": "start" }))
            .await,
        404,
    );
    for action in ["stop", "freeze", "thaw", "kill", "cut", "mend"] {
        let body = refused(
            &bench
                .post("/api/candidates/a", &json!({ "action": action }))
                .await,
            409,
        );
        assert_eq!(body["code"], "not_running");
    }
    // There are three rows until the settings say otherwise.
    let body = refused(
        &bench
            .post("/api/candidates/f", &json!({ "action": "start" }))
            .await,
        409,
    );
    assert_eq!(body["code"], "no_place");
    for node in [json!(3), json!(-1), json!("0"), json!(0.5)] {
        let body = bench
            .post("/api/store", &json!({ "action": "stop", "node": node }))
            .await;
        let body = refused(&body, 422);
        assert_eq!(
            (&body["field"], &body["range"]),
            (&json!("node"), &json!([0, 2]))
        );
    }
    for path in [
        "/api/nothing",
        "/nothing.js",
        "/../Cargo.toml",
        "/api/candidates/a/b",
    ] {
        refused(&bench.get(path).await, 404);
    }
    for (method, path) in [
        ("GET", "/api/settings"),
        ("DELETE", "/api/store"),
        ("POST", "/"),
    ] {
        refused(&bench.request(method, path, &JSON, "{}").await, 405);
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_is_refused() {
    let bench = Bench::in_memory();
    let start = json!({ "action": "start" });
    refused(&bench.post("/api/candidates/%ff", &start).await, 400);
    refused(&bench.get("/%ff").await, 400);
}

#[tokio::test]
async fn a_plan_that_cannot_be_played_is_refused_by_its_field_and_with_its_range() {
    let bench = Bench::in_memory();
    let stands = |tick: u64| json!([{ "candidate": "a", "tick": tick }]);
    for (plan, field, range) in [
        (
            json!({ "lease": 31, "stands": stands(0) }),
            "lease",
            json!([1, 30]),
        ),
        (
            json!({ "min_lease": 11, "stands": stands(0) }),
            "min_lease",
            json!([0, 10]),
        ),
        (json!({ "slots": 0 }), "slots", json!([1, 4])),
        (json!({ "stands": [] }), "stands", json!([1, 12])),
        (json!({ "stands": stands(61) }), "stands", json!([0, 60])),
        (
            json!({ "pauses": [{ "candidate": "a", "from": 1, "until": 61 }] }),
            "pauses",
            json!([0, 60]),
        ),
        (json!({ "lease": -1 }), "lease", json!([1, 30])),
        (json!({ "work": "long" }), "work", json!([1, 60])),
        (
            json!({ "auto_extend": 1, "work": 2 }),
            "auto_extend",
            json!(null),
        ),
        (
            json!({ "stands": [{ "candidate": "zz", "tick": 0 }] }),
            "stands",
            json!(null),
        ),
    ] {
        let body = refused(&bench.post("/api/ticks", &plan).await, 422);
        assert_eq!((&body["field"], &body["range"]), (&json!(field), &range));
    }
    let body = refused(&bench.post("/api/ticks", &json!({ "leese": 1 })).await, 422);
    assert_eq!(body["field"], "leese");
    let known = body["range"].as_array().unwrap();
    assert!(known.contains(&json!("lease")), "{body}");
}
