//! Ending everything within a bound: attempts, bodies, leases, connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{Engine, far_from};
use crate::error::LossReason;
use crate::store::LeaseStore;

impl<S: LeaseStore> Engine<S> {
    /// Ends everything. Done in a task of its own: whoever calls this from within a guarded body is dropped by it.
    pub(super) async fn shut_down(self: Arc<Self>) {
        match self.runtime() {
            Ok(runtime) => {
                let work = async move { self.close().await };
                // An error means that the runtime ends, and everything with it.
                let _ = runtime.spawn(work).await;
            }
            Err(_) => self.close_at_once(),
        }
    }

    /// What can be done without waiting, outside any runtime: nobody is asked, and the store is left to its own end.
    fn close_at_once(self: &Arc<Self>) {
        self.begin_closing();
        for tenure in self.held.all() {
            tenure.stop();
            tenure.lose(LossReason::ShutDown);
            if !tenure.guarded.load(Ordering::Acquire) {
                self.end_behind(&tenure);
            }
        }
        self.tracker.close();
        self.events.close();
    }

    async fn close(self: &Arc<Self>) {
        let begun = Instant::now();
        self.begin_closing();
        for tenure in self.held.all() {
            tenure.stop();
        }
        // Half of the time is for those who end by themselves, the other half for clearing up after the rest.
        let _ = timeout_at(far_from(begun, self.grace / 2), self.all_let_go()).await;
        let rest = self.held.all();
        for tenure in &rest {
            tenure.lose(LossReason::ShutDown);
        }
        let until = far_from(begun, self.grace);
        let bodiless = rest
            .iter()
            .filter(|tenure| !tenure.guarded.load(Ordering::Acquire));
        for tenure in bodiless {
            self.end_behind(tenure);
        }
        self.tracker.close();
        let _ = timeout_at(until, self.tracker.wait()).await;
        self.closed.cancel();
        // Closing is local work; it gets a moment even when the store has used up all the time.
        let until = until.max(Instant::now() + LAST_MOMENT);
        let _ = timeout_at(until, self.store.close()).await;
        self.events.close();
    }

    async fn all_let_go(&self) {
        loop {
            let let_go = self.let_go.notified();
            tokio::pin!(let_go);
            // Registered before the look, so that a tenure that ends in between is not missed.
            let_go.as_mut().enable();
            if self.held.is_empty() {
                return;
            }
            let_go.await;
        }
    }
}

const LAST_MOMENT: Duration = Duration::from_millis(100);
