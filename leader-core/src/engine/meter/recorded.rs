//! Counters, gauges and histograms through the `metrics` facade.
//!
//! A recorder is code of others that is called in the middle of an election: whatever it does, a panic included, stays
//! here. Gauges go down by the handle that they went up by, so that they come back to where they were also when a
//! recorder was installed in between.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use metrics::{Gauge, SharedString, Unit, counter, gauge, histogram};
use tokio::time::Instant;

use super::Extension;
use crate::engine::tell::quietly;
use crate::error::{BackendKind, LossReason};
use crate::label::Label;

const ATTEMPTS: &str = "leader_election_attempts_total";
const ELECTIONS: &str = "leader_election_elections_total";
const SKIPS: &str = "leader_election_skips_total";
const ATTEMPT_FAILURES: &str = "leader_election_attempt_failures_total";
const LOSSES: &str = "leader_election_losses_total";
const EXTENSIONS: &str = "leader_election_extensions_total";
const RELEASE_FAILURES: &str = "leader_election_release_failures_total";
const WAIT: &str = "leader_election_acquire_wait_seconds";
const HOLD: &str = "leader_election_hold_seconds";
const HANDOVER: &str = "leader_election_handover_seconds";
const WAITING: &str = "leader_election_waiting";
const HELD: &str = "leader_election_held";
/// As client-go calls it, so that dashboards which know it show this one.
const MASTER_STATUS: &str = "leader_election_master_status";

fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_counter!(ATTEMPTS, "Attempts to be elected.");
    describe_counter!(ELECTIONS, "Attempts that ended with an election.");
    describe_counter!(SKIPS, "Attempts that ended because another leads.");
    describe_counter!(
        ATTEMPT_FAILURES,
        "Attempts that ended because the store failed, by kind."
    );
    describe_counter!(LOSSES, "Leases that were lost, by reason.");
    describe_counter!(
        EXTENSIONS,
        "Requests to extend a lease, by result: extended, lost, failed."
    );
    describe_counter!(
        RELEASE_FAILURES,
        "Requests to give a slot back that the store did not confirm."
    );
    describe_histogram!(
        WAIT,
        Unit::Seconds,
        "From the begin of an attempt to its election."
    );
    describe_histogram!(
        HOLD,
        Unit::Seconds,
        "From an election to its end, however it ended."
    );
    describe_histogram!(
        HANDOVER,
        Unit::Seconds,
        "From the moment a slot was free, where a release was told, to the next election here."
    );
    describe_gauge!(WAITING, "Attempts to be elected under way.");
    describe_gauge!(HELD, "Leases held.");
    describe_gauge!(MASTER_STATUS, "1 while this process leads, else 0.");
}

impl From<&Label> for SharedString {
    fn from(label: &Label) -> Self {
        match label {
            Label::Name(name) => Self::from_shared(name.shared()),
            Label::Pattern(pattern) => Self::from_shared(pattern.clone()),
        }
    }
}

fn count(name: &'static str, label: &Label) {
    counter!(name, "name" => label).increment(1);
}

/// What an elector remembers of its metrics.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    described: AtomicBool,
}

impl Meter {
    /// An attempt begins; it ends when what this gives is dropped.
    pub(crate) fn standing(&self, label: &Label) -> Standing {
        if !self.described.swap(true, Ordering::Relaxed) {
            quietly(describe);
        }
        quietly(|| {
            count(ATTEMPTS, label);
            // Who has never led is known to be a candidate, too.
            gauge!(MASTER_STATUS, "name" => label).increment(0.0);
        });
        Standing {
            _waiting: Raised::new(|| gauge!(WAITING, "name" => label)),
        }
    }
}

pub(crate) fn skipped(label: &Label) {
    quietly(|| count(SKIPS, label));
}

pub(crate) fn attempt_failed(label: &Label, kind: BackendKind) {
    quietly(|| {
        counter!(ATTEMPT_FAILURES, "name" => label, "kind" => kind.as_str()).increment(1);
    });
}

pub(crate) fn extended(label: &Label, result: Extension) {
    let result = match result {
        Extension::Done => "extended",
        Extension::Lost => "lost",
        Extension::Failed => "failed",
    };
    quietly(|| counter!(EXTENSIONS, "name" => label, "result" => result).increment(1));
}

pub(crate) fn lost(label: &Label, reason: LossReason) {
    quietly(|| counter!(LOSSES, "name" => label, "reason" => reason.as_str()).increment(1));
}

pub(crate) fn release_failed(label: &Label) {
    quietly(|| count(RELEASE_FAILURES, label));
}

/// An attempt under way. However it ends, it no longer waits when this is dropped.
#[derive(Debug)]
pub(crate) struct Standing {
    _waiting: Raised,
}

/// A lease from its grant until it was lost or let go of.
#[derive(Debug)]
pub(crate) struct Held {
    open: Mutex<Option<Open>>,
}

struct Open {
    label: Label,
    granted: Instant,
    _held: Raised,
    _leading: Leading,
}

impl Held {
    /// An attempt that began then was granted now, after the slot had been free since `freed`, where that is known.
    pub(crate) fn begin(label: &Label, begun: Instant, freed: Option<Instant>) -> Self {
        let granted = Instant::now();
        quietly(|| {
            count(ELECTIONS, label);
            histogram!(WAIT, "name" => label).record(granted - begun);
            if let Some(freed) = freed {
                histogram!(HANDOVER, "name" => label).record(granted - freed);
            }
        });
        let open = Open {
            label: label.clone(),
            granted,
            _held: Raised::new(|| gauge!(HELD, "name" => label)),
            _leading: Leading::join(label),
        };
        Self {
            open: Mutex::new(Some(open)),
        }
    }

    /// It is held no longer.
    pub(crate) fn end(&self) {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(open) = open {
            let held = open.granted.elapsed();
            quietly(|| histogram!(HOLD, "name" => &open.label).record(held));
        }
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").finish_non_exhaustive()
    }
}

/// A gauge that is higher by one until this is dropped.
struct Raised(Option<Gauge>);

impl Raised {
    fn new(gauge: impl FnOnce() -> Gauge) -> Self {
        let raise = || {
            let gauge = gauge();
            gauge.increment(1.0);
            gauge
        };
        Self(quietly(raise))
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(gauge) = self.0.take() {
            quietly(|| gauge.decrement(1.0));
        }
    }
}

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raised").finish_non_exhaustive()
    }
}

/// The labels under which this process leads: by how many leases, and the gauge that the first of them has raised.
static LEADING: Mutex<BTreeMap<String, (usize, Option<Raised>)>> = Mutex::new(BTreeMap::new());

fn leading() -> MutexGuard<'static, BTreeMap<String, (usize, Option<Raised>)>> {
    LEADING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One lease under a label of which this process may hold several, by slots or by names filled in.
struct Leading(Label);

impl Leading {
    fn join(label: &Label) -> Self {
        let first = {
            let mut leading = leading();
            let (leases, _) = leading.entry(label.to_string()).or_default();
            *leases += 1;
            *leases == 1
        };
        if first {
            // Not under the lock: nobody knows what a recorder does.
            let raised = Raised::new(|| gauge!(MASTER_STATUS, "name" => label));
            // It is there: this lease has not left.
            if let Some((_, place)) = leading().get_mut(label.as_str()) {
                *place = Some(raised);
            }
        }
        Self(label.clone())
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        let mut leading = leading();
        let mut last = None;
        if let Some((leases, _)) = leading.get_mut(self.0.as_str()) {
            *leases -= 1;
            if *leases == 0 {
                last = leading.remove(self.0.as_str());
            }
        }
        drop(leading);
        drop(last);
    }
}
