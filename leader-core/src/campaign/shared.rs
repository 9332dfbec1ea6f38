//! What a campaign's task and its handle share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::change::{ChangeHub, Revocation};
use super::status::{CampaignEnd, CampaignPhase, CampaignStatus};
use crate::error::LeaderError;
use crate::lease::LeaseHandle;

pub(super) struct Shared {
    /// How long a body that is asked to stop may take.
    pub(super) grace: Duration,
    pub(super) status: watch::Sender<CampaignStatus>,
    pub(super) changes: ChangeHub,
    /// Fired when the campaign is to end.
    pub(super) stop: CancellationToken,
    /// Rung when a pause is to end.
    stand: Notify,
    /// Its lease comes and goes while the status is written: who finds it finds its tenure in the status, where a
    /// resignation waits for the end of it. Locked after the status, never before, as who looks at the status may ask for
    /// the lease.
    current: Mutex<Current>,
}

/// The tenure in force, until its slot was given back.
#[derive(Default)]
struct Current {
    lease: Option<LeaseHandle>,
    resigned: bool,
}

impl Shared {
    pub(super) fn new(grace: Duration, status: CampaignStatus) -> Arc<Self> {
        Arc::new(Self {
            grace,
            status: watch::Sender::new(status),
            changes: ChangeHub::new(),
            stop: CancellationToken::new(),
            stand: Notify::new(),
            current: Mutex::default(),
        })
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lease(&self) -> Option<LeaseHandle> {
        self.current().lease.clone()
    }

    /// Asks the body to stop, and notes that others are to lead. Gives what is led, if anything.
    pub(super) fn resign(&self) -> Option<LeaseHandle> {
        let mut current = self.current();
        let lease = current.lease.clone()?;
        current.resigned = true;
        drop(current);
        lease.inner().stop();
        Some(lease)
    }

    /// Asks the whole campaign to end.
    pub(super) fn stop(&self) {
        self.stop.cancel();
        if let Some(lease) = self.lease() {
            lease.inner().stop();
        }
    }

    /// A tenure begins.
    pub(super) fn granted(&self, lease: LeaseHandle) {
        let tenure = lease.inner().clone();
        self.status.send_modify(|status| {
            self.current().lease = Some(lease);
            status.phase = CampaignPhase::Leading;
            status.tenure = Some(tenure.id.clone());
            status.tenures += 1;
            status.failures = 0;
            status.failure = None;
        });
        self.changes.granted(&tenure.id);
        // Asked before there was a tenure to be asked.
        if self.stop.is_cancelled() {
            tenure.stop();
        }
    }

    pub(super) fn phase(&self, phase: CampaignPhase) {
        self.status
            .send_if_modified(|status| std::mem::replace(&mut status.phase, phase) != phase);
    }

    /// The slot of the tenure was given back, or that was tried. Gives why the tenure is over: what `why` says, which is
    /// told whether the body was asked to stop, or else who asked.
    pub(super) fn revoked(
        &self,
        why: impl FnOnce(bool) -> Option<Revocation>,
        released: Result<(), LeaderError>,
    ) -> Revocation {
        // Whoever is told of this may ask to stand before the pause has begun; who asked earlier meant another one.
        self.forget_asked();
        let (mut lease, mut reason) = (None, Revocation::ShutDown);
        self.status.send_modify(|status| {
            let current = std::mem::take(&mut *self.current());
            let stops = |lease: &LeaseHandle| lease.inner().is_stopping();
            if let Some(why) = why(current.resigned || current.lease.as_ref().is_some_and(stops)) {
                reason = why;
            } else if current.resigned {
                reason = Revocation::Resigned;
            } else if self.stop.is_cancelled() {
                reason = Revocation::Stopped;
            }
            status.phase = match reason {
                Revocation::Resigned | Revocation::Ended(_) => CampaignPhase::Pausing,
                Revocation::Lost(_) | Revocation::Stopped | Revocation::ShutDown => {
                    CampaignPhase::Standing
                }
            };
            status.released = status.tenure.take().map(|tenure| (tenure, released.err()));
            lease = current.lease;
        });
        if let Some(lease) = lease {
            self.changes.revoked(&lease.inner().id, reason.clone());
        }
        reason
    }

    /// Ends the present pause, or the one that is about to begin.
    pub(super) fn stand(&self) {
        self.stand.notify_one();
    }

    fn forget_asked(&self) {
        let asked = self.stand.notified();
        tokio::pin!(asked);
        asked.as_mut().enable();
    }

    /// The store did not answer.
    pub(super) fn failed(&self, error: LeaderError) -> u64 {
        let mut failures = 0;
        self.status.send_modify(|status| {
            status.failures += 1;
            status.failure = Some(error);
            failures = status.failures;
        });
        failures
    }

    pub(super) fn ended(&self, end: Result<CampaignEnd, LeaderError>) {
        let mut lease = None;
        self.status.send_modify(|status| {
            lease = std::mem::take(&mut *self.current()).lease;
            status.phase = CampaignPhase::Ended;
            status.tenure = None;
            status.end.get_or_insert(end);
        });
        // A task that ended with its runtime has not told what became of its tenure.
        if let Some(lease) = lease {
            self.changes.revoked(&lease.inner().id, Revocation::Stopped);
        }
        self.changes.close();
    }

    /// A pause, until it is over, or the campaign is told to stand, or to end.
    pub(super) async fn pause(&self, pause: Duration, closing: &CancellationToken) {
        self.phase(CampaignPhase::Pausing);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stand.notified() => {}
            () = self.stop.cancelled() => {}
            () = closing.cancelled() => {}
        }
    }
}
