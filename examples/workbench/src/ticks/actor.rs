//! [`Actor`]: a candidate. It stands, works, and writes down what its elector tells.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use leader_core::fencing::FenceGate;
use leader_core::{
    ElectorExt, LeaderError, LeaderEvent, LeaseHandle, LeaseOptions, LocalStore, RunOutcome,
    StoreElector, TenureId,
};
use tokio::time::{Instant, sleep};

use super::freeze::Freezer;
use super::log::{Log, NAME, candidate_of};
use super::plan::{Candidate, OnLost, Plan};
use super::row::{Action, Row};
use super::time;

/// A clone is the same candidate.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) candidate: Candidate,
    pub(super) elector: StoreElector<LocalStore>,
    pub(super) freezer: Freezer,
    /// The resource that the works write to.
    pub(super) resource: Arc<FenceGate>,
    pub(super) log: Log,
}

/// How far a run has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    stood: AtomicBool,
    over: AtomicBool,
}

impl Progress {
    /// Whether it is neither elected nor skipped yet.
    pub(super) fn stands(&self) -> bool {
        !self.stood.load(Ordering::Acquire)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

impl Actor {
    /// Stands once, and works if elected.
    pub(super) async fn run(self, options: LeaseOptions, plan: Plan, progress: Arc<Progress>) {
        let work = async |lease: LeaseHandle| {
            progress.stood.store(true, Ordering::Release);
            self.write(
                &plan,
                &lease,
                (Action::WroteFirst, Action::FirstWriteRefused),
            )
            .await;
            sleep(time::work(plan.work, self.candidate.after())).await;
            if !lease.is_valid() {
                sleep(time::LATE).await;
            }
            self.write(&plan, &lease, (Action::WroteLast, Action::LastWriteRefused))
                .await;
            Ok::<(), Infallible>(())
        };
        let outcome = self
            .elector
            .run_if_leader_result(NAME, &options, work)
            .await;
        progress.stood.store(true, Ordering::Release);
        progress.over.store(true, Ordering::Release);
        match outcome {
            // Told by the elector's own events.
            Ok(RunOutcome::Elected(())) => {}
            Ok(RunOutcome::Skipped(skipped)) => self.tell(Row {
                holder: skipped.holder().and_then(candidate_of),
                remaining: skipped
                    .retry_after()
                    .map(|after| self.log.clock().ticks_until(after)),
                ..self.row(Action::Skipped)
            }),
            Ok(RunOutcome::ActionFailed(never)) => match never {},
            // The work came to its own end; one that was stopped has nothing to give back, and its loss was told.
            Err(LeaderError::LeaseLost { fence, reason, .. }) => {
                if plan.on_lost == OnLost::Continue {
                    let leads = self.log.first_to_end().await;
                    self.tell(Row {
                        token: Some(fence.get()),
                        reason: Some(reason.as_str()),
                        holder: leads.and_then(|(holder, _)| holder),
                        ..self.row(Action::ReleaseRefused)
                    });
                }
            }
            Err(error) => self.tell(Row {
                error: Some(error.to_string()),
                ..self.row(Action::Failed)
            }),
        }
    }

    async fn write(&self, plan: &Plan, lease: &LeaseHandle, (wrote, refused): (Action, Action)) {
        if !plan.writes {
            return;
        }
        let written = self.resource.check(lease.fence());
        let action = if written.is_ok() { wrote } else { refused };
        self.tell(Row {
            token: Some(lease.fence().get()),
            slot: Some(lease.slot()),
            remaining: self.log.remaining(lease.fence()).await,
            seen: written.err().map(|stale| stale.seen.get()),
            ..self.row(action)
        });
    }

    /// Writes down what the elector tells, for as long as it lives.
    pub(super) fn events(&self) -> impl Future<Output = ()> + use<> {
        let mut events = self.elector.events();
        let (candidate, log) = (self.candidate, self.log.clone());
        async move {
            while let Some(event) = events.next().await {
                write_down(&log, candidate, event).await;
            }
        }
    }

    fn row(&self, action: Action) -> Row {
        Row::new(
            self.log.clock().tick_at(Instant::now()),
            self.candidate,
            action,
        )
    }

    fn tell(&self, row: Row) {
        self.log.push(Instant::now(), row);
    }

    pub(super) fn freeze(&self) {
        self.freezer.freeze();
        self.tell(self.row(Action::Frozen));
    }

    pub(super) fn thaw(&self) {
        self.tell(self.row(Action::Thawed));
        self.freezer.thaw();
    }
}

async fn write_down(log: &Log, candidate: Candidate, event: LeaderEvent) {
    let now = Instant::now();
    let mut row = Row::new(log.clock().tick_at(now), candidate, Action::Failed);
    let of = |row: &mut Row, action: Action, tenure: &TenureId| {
        row.action = action;
        row.token = Some(tenure.fence.get());
        row.slot = Some(tenure.slot);
    };
    match event {
        LeaderEvent::Elected { tenure, .. } => {
            of(&mut row, Action::Elected, &tenure);
            row.remaining = log.remaining(tenure.fence).await;
        }
        LeaderEvent::Extended { tenure, .. } => {
            of(&mut row, Action::Extended, &tenure);
            row.remaining = log.remaining(tenure.fence).await;
        }
        LeaderEvent::Lost { tenure, reason, .. } => {
            of(&mut row, Action::Lost, &tenure);
            row.reason = Some(reason.as_str());
            row.remaining = Some(log.remaining(tenure.fence).await.unwrap_or_default());
        }
        LeaderEvent::Released { tenure, .. } => {
            of(&mut row, Action::Released, &tenure);
            row.remaining = Some(log.remaining(tenure.fence).await.unwrap_or_default());
        }
        // Told by the outcome, which says more.
        LeaderEvent::Skipped { .. } => return,
        other => row.error = Some(format!("{other:?}")),
    }
    log.push(now, row);
}
