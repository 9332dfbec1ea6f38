//! A recorder that can be read, and candidates whose store fails at a word.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leader_core::testing::{Faults, FaultyStore};
use leader_core::{
    Elector, ElectorExt, Lease, LeaseOptions, LeaseOptionsBuilder, LocalStore, StoreElector,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

pub(crate) type Candidate = StoreElector<FaultyStore<LocalStore>>;

pub(crate) const LEASE: Duration = Duration::from_secs(10);

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The name is filled in; labels have its pattern.
pub(crate) fn options() -> LeaseOptionsBuilder {
    LeaseOptions::builder()
        .wait(Duration::ZERO)
        .lease(LEASE)
        .name_pattern("report:{tenant}")
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    static ALONE: MutexGuard<'static, ()> =
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
}

/// Whether a process leads is one gauge for the whole process, and these tests share its label: where they share a
/// process as well, one follows the other. A test ends with its thread.
pub(crate) fn alone() {
    ALONE.with(|_| ());
}

pub(crate) fn candidate(store: &LocalStore) -> (Candidate, Faults) {
    alone();
    let store = FaultyStore::new(store.clone());
    let faults = store.faults();
    let elector = StoreElector::builder(store).shutdown_grace(s(2)).build();
    (elector, faults)
}

pub(crate) async fn lead(elector: &impl Elector, options: LeaseOptionsBuilder) -> Lease {
    let options = options.build().unwrap();
    let lease = elector.try_acquire("report:acme", &options).await;
    lease.unwrap().expect("nobody else leads")
}

/// Counts what this thread counts, for as long as it lives.
pub(crate) struct Metered {
    snapshotter: Snapshotter,
    totals: BTreeMap<String, f64>,
    recorded: BTreeMap<String, Vec<f64>>,
    pub(crate) described: BTreeMap<String, String>,
    _installed: metrics::LocalRecorderGuard<'static>,
}

impl Metered {
    pub(crate) fn new() -> Self {
        alone();
        // A test's worth of memory, which the guard can then borrow for as long as it likes.
        let recorder: &'static DebuggingRecorder = Box::leak(Box::new(DebuggingRecorder::new()));
        Self {
            snapshotter: recorder.snapshotter(),
            totals: BTreeMap::new(),
            recorded: BTreeMap::new(),
            described: BTreeMap::new(),
            _installed: metrics::set_default_local_recorder(recorder),
        }
    }

    /// A snapshot sets everything to zero, so totals are kept here.
    fn look(&mut self) {
        for (key, _, description, value) in self.snapshotter.snapshot().into_vec() {
            let key = key.key();
            let name = key.name().trim_start_matches("leader_election_");
            let labels = key
                .labels()
                .map(|label| format!("{}={}", label.key(), label.value()));
            let labels: Vec<String> = labels.collect();
            if let Some(description) = description {
                self.described
                    .insert(key.name().to_owned(), description.to_string());
            }
            let shown = format!("{name}{{{}}}", labels.join(","));
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            match value {
                DebugValue::Counter(count) => {
                    *self.totals.entry(shown).or_default() += count as f64;
                }
                DebugValue::Gauge(by) => *self.totals.entry(shown).or_default() += by.0,
                DebugValue::Histogram(values) => {
                    let values = values.into_iter().map(|value| value.0);
                    self.recorded.entry(shown).or_default().extend(values);
                }
            }
        }
    }

    /// The counter or gauge `name{labels}`; `None` when nobody has spoken of it.
    #[expect(clippy::cast_possible_truncation, reason = "whole numbers")]
    pub(crate) fn value(&mut self, shown: &str) -> Option<i64> {
        self.look();
        self.totals.get(shown).map(|value| value.round() as i64)
    }

    /// What the histogram has been told, in milliseconds.
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
    pub(crate) fn recorded(&mut self, shown: &str) -> Vec<i64> {
        self.look();
        let values = self.recorded.get(shown).into_iter().flatten();
        values
            .map(|seconds| (seconds * 1e3).round() as i64)
            .collect()
    }

    /// Everything that has a label, for those who look for what must not be there.
    pub(crate) fn shown(&mut self) -> String {
        self.look();
        format!("{:?} {:?}", self.totals, self.recorded)
    }

    /// Held, leading, and waiting.
    pub(crate) fn gauges(&mut self) -> [Option<i64>; 3] {
        ["held", "master_status", "waiting"]
            .map(|name| self.value(&format!("{name}{{name=report:{{tenant}}}}")))
    }
}
