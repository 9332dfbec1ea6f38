//! P1: an uncontended run, one task, on Redis.

use std::time::Duration;

use leader_core::ElectorExt;
use leader_redis::RedisElector;
use leader_redis::fred::interfaces::ClientLike;
use leader_tests::Server;
use tokio::runtime::Runtime;

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::{fred_client, in_a_task, many_threads, one_thread, options, sent};
use crate::rounds::{ROUNDS, Rounds, micros_each};

pub(crate) const FIGURE: Figure = Figure {
    id: "P1",
    what: "one task, uncontended guarded run on Redis",
    measure,
    play: None,
};

const CALLS: u32 = 1000;
const NAME: &str = "invoice-close";

fn measure() -> Outcome<Vec<Reading>> {
    let mut readings = on(&many_threads()?, "the default runtime")?;
    readings.extend(on(&one_thread()?, "a runtime of one thread")?);
    Ok(readings)
}

fn on(runtime: &Runtime, named: &'static str) -> Outcome<Vec<Reading>> {
    in_a_task(runtime, async move {
        let server = Server::start().await;
        let client = fred_client(&server.url()).await?;
        let elector = RedisElector::builder()
            .client(client.clone())
            .connect()
            .await?;
        let options = options(Duration::from_secs(5))?;
        let run = async || -> Outcome {
            let ran = elector.run_if_leader(NAME, &options, async |_| ()).await?;
            ran.ok_or_else(|| "somebody else leads".into())
        };
        let ping = async || -> Outcome { Ok(client.ping::<()>(None).await?) };
        // Scripts are loaded, connections are warm.
        micros_each(CALLS, run).await?;
        let rounds = Rounds::<2>::of(ROUNDS, async |which| match which {
            0 => micros_each(CALLS, run).await,
            _ => micros_each(CALLS, ping).await,
        });
        let rounds = rounds.await?;
        let (run_time, ping_time) = (rounds.median(0), rounds.median(1));
        server.reset_stats().await;
        micros_each(CALLS, run).await?;
        let sent = sent(&server).await;
        client.quit().await?;
        Ok(vec![
            Reading::ratio(
                format!("time, {named}"),
                rounds.ratio(0, 1) / 2.0,
                "x two pings",
                Goal::AtMost(1.15),
            )
            .note(format!("a run {run_time:.1} µs, a ping {ping_time:.1} µs")),
            Reading::count(
                format!("commands, {named}"),
                sent / f64::from(CALLS),
                "commands",
                Goal::Exactly(2.0),
            ),
        ])
    })
}
