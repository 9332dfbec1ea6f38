//! Many events and many pages: neither costs a lease, nor grows without end.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use leader_tests::until;
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::time::{Duration, Instant};

use crate::support::{Bench, LIMIT};

const PAGES: usize = 10;
/// Those of them that read nothing until the end.
const SLOW_PAGES: usize = 3;
const EVENTS: u64 = 10_000;
/// For all of them: less than the minute after which a page that takes nothing is sent away.
const SHOWN: Duration = Duration::from_secs(50);

/// Resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse::<u64>().unwrap() * 1024
}

#[cfg(not(target_os = "linux"))]
fn memory() -> u64 {
    0
}

/// A page that has asked for events, and reads none of them: what it has room for is little.
async fn slow_page(addr: SocketAddr) -> std::net::TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(addr).await.unwrap().into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(&stream, "GET /api/events HTTP/1.1\r\nHost: {addr}\r\n\r\n").unwrap();
    stream
}

/// Reads until a frame says that something was missed: how many, and whether a new beginning came with it.
fn told_of_missing(mut stream: &std::net::TcpStream) -> (u64, bool) {
    let mut text = String::new();
    let mut bytes = [0; 8192];
    loop {
        let read = stream.read(&mut bytes).expect("the page is told in time");
        assert_ne!(read, 0, "the page was closed");
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        let mut from = 0;
        while let Some(at) = text[from..].find(r#"{"missed":"#) {
            let number = &text[from + at + r#"{"missed":"#.len()..];
            let Some((number, _)) = number.split_once(',') else {
                break;
            };
            if number != "0" {
                let head = &text[..from + at];
                return (
                    number.parse().unwrap(),
                    head.ends_with("event: snapshot\ndata: "),
                );
            }
            from += at + 1;
        }
        // The beginning of a number may stand at the end.
        let keep = text.len().saturating_sub(200).max(from);
        let keep = (0..=keep)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.drain(..keep);
    }
}

/// About ten seconds on a machine that makes a thousand events a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_events_and_ten_pages_cost_no_lease() {
    let bench = Bench::in_memory();
    // Two lead all the while, and extend their leases.
    let settings = json!({
        "slots": 4, "candidates": 6, "lease_ms": 15_000, "min_lease_ms": 0, "wait_ms": 0,
        "work_ms": 600_000, "auto_extend": true,
    });
    bench.settings(settings).await;
    for id in ["a", "b"] {
        bench.candidate(id, "start").await;
        bench.until_phase(id, "leading").await;
    }
    // The others come and go, as often as they can.
    bench.settings(json!({ "work_ms": 1, "pause_ms": 1 })).await;
    for id in ["c", "d", "e", "f"] {
        bench.candidate(id, "start").await;
    }
    let holders = async || -> Vec<Value> {
        let state = bench.state().await;
        let rows = state["candidates"].as_array().unwrap();
        rows.iter()
            .take(2)
            .map(|row| json!([row["phase"], row["fence"]]))
            .collect()
    };
    let leaders = holders().await;

    let quick: Vec<_> = (SLOW_PAGES..PAGES).map(|_| bench.page()).collect();
    let reading: Vec<_> = quick
        .into_iter()
        .map(|mut page| {
            tokio::spawn(async move {
                let mut frames = 0;
                while page.recv().await.is_some() {
                    frames += 1;
                }
                frames
            })
        })
        .collect();
    let last = async || bench.state().await["last"].as_u64().unwrap();
    let warm = last().await + EVENTS / 5;
    until("it is warm", LIMIT, async || last().await >= warm).await;
    // Not before, as they are not kept for long.
    let mut slow = Vec::new();
    for _ in 0..SLOW_PAGES {
        slow.push(slow_page(bench.addr).await);
    }

    let (before, from, began) = (memory(), last().await, Instant::now());
    until("ten thousand events", SHOWN, async || {
        last().await >= from + EVENTS
    })
    .await;
    let (events, took) = (last().await - from, began.elapsed());
    let grown = memory().saturating_sub(before);
    println!("{events} events in {took:.1?}, {PAGES} pages open, {grown} bytes more in memory");
    assert!(grown < 16 << 20, "{grown} bytes more in memory");

    assert_eq!(
        holders().await,
        leaders,
        "who led still leads, with the same fencing token"
    );
    assert_eq!(bench.count("lost").await, 0);

    for page in &slow {
        let page = page.try_clone().unwrap();
        let told = tokio::task::spawn_blocking(move || told_of_missing(&page))
            .await
            .unwrap();
        assert!(told.0 > 0 && told.1, "{told:?}");
    }
    bench.end().await;
    for page in reading {
        assert!(
            page.await.unwrap() > 1,
            "a page that reads is shown what happens"
        );
    }
}

#[tokio::test]
async fn pages_are_limited_and_a_closed_one_makes_room() {
    let bench = Bench::in_memory();
    let mut pages = Vec::new();
    let refused = loop {
        let mut page = bench.page();
        match page.recv().await {
            Some((kind, _)) => assert_eq!(kind, "snapshot"),
            None => break bench.get("/api/events").await,
        }
        pages.push(page);
        assert!(pages.len() < 100, "there is no limit");
    };
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(refused.json()["code"], "too_many_pages");
    assert!(pages.len() >= PAGES);
    drop(pages);
    until("there is room", LIMIT, async || {
        bench.page().recv().await.is_some()
    })
    .await;
}
