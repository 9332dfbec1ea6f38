//! What a quorum of five costs against one server: the time of an uncontended run, on the loopback interface as it is, with
//! a millisecond each way, and with two of the five hung.
//!
//! ```text
//! cargo run --release -p leader-tests --example quorum_cost
//! ```
//!
//! One server and five take turns, so that whatever else the machine does meanwhile falls on both. On the loopback
//! interface there is nothing but processor time, and five servers take five times as much of it; a network is where the
//! rounds can be seen.

use std::time::{Duration, Instant};

use leader_core::{Elector, ElectorExt, LeaseOptions};
use leader_redis::RedisElector;
use leader_tests::{Proxy, Server};

const NODES: usize = 5;
const ONE_WAY: Duration = Duration::from_millis(1);
/// How long a server may take for one command.
const LIMIT: Duration = Duration::from_millis(200);
/// Turns of each kind of elector, and runs in each turn.
const TURNS: usize = 20;

struct Row {
    what: &'static str,
    one: Duration,
    five: Duration,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut servers = Vec::new();
    for _ in 0..NODES {
        servers.push(Server::start().await);
    }
    let proxies: Vec<Proxy> = servers
        .iter()
        .map(|server| Proxy::start(server.addr()))
        .collect();
    for proxy in &proxies {
        proxy.delay_requests(ONE_WAY);
        proxy.delay_replies(ONE_WAY);
    }
    let near: Vec<String> = servers.iter().map(Server::url).collect();
    let far: Vec<String> = proxies.iter().map(Proxy::url).collect();

    let mut rows = Vec::new();
    for (what, urls, runs) in [("loopback", &near, 200), ("1 ms each way", &far, 25)] {
        let one = RedisElector::builder()
            .url(&urls[0])
            .command_timeout(LIMIT)
            .connect()
            .await?;
        let five = RedisElector::quorum(urls.iter().cloned())
            .command_timeout(LIMIT)
            .connect()
            .await?;
        let (one, five) = compare(&one, &five, runs).await?;
        rows.push(Row { what, one, five });
    }

    let one = RedisElector::builder()
        .url(&far[0])
        .command_timeout(LIMIT)
        .connect()
        .await?;
    let five = RedisElector::quorum(far.iter().cloned())
        .command_timeout(LIMIT)
        .connect()
        .await?;
    for server in &servers[3..] {
        server.freeze().await;
    }
    let (one, five) = compare(&one, &five, 25).await?;
    rows.push(Row {
        what: "1 ms each way, two hung",
        one,
        five,
    });
    for server in &servers[3..] {
        server.thaw().await;
    }

    println!("median time of an uncontended run; a server has {LIMIT:?} for a command");
    println!("{:<26}{:>12}{:>12}{:>8}", "", "one", "five", "ratio");
    for Row { what, one, five } in rows {
        let ratio = five.as_secs_f64() / one.as_secs_f64();
        println!(
            "{what:<26}{:>9} us{:>9} us{ratio:>8.2}",
            one.as_micros(),
            five.as_micros()
        );
    }
    Ok(())
}

/// The median time of a run on either, in turns.
async fn compare(
    one: &impl Elector,
    five: &impl Elector,
    runs: usize,
) -> Result<(Duration, Duration), leader_core::LeaderError> {
    let (mut times_of_one, mut times_of_five) = (Vec::new(), Vec::new());
    // Connections, scripts and caches are warm by then.
    measure(one, runs, &mut Vec::new()).await?;
    measure(five, runs, &mut Vec::new()).await?;
    for _ in 0..TURNS {
        measure(one, runs, &mut times_of_one).await?;
        measure(five, runs, &mut times_of_five).await?;
    }
    Ok((median(times_of_one), median(times_of_five)))
}

async fn measure(
    elector: &impl Elector,
    runs: usize,
    times: &mut Vec<Duration>,
) -> Result<(), leader_core::LeaderError> {
    let options = LeaseOptions::builder()
        .wait(Duration::ZERO)
        .lease(Duration::from_secs(60))
        .build()?;
    for _ in 0..runs {
        let begun = Instant::now();
        let ran = elector
            .run_if_leader("cost", &options, async |_| ())
            .await?;
        assert!(ran.is_some(), "nobody else leads");
        times.push(begun.elapsed());
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
