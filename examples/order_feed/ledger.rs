//! Where orders are written: the resource that a leader must not write to once its time is over.
//!
//! A lease alone cannot see to that. A leader that stands still between its last look at the lease and its write does
//! not know that another has taken over meanwhile. So each write carries the fencing token of the lease under which the
//! order was read, and the ledger refuses a token lower than the highest that it has seen.

use std::sync::{Mutex, MutexGuard, PoisonError};

use leader_core::FencingToken;
use leader_core::fencing::{FenceGate, StaleFence};

use crate::fate::Fates;
use crate::feed::Order;
use crate::{ORDERS, WORKERS, tell};

#[derive(Default)]
pub(crate) struct Ledger {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    gate: FenceGate,
    written: Vec<u64>,
    leaders: usize,
    refused: usize,
    troubled: bool,
}

impl Entries {
    /// A check alone is enough here, since one lock is held across it and the write.
    fn admit(&mut self, fence: FencingToken) -> Result<(), StaleFence> {
        let admitted = self.gate.check(fence);
        if admitted.is_err() {
            self.refused += 1;
        }
        admitted
    }
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new leader begins. From here on its predecessors are kept out, and only then is it told which order comes
    /// next: the other way round, a predecessor's write could slip in between, and that order would be written twice.
    pub(crate) fn take_over(&self, fence: FencingToken) -> Result<u64, StaleFence> {
        let mut entries = self.lock();
        entries.admit(fence)?;
        entries.leaders += 1;
        Ok(entries.written.last().map_or(1, |last| last + 1))
    }

    pub(crate) fn write(&self, order: Order, fence: FencingToken) -> Result<(), StaleFence> {
        let mut entries = self.lock();
        entries.admit(fence)?;
        entries.written.push(order.number);
        Ok(())
    }

    pub(crate) fn written(&self) -> u64 {
        self.lock().written.last().copied().unwrap_or(0)
    }

    pub(crate) fn trouble(&self) {
        self.lock().troubled = true;
    }

    pub(crate) fn troubled(&self) -> bool {
        self.lock().troubled
    }

    pub(crate) fn verdict(&self, fates: &Fates) -> Verdict {
        let entries = self.lock();
        let times = |number| entries.written.iter().filter(|n| **n == number).count();
        let lost = (1..=ORDERS).filter(|number| times(*number) == 0).count();
        let repeated = (1..=ORDERS).filter(|number| times(*number) > 1).count();
        let mut faults = Vec::new();
        if lost > 0 {
            faults.push("an order was lost");
        }
        if repeated > 0 {
            faults.push("an order was written twice");
        }
        if !entries.written.is_sorted() {
            faults.push("orders were written in another order than they came");
        }
        if entries.refused == 0 {
            faults.push("the leader that was frozen was not refused");
        }
        if !fates.all_met() {
            faults.push("a leader was spared");
        }
        if entries.leaders < 4 {
            faults.push("nobody took over");
        }
        if entries.troubled {
            faults.push("a worker had trouble");
        }
        let counts = format!(
            "order_feed: {WORKERS} workers, {} leaders, {} of {ORDERS} orders written, {lost} lost, {repeated} repeated, {} refused",
            entries.leaders,
            entries.written.len() - repeated,
            entries.refused,
        );
        Verdict { faults, counts }
    }
}

pub(crate) struct Verdict {
    faults: Vec<&'static str>,
    counts: String,
}

impl Verdict {
    /// Says what is wrong, then the counts. Whether nothing is wrong.
    pub(crate) fn told(&self) -> bool {
        tell(format_args!(""));
        for fault in &self.faults {
            tell(format_args!("wrong: {fault}"));
        }
        tell(format_args!("{}", self.counts));
        self.faults.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predecessor_is_refused_once_a_successor_has_taken_over() {
        let (old, new) = (FencingToken::new(1), FencingToken::new(2));
        let ledger = Ledger::default();
        assert_eq!(ledger.take_over(old), Ok(1));
        ledger.write(Order { number: 1 }, old).unwrap();
        // Taking over is enough: the successor has not written anything yet.
        assert_eq!(ledger.take_over(new), Ok(2));
        let refused = ledger.write(Order { number: 2 }, old);
        let (presented, seen) = (old, new);
        assert_eq!(refused, Err(StaleFence { presented, seen }));
        ledger.write(Order { number: 2 }, new).unwrap();
        assert_eq!(ledger.written(), 2);
    }

    #[test]
    fn lost_and_repeated_orders_are_said() {
        let ledger = Ledger::default();
        let fence = FencingToken::new(1);
        for number in (1..=ORDERS).filter(|number| *number != 7).chain([9]) {
            ledger.write(Order { number }, fence).unwrap();
        }
        let faults = ledger.verdict(&Fates::new()).faults;
        assert!(faults.contains(&"an order was lost"), "{faults:?}");
        assert!(faults.contains(&"an order was written twice"), "{faults:?}");
        assert!(faults.contains(&"a leader was spared"), "{faults:?}");
    }
}
