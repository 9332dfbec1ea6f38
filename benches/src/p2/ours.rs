//! Guarded runs of `leader`.

use std::time::Duration;

use leader_core::{ElectorExt, LeaseOptions, LockName};
use leader_redis::RedisElector;

use crate::figure::Outcome;
use crate::ground::options;

#[derive(Clone)]
pub(super) struct Ours {
    elector: RedisElector,
    options: LeaseOptions,
}

/// As a service connects.
pub(super) async fn connect(url: &str) -> Outcome<Ours> {
    Ok(Ours {
        elector: RedisElector::connect(url).await?,
        options: options(Duration::from_secs(5))?,
    })
}

pub(super) async fn runs(ours: Ours, task: usize, runs: usize) -> Outcome {
    let name = LockName::new(format!("partner:{task}"))?;
    for _ in 0..runs {
        let ran = ours
            .elector
            .run_if_leader(&name, &ours.options, |_| async {});
        ran.await?.ok_or("somebody else leads")?;
    }
    Ok(())
}
