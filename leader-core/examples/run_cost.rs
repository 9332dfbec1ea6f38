//! What an uncontended run costs on memory, without a server in between: with and without the feature `metrics`.
//!
//! ```text
//! cargo run --release -p leader-core --example run_cost
//! cargo run --release -p leader-core --example run_cost --features metrics
//! ```

use leader_core::{ElectorExt, LeaderError, LeaseOptions, LocalElector};
use std::time::Instant;

const RUNS: u32 = 2_000;
/// The fastest of many short rounds is what the machine can do when nobody else uses it.
const ROUNDS: u32 = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LeaderError> {
    if cfg!(feature = "metrics") {
        println!("feature on, no recorder  {:7.0} ns", nanos().await?);
    } else {
        println!("feature off              {:7.0} ns", nanos().await?);
    }
    #[cfg(feature = "metrics")]
    {
        let recorder = metrics_util::debugging::DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let _installed = metrics::set_default_local_recorder(&recorder);
        println!("feature on, a recorder   {:7.0} ns", nanos().await?);
        drop(snapshotter.snapshot());
    }
    Ok(())
}

/// The time of one run.
async fn nanos() -> Result<f64, LeaderError> {
    let elector = LocalElector::new();
    let options = LeaseOptions::default();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..RUNS {
            elector
                .run_if_leader("invoice-close", &options, |_| async {})
                .await?;
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(RUNS));
    }
    Ok(best)
}
