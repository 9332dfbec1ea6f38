//! The store: its state, its revisions, its watchers, and the trait over its three steps.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, Hint, HintSender, LeaseStore, REACH, Release,
    ReleaseReply, Revision, StoreError, Watching,
};
use leader_core::{BackendKind, FencingToken, Holder, LockName, LossReason, NodeId, Token};
use tokio::time::Instant;

use super::Flaw;

/// A store of leases in a list, with one flaw or none.
#[derive(Clone)]
pub(crate) struct FlawedStore {
    pub(super) flaw: Option<Flaw>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) slots: Vec<Slot>,
    pub(super) marks: Vec<(LockName, Token, NodeId, Instant)>,
    pub(super) watchers: Vec<(u64, LockName, HintSender)>,
    pub(super) observers: Vec<(u64, LockName, HintSender)>,
    /// The last release of each name.
    pub(super) releases: Vec<(LockName, u64)>,
    pub(super) last_revision: u64,
    pub(super) last_watcher: u64,
}

#[derive(Clone)]
pub(super) struct Slot {
    pub(super) name: LockName,
    pub(super) number: u32,
    /// `None` when a minimum lease keeps it.
    pub(super) token: Option<Token>,
    pub(super) node_id: NodeId,
    pub(super) fence: u64,
    pub(super) ends: Instant,
    /// Ended slots stay in the list until they are taken again, so that "expired" is told from "deleted".
    pub(super) freed: bool,
}

impl FlawedStore {
    pub(crate) fn new(flaw: Option<Flaw>) -> Self {
        Self {
            flaw,
            state: Arc::default(),
        }
    }

    pub(super) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn name(&self, name: &LockName) -> LockName {
        if self.has(Flaw::NamesAreAllOne) {
            LockName::new("one").unwrap()
        } else if self.has(Flaw::NamesIgnoreCase) {
            LockName::new(name.as_str().to_lowercase()).unwrap()
        } else {
            name.clone()
        }
    }

    pub(super) fn lease(&self, lease: Duration) -> Duration {
        if self.has(Flaw::LeaseEndsEarly) {
            lease / 2
        } else if self.has(Flaw::LeaseNeverEnds) {
            lease.max(Duration::from_secs(3600))
        } else if self.has(Flaw::LeaseIsADayAtMost) {
            lease.min(Duration::from_secs(24 * 3600))
        } else {
            lease
        }
    }

    pub(super) fn is_live(&self, slot: &Slot, now: Instant) -> bool {
        !slot.freed && slot.ends > now && !(slot.token.is_none() && self.has(Flaw::KeptIsFree))
    }

    pub(super) fn next_revision(&self, state: &mut State) -> u64 {
        self.next_revision_at(state, self.time())
    }

    pub(super) fn next_revision_at(&self, state: &mut State, time: u64) -> u64 {
        state.last_revision = if self.has(Flaw::FenceIsACounter) {
            state.last_revision + 1
        } else {
            time.max(state.last_revision + 1)
        };
        state.last_revision
    }

    /// What the time is taken for in a grant.
    pub(super) fn time_for(&self, claim: &Claim) -> u64 {
        let (time, proposed) = (self.time(), claim.proposed.get());
        let reach = u64::try_from(REACH.as_micros()).unwrap();
        let is_near = time.abs_diff(proposed) <= reach || self.has(Flaw::ProposalFromAfar);
        if proposed > 0 && is_near && !self.has(Flaw::ProposalIgnored) {
            proposed
        } else {
            time
        }
    }

    #[expect(clippy::unused_self, reason = "the time is the store's own")]
    pub(super) fn time(&self) -> u64 {
        // Tokio's clock from a fixed point on stands for the store's time.
        let micros = BASE.with(|base| Instant::now().duration_since(*base).as_micros());
        1_700_000_000_000_000 + u64::try_from(micros).unwrap()
    }

    pub(super) fn floor(&self, claim: &Claim) -> u64 {
        if self.has(Flaw::FloorIgnored) {
            0
        } else {
            claim.at_least.get()
        }
    }

    pub(super) fn tell(
        &self,
        state: &mut State,
        name: &LockName,
        revision: u64,
        free_in: Duration,
    ) -> u32 {
        let hint = Hint::Released {
            revision: Revision::new(revision),
            free_in,
        };
        if !self.has(Flaw::ShowsGrantsOnly) {
            self.show(state, name);
        }
        let mut told = 0;
        if self.has(Flaw::ObserversAreCounted) {
            told = u32::try_from(state.observers.len()).unwrap();
        }
        if self.has(Flaw::TellsNobody) {
            return told;
        }
        for (_, watched, sender) in state.watchers.iter().rev() {
            if watched == name || self.has(Flaw::TellsEveryName) {
                sender.push(hint);
                told += 1;
                if self.has(Flaw::TellsTheLastWatcher) {
                    break;
                }
            }
        }
        if self.has(Flaw::TellsOnce) {
            state.watchers.retain(|(_, watched, _)| watched != name);
        }
        told
    }

    /// Tells observers.
    pub(super) fn show(&self, state: &State, name: &LockName) {
        for (_, observed, sender) in &state.observers {
            if observed == name || self.has(Flaw::ShowsEveryName) {
                sender.push(Hint::Changed);
            }
        }
    }

    pub(super) fn note_release(&self, state: &mut State, name: &LockName) -> u64 {
        let revision = if self.has(Flaw::ReleaseTakesNoRevision) {
            state.last_revision
        } else {
            self.next_revision(state)
        };
        state.releases.retain(|(released, _)| released != name);
        state.releases.push((name.clone(), revision));
        revision
    }

    pub(super) fn not_held(
        &self,
        state: &State,
        name: &LockName,
        number: u32,
        token: Token,
    ) -> LossReason {
        let slot = state
            .slots
            .iter()
            .find(|slot| slot.name == *name && slot.number == number);
        match slot {
            Some(slot) if self.is_live(slot, Instant::now()) && slot.token != Some(token) => {
                LossReason::Taken
            }
            Some(slot) if slot.token == Some(token) && !slot.freed => LossReason::Expired,
            _ if self.has(Flaw::EvictedIsToldTaken) => LossReason::Taken,
            _ => LossReason::Deleted,
        }
    }
}

thread_local! {
    static BASE: Instant = Instant::now();
}

impl LeaseStore for FlawedStore {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        if self.has(Flaw::LongNamesAreRefused) && claim.name.as_str().len() > 200 {
            return Err(StoreError::new(BackendKind::Other, "the name is too long"));
        }
        if self.has(Flaw::ClaimIsNotAtomic) {
            // Decided by what was read before somebody else's write.
            let before = self.state().slots.clone();
            tokio::task::yield_now().await;
            let after = std::mem::replace(&mut self.state().slots, before);
            let reply = self.claim_now(claim);
            let slots = &mut self.state().slots;
            let decided = std::mem::replace(slots, after);
            slots.retain(|slot| slot.token != Some(claim.token));
            let mine = |slot: &Slot| slot.token == Some(claim.token);
            slots.extend(decided.into_iter().filter(mine));
            return Ok(reply);
        }
        Ok(self.claim_now(claim))
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        let mut replies: Vec<_> = batch.iter().map(|one| Ok(self.extend_one(one))).collect();
        if self.has(Flaw::BatchIsReversed) {
            replies.reverse();
        }
        if self.has(Flaw::BatchIsCutShort) {
            replies.truncate(100);
        }
        if self.has(Flaw::EmptyBatchIsAnswered) && batch.is_empty() {
            replies.push(Ok(ExtendReply::Extended));
        }
        replies
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        Ok(self.release_one(release))
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        let name = self.name(name);
        let state = &mut *self.state();
        let missed = state
            .releases
            .iter()
            .any(|(released, revision)| *released == name && *revision > since.get());
        if missed && !self.has(Flaw::WatchIgnoresSince) {
            hints.push(Hint::Missed);
        }
        state.last_watcher += 1;
        let id = state.last_watcher;
        state.watchers.push((id, name, hints));
        if self.has(Flaw::WatchIsNeverForgotten) {
            return Ok(Watching::unbound());
        }
        Ok(Watching::new(End(self.clone(), id)))
    }

    async fn observe(&self, name: &LockName, hints: HintSender) -> Result<Watching, StoreError> {
        let name = self.name(name);
        let state = &mut *self.state();
        if self.has(Flaw::ObservationTakesASlot) {
            state.slots.push(Slot {
                name: name.clone(),
                number: 0,
                token: None,
                node_id: NodeId::new("observer"),
                fence: 1,
                ends: Instant::now() + Duration::from_secs(1),
                freed: false,
            });
        }
        state.last_watcher += 1;
        let id = state.last_watcher;
        state.observers.push((id, name, hints));
        if self.has(Flaw::ObservationIsNeverForgotten) {
            return Ok(Watching::unbound().of_grants());
        }
        Ok(Watching::new(End(self.clone(), id)).of_grants())
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        let name = self.name(name);
        let now = Instant::now();
        let mut holders = Vec::new();
        for slot in &mut self.state().slots {
            let former = slot.freed && self.has(Flaw::InspectionShowsFormer);
            if slot.name != name || !(self.is_live(slot, now) || former) {
                continue;
            }
            if self.has(Flaw::InspectionExtends) {
                slot.ends += Duration::from_secs(1);
            }
            let fence = FencingToken::new(slot.fence);
            let remaining = slot.ends.saturating_duration_since(now);
            let holder = Holder::new(slot.node_id.clone(), slot.number, fence, remaining);
            holders.push(if slot.token.is_some() || self.has(Flaw::KeptIsNotShown) {
                holder
            } else {
                holder.retained()
            });
        }
        if self.has(Flaw::InspectionShowsOne) {
            holders.truncate(1);
        }
        Ok(holders)
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        let name = self.name(name);
        let now = Instant::now();
        let state = &mut *self.state();
        let mut evicted = 0;
        state.slots.retain(|slot| {
            let hit = slot.name == name
                || (self.has(Flaw::EvictionGoesByPrefix)
                    && slot.name.as_str().starts_with(name.as_str()));
            if !hit || !self.is_live(slot, now) {
                return true;
            }
            evicted += 1;
            evicted > 1 && self.has(Flaw::EvictionFreesOneSlot)
        });
        if evicted > 0 && !self.has(Flaw::EvictionIsNotTold) {
            let revision = self.note_release(state, &name);
            self.tell(state, &name, revision, Duration::ZERO);
        }
        if self.has(Flaw::EvictionCountsOne) {
            evicted = 1;
        }
        if self.has(Flaw::MarkEndsWithTheNextGrant) {
            state.marks.clear();
        }
        Ok(evicted)
    }

    fn command_timeout(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn time_by_now(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.time()))
    }
}

/// Ends a watch when dropped.
struct End(FlawedStore, u64);

impl Drop for End {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.watchers.retain(|(id, ..)| *id != self.1);
        state.observers.retain(|(id, ..)| *id != self.1);
    }
}
