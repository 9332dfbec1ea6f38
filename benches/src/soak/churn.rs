//! The churn beside the leases that are held: runs that start and end, waiters that are cancelled, bodies that panic,
//! attempts and bodies that are dropped, and names that come once and never again.

use std::panic::resume_unwind;
use std::time::Duration;

use leader_core::{ElectorExt, LeaderError, LeaseOptions};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::tally::Tally;
use super::{Candidate, Leak};

/// Of the names that come once, so many came.
pub(super) const ONCE: &str = "runs of names that come once";

const CANCELLED: &str = "waiters that were cancelled";
const DROPPED: &str = "runs that were dropped";
/// What may leave a mark of a claim that was given up.
pub(super) const GIVEN_UP: [&str; 2] = [CANCELLED, DROPPED];

/// How long a loop rests between two rounds: the churn is constant, and leaves the machine to what is measured.
const REST: Duration = Duration::from_millis(10);

/// The loops that churn.
pub(super) struct Churn(JoinSet<()>);

impl Churn {
    /// Waits until all have ended.
    pub(super) async fn end(self) {
        self.0.join_all().await;
    }
}

/// One loop of the churn.
#[derive(Clone)]
struct Loop {
    elector: Candidate,
    tally: Tally,
    stop: CancellationToken,
    leak: Option<Leak>,
    options: LeaseOptions,
    /// Which of those that do the same.
    number: u64,
}

/// Begins the churn, which goes on until `stop` fires.
pub(super) fn begin(
    elector: &Candidate,
    tally: &Tally,
    stop: &CancellationToken,
    leak: Option<Leak>,
) -> Churn {
    let options = LeaseOptions::builder()
        .wait(Duration::from_secs(5))
        .lease(Duration::from_secs(10))
        .auto_extend(true)
        .build();
    let mut loops = JoinSet::new();
    for number in 0..4 {
        let churn = Loop {
            elector: elector.clone(),
            tally: tally.clone(),
            stop: stop.clone(),
            leak,
            options: options.clone().unwrap_or_default(),
            number,
        };
        loops.spawn(churn.clone().runs());
        loops.spawn(churn.clone().leads_for_others_to_wait());
        loops.spawn(churn.clone().waits_in_vain());
        loops.spawn(churn.clone().panics());
        loops.spawn(churn.clone().drops());
        loops.spawn(churn.once());
    }
    Churn(loops)
}

impl Loop {
    /// Runs that start and end, two for each name, so that each waits for the other and is woken.
    async fn runs(self) {
        let name = format!("run:{}", self.number / 2);
        while self.goes_on().await {
            let body = |_| sleep(Duration::from_millis(5));
            let run = self
                .elector
                .run_if_leader(name.as_str(), &self.options, body);
            self.note("runs", run.await);
            self.leave_something_behind();
        }
    }

    async fn leads_for_others_to_wait(self) {
        let name = self.busy();
        while self.goes_on().await {
            let body = |_| sleep(Duration::from_millis(200));
            let run = self
                .elector
                .run_if_leader(name.as_str(), &self.options, body);
            self.note("runs that others wait for", run.await);
        }
    }

    /// Waits for what is led nearly all the time, and is cancelled.
    async fn waits_in_vain(self) {
        let name = self.busy();
        for round in 0.. {
            if !self.goes_on().await {
                return;
            }
            let patience = Duration::from_millis(1 + (self.number + round) * 7 % 40);
            let run = self
                .elector
                .run_if_leader(name.as_str(), &self.options, |_| async {});
            match timeout(patience, run).await {
                Ok(run) => self.note("waiters that were elected", run),
                Err(_) => self.tally.count(CANCELLED),
            }
        }
    }

    /// Bodies that panic, at once or after a while. Unwinding without the hook, which would say so each time.
    async fn panics(self) {
        for round in 0_u64.. {
            if !self.goes_on().await {
                return;
            }
            let (name, this) = (format!("panic:{}", self.number), self.clone());
            let run = tokio::spawn(async move {
                let body = |_| async move {
                    sleep(Duration::from_millis(round % 3)).await;
                    resume_unwind(Box::new("on purpose"))
                };
                let run = this
                    .elector
                    .run_if_leader(name.as_str(), &this.options, body);
                run.await
            });
            match run.await {
                Ok(run) => self.note("panics that were lost", run),
                Err(_) => self.tally.count("bodies that panicked"),
            }
        }
    }

    /// Futures that are dropped wherever they are: asking, working, releasing.
    async fn drops(self) {
        let name = format!("dropped:{}", self.number);
        for round in 0.. {
            if !self.goes_on().await {
                return;
            }
            let patience = Duration::from_micros((self.number + round) * 137 % 8_000);
            let body = |_| sleep(Duration::from_millis(5));
            let run = self
                .elector
                .run_if_leader(name.as_str(), &self.options, body);
            match timeout(patience, run).await {
                Ok(run) => self.note("runs that were not dropped in time", run),
                Err(_) => self.tally.count(DROPPED),
            }
        }
    }

    async fn once(self) {
        for round in 0_u64.. {
            if !self.goes_on().await {
                return;
            }
            let name = format!("once:{}:{round}", self.number);
            let run = self
                .elector
                .run_if_leader(name.as_str(), &self.options, |_| async {});
            self.note(ONCE, run.await);
        }
    }

    fn busy(&self) -> String {
        format!("busy:{}", self.number)
    }

    async fn goes_on(&self) -> bool {
        self.stop.run_until_cancelled(sleep(REST)).await.is_some()
    }

    fn note(&self, what: &str, run: Result<Option<()>, LeaderError>) {
        match run {
            Ok(Some(())) => self.tally.count(what),
            Ok(None) => self.tally.count("skipped"),
            Err(error) => self.tally.count_failure(&error),
        }
    }

    fn leave_something_behind(&self) {
        match self.leak {
            None => {}
            Some(Leak::Task) => drop(tokio::spawn(std::future::pending::<()>())),
            Some(Leak::Memory) => {
                Box::leak(vec![1_u8; 64 << 10].into_boxed_slice());
            }
        }
    }
}
