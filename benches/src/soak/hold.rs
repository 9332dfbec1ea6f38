//! Holding: each lease has a body that leads until it is told to end, and stands again if its lease is lost.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use leader_core::{ElectorExt, LeaseOptions};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Candidate;
use super::tally::Tally;

/// So many ask at a time in the beginning.
const AT_A_TIME: usize = 64;

/// The tasks that hold.
pub(super) struct Holders(JoinSet<()>);

impl Holders {
    /// Waits until all have ended.
    pub(super) async fn end(self) {
        self.0.join_all().await;
    }
}

/// Holds so many leases of ten seconds until `let_go` fires; returns once all are held.
pub(super) async fn all(
    count: usize,
    elector: &Candidate,
    tally: &Tally,
    let_go: &CancellationToken,
) -> Holders {
    let mut holders = JoinSet::new();
    let begin = |number: usize| {
        let (held, mut told) = mpsc::channel(1);
        holders.spawn(hold(
            number,
            elector.clone(),
            tally.clone(),
            let_go.clone(),
            held,
        ));
        async move { told.recv().await }
    };
    let granted: Vec<_> = stream::iter((0..count).map(begin))
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;
    let held = granted.iter().flatten().count();
    assert_eq!(
        held,
        count,
        "not all leases were granted: {:?}",
        tally.all()
    );
    Holders(holders)
}

async fn hold(
    number: usize,
    elector: Candidate,
    tally: Tally,
    let_go: CancellationToken,
    held: mpsc::Sender<()>,
) {
    let options = options();
    let name = format!("held:{number}");
    let mut held = Some(held);
    while !let_go.is_cancelled() {
        let (let_go, held) = (let_go.clone(), held.take());
        let body = |_| async move {
            if let Some(held) = held {
                let _ = held.send(()).await;
            }
            let_go.cancelled().await;
        };
        match elector.run_if_leader(name.as_str(), &options, body).await {
            Ok(Some(())) => tally.count("held to the end"),
            Ok(None) => tally.count("skipped by somebody who is to hold"),
            Err(error) => tally.count_failure(&error),
        }
    }
}

fn options() -> LeaseOptions {
    let options = LeaseOptions::builder()
        .lease(Duration::from_secs(10))
        .auto_extend(true)
        .build();
    options.unwrap_or_default()
}
