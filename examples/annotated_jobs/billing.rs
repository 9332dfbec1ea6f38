//! The service, as its author wrote it, and the attributes. No signature was changed for them: what a function returns
//! when another replica leads is what its own return type can say.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use leader_core::{Elector, LeaderError, RunOutcome, ensure_leader, leader_election};
use tokio::time::sleep;

use crate::database::{Database, Job};

pub(crate) const PARTNER_SLOTS: usize = 3;

/// The names with a minimum lease.
pub(crate) const NAMES: [&str; 5] = [
    "invoice-close",
    "report:acme",
    "report:globex",
    "exchange-rate",
    "order-feed:eu",
];

/// What can go wrong. That the leader's lease was lost, or that the store failed, is one of it.
#[derive(Debug)]
pub(crate) enum BillingError {
    Leader(LeaderError),
}

impl From<LeaderError> for BillingError {
    fn from(error: LeaderError) -> Self {
        Self::Leader(error)
    }
}

impl fmt::Display for BillingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leader(error) => error.fmt(f),
        }
    }
}

pub(crate) struct Summary {
    pub(crate) invoices: u32,
}

/// The night job. Skipped is `Ok(None)`. It is kept for a second even when it ends sooner: a replica whose clock is late
/// must find that it has been done.
#[leader_election(
    name = "invoice-close",
    wait = "0s",
    lease = "10s",
    min_lease = "1s",
    auto_extend
)]
pub(crate) async fn close_invoices(database: &Database) -> Result<Option<Summary>, BillingError> {
    sleep(Duration::from_millis(50)).await;
    // Before what must not happen twice: no I/O, it only looks at the clock.
    ensure_leader()?;
    database.runs(Job::Close);
    Ok(Some(Summary { invoices: 42 }))
}

pub(crate) struct Billing<'a> {
    elector: Arc<dyn Elector>,
    database: &'a Database,
}

impl<'a> Billing<'a> {
    pub(crate) fn new(elector: Arc<dyn Elector>, database: &'a Database) -> Self {
        Self { elector, database }
    }

    /// One lease for each tenant: the placeholder is the parameter. Skipped is `Ok(())`.
    #[leader_election(name = "report:{tenant}", elector = self.elector, wait = "0s", lease = "30s", min_lease = "1s")]
    pub(crate) async fn report(&self, tenant: &str) -> Result<(), BillingError> {
        sleep(Duration::from_millis(20)).await;
        self.database.runs(Job::Report);
        Ok(())
    }

    /// The partner takes no more than three calls at a time: three slots, and whoever waits has a turn later.
    #[leader_election(name = "partner", elector = self.elector, slots = 3, wait = "20s", lease = "10s", auto_extend)]
    pub(crate) async fn call_partner(&self) -> Result<RunOutcome<&'static str>, BillingError> {
        let _calling = self.database.call_partner();
        sleep(Duration::from_millis(50)).await;
        Ok(RunOutcome::Elected("thanks"))
    }

    /// A number has no way to say "skipped", so the attribute says what it is then.
    #[leader_election(
        name = "exchange-rate",
        elector = self.elector,
        wait = "0s",
        lease = "10s",
        min_lease = "1s",
        skipped = Ok(self.database.rate()),
    )]
    pub(crate) async fn exchange_rate(&self) -> Result<u32, BillingError> {
        self.database.runs(Job::Refresh);
        Ok(self.database.refresh_rate())
    }

    /// Claims at the first poll, holds while it is read, however slowly, and releases at the end. Skipped is no orders.
    #[leader_election(
        name = "order-feed:{region}",
        elector = self.elector,
        wait = "0s",
        lease = "10s",
        min_lease = "1s",
        auto_extend
    )]
    pub(crate) fn orders(
        &self,
        region: &str,
    ) -> impl Stream<Item = Result<String, BillingError>> + '_ {
        self.database.runs(Job::ReadOrders);
        let region = region.to_owned();
        stream::iter(1..=3).map(move |number| Ok(format!("{region}-{number}")))
    }
}
