//! P2: many tasks, distinct names, guarded runs per second.

mod ours;
mod peers;

use futures::future::try_join_all;
use leader_tests::Server;

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::{many_threads, on_two_cores, usec_per_call};
use crate::rounds::Rounds;

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
    let url = server.url();
    let ours = ours::connect(&url).await?;
    let raw = peers::Raw::connect(&url).await?;
    let set_nx = peers::SetNx::connect(&url).await?;
    let rslock = peers::rslock(&url);
    let rounds = Rounds::<4>::of(ROUNDS, async |which| {
        let runs = RUNS / tasks;
        let begun = std::time::Instant::now();
        match which {
            0 => all(tasks, |task| ours::runs(ours.clone(), task, runs)).await?,
            1 => all(tasks, |task| peers::rslocks(rslock.clone(), task, runs)).await?,
            2 => all(tasks, |task| raw.clone().runs(task, runs)).await?,
            _ => all(tasks, |task| set_nx.clone().runs(task, runs)).await?,
        }
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        Ok::<_, crate::figure::Error>((tasks * runs) as f64 / begun.elapsed().as_secs_f64())
    });
    let rounds = rounds.await?;
    server.reset_stats().await;
    all(tasks, |task| ours::runs(ours.clone(), task, RUNS / tasks)).await?;
    let per_script = usec_per_call(&server, "evalsha").await;
    let [ours, peer, raw, set_nx] = std::array::from_fn(|which| rounds.median(which) / 1000.0);
    let note = format!(
        "thousand per second: {ours:.1} runs, {peer:.1} rslock, {raw:.1} raw, {set_nx:.1} set nx; the server takes {per_script:.1} µs per script of ours"
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
            format!("{tasks} tasks, to set nx"),
            to(3),
            "x set nx",
            Goal::None,
        ),
    ])
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
