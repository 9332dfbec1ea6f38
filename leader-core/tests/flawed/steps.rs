//! The three steps that change a slot, each with the places where it can be wrong.

use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, Release, ReleaseReply, Revision,
};
use leader_core::{FencingToken, LockName, LossReason, NodeId};
use tokio::time::Instant;

use super::Flaw;
use super::store::{FlawedStore, Slot, State};

impl FlawedStore {
    pub(super) fn claim_now(&self, claim: &Claim) -> ClaimReply {
        let name = self.name(&claim.name);
        let now = Instant::now();
        let ends = now + self.lease(claim.lease);
        let state = &mut *self.state();
        if self.is_marked(state, &name, claim) {
            return ClaimReply::Ended;
        }
        let is_taken = |slot: &&Slot| slot.name == name && self.is_live(slot, now);
        let live: Vec<Slot> = state.slots.iter().filter(is_taken).cloned().collect();
        let mut taken = live.len();
        if self.has(Flaw::CountsItsOwnSlotsOnly) {
            taken = live.iter().filter(|slot| slot.number < claim.slots).count();
        }
        let mut full = taken >= claim.slots as usize;
        if let Some(exact) = claim.slot
            && !self.has(Flaw::ExactSlotIgnored)
            && !self.has(Flaw::ExactSlotIsAWish)
        {
            let free = live.iter().all(|slot| slot.number != exact);
            full = !free || (full && !self.has(Flaw::ExactSlotIsNotCounted));
        }
        let forgets = self.has(Flaw::ReclaimDenied)
            || self.has(Flaw::ReclaimIsANewGrant)
            || (full && self.has(Flaw::ReclaimDeniedWhenFull))
            || (claim.slot.is_some() && self.has(Flaw::ExactSlotIsTaken));
        let last = live.iter().map(|slot| slot.fence).max().unwrap_or_default();
        let mine = state.slots.iter_mut().find(|slot| {
            let forever = self.has(Flaw::ReclaimTakesFromSuccessor) && slot.ends <= now;
            slot.name == name
                && slot.token == Some(claim.token)
                && (self.is_live(slot, now) || forever)
        });
        if !forgets && let Some(mine) = mine {
            if self.has(Flaw::ReclaimShortens) {
                mine.ends = ends;
            } else if !self.has(Flaw::ReclaimDoesNotLengthen) {
                mine.ends = mine.ends.max(ends);
            }
            let floor = self.floor(claim);
            if mine.fence < floor && !self.has(Flaw::FloorLiftsGrantsOnly) {
                mine.fence = if self.has(Flaw::FloorGivesNumbersTwice) {
                    floor
                } else {
                    floor.max(last + 1)
                };
                if self.has(Flaw::FloorTakesTheTime) {
                    mine.fence = mine.fence.max(self.time());
                }
                state.last_revision = state.last_revision.max(mine.fence);
            }
            return ClaimReply::Granted {
                slot: mine.number,
                fence: FencingToken::new(mine.fence),
            };
        }
        if full {
            self.deny(state, &name, claim, live)
        } else {
            self.grant(state, name, claim, &live)
        }
    }

    fn is_marked(&self, state: &mut State, name: &LockName, claim: &Claim) -> bool {
        if !self.has(Flaw::MarkNeverEnds) {
            let now = Instant::now();
            state.marks.retain(|(.., until)| *until > now);
        }
        state.marks.iter().any(|(marked, token, node_id, _)| {
            *marked == *name
                && (*token == claim.token
                    || (self.has(Flaw::MarkHitsTheNode) && *node_id == claim.node_id))
        })
    }

    fn deny(
        &self,
        state: &mut State,
        name: &LockName,
        claim: &Claim,
        mut live: Vec<Slot>,
    ) -> ClaimReply {
        live.sort_by_key(|slot| slot.ends);
        let first = match self.flaw {
            Some(Flaw::DenialTellsOfTheFirst) => 0,
            Some(Flaw::DenialTellsOfTheLast) => live.len() - 1,
            _ => live.len().saturating_sub(claim.slots as usize),
        };
        let there = live.iter().position(|slot| Some(slot.number) == claim.slot);
        let first = match there {
            Some(there) if !self.has(Flaw::ExactSlotTellsOfTheFirst) => first.max(there),
            _ => first,
        };
        if self.has(Flaw::TellsOfEachClaim) {
            self.tell(state, name, u64::MAX, Duration::ZERO);
        }
        let holder = live[first].node_id.clone();
        ClaimReply::Taken {
            retry_after: live[first].ends - Instant::now(),
            holder: (!self.has(Flaw::DenialNamesNobody)).then_some(holder),
            revision: Revision::new(state.last_revision),
        }
    }

    fn grant(&self, state: &mut State, name: LockName, claim: &Claim, live: &[Slot]) -> ClaimReply {
        const ANY: u64 = 1_700_000_000_000_000;
        let ends = Instant::now() + self.lease(claim.lease);
        let is_free = |number: &u32| live.iter().all(|slot| slot.number != *number);
        let number = if self.has(Flaw::SlotsFromTheTop) {
            (0..claim.slots).rev().find(is_free)
        } else {
            (0..claim.slots).find(is_free)
        };
        let exact = claim.slot.filter(|exact| {
            !self.has(Flaw::ExactSlotIgnored)
                && (is_free(exact) || !self.has(Flaw::ExactSlotIsAWish))
        });
        let number = exact.or(number).unwrap();
        let is_former = |slot: &Slot| slot.name == name && slot.number == number;
        let former = state.slots.iter().find(|slot| is_former(slot)).cloned();
        let revision = match self.floor(claim) {
            0 if self.has(Flaw::ProposalGivesNumbersTwice) && claim.proposed.get() > 0 => {
                claim.proposed.get()
            }
            0 => self.next_revision_at(state, self.time_for(claim)),
            floor => {
                state.last_revision = floor.max(state.last_revision + 1);
                state.last_revision
            }
        };
        let fence = match (self.flaw, &former) {
            (Some(Flaw::FenceIsConstant), _) => ANY,
            (Some(Flaw::FenceIsOfTheSlot), former) => {
                former.as_ref().map_or(ANY, |former| former.fence + 1)
            }
            (Some(Flaw::FenceOutlivesExpiry), Some(former))
                if former.token == Some(claim.token) =>
            {
                former.fence
            }
            _ => revision,
        };
        if !self.has(Flaw::ReclaimTakesFromSuccessor) {
            state.slots.retain(|slot| !is_former(slot));
        }
        if self.has(Flaw::OneExpiryForAllSlots) {
            for slot in state.slots.iter_mut().filter(|slot| slot.name == name) {
                slot.ends = ends;
            }
        }
        if self.has(Flaw::MarkEndsWithTheNextGrant) {
            state.marks.retain(|(marked, ..)| *marked != name);
        }
        if self.has(Flaw::WatchForgetsOlderReleases) {
            state.releases.retain(|(released, _)| *released != name);
        }
        let node_id = if self.has(Flaw::NodeIdIsLost) {
            NodeId::new("somebody")
        } else {
            claim.node_id.clone()
        };
        if !self.has(Flaw::ShowsReleasesOnly) {
            self.show(state, &name);
        }
        state.slots.push(Slot {
            name,
            number,
            token: Some(claim.token),
            node_id,
            fence,
            ends,
            freed: false,
        });
        ClaimReply::Granted {
            slot: number,
            fence: FencingToken::new(fence),
        }
    }

    pub(super) fn extend_one(&self, extension: &Extension) -> ExtendReply {
        let name = self.name(&extension.name);
        let now = Instant::now();
        let ends = now + self.lease(extension.lease);
        let state = &mut *self.state();
        let found = state.slots.iter_mut().find(|slot| {
            let live = self.is_live(slot, now)
                || (!slot.freed && self.has(Flaw::ExtensionRevives))
                || (slot.freed && self.has(Flaw::ExtensionRecreates));
            let here = slot.number == extension.slot || self.has(Flaw::ExtensionFindsAnySlot);
            let mine = slot.token == Some(extension.token) || self.has(Flaw::ExtensionIgnoresToken);
            slot.name == name && here && live && mine
        });
        let Some(slot) = found else {
            let reason = self.not_held(state, &name, extension.slot, extension.token);
            return ExtendReply::NotHeld(reason);
        };
        slot.freed = false;
        if self.has(Flaw::ExtensionShortens) {
            slot.ends = ends;
        } else if self.has(Flaw::ExtensionsAddUp) {
            slot.ends += extension.lease;
        } else if !self.has(Flaw::ExtensionDoesNothing) {
            slot.ends = slot.ends.max(ends);
        }
        if self.has(Flaw::ShowsExtensions) {
            self.show(state, &name);
        }
        ExtendReply::Extended
    }

    pub(super) fn release_one(&self, release: &Release) -> ReleaseReply {
        let name = self.name(&release.name);
        let now = Instant::now();
        let state = &mut *self.state();
        if let Some(mark) = release.mark
            && !self.has(Flaw::MarkIgnored)
        {
            // Only the flaw needs to know whose token it was; an abandoned claim says nothing of its node.
            let node_id = NodeId::new("peer");
            let mark = (name.clone(), release.token, node_id, now + mark);
            state.marks.push(mark);
        }
        let found = state.slots.iter_mut().find(|slot| {
            let live = self.is_live(slot, now)
                || (!slot.freed && self.has(Flaw::ReleaseAfterTheEnd))
                || self.has(Flaw::ReleaseIsAlwaysReleased);
            let mine = slot.token == Some(release.token)
                || (release.slot == Some(slot.number) && self.has(Flaw::ReleaseIgnoresToken));
            let named = release.slot.is_some() || !self.has(Flaw::ReleaseNeedsItsSlot);
            slot.name == name && live && mine && named
        });
        let Some(slot) = found else {
            let reason = release.slot.map_or(LossReason::Deleted, |number| {
                self.not_held(state, &name, number, release.token)
            });
            return ReleaseReply::NotHeld(reason);
        };
        let mut free_in = Duration::ZERO;
        if self.has(Flaw::ReleaseLingers) {
            slot.ends = now + Duration::from_millis(50);
            slot.token = None;
        } else if release.keep.is_zero() || self.has(Flaw::KeepIgnored) {
            slot.freed = true;
        } else {
            let ends = now + release.keep;
            slot.ends = if self.has(Flaw::KeepPassesTheLease) {
                ends
            } else {
                slot.ends.min(ends)
            };
            free_in = if self.has(Flaw::KeptIsToldUncut) {
                release.keep
            } else {
                slot.ends - now
            };
            if !self.has(Flaw::KeptKeepsItsToken) {
                slot.token = None;
            }
        }
        if self.has(Flaw::KeptIsToldAsFree) {
            free_in = Duration::ZERO;
        }
        let revision = self.note_release(state, &name);
        ReleaseReply::Released {
            revision: Revision::new(revision),
            told: self.tell(state, &name, revision, free_in),
        }
    }
}
