//! P2: many tasks, distinct names, guarded runs per second.

mod ours;
mod peers;

use std::time::Instant;

use futures::future::try_join_all;
use leader_benches::cpu;
use leader_tests::Server;

use crate::figure::{Error, Figure, Goal, Outcome, Reading};
use crate::ground::{many_threads, on_two_cores, process_id};
use crate::rounds::{Rounds, micros};

pub(crate) const FIGURE: Figure = Figure {
    id: "P2",
    what: "many tasks, distinct names, guarded runs per second on the same two cores",
    measure,
    play: None,
};

const ROUNDS: usize = 7;
const RUNS: usize = 20_000;

fn measure() -> Outcome<Vec<Reading>> {
    on_two_cores(|| {
        let runtime = many_threads()?;
        let mut readings = Vec::new();
        for tasks in [64, 512] {
            readings.extend(runtime.block_on(with(tasks))?);
        }
        Ok(readings)
    })
}

async fn with(tasks: usize) -> Outcome<Vec<Reading>> {
    let server = Server::start().await;
    let (url, pids) = (
        server.url(),
        [std::process::id(), process_id(&server).await?],
    );
    let ours = ours::connect(&url).await?;
    let raw = peers::Raw::connect(&url).await?;
    let set_nx = peers::SetNx::connect(&url).await?;
    let by_fred = peers::RawByFred::connect(&url).await?;
    let rslock = peers::rslock(&url);
    let runs = RUNS / tasks;
    let mut used = [[0.0; 2]; 5];
    let rounds = Rounds::<5>::of(ROUNDS, async |which| {
        let (before, begun) = (cpu(pids)?, Instant::now());
        match which {
            0 => all(tasks, |task| ours::runs(ours.clone(), task, runs)).await?,
            1 => all(tasks, |task| peers::rslocks(rslock.clone(), task, runs)).await?,
            2 => all(tasks, |task| raw.clone().runs(task, runs)).await?,
            3 => all(tasks, |task| by_fred.clone().runs(task, runs)).await?,
            _ => all(tasks, |task| set_nx.clone().runs(task, runs)).await?,
        }
        let (after, passed) = (cpu(pids)?, begun.elapsed());
        for (sum, (after, before)) in used[which].iter_mut().zip(after.iter().zip(before)) {
            *sum += after - before;
        }
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        Ok::<_, Error>((tasks * runs) as f64 / passed.as_secs_f64())
    });
    let rounds = rounds.await?;
    let names = ["of ours", "of rslock", "raw", "raw by fred", "set nx"];
    let each = names.iter().enumerate().map(|(which, name)| {
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let [ours, theirs] = used[which].map(|sum| sum / (ROUNDS * runs * tasks) as f64);
        let thousands = rounds.median(which) / 1000.0;
        format!("{thousands:.1} thousand {name} ({ours:.1} and {theirs:.1} µs)")
    });
    let note = format!(
        "runs per second, and processor time of client and server for each: {}",
        each.collect::<Vec<_>>().join(", ")
    );
    let to = |peer: usize| rounds.ratio(0, peer);
    Ok(vec![
        Reading::ratio(
            format!("{tasks} tasks, to rslock"),
            to(1),
            "x rslock",
            Goal::AtLeast(1.0),
        )
        .note(note),
        Reading::ratio(
            format!("{tasks} tasks, to raw"),
            to(2),
            "x raw",
            Goal::AtLeast(0.95),
        ),
        Reading::ratio(
            format!("{tasks} tasks, to raw by fred"),
            to(3),
            "x raw by fred",
            Goal::None,
        ),
        Reading::ratio(
            format!("{tasks} tasks, to set nx"),
            to(4),
            "x set nx",
            Goal::None,
        ),
    ])
}

/// The processor time of these processes so far, in microseconds.
fn cpu(pids: [u32; 2]) -> Outcome<[f64; 2]> {
    Ok([micros(cpu::used(pids[0])?), micros(cpu::used(pids[1])?)])
}

/// Runs the same in this many tasks at once.
async fn all<F>(tasks: usize, run: impl Fn(usize) -> F) -> Outcome
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let running = (0..tasks).map(|task| tokio::spawn(run(task)));
    let ended = try_join_all(running.collect::<Vec<_>>()).await?;
    ended.into_iter().collect()
}
