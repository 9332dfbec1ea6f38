//! P6: an uncontended run on memory, one task, beside Tokio's mutex.

use std::hint::black_box;
use std::time::Instant;

use leader_core::{ElectorExt, LeaseOptions, LocalElector, LockName};
use tokio::sync::Mutex;

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::ground::one_thread;
use crate::rounds::Rounds;

pub(crate) const FIGURE: Figure = Figure {
    id: "P6",
    what: "one task, uncontended guarded run on the in-process elector",
    measure,
    play: None,
};

/// Many short ones: a round is then seldom disturbed.
const ROUNDS: usize = 201;
const RUNS: u32 = 1000;

fn measure() -> Outcome<Vec<Reading>> {
    one_thread()?.block_on(async {
        let elector = LocalElector::new();
        let options = LeaseOptions::default();
        let name = LockName::new("invoice-close")?;
        let mutex = Mutex::new(());
        let rounds = Rounds::<2>::of(ROUNDS, async |which| {
            let begun = Instant::now();
            for _ in 0..RUNS {
                if which == 0 {
                    let ran = elector.run_if_leader(&name, &options, |_| async {});
                    ran.await?.ok_or("somebody else leads")?;
                } else {
                    drop(black_box(mutex.lock().await));
                }
            }
            Ok::<_, crate::figure::Error>(begun.elapsed().as_secs_f64() * 1e9 / f64::from(RUNS))
        });
        let rounds = rounds.await?;
        let (run, lock) = (rounds.median(0), rounds.median(1));
        Ok(vec![
            Reading::ratio(
                "time",
                rounds.ratio(0, 1),
                "x lock + unlock",
                Goal::AtMost(16.0),
            )
            .note(format!(
                "a run {run:.0} ns, a lock and its unlock {lock:.1} ns"
            )),
        ])
    })
}
