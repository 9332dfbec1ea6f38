//! Scenarios on a real Redis whose network or server misbehaves: parts A, B, C and G, as far as they need that.

use std::time::Duration;

use futures::StreamExt;
use leader_core::{
    BackendKind, ElectorExt, LeaderError, LeaderEvent, LossReason, OnLost, RunOutcome,
    current_lease, ensure_leader,
};
use leader_redis::RedisElector;
use leader_tests::{
    Proxy, Server, at_once, elector_at, is_skipped, lead, ms, options, patient, until, waiting,
};
use tokio::time::{Instant, sleep, timeout};

/// Far longer than anything here takes, so that a slow machine is not taken for a broken library.
const LIMIT: Duration = Duration::from_secs(20);
const COMMAND: Duration = Duration::from_millis(500);

async fn connect(url: &str, node_id: &str) -> RedisElector {
    let builder = elector_at(url).node_id(node_id).command_timeout(COMMAND);
    builder.connect().await.unwrap()
}

/// A server, a candidate that reaches it through a proxy, and one that reaches it directly.
async fn behind_proxy() -> (Server, Proxy, RedisElector, RedisElector) {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let through = connect(&proxy.url(), "through").await;
    let direct = connect(&server.url(), "direct").await;
    (server, proxy, through, direct)
}

/// Options of a candidate whose last attempt is far beyond this test's patience: whoever waits for it within [`LIMIT`]
/// sees that it was told.
fn endless() -> leader_core::LeaseOptions {
    options(waiting(LIMIT * 10, LIMIT * 10))
}

/// Lets the server know the scripts, so that the next claim is one request.
async fn warm_up(elector: &RedisElector) {
    let lease = lead(elector, "warm-up", &at_once()).await;
    lease.release().await.unwrap();
}

async fn until_free(elector: &RedisElector, name: &str) {
    until("the slot is free", LIMIT, async || {
        elector
            .state(name)
            .await
            .is_ok_and(|state| state.holders().is_empty())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a02_waiting_five_seconds_for_a_held_lease_takes_two_claims() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let _lease = lead(&a, "x", &at_once()).await;
    server.reset_stats().await;
    let begun = Instant::now();
    let wait = options(waiting(Duration::from_secs(5), Duration::from_secs(60)));
    assert!(is_skipped(&b, "x", &wait).await);
    assert!(begun.elapsed() >= Duration::from_secs(5));
    let claims = server.command_calls("evalsha").await + server.command_calls("eval").await;
    assert!(claims <= 2, "{claims} claims in five seconds of waiting");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a02_no_wait_is_exactly_one_claim() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let _lease = lead(&a, "x", &at_once()).await;
    server.reset_stats().await;
    assert!(is_skipped(&b, "x", &at_once()).await);
    let commands = server.commands().await;
    let scripts = commands.get("evalsha").copied().unwrap_or_default();
    assert_eq!(scripts, 1, "{commands:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_run_is_two_commands() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    // Once, to load the scripts.
    a.run_if_leader("x", &at_once(), async |_| ())
        .await
        .unwrap();
    server.reset_stats().await;
    for _ in 0..100 {
        assert_eq!(
            a.run_if_leader("x", &at_once(), async |_| ())
                .await
                .unwrap(),
            Some(())
        );
    }
    let commands = server.commands().await;
    // What the scripts call inside the server is counted too; a client's commands are these.
    let sent: Vec<_> = [
        "evalsha",
        "eval",
        "script|load",
        "subscribe",
        "hget",
        "get",
        "set",
        "publish",
        "ping",
    ]
    .iter()
    .filter_map(|command| commands.get(*command).map(|calls| (*command, *calls)))
    .filter(|(command, _)| *command != "publish")
    .collect();
    assert_eq!(sent, [("evalsha", 200)], "{commands:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a03_a_reply_that_was_lost_is_recognised_by_the_next_claim() {
    let (_server, proxy, through, direct) = behind_proxy().await;
    // Once before, so that the script is loaded.
    warm_up(&through).await;
    let lost = proxy.lose_reply_to("EVALSHA");
    let lease = lead(&through, "x", &patient()).await;
    timeout(LIMIT, lost.happened())
        .await
        .expect("the reply was lost");
    let state = direct.state("x").await.unwrap();
    assert_eq!(state.holders().len(), 1, "{state:?}");
    assert_eq!(state.holders()[0].fence(), lease.fence());
    assert_eq!(state.holders()[0].node_id(), "through");
    lease.release().await.unwrap();
    assert!(!is_skipped(&direct, "x", &at_once()).await);

    // The same when the slots are full but for its own.
    let two = options(waiting(LIMIT, Duration::from_secs(60)).slots(2));
    let peer = lead(&direct, "y", &two).await;
    let lost = proxy.lose_reply_to("EVALSHA");
    let lease = lead(&through, "y", &two).await;
    timeout(LIMIT, lost.happened())
        .await
        .expect("the reply was lost");
    assert_eq!((peer.slot(), lease.slot()), (0, 1));
    assert_eq!(direct.state("y").await.unwrap().holders().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a04_an_attempt_dropped_in_flight_leaves_the_slot_free() {
    let (_server, proxy, through, direct) = behind_proxy().await;
    warm_up(&through).await;
    for _ in 0..20 {
        proxy.hold_replies();
        let attempt = {
            let through = through.clone();
            tokio::spawn(async move { through.try_acquire("x", &patient()).await })
        };
        // Executed by the server, but the answer is on its way.
        until("the claim was executed", LIMIT, async || {
            direct.state("x").await.unwrap().holders().len() == 1
        })
        .await;
        attempt.abort();
        assert!(attempt.await.unwrap_err().is_cancelled());
        proxy.release_replies();
        // Its lease of a minute is far from its end.
        let next = lead(&direct, "x", &patient()).await;
        next.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a05_a_grant_that_comes_after_its_lease_is_none_and_is_given_back() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let builder = elector_at(proxy.url());
    let through = builder.command_timeout(LIMIT).connect().await.unwrap();
    let direct = connect(&server.url(), "direct").await;
    warm_up(&through).await;
    // The claim is executed when its lease, counted from when it was sent, is over already.
    proxy.delay_requests(ms(3_200));
    let late = tokio::spawn(async move {
        let brief = options(waiting(Duration::ZERO, ms(3_000)));
        through.try_acquire("x", &brief).await
    });
    // By then it is on its way; what follows it is not delayed.
    sleep(ms(1_000)).await;
    proxy.delay_requests(Duration::ZERO);
    match late.await.unwrap() {
        Err(LeaderError::Backend {
            kind: BackendKind::TimedOut,
            ..
        }) => {}
        other => panic!("elected, or skipped, by an answer that came too late: {other:?}"),
    }
    // The store has just granted it three seconds. It is given back long before they are over.
    let wait = options(waiting(ms(2_000), Duration::from_secs(60)));
    let _next = lead(&direct, "x", &wait).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a05_a_stalled_server_gives_no_lease_and_keeps_none() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    warm_up(&a).await;
    server.command(&["CLIENT", "PAUSE", "1200", "WRITE"]).await;
    let stalled = a.try_acquire("x", &at_once()).await;
    assert!(
        matches!(
            stalled,
            Err(LeaderError::Backend {
                kind: BackendKind::TimedOut,
                ..
            })
        ),
        "{stalled:?}"
    );
    // When the server goes on, the claim may be executed; what undoes it follows. Its lease is a minute.
    let next = lead(&b, "x", &patient()).await;
    next.release().await.unwrap();
}

/// One attempt while the server is in some bad state: an error of this kind, in bounded time, that names the server.
async fn fails_as(elector: &RedisElector, addr: &str, expected: &[BackendKind], wait: Duration) {
    let begun = Instant::now();
    let stand = options(waiting(wait, Duration::from_secs(60)));
    let failed = elector.run_if_leader("x", &stand, async |_| ()).await;
    let took = begun.elapsed();
    match failed {
        Err(error @ LeaderError::Backend { kind, .. }) if expected.contains(&kind) => {
            let message = error.to_string();
            assert!(message.contains(addr), "no address in {message:?}");
            assert!(!message.contains("s3cret"), "a password in {message:?}");
        }
        other => panic!("not {expected:?}: {other:?}"),
    }
    // The bound is the wait and one command timeout; what is over it is this machine's slowness.
    assert!(took < wait + COMMAND + Duration::from_secs(3), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a06_a_server_that_is_down_hung_or_half_open_is_an_error() {
    for wait in [Duration::ZERO, ms(300)] {
        let server = Server::builder().password("s3cret").start().await;
        let a = connect(&server.url(), "a").await;
        let addr = server.addr().to_string();
        lead(&a, "x", &at_once()).await.release().await.unwrap();
        server.freeze().await;
        fails_as(
            &a,
            &addr,
            &[BackendKind::TimedOut, BackendKind::Unreachable],
            wait,
        )
        .await;
        server.thaw().await;
        lead(&a, "x", &patient()).await.release().await.unwrap();
        server.kill().await;
        let down = [BackendKind::Unreachable, BackendKind::TimedOut];
        fails_as(&a, &addr, &down, wait).await;
        fails_as(&a, &addr, &down, wait).await;
        server.restart().await;
        lead(&a, "x", &patient()).await.release().await.unwrap();

        let proxy = Proxy::start(server.addr());
        let half = connect(&server.url_at(proxy.addr()), "half-open").await;
        lead(&half, "x", &at_once()).await.release().await.unwrap();
        proxy.blackhole();
        fails_as(&half, &proxy.addr().to_string(), &down, wait).await;
        proxy.heal().await;
        lead(&half, "x", &patient()).await.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a06_a_server_that_refuses_is_an_error_that_says_why() {
    let server = Server::builder().password("s3cret").start().await;
    let addr = server.addr().to_string();
    let a = connect(&server.url(), "a").await;
    lead(&a, "x", &at_once()).await.release().await.unwrap();

    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    fails_as(&a, &addr, &[BackendKind::ReadOnly], ms(100)).await;
    server
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "no"])
        .await;
    fails_as(&a, &addr, &[BackendKind::NotReady], ms(100)).await;
    server
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "yes"])
        .await;
    server.command(&["REPLICAOF", "NO", "ONE"]).await;
    lead(&a, "x", &patient()).await.release().await.unwrap();

    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    fails_as(&a, &addr, &[BackendKind::OutOfMemory], ms(100)).await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;

    server
        .command(&[
            "ACL",
            "SETUSER",
            "weak",
            "on",
            ">s3cret-too",
            "~*",
            "&*",
            "+@all",
            "-evalsha",
            "-eval",
        ])
        .await;
    let weak = connect(&server.url_for("weak", "s3cret-too"), "weak").await;
    fails_as(&weak, &addr, &[BackendKind::Denied], ms(100)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a07_no_key_is_without_an_expiry() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    let longest = options(waiting(
        Duration::ZERO,
        leader_core::LeaseOptions::MAX_LEASE,
    ));
    let _long = lead(&a, "long", &longest).await;
    let _short = lead(&a, "short", &options(waiting(Duration::ZERO, ms(1_000)))).await;
    lead(&a, "over", &at_once()).await.release().await.unwrap();
    let keys = server.command(&["KEYS", "*"]).await;
    assert!(keys.array().len() >= 3, "{keys:?}");
    for key in keys.array() {
        let left = server.command(&["PTTL", &key.text()]).await.integer();
        assert!(left > 0, "{} has no expiry: {left}", key.text());
        if key.text().contains("{long}") {
            assert!(
                left >= 365 * 24 * 60 * 60 * 1000,
                "{left} is less than the lease"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a11_a_release_between_the_claim_and_the_subscription_is_not_slept_through() {
    let server = Server::start().await;
    let direct = connect(&server.url(), "direct").await;
    let proxy = Proxy::start(server.addr());
    let builder = elector_at(proxy.url()).command_timeout(Duration::from_secs(10));
    let waiter = builder.connect().await.unwrap();
    let lease = lead(&direct, "x", &at_once()).await;
    server.reset_stats().await;
    // Each request is on its way for long: the claim is answered while the subscription has not even begun.
    proxy.delay_requests(ms(200));
    let wait = Duration::from_secs(60);
    let begun = Instant::now();
    let waiting = tokio::spawn(async move {
        waiter
            .try_acquire("x", &options(leader_tests::waiting(wait, wait)))
            .await
    });
    until("the claim has failed", LIMIT, async || {
        server.command_calls("evalsha").await + server.command_calls("eval").await > 0
    })
    .await;
    assert!(
        server
            .command(&["PUBSUB", "CHANNELS"])
            .await
            .array()
            .is_empty()
    );
    lease.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert!(next.is_some());
    assert!(
        begun.elapsed() < wait / 2,
        "it slept until its last attempt: {:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_a_waiter_whose_listening_connection_is_killed_is_not_late() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let lease = lead(&a, "x", &at_once()).await;
    let waiter = {
        let b = b.clone();
        tokio::spawn(async move { b.try_acquire("x", &endless()).await })
    };
    until("the waiter listens", LIMIT, async || {
        !server
            .command(&["PUBSUB", "CHANNELS"])
            .await
            .array()
            .is_empty()
    })
    .await;
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    lease.release().await.unwrap();
    let begun = Instant::now();
    let next = timeout(LIMIT, waiter)
        .await
        .expect("elected long before the wait ends")
        .unwrap();
    let next = next.unwrap().expect("the slot was freed within the wait");
    println!("elected {:?} after the release", begun.elapsed());
    next.release().await.unwrap();

    // A flood for others does not end the listener.
    let lease = lead(&a, "x", &at_once()).await;
    let waiter = tokio::spawn(async move { b.try_acquire("x", &endless()).await });
    until("the waiter listens", LIMIT, async || {
        !server
            .command(&["PUBSUB", "CHANNELS"])
            .await
            .array()
            .is_empty()
    })
    .await;
    let channel = server.command(&["PUBSUB", "CHANNELS"]).await.array()[0].text();
    let flood = "for i = 1, 20000 do redis.call('PUBLISH', ARGV[1], '0:' .. i) redis.call('PUBLISH', 'other', i) end";
    server.command(&["EVAL", flood, "0", &channel]).await;
    lease.release().await.unwrap();
    let next = timeout(LIMIT, waiter)
        .await
        .expect("elected long before the wait ends")
        .unwrap();
    assert!(next.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a15_what_stands_in_the_place_of_the_record_is_left_alone() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    lead(&a, "x", &at_once()).await.release().await.unwrap();
    let key = server.command(&["KEYS", "*{x}*"]).await.array()[0].text();
    let foreign: [&[&str]; 4] = [
        &["SET", &key, "theirs", "EX", "1000"],
        &["SET", &key, "theirs"],
        &["HSET", &key, "theirs", "1"],
        &["RPUSH", &key, "theirs"],
    ];
    for theirs in foreign {
        server.command(&["DEL", &key]).await;
        server.command(theirs).await;
        let before = server.command(&["DUMP", &key]).await;
        let failed = a.try_acquire("x", &at_once()).await;
        match failed {
            Err(
                error @ LeaderError::Backend {
                    kind: BackendKind::WrongType,
                    ..
                },
            ) => {
                assert!(
                    error.to_string().contains(&key),
                    "{error} does not name {key}"
                );
            }
            other => panic!("{theirs:?}: {other:?}"),
        }
        assert!(a.state("x").await.is_err());
        assert!(a.force_release("x").await.is_err());
        assert_eq!(
            server.command(&["DUMP", &key]).await,
            before,
            "{theirs:?} was changed"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_extension_survives_a_cut_and_ends_with_the_deadline() {
    let (_server, proxy, through, direct) = behind_proxy().await;
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(4)).auto_extend(true));
    let mut events = through.events();
    let lease = lead(&through, "x", &extended).await;
    proxy.cut().await;
    // The first extension fails.
    timeout(LIMIT, async {
        while !matches!(events.next().await, Some(LeaderEvent::Failed { .. })) {}
    })
    .await
    .expect("an extension failed");
    proxy.heal().await;
    timeout(LIMIT, async {
        while !matches!(events.next().await, Some(LeaderEvent::Extended { .. })) {}
    })
    .await
    .expect("and a later one succeeded");
    lease.ensure_valid().unwrap();

    // For good: lost at the deadline, and the store gives it to nobody before.
    proxy.cut().await;
    let deadline = Instant::now() + lease.remaining();
    lease.lost().await;
    assert!(Instant::now() >= deadline, "lost before its deadline");
    let next = lead(&direct, "x", &patient()).await;
    assert!(next.fence() > lease.fence());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b03_every_transient_answer_is_survived_while_extending() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(3)).auto_extend(true));
    let lease = lead(&a, "x", &extended).await;
    let mut events = a.events();

    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let kind = failed_extension(&mut events).await;
    assert_eq!(kind, BackendKind::ReadOnly);
    server
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "no"])
        .await;
    server
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "yes"])
        .await;
    server.command(&["REPLICAOF", "NO", "ONE"]).await;
    extended_again(&mut events).await;

    server.command(&["SCRIPT", "FLUSH"]).await;
    extended_again(&mut events).await;

    // BUSY: a script that runs on, until it is killed.
    server
        .command(&["CONFIG", "SET", "lua-time-limit", "10"])
        .await;
    let mut busy = server.connect().await.unwrap();
    busy.send(&["EVAL", "while true do end", "0"])
        .await
        .unwrap();
    let kind = failed_extension(&mut events).await;
    assert!(
        matches!(kind, BackendKind::NotReady | BackendKind::TimedOut),
        "{kind:?}"
    );
    server.command(&["SCRIPT", "KILL"]).await;
    extended_again(&mut events).await;

    lease.ensure_valid().unwrap();
    lease.release().await.unwrap();
}

async fn failed_extension(events: &mut leader_core::Events) -> BackendKind {
    let failed = async {
        loop {
            if let Some(LeaderEvent::Failed { kind, .. }) = events.next().await {
                return kind;
            }
        }
    };
    timeout(LIMIT, failed).await.expect("an extension failed")
}

async fn extended_again(events: &mut leader_core::Events) {
    let extended = async {
        loop {
            match events.next().await {
                Some(LeaderEvent::Extended { .. }) => return,
                Some(LeaderEvent::Lost { reason, .. }) => panic!("lost: {reason}"),
                _ => {}
            }
        }
    };
    timeout(LIMIT, extended)
        .await
        .expect("an extension succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b04_another_token_in_its_place_is_found_within_one_interval() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(3)).auto_extend(true));
    let lease = lead(&a, "x", &extended).await;
    let key = server.command(&["KEYS", "*{x}*"]).await.array()[0].text();
    // As an administrator would, past the library.
    server.command(&["DEL", &key]).await;
    let successor = lead(&b, "x", &at_once()).await;
    assert!(
        successor.fence() > lease.fence(),
        "the counter was deleted, and the order lost (g02)"
    );
    lease.lost().await;
    assert!(
        matches!(
            lease.ensure_valid(),
            Err(LeaderError::LeaseLost {
                reason: LossReason::Taken,
                ..
            })
        ),
        "{:?}",
        lease.ensure_valid()
    );
    assert!(lease.extend(Duration::from_secs(30)).await.is_err());
    assert!(lease.release().await.is_err());
    assert_eq!(
        b.state("x").await.unwrap().holders()[0].fence(),
        successor.fence()
    );
}

#[test]
fn b08_a_body_that_blocks_a_current_thread_runtime_is_not_elected_when_it_yields() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        let server = Server::start().await;
        let a = connect(&server.url(), "a").await;
        let extended = options(waiting(Duration::ZERO, Duration::from_secs(1)).auto_extend(true));
        a.run_if_leader("x", &extended, async |_| {
            std::thread::sleep(Duration::from_secs(2));
        })
        .await
    });
    assert!(
        matches!(outcome, Err(LeaderError::LeaseLost { .. })),
        "{outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b08_a_body_that_blocks_its_worker_keeps_its_lease_on_a_multi_thread_runtime() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    let extended = options(waiting(Duration::ZERO, Duration::from_secs(1)).auto_extend(true));
    let run = tokio::spawn(async move {
        a.run_if_leader("x", &extended, async |_| {
            std::thread::sleep(Duration::from_secs(2));
        })
        .await
    });
    assert_eq!(run.await.unwrap().unwrap(), Some(()));
}

#[test]
fn b08_with_a_runtime_of_its_own_the_lease_is_kept_even_on_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        let server = Server::start().await;
        let builder = elector_at(server.url()).own_runtime(true);
        let a = builder.connect().await.unwrap();
        let extended = options(waiting(Duration::ZERO, Duration::from_secs(1)).auto_extend(true));
        let run = a
            .run_if_leader("x", &extended, async |_| {
                std::thread::sleep(Duration::from_secs(2));
            })
            .await;
        a.shutdown().await;
        run
    });
    assert_eq!(outcome.unwrap(), Some(()));
}

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b04_a_notified_body_of_a_deleted_lease_comes_to_its_own_end() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let notify = options(
        waiting(Duration::ZERO, Duration::from_secs(2))
            .auto_extend(true)
            .on_lost(OnLost::Notify),
    );
    let run = a.run_if_leader("x", &notify, async |lease| {
        b.force_release("x").await.unwrap();
        lease.cancellation_token().cancelled().await;
        sleep(ms(100)).await;
    });
    let outcome = run.await;
    assert!(
        matches!(
            outcome,
            Err(LeaderError::LeaseLost {
                reason: LossReason::Deleted,
                ..
            })
        ),
        "{outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d03_failing_open_runs_the_body_once_without_a_lease() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    server.kill().await;
    let mut ran = 0;
    let outcome = a
        .run_fail_open("x", &at_once(), async |lease| {
            ran += 1;
            assert!(lease.is_none());
            assert!(current_lease().is_none());
            assert!(ensure_leader().is_err());
            None::<u8>
        })
        .await;
    assert_eq!(outcome.unwrap(), Some(None));
    assert_eq!(ran, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g02_fencing_goes_on_after_the_counter_is_lost() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    let mut last = lead(&a, "x", &at_once()).await.fence();
    for forget in [
        &["FLUSHALL"][..],
        &["SCRIPT", "FLUSH"],
        &["FLUSHALL"],
        &["DEL", "leader:{x}:lease"],
    ] {
        server.command(forget).await;
        let lease = lead(&a, "x", &patient()).await;
        assert!(
            lease.fence() > last,
            "{forget:?}: {:?} after {last:?}",
            lease.fence()
        );
        last = lease.fence();
        lease.release().await.unwrap();
    }
    server.kill().await;
    server.restart().await;
    assert!(lead(&a, "x", &patient()).await.fence() > last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_a_waiter_that_could_not_listen_at_first_is_told_all_the_same() {
    let server = Server::start().await;
    let (a, b) = (
        connect(&server.url(), "a").await,
        connect(&server.url(), "b").await,
    );
    let lease = lead(&a, "x", &at_once()).await;
    // No room for another connection, which is what a listener needs.
    let mut admin = server.connect().await.unwrap();
    admin
        .call(&["CONFIG", "SET", "maxclients", "3"])
        .await
        .unwrap();
    let waiter = tokio::spawn(async move { b.try_acquire("x", &endless()).await });
    sleep(Duration::from_secs(1)).await;
    admin
        .call(&["CONFIG", "SET", "maxclients", "1000"])
        .await
        .unwrap();
    until("it listens", LIMIT, async || {
        let channels = admin.call(&["PUBSUB", "CHANNELS"]).await.unwrap();
        !channels.array().is_empty()
    })
    .await;
    lease.release().await.unwrap();
    let next = timeout(LIMIT, waiter).await.expect("it is told").unwrap();
    assert!(next.unwrap().is_some());
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
