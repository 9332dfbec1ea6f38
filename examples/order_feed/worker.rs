//! A worker: what a service would have.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use leader_core::fencing::StaleFence;
use leader_core::{Elector, ElectorExt, FencingToken, LeaderError, LeaseHandle, LeaseOptions};

use crate::fate::{self, Fate, Fates};
use crate::feed::{Feed, Order};
use crate::ledger::Ledger;
use crate::tell;

pub(crate) const NAME: &str = "order-feed";

/// What can end the feed of a leader.
#[derive(Debug)]
pub(crate) enum FeedError {
    Leader(LeaderError),
    Stale(StaleFence),
    Runtime(std::io::Error),
}

/// Makes a lost lease, a failing store and a shutdown the last item of the guarded stream.
impl From<LeaderError> for FeedError {
    fn from(error: LeaderError) -> Self {
        Self::Leader(error)
    }
}

impl From<StaleFence> for FeedError {
    fn from(error: StaleFence) -> Self {
        Self::Stale(error)
    }
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leader(error) => error.fmt(f),
            Self::Stale(error) => error.fmt(f),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

/// How a time as the leader ended.
enum Led {
    /// Not at all: somebody else led until the wait was over.
    Skipped,
    Retired,
}

pub(crate) struct Worker {
    node_id: String,
    feed: Arc<Feed>,
    ledger: Arc<Ledger>,
    fates: Arc<Fates>,
}

impl Worker {
    pub(crate) fn new(
        node_id: &str,
        feed: Arc<Feed>,
        ledger: Arc<Ledger>,
        fates: Arc<Fates>,
    ) -> Self {
        Self {
            node_id: node_id.to_owned(),
            feed,
            ledger,
            fates,
        }
    }

    /// Stands for the feed again and again, until it retires.
    pub(crate) async fn work(&self, elector: &Arc<dyn Elector>) -> Result<(), FeedError> {
        let options = LeaseOptions::builder()
            // A follower has nothing else to do.
            .wait(Duration::from_secs(30))
            // A dead leader is followed after this at the latest.
            .lease(Duration::from_millis(750))
            .auto_extend(true)
            .build()?;
        loop {
            match self.lead(elector, &options).await {
                Ok(Led::Skipped) => {}
                Ok(Led::Retired) => return Ok(()),
                Err(FeedError::Leader(lost @ LeaderError::LeaseLost { .. })) => {
                    self.say(format_args!("{lost}"));
                }
                Err(FeedError::Stale(stale)) => {
                    self.fates.thawed();
                    self.say(format_args!("{stale}"));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One time as the leader, from the election to whatever ends it.
    async fn lead(
        &self,
        elector: &Arc<dyn Elector>,
        options: &LeaseOptions,
    ) -> Result<Led, FeedError> {
        let orders = elector.guard_try_stream(NAME, options, |lease| self.orders(&lease));
        let mut orders = std::pin::pin!(orders);
        while let Some((order, fence)) = orders.try_next().await? {
            match self.fates.at(order.number) {
                Some(Fate::Dies) => {
                    self.say(format_args!(
                        "is killed, with order {} in hand",
                        order.number
                    ));
                    fate::die();
                }
                Some(Fate::Freezes) => {
                    self.say(format_args!(
                        "is frozen, with order {} in hand",
                        order.number
                    ));
                    fate::freeze(&self.node_id, order.number, &self.ledger);
                }
                Some(Fate::Retires) => {
                    self.say(format_args!("retires, with order {} in hand", order.number));
                    // The stream is dropped, and with it the lease is released.
                    return Ok(Led::Retired);
                }
                None => {}
            }
            self.ledger.write(order, fence)?;
        }
        Ok(Led::Skipped)
    }

    /// The orders that nobody has written yet, each with the fencing token under which it was read.
    fn orders(
        &self,
        lease: &LeaseHandle,
    ) -> impl Stream<Item = Result<(Order, FencingToken), FeedError>> + use<> {
        let fence = lease.fence();
        match self.ledger.take_over(fence) {
            Ok(next) => {
                self.say(format_args!(
                    "leads from order {next}, with fencing token {fence}"
                ));
                let orders = self.feed.read_from(next);
                orders.map(move |order| Ok((order, fence))).left_stream()
            }
            Err(stale) => stream::iter([Err(stale.into())]).right_stream(),
        }
    }

    fn say(&self, words: fmt::Arguments<'_>) {
        tell(format_args!("{:>10}  {words}", self.node_id));
    }
}
