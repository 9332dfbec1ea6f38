//! A candidate that leads again and again, and what all of them have seen.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leader_core::fencing::{FencedError, StaleFence};
use leader_core::{ElectorExt, FencingToken, LeaderError, Lease, LeaseOptions};
use leader_redis::RedisElector;
use leader_tests::{options, waiting};
use tokio::sync::{Semaphore, oneshot};

use crate::ACCOUNT;
use crate::accounts::Accounts;

/// What all candidates share.
pub(crate) struct Play {
    enough: usize,
    tenures: AtomicUsize,
    /// All take turns, and two of them contend at any time; where one stands still, the other goes on.
    turns: Semaphore,
    /// Where the next leader reports to, when it is to stand still.
    hold_up: Mutex<Option<oneshot::Sender<Straggler>>>,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) fences: Vec<u64>,
    pub(crate) refused: Vec<StaleFence>,
    pub(crate) written: usize,
}

/// A leader that stands still before its write.
pub(crate) struct Straggler {
    pub(crate) fence: FencingToken,
    go_on: oneshot::Sender<()>,
}

impl Straggler {
    pub(crate) fn go_on(self) {
        let _ = self.go_on.send(());
    }
}

impl Play {
    pub(crate) fn new(enough: usize) -> Self {
        Self {
            enough,
            tenures: AtomicUsize::new(0),
            turns: Semaphore::new(2),
            hold_up: Mutex::default(),
            outcome: Mutex::default(),
        }
    }

    pub(crate) fn tenures(&self) -> usize {
        self.tenures.load(Ordering::SeqCst)
    }

    /// The next leader stands still, from its grant until it is told to go on.
    pub(crate) async fn hold_one_up(&self) -> Straggler {
        let (report, reported) = oneshot::channel();
        *locked(&self.hold_up) = Some(report);
        reported.await.expect("somebody is elected")
    }

    pub(crate) fn take_outcome(&self) -> Outcome {
        std::mem::take(&mut *locked(&self.outcome))
    }

    async fn held_up(&self, fence: FencingToken) {
        let Some(report) = locked(&self.hold_up).take() else {
            return;
        };
        let (go_on, told) = oneshot::channel();
        if report.send(Straggler { fence, go_on }).is_ok() {
            let _ = told.await;
        }
    }
}

fn locked<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Candidate {
    elector: RedisElector,
    options: LeaseOptions,
    accounts: Accounts,
    play: Arc<Play>,
}

impl Candidate {
    pub(crate) async fn new(number: usize, url: &str, accounts: Accounts, play: Arc<Play>) -> Self {
        let elector = RedisElector::builder()
            .url(url)
            .node_id(format!("c{number}"))
            .command_timeout(Duration::from_secs(5))
            .connect()
            .await
            .expect("the server answers");
        Self {
            elector,
            // A lease whose release was lost with its primary is in the way for that long.
            options: options(waiting(Duration::from_secs(20), Duration::from_secs(1))),
            accounts,
            play,
        }
    }

    pub(crate) async fn lead_until_enough(self) {
        while self.play.tenures() < self.play.enough {
            let _turn = self.play.turns.acquire().await.expect("it is not closed");
            match self.elector.try_acquire("x", &self.options).await {
                Ok(Some(lease)) => self.serve(lease).await,
                Ok(None) => {}
                // What a failover looks like.
                Err(LeaderError::Backend { kind, .. }) if kind.is_transient() => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
        self.elector.shutdown().await;
    }

    /// One tenure. The lease is held by hand: who holds it this way and does not look at it is not stopped.
    async fn serve(&self, lease: Lease) {
        let (play, fence) = (&*self.play, lease.fence());
        locked(&play.outcome).fences.push(fence.get());
        play.held_up(fence).await;
        match self.accounts.deposit(fence, ACCOUNT, 1).await {
            Ok(()) => locked(&play.outcome).written += 1,
            Err(FencedError::Stale(stale)) => locked(&play.outcome).refused.push(stale),
            Err(FencedError::Resource(error)) => panic!("{error}"),
        }
        // Where the primary is gone, the lease runs out instead.
        let _ = lease.release().await;
        play.tenures.fetch_add(1, Ordering::SeqCst);
    }
}
