//! A primary behind sentinels keeps every promise of the trait: the suite of one server, unchanged.

use std::time::Duration;

use leader_tests::{Sentinels, every_promise_is_kept};

use super::builder;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_behind_sentinels_keeps_every_promise() {
    let all = Sentinels::start().await;
    let five = Duration::from_secs(5);
    every_promise_is_kept(|| builder(&all, "suite").command_timeout(five)).await;
}
