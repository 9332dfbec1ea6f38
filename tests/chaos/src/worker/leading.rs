//! One tenure as it is lived: what is written down of it, and when.

use std::sync::Arc;
use std::time::Duration;

use leader_core::{LeaderError, LeaseHandle};
use leader_sim::Dice;
use tokio::time::Instant;

use super::{Worker, Wrong};
use crate::record::Record;

/// A body at work. When it is dropped before its end, that is written down with the reason.
pub(crate) struct Leading {
    worker: Arc<Worker>,
    lease: LeaseHandle,
    over: bool,
}

impl Leading {
    /// None when the lease is over before anything was begun.
    pub(crate) fn begin(
        worker: &Arc<Worker>,
        lease: &LeaseHandle,
        asked: Option<u64>,
        guarded: bool,
    ) -> Option<Self> {
        // Before the question: a lease that is valid then was valid now.
        let at = worker.clock.now();
        let until = valid_until(worker, lease)?;
        worker.log.write(&Record::Begin {
            at,
            until,
            asked,
            name: lease.name().to_string(),
            slot: lease.slot(),
            fence: lease.fence().get(),
            guarded,
        });
        Some(Self {
            worker: worker.clone(),
            lease: lease.clone(),
            over: false,
        })
    }

    /// Works for that long, and writes to the fenced value now and then. Gives up when the lease is gone.
    pub(crate) async fn work(&self, length: Duration, dice: &mut Dice) {
        let end = Instant::now() + length;
        while self.act() && Instant::now() < end {
            if dice.chance(20) {
                self.worker.resource.write(&self.lease).await;
            }
            let pause = Duration::from_millis(dice.between(4, 10));
            tokio::time::sleep(pause.min(end.saturating_duration_since(Instant::now()))).await;
        }
    }

    /// Whether it may go on.
    fn act(&self) -> bool {
        let at = self.worker.clock.now();
        let until = match self.worker.orders.wrong {
            Some(Wrong::Deaf) => Some(at),
            _ => valid_until(&self.worker, &self.lease),
        };
        self.worker.log.write(&Record::Act {
            at,
            until,
            name: self.lease.name().to_string(),
            fence: self.lease.fence().get(),
        });
        until.is_some()
    }

    /// The body is done. To be called before the lease is let go of.
    pub(crate) fn end(mut self) {
        let at = self.worker.clock.now();
        if self.lease.is_valid() || self.worker.orders.wrong == Some(Wrong::Deaf) {
            self.over = true;
            self.worker.log.write(&Record::End {
                at,
                name: self.lease.name().to_string(),
                fence: self.lease.fence().get(),
            });
        }
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let why = match self.lease.ensure_valid() {
            Ok(()) => "stopped",
            Err(LeaderError::LeaseLost { reason, .. }) => reason.as_str(),
            Err(_) => "unknown",
        };
        self.worker.log.write(&Record::Dropped {
            at: self.worker.clock.now(),
            name: self.lease.name().to_string(),
            fence: self.lease.fence().get(),
            why: why.to_owned(),
        });
    }
}

/// Until when the lease is relied upon, if it is valid.
fn valid_until(worker: &Worker, lease: &LeaseHandle) -> Option<u64> {
    if !lease.is_valid() {
        return None;
    }
    let until = lease.reckoning()?;
    Some(worker.clock.at(until.into_std()))
}
