//! P1: an uncontended run, one task, on Redis.

use std::time::{Duration, Instant};

use leader_redis::RedisElector;
use leader_redis::fred::interfaces::ClientLike;
use leader_tests::Server;
use tokio::runtime::Runtime;

use crate::bare::{ByFred, Socket};
use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::{fred_client, many_threads, one_thread, options, pings, runs, sent};
use crate::rounds::{ROUNDS, Rounds, median, micros};

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
    readings.push(by_socket()?);
    Ok(readings)
}

/// The floor of all that decides in these scripts: nothing but a socket.
fn by_socket() -> Outcome<Reading> {
    let server = many_threads()?.block_on(Server::start());
    let mut socket = Socket::connect(&server.url())?;
    let [claim, release] = socket.load()?;
    let mut number = 0;
    let mut seen = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..TIMES {
            number += 1;
            let slot = socket.claim(&claim, NAME, number)?;
            socket.release(&release, NAME, number, &slot)?;
        }
        let ran = begun.elapsed();
        let begun = Instant::now();
        for _ in 0..TIMES {
            socket.ask(&["PING"])?;
        }
        let pinged = micros(begun.elapsed()) / f64::from(TIMES);
        seen[0].push(micros(ran) / f64::from(TIMES) / pinged / 2.0);
        seen[1].push(pinged);
    }
    let [ratio, ping] = seen.map(median);
    let floor = "time, the same scripts by a bare blocking socket";
    let reading = Reading::ratio(floor, ratio, "x two pings of the same", Goal::None);
    Ok(reading.note(format!("a ping {ping:.1} µs")))
}

fn on(runtime: &Runtime, named: &'static str) -> Outcome<Vec<Reading>> {
    runtime.block_on(async {
        let server = Server::start().await;
        let client = fred_client(&server.url(), true).await?;
        let elector = RedisElector::builder()
            .client(client.clone())
            .connect()
            .await?;
        let options = options(Duration::from_secs(5))?;
        // Scripts are loaded, connections are warm.
        runs(&elector, NAME, &options, TIMES).await?;
        let bare = ByFred::load(&client).await?;
        let rounds = Rounds::<3>::of(ROUNDS, async |which| match which {
            0 => runs(&elector, NAME, &options, TIMES).await,
            1 => pings(&client, TIMES).await,
            _ => bare_runs(&bare, TIMES).await,
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
            Reading::ratio(
                format!("time, {named}, to the scripts alone"),
                rounds.ratio(0, 2),
                "x the same scripts by the same client",
                Goal::None,
            ),
            Reading::count(
                format!("commands, {named}"),
                sent / f64::from(TIMES),
                "commands",
                Goal::Exactly(2.0),
            ),
        ])
    })
}

/// The mean time of a claim and its release sent bare, in a task as [`runs`].
async fn bare_runs(bare: &ByFred, times: u32) -> Outcome<f64> {
    let bare = bare.clone();
    let task = tokio::spawn(async move {
        let begun = Instant::now();
        for number in 0..times {
            bare.run(NAME, number.into()).await?;
        }
        Ok(micros(begun.elapsed()) / f64::from(times))
    });
    task.await?
}
