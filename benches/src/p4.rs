//! P4: one process that holds ten thousand leases and extends them by itself, for a minute.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use leader_core::{ElectorExt, Lease, LeaseOptions};
use leader_redis::RedisElector;
use leader_tests::{Server, Worker};
use tokio::time::{Instant, sleep};

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::{many_threads, process_id, second_process, sent, usec_per_call};
use leader_benches::{cpu, memory};

pub(crate) const FIGURE: Figure = Figure {
    id: "P4",
    what: "10 000 auto-extended leases of 10 s held by one process for a minute",
    measure,
    play: Some(play),
};

const LEASES: u32 = 10_000;
/// Held before the memory is looked at for the first time: by then everything that is there once is there.
const FIRST: u32 = 100;
const LEASE: Duration = Duration::from_secs(10);
const TIME: Duration = Duration::from_secs(60);
/// What a process and a server do while nothing is held.
const IDLE: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(120);
/// So many ask at a time in the beginning.
const AT_A_TIME: usize = 32;

fn measure() -> Outcome<Vec<Reading>> {
    many_threads()?.block_on(async {
        let server = Server::start().await;
        let server_pid = process_id(&server).await?;
        let mut holder = second_process(&FIGURE, &[&server.url()])?;
        holder.wait_for_line("begun", LIMIT).await;
        let pids = [holder.pid(), server_pid];
        let idle = load(pids, IDLE).await?;
        let before = memory::resident(holder.pid())?;
        holder.say("hold");
        holder.wait_for_line("held", LIMIT).await;
        // Each is extended once, so that what that needs is there.
        sleep(LEASE / 2).await;
        server.reset_stats().await;
        let busy = load(pids, TIME).await?;
        let requests = sent(&server).await;
        let micros = usec_per_call(&server, "evalsha").await;
        let after = memory::resident(holder.pid())?;
        holder.say("end");
        let lost = lost(&mut holder).await?;
        let per_lease = after.saturating_sub(before) / u64::from(LEASES - FIRST);
        let note = |which: usize| format!("{:.2} % with no lease", idle[which] * 100.0);
        let seconds = TIME.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        Ok(vec![
            Reading::count("client", busy[0] * 100.0, "% of a core", Goal::AtMost(2.0))
                .note(note(0)),
            Reading::count("server", busy[1] * 100.0, "% of a core", Goal::AtMost(1.0)).note(
                format!(
                    "{}; {:.0} requests a second of {micros:.0} µs each",
                    note(1),
                    requests / seconds
                ),
            ),
            Reading::count("lost", lost, "leases", Goal::Exactly(0.0)),
            Reading::count(
                "memory",
                per_lease as f64 / 1024.0,
                "KiB per lease",
                Goal::AtMost(1.0),
            ),
        ])
    })
}

/// How many processor seconds each process takes for each second.
async fn load(pids: [u32; 2], time: Duration) -> Outcome<[f64; 2]> {
    let used = || -> Outcome<[Duration; 2]> { Ok([cpu::used(pids[0])?, cpu::used(pids[1])?]) };
    let (before, begun) = (used()?, Instant::now());
    sleep(time).await;
    let (after, passed) = (used()?, begun.elapsed());
    Ok([0, 1].map(|which| {
        after[which]
            .saturating_sub(before[which])
            .div_duration_f64(passed)
    }))
}

async fn lost(holder: &mut Worker) -> Outcome<f64> {
    let line = holder.wait_for_line("lost ", LIMIT).await;
    Ok(line.trim_start_matches("lost ").parse()?)
}

fn play(args: &[&str]) -> Outcome {
    let [url] = args else {
        return Err("its argument is the URL".into());
    };
    many_threads()?.block_on(async {
        let elector = RedisElector::connect(*url).await?;
        let options = LeaseOptions::builder()
            .lease(LEASE)
            .auto_extend(true)
            .build()?;
        let mut leases = hold(&elector, &options, 0..FIRST).await?;
        println!("begun");
        told("hold").await?;
        leases.extend(hold(&elector, &options, FIRST..LEASES).await?);
        println!("held");
        told("end").await?;
        let lost = leases.iter().filter(|lease| !lease.is_valid()).count();
        println!("lost {lost}");
        // Ten thousand releases are no part of the figure: the parent ends this process.
        std::future::pending().await
    })
}

async fn hold(
    elector: &RedisElector,
    options: &LeaseOptions,
    numbers: std::ops::Range<u32>,
) -> Outcome<Vec<Lease>> {
    let each = numbers.map(|number| async move {
        let lease = elector
            .try_acquire(format!("tenant:{number}"), options)
            .await?;
        Ok::<_, crate::figure::Error>(lease.ok_or("somebody else holds it")?)
    });
    stream::iter(each)
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await
}

/// The next line of the parent's, which is to be this one.
async fn told(word: &'static str) -> Outcome {
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await?;
    match line {
        Some(Ok(line)) if line == word => Ok(()),
        other => Err(format!("told {other:?}, and not to {word}").into()),
    }
}
