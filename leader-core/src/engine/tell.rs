//! Telling: each thing that happens, once, to `tracing`, to the readers of events, and to the meter.
//!
//! Subscribers and recorders are code of others that is called in the middle of an election. If one of them panics, it
//! misses what it was told, and nothing else happens.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Engine;
use super::meter::{self, Extension};
use super::tenure::Tenure;
use crate::error::{LeaderError, LossReason, Step};
use crate::event::LeaderEvent;
use crate::label::Label;
use crate::name::LockName;
use crate::outcome::Acquisition;
use crate::store::{LeaseStore, StoreError};

/// Calls code that may panic and must not matter: `None` when it does.
pub(crate) fn quietly<T>(tell: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(tell)).ok()
}

/// An event of `tracing` about a tenure.
macro_rules! trace {
    ($level:ident, $tenure:expr, $($rest:tt)*) => {{
        let tenure: &Tenure = $tenure;
        if tracing::level_enabled!(tracing::Level::$level) {
            quietly(|| tracing::event!(
                tracing::Level::$level,
                name = tenure.label.as_str(),
                node_id = %tenure.id.node_id,
                slot = tenure.id.slot,
                fence = tenure.id.fence.get(),
                $($rest)*
            ));
        }
    }};
}

impl<S: LeaseStore> Engine<S> {
    pub(super) fn tell_elected(&self, tenure: &Tenure) {
        trace!(DEBUG, tenure, "elected");
        self.events.tell(|| LeaderEvent::Elected {
            tenure: tenure.id.clone(),
        });
    }

    /// How an attempt ended. An election was told with the grant itself, before anything else could happen to the lease.
    pub(super) fn tell_acquired(
        &self,
        name: &LockName,
        label: &Label,
        acquired: &Result<Acquisition, LeaderError>,
    ) {
        let (node_id, label_text) = (&self.node_id, label.as_str());
        match acquired {
            Ok(Acquisition::Elected(_)) => {}
            Ok(Acquisition::Skipped(skipped)) => {
                let holder = skipped.holder();
                let shown = holder.map(tracing::field::display);
                quietly(|| tracing::debug!(name = label_text, %node_id, holder = shown, "skipped"));
                meter::skipped(label);
                self.events.tell(|| LeaderEvent::Skipped {
                    name: name.clone(),
                    node_id: node_id.clone(),
                    holder: holder.cloned(),
                });
            }
            Err(error) => {
                quietly(|| tracing::debug!(name = label_text, %node_id, %error, "not elected"));
                if let LeaderError::Backend { step, kind, .. } = error {
                    meter::attempt_failed(label, *kind);
                    self.events.tell(|| LeaderEvent::Failed {
                        name: name.clone(),
                        node_id: node_id.clone(),
                        tenure: None,
                        step: *step,
                        kind: *kind,
                    });
                }
            }
        }
    }

    pub(super) fn tell_extended(&self, tenure: &Tenure) {
        trace!(TRACE, tenure, "extended");
        meter::extended(&tenure.label, Extension::Done);
        self.events.tell(|| LeaderEvent::Extended {
            tenure: tenure.id.clone(),
        });
    }

    pub(super) fn tell_lost(&self, tenure: &Tenure, reason: LossReason) {
        trace!(WARN, tenure, %reason, "lost the lease");
        self.told_lost(tenure, reason);
    }

    /// As [`tell_lost`](Self::tell_lost), of a lease that its holder had let go of.
    pub(super) fn tell_gone(&self, tenure: &Tenure, reason: LossReason) {
        trace!(WARN, tenure, %reason, "the lease was gone when it was released");
        self.told_lost(tenure, reason);
    }

    fn told_lost(&self, tenure: &Tenure, reason: LossReason) {
        meter::lost(&tenure.label, reason);
        self.events.tell(|| LeaderEvent::Lost {
            tenure: tenure.id.clone(),
            reason,
        });
    }

    pub(super) fn tell_released(&self, tenure: &Tenure) {
        trace!(DEBUG, tenure, "released");
        self.events.tell(|| LeaderEvent::Released {
            tenure: tenure.id.clone(),
        });
    }

    /// The store failed at a step of a tenure that goes on, or whose release does.
    pub(super) fn failed(&self, step: Step, tenure: &Tenure, error: &StoreError) {
        trace!(DEBUG, tenure, %step, %error, "the store failed; trying again");
        if step == Step::Extend {
            meter::extended(&tenure.label, Extension::Failed);
        }
        self.events.tell(|| LeaderEvent::Failed {
            name: tenure.id.name.clone(),
            node_id: tenure.id.node_id.clone(),
            tenure: Some(tenure.id.clone()),
            step,
            kind: error.kind(),
        });
    }

    /// The store failed at a claim, and there is time for another.
    pub(super) fn tell_asking_again(&self, label: &Label, error: &StoreError) {
        let (node_id, name) = (&self.node_id, label.as_str());
        quietly(|| tracing::debug!(name, %node_id, %error, "asking again soon"));
    }

    /// The store did not confirm a release, of a tenure or of an attempt whose answer was not seen.
    pub(super) fn tell_not_released(&self, label: &Label, error: &StoreError) {
        let (node_id, name) = (&self.node_id, label.as_str());
        quietly(|| tracing::debug!(name, %node_id, %error, "a slot was not given back"));
        meter::release_failed(label);
    }

    /// A release is given up, of a tenure or of an attempt whose answer was not seen.
    pub(super) fn tell_given_up(&self, label: &Label, error: &StoreError) {
        let (node_id, name) = (&self.node_id, label.as_str());
        quietly(|| {
            tracing::warn!(name, %node_id, %error, "gave up a release; the slot ends with its lease");
        });
    }
}

/// The store cannot tell of releases at the moment.
pub(super) fn tell_no_hints(label: &Label, error: &StoreError) {
    quietly(|| tracing::debug!(name = label.as_str(), %error, "waiting without hints"));
}
