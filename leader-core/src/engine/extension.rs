//! Extending: one request for one lease or for many, by hand or by the keeper.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::{Instant, timeout};

use super::tenure::{Tenure, kept};
use super::{Engine, here, meter};
use crate::error::{BackendKind, LeaderError, LossReason, Step};
use crate::options::LeaseOptions;
use crate::store::{ExtendReply, Extension, Granted, LeaseStore, StoreError};

/// The right to have a request in flight for a lease: one at a time. Given back when dropped.
pub(super) struct Turn {
    tenure: Arc<Tenure>,
}

impl Turn {
    /// The turn, unless a request is in flight.
    pub(super) fn take(tenure: &Arc<Tenure>) -> Option<Self> {
        let permit = tenure.gate.try_acquire().ok()?;
        permit.forget();
        Some(Self {
            tenure: tenure.clone(),
        })
    }

    /// The turn, once no request is in flight.
    pub(super) async fn wait(tenure: &Arc<Tenure>) -> Option<Self> {
        let permit = tenure.gate.acquire().await.ok()?;
        permit.forget();
        Some(Self {
            tenure: tenure.clone(),
        })
    }

    pub(super) fn tenure(&self) -> &Arc<Tenure> {
        &self.tenure
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.tenure.gate.add_permits(1);
    }
}

/// A lease to be extended, and for how long it is to live from now.
pub(super) struct Request {
    pub(super) turn: Turn,
    pub(super) lease: Duration,
}

/// What came of one request.
pub(super) enum Extended {
    Done,
    Lost,
    Failed(StoreError),
}

/// Requests under way. Dropped before they are answered, the store may have executed them.
struct UnderWay<'a> {
    requests: &'a [Request],
    /// By then the store has executed a request that it ever executes, as far as this candidate waits for it.
    executed: Instant,
    answered: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.answered {
            for request in self.requests {
                request.may_last_from(self.executed);
            }
        }
    }
}

impl Request {
    fn may_last_from(&self, executed: Instant) {
        let tenure = self.turn.tenure();
        tenure.may_last_until(executed + kept(self.lease));
    }
}

impl<S: LeaseStore> Engine<S> {
    /// Sends one request for all of them, and tells the tenures what came of it, in their order.
    pub(super) async fn send_extensions(&self, requests: &[Request]) -> Vec<Extended> {
        let each = requests.iter().map(|Request { turn, lease }| {
            let Tenure {
                id, token, slots, ..
            } = &**turn.tenure();
            let granted = Granted::new(id.node_id.clone(), *slots, id.fence);
            Extension::new(id.name.clone(), *token, id.slot, *lease).of(granted)
        });
        let batch: Vec<Extension> = each.collect();
        let sent = Instant::now();
        let mut under_way = UnderWay {
            requests,
            executed: sent + self.command_timeout,
            answered: false,
        };
        // A store that panics has failed this request, and no more: the keeper's other leases go on.
        let extend = AssertUnwindSafe(self.store.extend(&batch)).catch_unwind();
        let replies = match timeout(self.command_timeout, extend).await {
            Ok(Ok(replies)) => replies,
            Ok(Err(_)) => vec![Err(panicked()); requests.len()],
            Err(_) => vec![Err(StoreError::no_answer(self.command_timeout)); requests.len()],
        };
        under_way.answered = true;
        let executed = under_way.executed;
        let mut replies = replies.into_iter();
        let answer = |request: &Request| {
            let reply = replies.next().unwrap_or_else(|| Err(unanswered()));
            let tenure = request.turn.tenure();
            match reply {
                Ok(ExtendReply::Extended) => {
                    if tenure.extended(sent, request.lease) {
                        self.tell_extended(tenure);
                    }
                    Extended::Done
                }
                Ok(ExtendReply::NotHeld(reason)) => {
                    meter::extended(&tenure.label, meter::Extension::Lost);
                    tenure.lose(reason);
                    Extended::Lost
                }
                Err(error) => {
                    if error.may_have_run() {
                        request.may_last_from(executed);
                    }
                    self.failed(Step::Extend, tenure, &error);
                    Extended::Failed(error)
                }
            }
        };
        requests.iter().map(answer).collect()
    }

    /// Extends a lease by hand.
    pub(super) async fn extend_now(
        &self,
        tenure: &Arc<Tenure>,
        lease: Duration,
    ) -> Result<(), LeaderError> {
        LeaseOptions::check_lease("extend", lease)?;
        here()?;
        let failed = |error| {
            let name = Some(&tenure.id.name);
            Err(LeaderError::backend(Step::Extend, name, error))
        };
        let turn = match timeout(self.command_timeout, Turn::wait(tenure)).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Err(tenure.lost_error(LossReason::Released)),
            // The request that is in flight has not been answered.
            Err(_) => return failed(StoreError::no_answer(self.command_timeout).not_run()),
        };
        tenure.ensure_valid()?;
        let lease = tenure.within_tenure(lease);
        match self.send_extensions(&[Request { turn, lease }]).await.pop() {
            Some(Extended::Done) => {
                tenure.ensure_valid()?;
                self.keepers.extended(tenure);
                Ok(())
            }
            Some(Extended::Lost) => tenure.ensure_valid(),
            Some(Extended::Failed(error)) => failed(error),
            None => failed(unanswered()),
        }
    }
}

fn unanswered() -> StoreError {
    let reason = "an extension was left unanswered";
    StoreError::new(BackendKind::MalformedReply, reason)
}

fn panicked() -> StoreError {
    StoreError::new(
        BackendKind::Other,
        "the store panicked; this is a bug in it",
    )
}
