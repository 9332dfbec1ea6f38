//! Recorders that misbehave: nothing of what they do touches a lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::life::a_life;
use crate::support::{alone, candidate, options};
use leader_core::{ElectorExt, LeaderError, LocalStore, LossReason};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// Panics when it is asked for a metric, or later, when that is used.
struct Panicking {
    at_once: bool,
    calls: Arc<Calls>,
}

#[derive(Default)]
struct Calls(AtomicUsize);

impl Calls {
    fn panic(&self) -> ! {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a recorder's")
    }
}

impl Recorder for Panicking {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        self.calls.panic();
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        self.calls.panic();
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        self.calls.panic();
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        if self.at_once {
            self.calls.panic();
        }
        Counter::from_arc(self.calls.clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        if self.at_once {
            self.calls.panic();
        }
        Gauge::from_arc(self.calls.clone())
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        if self.at_once {
            self.calls.panic();
        }
        Histogram::from_arc(self.calls.clone())
    }
}

impl CounterFn for Calls {
    fn increment(&self, _: u64) {
        self.panic();
    }

    fn absolute(&self, _: u64) {
        self.panic();
    }
}

impl GaugeFn for Calls {
    fn increment(&self, by: f64) {
        // Some only when they are told that it is over.
        if by == 0.0 {
            self.panic();
        }
    }

    fn decrement(&self, _: f64) {
        self.panic();
    }

    fn set(&self, _: f64) {
        self.panic();
    }
}

impl HistogramFn for Calls {
    fn record(&self, _: f64) {
        self.panic();
    }
}

#[tokio::test(start_paused = true)]
async fn recorders_that_panic() {
    alone();
    for at_once in [true, false] {
        let calls = Arc::new(Calls::default());
        let recorder: &'static Panicking = Box::leak(Box::new(Panicking {
            at_once,
            calls: calls.clone(),
        }));
        let _installed = metrics::set_default_local_recorder(recorder);
        a_life().await;
        assert!(
            calls.0.load(Ordering::Relaxed) > 20,
            "it was called, and panicked"
        );
    }
}

/// Takes longer to count an election than the lease lasts.
struct Stuck(AtomicBool);

impl Recorder for Stuck {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() == "leader_election_elections_total" {
            std::thread::sleep(Duration::from_millis(60));
            self.0.store(true, Ordering::Relaxed);
        }
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn a_recorder_that_is_stuck_for_longer_than_the_lease() {
    let recorder: &'static Stuck = Box::leak(Box::new(Stuck(AtomicBool::new(false))));
    let _installed = metrics::set_default_local_recorder(recorder);
    let (elector, _) = candidate(&LocalStore::new());
    let short = options().lease(Duration::from_millis(50)).build().unwrap();
    let run = elector.run_if_leader("report:acme", &short, |_| async {
        unreachable!("the lease is over")
    });
    let lost: LeaderError = run.await.map(|_: Option<()>| ()).unwrap_err();
    assert!(
        matches!(
            lost,
            LeaderError::LeaseLost {
                reason: LossReason::Expired,
                ..
            }
        ),
        "{lost}"
    );
    assert!(recorder.0.load(Ordering::Relaxed));
}
