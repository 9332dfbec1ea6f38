//! Handing over: by a request, and by SIGTERM with a client attached.

use leader_tests::Server;
use tokio::time::timeout;

use crate::support::{Instance, LIMIT, TOKEN, leader};

const RESIGN: &str = "/management/leader-election/scheduler/resign";

#[tokio::test(flavor = "multi_thread")]
async fn resigning_hands_over() {
    let server = Server::start().await;
    let all = Instance::three(&server).await;
    let all: Vec<&Instance> = all.iter().collect();
    let first = leader(&all).await;
    let others: Vec<&Instance> = all.into_iter().filter(|one| !one.is(first)).collect();
    let old = first.get("/leader-only").await.json()["fence"].as_u64();

    let follower = others[0].request("POST", RESIGN, Some(TOKEN)).await;
    assert_eq!(
        (follower.status, &follower.json()["resigned"]),
        (200, &false.into())
    );
    assert!(first.leads().await, "a follower has nothing to hand over");

    let resigned = first.request("POST", RESIGN, Some(TOKEN)).await;
    assert_eq!(resigned.status, 200, "{}", resigned.text);
    assert_eq!(resigned.json()["resigned"], true);
    assert_eq!(resigned.json()["fence"].as_u64(), old);
    let next = leader(&others).await;
    let new = next.get("/leader-only").await.json()["fence"].as_u64();
    assert!(new > old, "{new:?} after {old:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_hands_over_body_first_and_ends_with_a_client_attached() {
    let server = Server::start().await;
    let mut a = Instance::start(&server, "a").await;
    let scheduling = a
        .process
        .wait_for_line("scheduling with fencing token", LIMIT)
        .await;
    let mut b = Instance::start(&server, "b").await;
    let mut events = a.events();
    // The client is attached once it hears of something.
    let heard = async {
        while let Some(line) = events.recv().await {
            if line.contains("released") {
                return true;
            }
        }
        false
    };
    let asked = async {
        loop {
            a.post("/reports/acme").await;
        }
    };
    let heard = async {
        tokio::select! {
            heard = heard => heard,
            never = asked => never,
        }
    };
    assert!(
        timeout(LIMIT, heard).await.unwrap(),
        "the client is attached"
    );

    a.process.terminate();
    // In this order: the body has ended, the slot is free, everything is over.
    a.process
        .wait_for_line("scheduled until fencing token", LIMIT)
        .await;
    a.process.wait_for_line("handed over", LIMIT).await;
    a.process.wait_for_line("ended", LIMIT).await;
    assert!(a.process.exit(LIMIT).await.success());
    let rest = async { while events.recv().await.is_some() {} };
    timeout(LIMIT, rest)
        .await
        .expect("the stream of events ends");

    let fence = |line: &str| {
        line.rsplit(' ')
            .next()
            .and_then(|fence| fence.parse::<u64>().ok())
    };
    let next = b
        .process
        .wait_for_line("scheduling with fencing token", LIMIT)
        .await;
    assert!(
        fence(&next) > fence(&scheduling),
        "{next} after {scheduling}"
    );
    assert!(b.leads().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_hands_over_like_sigterm() {
    let server = Server::start().await;
    let mut a = Instance::start(&server, "a").await;
    a.process
        .wait_for_line("scheduling with fencing token", LIMIT)
        .await;
    a.process.interrupt();
    a.process.wait_for_line("handed over", LIMIT).await;
    assert!(a.process.exit(LIMIT).await.success());
}
