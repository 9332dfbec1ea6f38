//! P1: an uncontended run, one task, on Redis.

use std::time::Duration;

use leader_redis::RedisElector;
use leader_redis::fred::interfaces::ClientLike;
use leader_tests::Server;
use tokio::runtime::Runtime;

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::{fred_client, many_threads, one_thread, options, pings, runs, sent};
use crate::rounds::{ROUNDS, Rounds};

pub(crate) const FIGURE: Figure = Figure {
    id: "P1",
    what: "one task, uncontended guarded run on Redis",
    measure,
    play: None,
};

const TIMES: u32 = 1000;
const NAME: &str = "invoice-close";

fn measure() -> Outcome<Vec<Reading>> {
    let mut readings = on(&many_threads()?, "the default runtime")?;
    readings.extend(on(&one_thread()?, "a runtime of one thread")?);
    Ok(readings)
}

fn on(runtime: &Runtime, named: &'static str) -> Outcome<Vec<Reading>> {
    runtime.block_on(async {
        let server = Server::start().await;
        let client = fred_client(&server.url()).await?;
        let elector = RedisElector::builder()
            .client(client.clone())
            .connect()
            .await?;
        let options = options(Duration::from_secs(5))?;
        // Scripts are loaded, connections are warm.
        runs(&elector, NAME, &options, TIMES).await?;
        let rounds = Rounds::<2>::of(ROUNDS, async |which| match which {
            0 => runs(&elector, NAME, &options, TIMES).await,
            _ => pings(&client, TIMES).await,
        });
        let rounds = rounds.await?;
        let (run, ping) = (rounds.median(0), rounds.median(1));
        server.reset_stats().await;
        runs(&elector, NAME, &options, TIMES).await?;
        let sent = sent(&server).await;
        client.quit().await?;
        Ok(vec![
            Reading::ratio(
                format!("time, {named}"),
                rounds.ratio(0, 1) / 2.0,
                "x two pings",
                Goal::AtMost(1.15),
            )
            .note(format!("a run {run:.1} µs, a ping {ping:.1} µs")),
            Reading::count(
                format!("commands, {named}"),
                sent / f64::from(TIMES),
                "commands",
                Goal::Exactly(2.0),
            ),
        ])
    })
}
