//! One candidate: what a service that settles at night would have in it.

use std::sync::Arc;

use leader_core::{
    Elector, ElectorExt, LeaderError, LeaseHandle, LeaseOptions, NodeId, RunOutcome,
};
use tokio::time::{Duration, sleep, sleep_until};

use crate::ledger::Ledger;
use crate::schedule::{LEASE, MIN_LEASE, Night, WORK};
use crate::tell;

/// What is led. It is the same name every night: that no night runs twice is `min_lease`'s doing.
pub(crate) const JOB: &str = "settlement";

pub(crate) struct Candidate {
    number: usize,
    elector: Arc<dyn Elector>,
    options: LeaseOptions,
    ledger: Arc<Ledger>,
}

impl Candidate {
    pub(crate) fn new(
        number: usize,
        elector: Arc<dyn Elector>,
        ledger: Arc<Ledger>,
    ) -> Result<Self, LeaderError> {
        let options = LeaseOptions::builder()
            // Exactly one attempt. Who waited would be elected once the minimum lease is over, and settle again.
            .wait(Duration::ZERO)
            .lease(LEASE)
            .min_lease(MIN_LEASE)
            .auto_extend(true)
            .build()?;
        Ok(Self {
            number,
            elector,
            options,
            ledger,
        })
    }

    /// Waits for the night to begin by this candidate's own clock, and stands for election.
    pub(crate) async fn stand(&self, night: Night) {
        sleep_until(night.strikes(self.number)).await;
        let body = |lease| self.settle(night, lease);
        match self
            .elector
            .run_if_leader_result(JOB, &self.options, body)
            .await
        {
            Ok(RunOutcome::Elected(invoices)) => {
                self.say(
                    night,
                    &format!("has settled {invoices} invoices; min_lease keeps the slot"),
                );
            }
            Ok(RunOutcome::Skipped(skipped)) => {
                self.ledger.skipped(self.number);
                let holder = skipped.holder().map_or("somebody", NodeId::as_str);
                self.say(
                    night,
                    &format!(
                        "is skipped: {holder} holds the slot ({})",
                        self.clock(night)
                    ),
                );
            }
            // The settlement's own failure: what to do about it is the service's business.
            Ok(RunOutcome::ActionFailed(error)) => {
                self.trouble(night, &format!("could not settle: {error}"));
            }
            // The store's failure, or a lease that was lost while the settlement ran.
            Err(error) => self.trouble(night, &format!("is in trouble: {error}")),
        }
    }

    /// The work itself. It is dropped at an `await` when the lease is lost, and asks before each batch that must not
    /// be settled twice.
    async fn settle(&self, night: Night, lease: LeaseHandle) -> Result<u32, LeaderError> {
        const BATCHES: u32 = 4;
        const BATCH: u32 = 10;
        self.ledger.ran(night.number, self.number, lease.fence());
        self.say(
            night,
            &format!(
                "is elected with fencing token {} ({})",
                lease.fence(),
                self.clock(night)
            ),
        );
        for _ in 0..BATCHES {
            lease.ensure_valid()?;
            sleep(WORK / BATCHES).await;
        }
        Ok(BATCHES * BATCH)
    }

    fn trouble(&self, night: Night, what: &str) {
        self.ledger.trouble();
        self.say(night, what);
    }

    fn clock(&self, night: Night) -> String {
        match night.clock_ahead(self.number) {
            0 => "clock right".to_owned(),
            ahead @ 1.. => format!("clock {ahead} ms fast"),
            behind => format!("clock {} ms slow", -behind),
        }
    }

    fn say(&self, night: Night, what: &str) {
        tell(format_args!(
            "night {}  {}  candidate {} {what}",
            night.number,
            night.time(),
            self.number
        ));
    }
}
