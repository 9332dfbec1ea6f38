//! The page about the metrics speaks of those that there are, and of all of them.

use std::collections::BTreeSet;
use std::sync::Mutex;

use leader_core::LocalStore;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::support::{candidate, lead, options};

const PAGE: &str = include_str!("../../src/metrics.md");

/// Notes what is described, as `kind name`.
struct Described(Mutex<BTreeSet<String>>);

impl Described {
    fn note(&self, kind: &str, name: &KeyName) {
        let line = format!("{kind} {}", name.as_str());
        self.0.lock().unwrap().insert(line);
    }
}

impl Recorder for Described {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.note("counter", &name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.note("gauge", &name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.note("histogram", &name);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// The table's rows, as `kind name`.
fn rows() -> BTreeSet<String> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let name = cells.next()?.trim().trim_end_matches('`').to_owned();
        let kind = cells.next()?.trim().to_owned();
        Some(format!("{kind} {name}"))
    };
    PAGE.lines().filter_map(row).collect()
}

#[tokio::test(start_paused = true)]
async fn the_page_has_a_row_for_each_metric_and_queries_no_other() {
    let recorder: &'static Described = Box::leak(Box::new(Described(Mutex::default())));
    let _installed = metrics::set_default_local_recorder(recorder);
    let (elector, _) = candidate(&LocalStore::new());
    let lease = lead(&elector, options()).await;
    lease.release().await.unwrap();
    let described = recorder.0.lock().unwrap().clone();
    assert_eq!(rows(), described);

    // A histogram is queried by its buckets, and everything else by its name.
    let may_be_queried: BTreeSet<String> = described
        .iter()
        .filter_map(|line| match line.split_once(' ')? {
            ("histogram", name) => Some(format!("{name}_bucket")),
            (_, name) => Some(name.to_owned()),
        })
        .collect();
    let fences = PAGE.split("```").skip(1).step_by(2);
    let queried: BTreeSet<&str> = fences
        .flat_map(|query| query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')))
        .filter(|word| word.starts_with("leader_election_"))
        .collect();
    assert!(queried.len() >= 8, "{queried:?}");
    for name in queried {
        assert!(may_be_queried.contains(name), "{name} is not there");
    }
}
