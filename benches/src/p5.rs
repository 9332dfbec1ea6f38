//! P5: ten thousand tasks of one process that wait for one name.

use std::sync::Arc;
use std::time::Duration;

use leader_benches::memory;
use leader_core::{ElectorExt, LeaseOptions};
use leader_redis::RedisElector;
use leader_redis::fred::interfaces::ClientLike;
use leader_tests::{Server, Worker, until};
use tokio::sync::Semaphore;

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::{fred_client, many_threads, monotonic, options, second_process};
use crate::rounds::{median, quantile};

pub(crate) const FIGURE: Figure = Figure {
    id: "P5",
    what: "10 000 tasks of one process that wait for one name",
    measure,
    play: Some(play),
};

const TASKS: u32 = 10_000;
const ROUNDS: usize = 5;
/// Hand-overs from the other process in a round.
const HANDED: usize = 100;
const NAME: &str = "settlement";
const CHANNEL: &str = "leader:{settlement}:released";
/// Longer than the pause in which a process that has released leaves the name to others (10 ms): by then the other one waits.
const LED: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(300);

fn measure() -> Outcome<Vec<Reading>> {
    many_threads()?.block_on(async {
        let mut seen: [Vec<f64>; 7] = std::array::from_fn(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (values, value) in seen.iter_mut().zip(round().await?) {
                values.push(value);
            }
        }
        let [memory, waiters, claims, to_p50, to_p99, p50, ping] = seen.map(median);
        Ok(vec![
            Reading::count(
                "waiters in the store",
                waiters,
                "subscriptions",
                Goal::Exactly(1.0),
            )
            .note(format!("{claims} claims by all of them until they waited")),
            Reading::count(
                "memory, of the second 5 000",
                memory,
                "bytes per waiting task",
                Goal::AtMost(1024.0),
            ),
            Reading::ratio(
                "hand-over from another process, p50",
                to_p50,
                "pings",
                Goal::AtMost(2.0),
            )
            .note(format!(
                "p50 {p50:.0} µs, a ping as idle as the waiter is {ping:.0} µs"
            )),
            Reading::ratio(
                "hand-over from another process, p99",
                to_p99,
                "pings",
                Goal::AtMost(10.0),
            ),
        ])
    })
}

async fn round() -> Outcome<[f64; 7]> {
    let server = Server::start().await;
    let client = fred_client(&server.url(), true).await?;
    let elector = RedisElector::builder()
        .client(client.clone())
        .connect()
        .await?;
    let options = options(LIMIT)?;
    let lease = elector
        .try_acquire(NAME, &options)
        .await?
        .ok_or("the server is ours")?;
    server.reset_stats().await;
    let mut crowd = second_process(&FIGURE, &[&server.url()])?;
    let memory = said(&mut crowd, "waiting ").await?;
    until("somebody waits", LIMIT, async || {
        subscriptions(&server).await > 0.0
    })
    .await;
    let waiters = subscriptions(&server).await;
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    let claims = server.command_calls("evalsha").await as f64;

    let (mut handed, mut idle) = (Vec::new(), Vec::new());
    let mut lease = lease;
    for _ in 0..HANDED {
        tokio::time::sleep(LED / 2).await;
        let asked = monotonic();
        client.ping::<()>(None).await?;
        idle.push(micros_since(asked, monotonic()));
        tokio::time::sleep(LED / 2).await;
        let released = monotonic();
        lease.release().await?;
        // Those before are of tenures of the crowd's own, while this process waited for its turn.
        #[expect(clippy::cast_precision_loss, reason = "some minutes, in nanoseconds")]
        let released = released as f64;
        let mut begun = f64::NEG_INFINITY;
        while begun < released {
            begun = said(&mut crowd, "leading ").await?;
        }
        handed.push((begun - released) / 1000.0);
        lease = elector
            .try_acquire(NAME, &options)
            .await?
            .ok_or("the wait was over")?;
    }
    client.quit().await?;
    let (p50, p99, ping) = (median(handed.clone()), quantile(handed, 0.99), median(idle));
    Ok([memory, waiters, claims, p50 / ping, p99 / ping, p50, ping])
}

#[expect(
    clippy::cast_precision_loss,
    reason = "some milliseconds, in nanoseconds"
)]
fn micros_since(asked: i64, answered: i64) -> f64 {
    (answered - asked) as f64 / 1000.0
}

/// How many connections listen for releases of the name.
async fn subscriptions(server: &Server) -> f64 {
    let reply = server.command(&["PUBSUB", "NUMSUB", CHANNEL]).await;
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    reply
        .array()
        .get(1)
        .map_or(f64::NAN, |count| count.integer() as f64)
}

async fn said(process: &mut Worker, what: &str) -> Outcome<f64> {
    let line = process.wait_for_line(what, LIMIT).await;
    Ok(line.trim_start_matches(what).parse()?)
}

/// The crowd. One of its tasks leads at a time; after each, the other process has its turn.
fn play(args: &[&str]) -> Outcome {
    let [url] = args else {
        return Err("its argument is the URL".into());
    };
    many_threads()?.block_on(async {
        let crowd = Arc::new(Crowd {
            elector: RedisElector::connect(*url).await?,
            options: options(LIMIT)?,
            standing: Semaphore::new(0),
        });
        // What the first half takes is also what there is once: the connection that hears of releases, and the runtime's
        // and the allocator's own. The second half takes what waiting takes.
        let first = crowd.grow().await?;
        let all = crowd.grow().await?;
        let taken = all
            .checked_sub(first)
            .ok_or("more tasks took less memory")?;
        println!("waiting {}", taken / u64::from(TASKS / 2));
        std::future::pending().await
    })
}

/// What its tasks share, so that each has a pointer of its own and nothing else.
struct Crowd {
    elector: RedisElector,
    options: LeaseOptions,
    standing: Semaphore,
}

impl Crowd {
    /// Half of the tasks more begin to stand; answers how much memory the process has once they all wait.
    async fn grow(self: &Arc<Self>) -> Outcome<u64> {
        for _ in 0..TASKS / 2 {
            let crowd = self.clone();
            tokio::spawn(async move {
                crowd.standing.add_permits(1);
                let lead = crowd
                    .elector
                    .run_if_leader(NAME, &crowd.options, |_| async {
                        println!("leading {}", monotonic());
                        tokio::time::sleep(LED).await;
                    });
                lead.await
            });
        }
        // Each has begun to stand, and has stood in line when all others had their turn.
        self.standing.acquire_many(TASKS / 2).await?.forget();
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(memory::resident(std::process::id())?)
    }
}
