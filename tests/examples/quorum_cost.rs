//! What a quorum of five costs against one server: the time of an uncontended run, on the loopback interface as it is, with
//! a millisecond each way, and with two of the five hung.
//!
//! ```text
//! cargo run --release -p leader-tests --example quorum_cost
//! ```
//!
//! One server and five take turns, so that whatever else the machine does meanwhile falls on both. The times are the
//! medians of all runs; how the ratio differs from turn to turn says what they are worth. On the loopback interface there
//! is nothing but processor time, and five servers take five times as much of it; a network is where the rounds can be
//! seen. One of the five counts the commands: two in a run are one for the claim and one for the release.

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
    /// Of the turns, in order.
    ratios: Vec<f64>,
    /// That a server of the five was sent in a run.
    commands: f64,
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
        rows.push(compare(what, &one, &five, &servers[1], runs).await?);
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
    rows.push(compare("1 ms each way, two hung", &one, &five, &servers[1], 25).await?);
    for server in &servers[3..] {
        server.thaw().await;
    }

    println!("median time of an uncontended run; a server has {LIMIT:?} for a command");
    println!(
        "{:<26}{:>12}{:>12}{:>8}{:>14}{:>10}",
        "", "one", "five", "ratio", "by turn", "commands"
    );
    for Row {
        what,
        one,
        five,
        ratios,
        commands,
    } in rows
    {
        let ratio = five.as_secs_f64() / one.as_secs_f64();
        let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
        println!(
            "{what:<26}{:>9} us{:>9} us{ratio:>8.2}{:>14}{commands:>10.2}",
            one.as_micros(),
            five.as_micros(),
            format!("{least:.2}..{most:.2}"),
        );
    }
    Ok(())
}

/// The median time of a run on either, in turns. `counts` is of the five, and not the one.
async fn compare(
    what: &'static str,
    one: &impl Elector,
    five: &impl Elector,
    counts: &Server,
    runs: usize,
) -> Result<Row, leader_core::LeaderError> {
    let (mut times_of_one, mut times_of_five) = (Vec::new(), Vec::new());
    // Connections, scripts and caches are warm by then.
    measure(one, runs, &mut Vec::new()).await?;
    measure(five, runs, &mut Vec::new()).await?;
    let commands = counts.command_calls("evalsha").await;
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let turn = times_of_one.len();
        measure(one, runs, &mut times_of_one).await?;
        measure(five, runs, &mut times_of_five).await?;
        let of_one = median(&times_of_one[turn..]);
        ratios.push(median(&times_of_five[turn..]).as_secs_f64() / of_one.as_secs_f64());
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let commands = counts.command_calls("evalsha").await - commands;
    Ok(Row {
        what,
        one: median(&times_of_one),
        five: median(&times_of_five),
        ratios,
        commands: number(commands) / number((TURNS * runs) as u64),
    })
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

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Small enough for that.
fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
