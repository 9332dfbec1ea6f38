//! Scenarios that only a second, real process can show: one that is frozen, killed, or one of several.

use std::path::Path;
use std::time::Duration;

use leader_core::{ElectorExt, LeaseOptions};
use leader_redis::RedisElector;
use leader_tests::{
    Server, Worker, at_once, elector_at, is_skipped, lead, ms, options, until, waiting,
};
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(20);

fn worker(args: &[&str]) -> Worker {
    Worker::spawn(env!("CARGO_BIN_EXE_worker"), args)
}

async fn candidate(server: &Server, node_id: &str) -> RedisElector {
    let builder = elector_at(server.url()).node_id(node_id);
    let builder = builder.command_timeout(Duration::from_secs(5));
    builder.connect().await.unwrap()
}

fn number(line: &str) -> u64 {
    let number = line
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no number in {line:?}"))
}

#[tokio::test]
async fn b05_a_frozen_leader_is_not_polled_again_and_a_peer_led_meanwhile() {
    let server = Server::start().await;
    let peer = candidate(&server, "peer").await;
    let mut frozen = worker(&["lead", &server.url(), "x", "1000", "0", "extend"]);
    let old = number(&frozen.wait_for_line("leading", LIMIT).await);
    frozen.wait_for_line("tick", LIMIT).await;
    let waiter = {
        let peer = peer.clone();
        let options = options(waiting(LIMIT, Duration::from_secs(60)));
        tokio::spawn(async move { peer.try_acquire("x", &options).await })
    };

    frozen.freeze().await;
    let since = Instant::now();
    // What it had said before is read now; frozen, it says nothing more.
    while frozen.next_line(ms(100)).await.is_some() {}
    let lease = waiter
        .await
        .unwrap()
        .unwrap()
        .expect("the frozen leader's lease ends");
    tokio::time::sleep_until(since + Duration::from_secs(3)).await;
    frozen.thaw().await;

    let next = frozen.next_line(LIMIT).await.expect("it goes on");
    assert_eq!(
        next,
        format!("lost {old} expired"),
        "the body was polled after the freeze"
    );
    let new = lease.fence().get();
    println!("fencing tokens: {old} of the frozen leader, {new} of its successor");
    assert!(new > old);
    lease.ensure_valid().unwrap();
    assert_eq!(
        peer.state("x").await.unwrap().holders()[0].fence(),
        lease.fence()
    );
}

#[tokio::test]
async fn a10_a_killed_holders_lease_is_had_as_it_ends_among_ten_thousand_expiring_keys() {
    let server = Server::start().await;
    let fill = "for i = 1, 10000 do redis.call('SET', 'other:' .. i, i, 'PX', 3600000 + i) end";
    server.command(&["EVAL", fill, "0"]).await;
    let peer = candidate(&server, "peer").await;
    let lease = Duration::from_secs(1);
    let mut holder = worker(&["hold", &server.url(), "x", "1000"]);
    holder.wait_for_line("leading", LIMIT).await;
    holder.kill().await;
    let left = peer
        .state("x")
        .await
        .unwrap()
        .holders()
        .first()
        .map(leader_core::Holder::remaining);
    let killed = Instant::now();
    let next = lead(
        &peer,
        "x",
        &options(waiting(LIMIT, Duration::from_secs(60))),
    )
    .await;
    let late = killed.elapsed().saturating_sub(left.unwrap_or_default());
    println!("elected {late:?} after the lease of {lease:?} had ended");
    // The server notices the expiry of a key among so many others up to half a minute later.
    assert!(late < Duration::from_secs(5), "{late:?} late");
    drop(next);
}

#[tokio::test]
async fn a13_a_thousand_tasks_in_four_processes_share_two_hundred_hand_overs() {
    const PROCESSES: usize = 4;
    const HAND_OVERS: usize = 200;
    let server = Server::start().await;
    let peer = candidate(&server, "peer").await;
    let mut workers: Vec<Worker> = (0..PROCESSES)
        .map(|_| worker(&["contend", &server.url(), "x", "250"]))
        .collect();
    // All have led before anything is counted.
    let mut last = 0;
    for worker in &mut workers {
        last = last.max(number(&worker.wait_for_line("led", LIMIT).await));
    }
    let scripts = server.command_calls("evalsha").await;
    let mut led = vec![Vec::new(); PROCESSES];
    while led.iter().map(Vec::len).sum::<usize>() < HAND_OVERS {
        for (worker, led) in workers.iter_mut().zip(&mut led) {
            while let Some(line) = worker.next_line(ms(2)).await {
                assert!(line.starts_with("led"), "{line}");
                led.push(number(&line));
            }
        }
    }
    let scripts = server.command_calls("evalsha").await - scripts;
    for worker in &workers {
        worker.kill().await;
    }
    let hand_overs: usize = led.iter().map(Vec::len).sum();
    let shares: Vec<usize> = led.iter().map(Vec::len).collect();
    println!("{hand_overs} hand-overs, shared {shares:?}, {scripts} scripts");
    assert!(
        shares.iter().all(|share| *share > 0),
        "a process starved: {shares:?}"
    );
    // A release, and a claim or two by each process; a thousand tasks that ask would be far beyond it.
    let most = 3 * PROCESSES * hand_overs;
    assert!(
        usize::try_from(scripts).unwrap() < most,
        "{scripts} scripts"
    );
    let mut fences: Vec<u64> = led.into_iter().flatten().collect();
    let count = fences.len();
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), count, "a fencing token was given twice");
    drop(peer);
}

#[tokio::test]
async fn a_second_process_is_kept_out_and_let_in() {
    let server = Server::start().await;
    let here = candidate(&server, "here").await;
    let mut there = worker(&["hold", &server.url(), "x", "60000", "extend"]);
    there.wait_for_line("leading", LIMIT).await;
    assert!(is_skipped(&here, "x", &at_once()).await);
    here.force_release("x").await.unwrap();
    // It finds out by its next extension, a third of its lease later; its slot is somebody else's by then.
    let lease = lead(&here, "x", &LeaseOptions::default()).await;
    lease.release().await.unwrap();
    there.wait_for_line("valid", LIMIT).await;
}

#[tokio::test]
async fn a_terminated_holder_leaves_its_lease_to_end_by_itself() {
    let server = Server::start().await;
    let here = candidate(&server, "here").await;
    let mut there = worker(&["hold", &server.url(), "x", "3000", "extend"]);
    there.wait_for_line("valid", LIMIT).await;
    there.terminate();
    there.exit(LIMIT).await;
    until("the slot is free", LIMIT, async || {
        !is_skipped(&here, "x", &at_once()).await
    })
    .await;
}

/// Where the platforms' packages put `libfaketime`.
const LIBRARIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
    "/opt/homebrew/lib/faketime/libfaketime.1.dylib",
    "/usr/local/lib/faketime/libfaketime.1.dylib",
];

/// A wall clock that can be set, for one process alone: `libfaketime`, preloaded. Clocks that only go forward are not
/// touched, as no one who sets a machine's clock touches them.
struct WallClock {
    library: String,
    offset: tempfile::NamedTempFile,
}

impl WallClock {
    fn new() -> Self {
        let named = std::env::var("LEADER_TEST_LIBFAKETIME").ok();
        let usual = LIBRARIES.iter().map(|library| (*library).to_owned());
        let library = named
            .into_iter()
            .chain(usual)
            .find(|library| Path::new(library).exists());
        let library = library.expect(
            "this test needs libfaketime: run `cargo xtask test`, which installs it, or install the package `faketime` \
             and name the library in LEADER_TEST_LIBFAKETIME",
        );
        let clock = Self {
            library,
            offset: tempfile::NamedTempFile::new().unwrap(),
        };
        clock.set("+0");
        clock
    }

    fn set(&self, offset: &str) {
        std::fs::write(self.offset.path(), offset).unwrap();
    }

    fn worker(&self, args: &[&str]) -> Worker {
        let preload = format!("LD_PRELOAD={}", self.library);
        let offset = format!("FAKETIME_TIMESTAMP_FILE={}", self.offset.path().display());
        let mut all = vec![
            preload.as_str(),
            offset.as_str(),
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            env!("CARGO_BIN_EXE_worker"),
        ];
        all.extend(args);
        Worker::spawn("/usr/bin/env", &all)
    }
}

#[tokio::test]
async fn a14_a_wall_clock_that_jumps_changes_nothing() {
    let server = Server::start().await;
    let here = candidate(&server, "here").await;
    let clock = WallClock::new();
    let mut holder = clock.worker(&["hold", &server.url(), "x", "2000", "extend"]);
    holder.wait_for_line("leading", LIMIT).await;
    let fence = here.state("x").await.unwrap().holders()[0].fence();
    let mut waiter = clock.worker(&["lead", &server.url(), "x", "60000", "60000"]);
    waiter.wait_for_line("standing", LIMIT).await;

    let real = number(&holder.wait_for_line("valid", LIMIT).await);
    for (offset, jumped) in [("+3600s", 3_600_i64), ("-3600s", -3_600), ("+0", 0)] {
        clock.set(offset);
        // The holder sees the jump, and leads on for several of its extensions.
        let mut seen = 0;
        while seen < 40 {
            let line = holder.next_line(LIMIT).await.expect("the holder speaks");
            assert!(line.starts_with("valid"), "{offset}: {line}");
            let wall = i64::try_from(number(&line)).unwrap();
            let drift = wall - i64::try_from(real).unwrap() - jumped;
            if drift.abs() < 600 {
                seen += 1;
            }
        }
        assert_eq!(here.state("x").await.unwrap().holders()[0].fence(), fence);
        assert!(waiter.next_line(ms(1)).await.is_none(), "the waiter got in");
    }
    clock.set("+3600s");
    holder.kill().await;
    let led = number(&waiter.wait_for_line("leading", LIMIT).await);
    assert!(led > fence.get());
    // Nor is a fencing token made of the candidate's clock.
    assert!(led < (real + 600) * 1_000_000, "{led} is of another time");
}
