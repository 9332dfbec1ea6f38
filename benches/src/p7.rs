//! P7: a holder that is killed: from the end of its lease to the first line of the body that waits for it.
//!
//! The server has ten thousand other keys that expire: who relied on the server to tell of expiry would hear of it late.

use std::time::Duration;

use futures::future::try_join_all;
use leader_core::{ElectorExt, LeaseOptions};
use leader_redis::RedisElector;
use leader_tests::{Server, until};
use tokio::time::{Instant, sleep};

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::{fred_client, many_threads, pings, second_process};
use crate::rounds::{median, micros};

pub(crate) const FIGURE: Figure = Figure {
    id: "P7",
    what: "holder killed with SIGKILL, lease's end to the waiter's first line, 10 000 other expiring keys",
    measure,
    play: Some(play),
};

const LEASES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];
const ROUNDS: u32 = 7;
const OTHER_KEYS: u32 = 10_000;
const LIMIT: Duration = Duration::from_secs(60);

fn measure() -> Outcome<Vec<Reading>> {
    many_threads()?.block_on(async {
        let server = Server::start().await;
        fill(&server).await?;
        let client = fred_client(&server.url(), true).await?;
        let elector = RedisElector::builder().client(client.clone()).connect().await?;
        let ping = pings(&client, 1000).await?;
        let mut readings = Vec::new();
        for lease in LEASES {
            // All rounds at once: each has a name and a holder of its own, and they end one after the other.
            let rounds = (0..ROUNDS).map(|round| take_over(&server, &elector, lease, round));
            let late = try_join_all(rounds).await?;
            let bound = micros(lease) / 100.0 + 20.0 * ping;
            let worst = late.iter().copied().fold(f64::MIN, f64::max);
            let late = median(late);
            readings.push(
                Reading::ratio(
                    format!("lease of {lease:?}"),
                    late / bound,
                    "x (1 % of the lease + 20 pings)",
                    Goal::AtMost(1.0),
                )
                .note(format!(
                    "{:.2} ms after the lease's end, the worst of {ROUNDS} {:.2} ms; a ping {ping:.0} µs",
                    late / 1000.0,
                    worst / 1000.0
                )),
            );
        }
        Ok(readings)
    })
}

async fn fill(server: &Server) -> Outcome {
    let script =
        "for i = 1, ARGV[1] do redis.call('SET', 'session:' .. i, i, 'PX', 20000 + i * 10) end";
    let others = OTHER_KEYS.to_string();
    let filled = server.command(&["EVAL", script, "0", &others]).await;
    match filled.error() {
        None => Ok(()),
        Some(error) => Err(error.into()),
    }
}

/// How many microseconds after the end of the lease of a holder that was killed somebody else leads.
async fn take_over(
    server: &Server,
    elector: &RedisElector,
    lease: Duration,
    round: u32,
) -> Outcome<f64> {
    sleep(lease * round / ROUNDS / 2).await;
    let name = format!("feed:{}:{round}", lease.as_secs());
    let seconds = lease.as_secs().to_string();
    let mut holder = second_process(&FIGURE, &[&server.url(), &name, &seconds])?;
    holder.wait_for_line("leads", LIMIT).await;
    let options = LeaseOptions::builder().wait(LIMIT).lease(lease).build()?;
    let waiter = tokio::spawn({
        let (elector, name) = (elector.clone(), name.clone());
        async move {
            elector
                .run_if_leader(name, &options, |_| async { Instant::now() })
                .await
        }
    });
    let channel = format!("leader:{{{name}}}:released");
    until("the waiter waits", LIMIT, async || {
        let told = server.command(&["PUBSUB", "NUMSUB", &channel]).await;
        told.array()
            .last()
            .is_some_and(|count| count.integer() == 1)
    })
    .await;
    holder.kill().await;
    let state = elector.state(name.as_str()).await?;
    let left = state.holders().first().ok_or("nobody held it")?.remaining();
    let end = Instant::now() + left;
    let led = waiter.await??.ok_or("the wait was over")?;
    Ok(micros(led.duration_since(end)))
}

fn play(args: &[&str]) -> Outcome {
    let [url, name, seconds] = args else {
        return Err("its arguments are the URL, the name and the lease".into());
    };
    many_threads()?.block_on(async {
        let elector = RedisElector::connect(*url).await?;
        let options = LeaseOptions::builder()
            .lease(Duration::from_secs(seconds.parse()?))
            .auto_extend(true)
            .build()?;
        let lease = elector.try_acquire(*name, &options).await?;
        let lease = lease.ok_or("somebody else leads")?;
        println!("leads");
        lease.lost().await;
        Err("the lease was lost".into())
    })
}
