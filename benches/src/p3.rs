//! P3: a hand-over from one process to another: from the release to the first line of the next body.
//!
//! Two processes stand for the same name again and again. Each leads for some milliseconds, in which the other comes to
//! wait, and then leaves it to the other. While it leads it measures pings on the same client, one now and then: a
//! client that was idle is slower than one that is busy, and a waiter is idle.

use std::time::{Duration, Instant};

use leader_core::ElectorExt;
use leader_redis::RedisElector;
use leader_redis::fred::interfaces::ClientLike;
use leader_tests::{Server, Worker};

use crate::bare::{self, Socket};
use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::{fred_client, many_threads, monotonic, options, pings, second_process};
use crate::rounds::{median, micros, quantile};

pub(crate) const FIGURE: Figure = Figure {
    id: "P3",
    what: "hand-over from one process to another, release to first line",
    measure,
    play: Some(play),
};

const ROUNDS: usize = 7;
/// By each process in a round.
const TENURES: usize = 100;
const NAME: &str = "scheduler";
/// Longer than the pause in which a process that has released leaves the name to others (10 ms): by then the other one waits.
const LED: Duration = Duration::from_millis(20);
const LEFT: Duration = Duration::from_millis(3);
const LIMIT: Duration = Duration::from_secs(60);

fn measure() -> Outcome<Vec<Reading>> {
    let mut readings = by_two_processes()?;
    readings.push(by_sockets()?);
    Ok(readings)
}

fn by_two_processes() -> Outcome<Vec<Reading>> {
    many_threads()?.block_on(async {
        let server = Server::start().await;
        let mut seen: [Vec<f64>; 4] = std::array::from_fn(|_| Vec::new());
        let (mut usual, mut worst) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (handed, idle, busy) = round(&server.url()).await?;
            let (p50, p99) = (median(handed.clone()), quantile(handed, 0.99));
            let ping = median(idle);
            usual.push(p50);
            worst.push(p99);
            for (values, value) in seen.iter_mut().zip([p50 / ping, p99 / ping, ping, median(busy)]) {
                values.push(value);
            }
        }
        let [to_p50, to_p99, idle, busy] = seen.map(median);
        let (usual, worst) = (median(usual), median(worst));
        let note = format!(
            "µs: p50 {usual:.0}, p99 {worst:.0}; a ping of the same client {idle:.0} as idle as a waiter is, {busy:.0} back to back"
        );
        Ok(vec![
            Reading::ratio("p50", to_p50, "pings", Goal::AtMost(2.0)).note(note),
            Reading::ratio("p99", to_p99, "pings", Goal::AtMost(10.0)),
        ])
    })
}

/// The floor of all that decides in these scripts: two threads with nothing but sockets, in the same rhythm.
fn by_sockets() -> Outcome<Reading> {
    let server = many_threads()?.block_on(Server::start());
    let url = server.url();
    let mut socket = Socket::connect(&url)?;
    let [claim, release] = socket.load()?;
    let mut waiter = Waiter {
        channel: Socket::connect(&url)?,
        commands: Socket::connect(&url)?,
        claim: claim.clone(),
        release: release.clone(),
    };
    waiter.channel.ask(&["SUBSCRIBE", &bare::channel(NAME)])?;
    let (tell, told) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || waiter.leads(&tell));
    let (mut handed, mut pings) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS * TENURES {
        let number = number as u64;
        let slot = socket.claim(&claim, NAME, number)?;
        std::thread::sleep(LED / 2);
        let asked = Instant::now();
        socket.ask(&["PING"])?;
        pings.push(micros(asked.elapsed()));
        std::thread::sleep(LED / 2);
        let ended = Instant::now();
        socket.release(&release, NAME, number, &slot)?;
        // When the waiter led, and when it had released.
        let (Ok(begun), Ok(_)) = (told.recv_timeout(LIMIT), told.recv_timeout(LIMIT)) else {
            break;
        };
        handed.push(micros(begun - ended));
        std::thread::sleep(LEFT);
    }
    waiting.join().map_err(|_| "the waiter panicked")??;
    let (p50, ping) = (median(handed.clone()), median(pings));
    let floor = "p50, the same scripts by bare blocking sockets";
    let reading = Reading::ratio(floor, p50 / ping, "pings of the same", Goal::None);
    let p99 = quantile(handed, 0.99);
    Ok(reading.note(format!("µs: p50 {p50:.0}, p99 {p99:.0}; a ping {ping:.0}")))
}

struct Waiter {
    channel: Socket,
    commands: Socket,
    claim: String,
    release: String,
}

impl Waiter {
    /// Claims whenever a release of the other is told, says when it had it, and releases a moment later.
    fn leads(&mut self, tell: &std::sync::mpsc::Sender<Instant>) -> Outcome {
        for number in 0..ROUNDS * TENURES {
            // No token of the other's.
            let number = u64::MAX - number as u64;
            self.channel.told()?;
            let slot = self.commands.claim(&self.claim, NAME, number)?;
            tell.send(Instant::now())?;
            std::thread::sleep(LEFT);
            self.commands.release(&self.release, NAME, number, &slot)?;
            // Its own release.
            self.channel.told()?;
            tell.send(Instant::now())?;
        }
        Ok(())
    }
}

/// How long each hand-over took, and pings, in microseconds.
async fn round(url: &str) -> Outcome<(Vec<f64>, Vec<f64>, Vec<f64>)> {
    let mut pair = [
        second_process(&FIGURE, &[url])?,
        second_process(&FIGURE, &[url])?,
    ];
    let mut tenures = Vec::new();
    let (mut idle, mut busy) = (Vec::new(), Vec::new());
    for (which, process) in pair.iter_mut().enumerate() {
        process.wait_for_line("done", LIMIT).await;
        for _ in 0..TENURES {
            let [begun, ended, ping] = numbers(process).await?;
            tenures.push((begun, ended, which));
            idle.push(ping);
        }
        let [ping] = numbers(process).await?;
        busy.push(ping);
    }
    tenures.sort_by(|one, other| one.0.total_cmp(&other.0));
    let pairs = tenures.windows(2).filter(|pair| pair[0].2 != pair[1].2);
    let handed: Vec<f64> = pairs.map(|pair| (pair[1].0 - pair[0].1) / 1000.0).collect();
    if handed.len() < TENURES {
        return Err(format!(
            "only {} of {TENURES} hand-overs were from one to the other",
            handed.len()
        )
        .into());
    }
    Ok((handed, idle, busy))
}

async fn numbers<const N: usize>(process: &mut Worker) -> Outcome<[f64; N]> {
    let line = process
        .next_line(LIMIT)
        .await
        .ok_or("a process said nothing more")?;
    let numbers: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    numbers
        .try_into()
        .map_err(|_| format!("a process said {line:?}").into())
}

fn play(args: &[&str]) -> Outcome {
    let [url] = args else {
        return Err("its argument is the URL".into());
    };
    many_threads()?.block_on(async {
        let client = fred_client(url, true).await?;
        let elector = RedisElector::builder()
            .client(client.clone())
            .connect()
            .await?;
        let options = options(LIMIT)?;
        let mut tenures = Vec::new();
        for _ in 0..TENURES {
            let pinged = client.clone();
            let lead = tokio::spawn({
                let (elector, options) = (elector.clone(), options.clone());
                async move {
                    let body = |_| async move {
                        let begun = monotonic();
                        tokio::time::sleep(LED / 2).await;
                        let asked = monotonic();
                        pinged.ping::<()>(None).await?;
                        let ping = monotonic() - asked;
                        tokio::time::sleep(LED / 2).await;
                        Ok::<_, leader_redis::fred::error::Error>((begun, monotonic(), ping))
                    };
                    let led = elector.run_if_leader(NAME, &options, body).await?;
                    Ok::<_, crate::figure::Error>(led.ok_or("the wait was over")??)
                }
            });
            tenures.push(lead.await??);
            tokio::time::sleep(LEFT).await;
        }
        let busy = pings(&client, 500).await?;
        println!("done");
        for (begun, ended, ping) in tenures {
            #[expect(clippy::cast_precision_loss, reason = "some minutes, in nanoseconds")]
            let ping = ping as f64 / 1000.0;
            println!("{begun} {ended} {ping}");
        }
        println!("{busy}");
        Ok(())
    })
}
