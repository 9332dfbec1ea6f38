//! Part C: letting go of it.

use std::time::Duration;

use leader_core::{ElectorExt, RunOutcome};
use leader_tests::{
    Server, at_once, elector_at, is_skipped, lead, ms, options, patient, until, waiting,
};
use tokio::time::Instant;

use super::{LIMIT, behind_proxy, connect, until_free};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c03_a_release_over_a_broken_connection_is_made_up_for() {
    let (_server, proxy, through, direct) = behind_proxy().await;
    let outcome = through
        .run_if_leader_result("x", &at_once(), async |_| {
            proxy.cut().await;
            Ok::<_, ()>("done")
        })
        .await;
    assert_eq!(outcome.unwrap(), RunOutcome::Elected("done"));
    assert!(is_skipped(&direct, "x", &at_once()).await);
    proxy.heal().await;
    // Its lease of a minute is far from its end.
    until_free(&direct, "x").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c07_ten_thousand_runs_leave_nothing_behind() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    // Once everything, so that what is made once is there: each has led, waited, and listened.
    let brief = options(waiting(ms(50), Duration::from_secs(60)));
    for (leader, waiter) in [(&a, &b), (&b, &a)] {
        let lease = lead(leader, "x", &patient()).await;
        assert!(is_skipped(waiter, "x", &brief).await);
        lease.release().await.unwrap();
    }
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    let clients = server
        .command(&["CLIENT", "LIST"])
        .await
        .text()
        .lines()
        .count();
    let extended = options(waiting(LIMIT, Duration::from_secs(60)).auto_extend(true));
    for round in 0..10_000 {
        let elector = if round % 2 == 0 { &a } else { &b };
        match round % 5 {
            0 => drop(lead(elector, "x", &extended).await),
            1 => lead(elector, "x", &extended).await.release().await.unwrap(),
            _ => {
                () = elector
                    .run_if_leader("x", &extended, async |_| ())
                    .await
                    .unwrap()
                    .unwrap();
            }
        }
    }
    let handle = tokio::runtime::Handle::current();
    until("no task more than before", LIMIT, async || {
        handle.metrics().num_alive_tasks() <= tasks
    })
    .await;
    assert_eq!(
        server
            .command(&["CLIENT", "LIST"])
            .await
            .text()
            .lines()
            .count(),
        clients
    );
    until("no subscription", LIMIT, async || {
        server
            .command(&["PUBSUB", "CHANNELS"])
            .await
            .array()
            .is_empty()
    })
    .await;
    assert_eq!(
        server.command(&["KEYS", "*"]).await.array().len(),
        1,
        "a name keeps one key"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c09_shutdown_with_a_hundred_leases_and_no_server_ends_in_time() {
    let server = Server::start().await;
    let grace = Duration::from_secs(1);
    let builder = elector_at(server.url()).shutdown_grace(grace);
    let a = builder.connect().await.unwrap();
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(60)).auto_extend(true));
    let mut leases = Vec::new();
    for number in 0..100 {
        leases.push(lead(&a, &format!("x:{number}"), &extended).await);
    }
    server.kill().await;
    let begun = Instant::now();
    a.shutdown().await;
    let took = begun.elapsed();
    // The grace, the last moment for closing, and this machine's slowness.
    assert!(took < grace + Duration::from_secs(3), "{took:?}");
    for lease in &leases {
        assert!(!lease.is_valid());
    }
    drop(leases);
}

#[test]
fn c06_a_runtime_that_ends_with_a_run_frees_its_slot_and_keeps_no_connection() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (connections, work) = (runtime(), runtime());
    let (server, a, b) = connections.block_on(async {
        let server = Server::start().await;
        let (a, b) = (
            connect(&server.url(), "a").await,
            connect(&server.url(), "b").await,
        );
        (server, a, b)
    });
    let elector = a.clone();
    work.spawn(async move {
        elector
            .run_if_leader("x", &at_once(), |_| std::future::pending::<()>())
            .await
    });
    connections.block_on(until("it leads", LIMIT, async || {
        !b.state("x").await.unwrap().holders().is_empty()
    }));
    drop(work);
    drop(a);
    connections.block_on(async {
        // Its lease of a minute is far from its end.
        lead(&b, "x", &patient()).await.release().await.unwrap();
        drop(b);
        until(
            "only this question's connection is left",
            LIMIT,
            async || {
                let clients = server.command(&["CLIENT", "LIST"]).await;
                clients.text().lines().count() == 1
            },
        )
        .await;
    });
}
