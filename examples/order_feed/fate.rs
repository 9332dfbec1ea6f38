//! What happens to the leader, and when.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::ledger::Ledger;
use crate::tell;

/// What happens to a leader that has read an order and not yet written it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is killed.
    Dies,
    /// It stands still until another has taken over and written a few orders, and then goes on as if nothing had been.
    Freezes,
    /// It gives up the lead, in good order.
    Retires,
}

pub(crate) struct Fates {
    /// By the number of the order.
    to_come: Mutex<BTreeMap<u64, Fate>>,
    /// Whoever was frozen has learnt what it missed.
    thawed: AtomicBool,
}

impl Fates {
    pub(crate) fn new() -> Self {
        let fates = [(40, Fate::Dies), (80, Fate::Freezes), (140, Fate::Retires)];
        Self {
            to_come: Mutex::new(fates.into()),
            thawed: AtomicBool::new(false),
        }
    }

    /// What happens to the leader that has this order in its hands: once, whoever reads it after that is spared.
    pub(crate) fn at(&self, order: u64) -> Option<Fate> {
        let mut to_come = self.to_come.lock().unwrap_or_else(PoisonError::into_inner);
        to_come.remove(&order)
    }

    pub(crate) fn all_met(&self) -> bool {
        let to_come = self.to_come.lock().unwrap_or_else(PoisonError::into_inner);
        to_come.is_empty() && self.thawed.load(Ordering::Acquire)
    }

    pub(crate) fn thawed(&self) {
        self.thawed.store(true, Ordering::Release);
    }
}

/// Stands still with everything that runs on this thread, for ever.
pub(crate) fn die() -> ! {
    loop {
        std::thread::park();
    }
}

/// Stands still with everything that runs on this thread, until others have gone on.
pub(crate) fn freeze(node_id: &str, order: u64, ledger: &Ledger) {
    while ledger.written() < order + 10 {
        std::thread::sleep(Duration::from_millis(5));
    }
    tell(format_args!(
        "{node_id:>10}  thaws, and writes order {order}"
    ));
}
