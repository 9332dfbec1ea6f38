//! Three instances on one Redis: who serves, who refuses, and what they say of each other.

use leader_tests::{Server, until, until_some};
use serde_json::{Value, json};

use crate::support::{Instance, LIMIT, TOKEN, holders, leader};

/// Everything that the management route says, against the schema of the repository.
fn checked(state: &Value) {
    let schema: Value = serde_json::from_str(include_str!("../../state.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = schema
        .iter_errors(state)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?} in {state:#}");
}

#[test]
fn the_schema_can_fail() {
    let schema: Value = serde_json::from_str(include_str!("../../state.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    assert!(schema.is_valid(&json!({ "node_id": "a", "elections": [] })));
    for wrong in [
        json!({ "elections": [] }),
        json!({ "node_id": "a", "elections": [{ "name": "x", "holders": [{}], "campaign": null }] }),
        json!({ "node_id": "a", "elections": [{ "name": "x y", "holders": [], "campaign": null }] }),
        json!({ "node_id": "a", "elections": [], "token": "secret" }),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_refuse_and_name_the_leader_and_when_it_is_killed_another_leads() {
    let server = Server::start().await;
    let all = Instance::three(&server).await;
    let all: Vec<&Instance> = all.iter().collect();
    let mut fence = 0;
    let first = leader(&all).await;
    let rest: Vec<&Instance> = all.into_iter().filter(|one| !one.is(first)).collect();
    check(first, &rest, &mut fence).await;

    first.process.kill().await;
    let next = leader(&rest).await;
    let rest: Vec<&Instance> = rest.into_iter().filter(|one| !one.is(next)).collect();
    assert_eq!(rest.len(), 1);
    check(next, &rest, &mut fence).await;
}

/// One leads and says so; the others name it.
async fn check(leading: &Instance, followers: &[&Instance], fence: &mut u64) {
    let served = leading.get("/leader-only").await;
    assert_eq!(served.status, 200, "{}", served.text);
    let served = served.json();
    assert_eq!(served["node_id"], leading.node_id.as_str());
    assert!(served["fence"].as_u64().unwrap() > *fence);
    *fence = served["fence"].as_u64().unwrap();
    for follower in followers {
        // What it says may be a tenth of a second old.
        let what = format!("{} names {}", follower.node_id, leading.node_id);
        let refused = until_some(&what, LIMIT, async || {
            let refused = follower.get("/leader-only").await;
            assert_eq!(refused.status, 503);
            let named = refused.header("leader-node-id") == Some(leading.node_id.as_str());
            named.then_some(refused)
        })
        .await;
        let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!(
            (1..=3).contains(&seconds),
            "a lease lives for 3 s: {seconds}"
        );
        let refused = refused.json();
        assert_eq!(refused["error"], "not_leader");
        assert_eq!(refused["leader"]["node_id"], leading.node_id.as_str());
        assert_eq!(refused["leader"]["fence"], *fence);

        let state = follower.state().await;
        checked(&state);
        assert_eq!(state["node_id"], follower.node_id.as_str());
        let holders = holders(&state, "scheduler");
        assert_eq!(holders.len(), 1);
        assert_eq!(holders[0]["node_id"], leading.node_id.as_str());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_shown_each() {
    let server = Server::start().await;
    let instances = Instance::three(&server).await;
    let [a, b, c] = &instances;
    let calls = async || {
        tokio::join!(
            a.post("/partner"),
            b.post("/partner"),
            c.post("/partner"),
            a.post("/partner")
        )
    };
    let watching = async {
        until("all three slots are seen", LIMIT, async || {
            let state = c.state().await;
            checked(&state);
            let slots: Vec<Value> = holders(&state, "partner")
                .iter()
                .map(|holder| holder["slot"].clone())
                .collect();
            assert!(slots.len() <= 3, "{slots:?}");
            slots == [0, 1, 2]
        })
        .await;
    };
    let calling = async {
        loop {
            let (a, b, c, d) = calls().await;
            for answer in [a, b, c, d] {
                // The fourth waits for its turn, for two seconds.
                assert!([200, 409].contains(&answer.status), "{}", answer.text);
            }
        }
    };
    tokio::select! {
        () = watching => {}
        () = calling => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotated_handler_runs_once_among_all() {
    let server = Server::start().await;
    let a = Instance::start(&server, "a").await;
    let b = Instance::start(&server, "b").await;
    // Whoever is asked first writes the report; it takes a while.
    let (one, other) = tokio::join!(a.post("/reports/acme"), b.post("/reports/acme"));
    let (ran, skipped) = if one.status == 200 {
        (one, other)
    } else {
        (other, one)
    };
    assert_eq!(ran.status, 200, "{}", ran.text);
    assert_eq!(ran.json(), json!({ "report": "acme" }));
    // A slow machine may have sent them one after the other.
    if skipped.status != 200 {
        assert_eq!(skipped.status, 409, "{}", skipped.text);
        let on = skipped.json()["on"].as_str().unwrap().to_owned();
        assert!(["a", "b"].contains(&on.as_str()), "{on}");
    }
    let refused = a.post("/reports/a%20b").await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert_eq!(refused.json()["error"], "no_election");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_gone_is_said_and_a_follower_stays_alive() {
    let server = Server::start().await;
    let a = Instance::start(&server, "a").await;
    let b = Instance::start(&server, "b").await;
    let follower = if leader(&[&a, &b]).await.node_id == "a" {
        &b
    } else {
        &a
    };
    server.kill().await;
    // One look at the store is shared by all requests of 100 ms.
    until(
        "the follower knows that the store is gone",
        LIMIT,
        async || {
            let refused = follower.get("/leader-only").await;
            assert_eq!(refused.status, 503);
            refused.header("retry-after") == Some("1")
        },
    )
    .await;
    let unknown = follower
        .request("GET", "/management/leader-election", Some(TOKEN))
        .await;
    assert_eq!(unknown.status, 503, "{}", unknown.text);
    assert_eq!(unknown.json()["error"], "store_failed");
    for path in ["/health/live", "/health/ready"] {
        assert_eq!(follower.get(path).await.status, 200, "{path}");
    }
}
