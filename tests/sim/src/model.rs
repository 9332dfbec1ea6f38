//! The model store: what `leader_core::store` promises, in the plainest words. It is meant to be seen to be right, not
//! to be fast.

use std::collections::BTreeMap;
use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, REACH, Release, ReleaseReply, Revision,
};
use leader_core::{FencingToken, LockName, LossReason, NodeId, Token};
use tokio::time::Instant;

/// A store's whole memory; a clone is a copy of it at this moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    names: BTreeMap<LockName, Record>,
    /// How far the server's wall clock is ahead, in microseconds.
    pub(crate) clock_ahead: i64,
}

/// What is known of one name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    slots: BTreeMap<u32, Entry>,
    /// Ended tokens, and until when claims of theirs are refused.
    marks: BTreeMap<[u8; 16], Instant>,
    last_revision: u64,
    last_release: u64,
}

/// A taken slot.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// `None` once the tenure has ended and a minimum lease keeps the slot.
    pub(crate) token: Option<Token>,
    pub(crate) node_id: NodeId,
    pub(crate) fence: u64,
    pub(crate) ends: Instant,
}

/// When a step happens: by the clock that all share, and by the server's wall clock without its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    pub(crate) micros: u64,
}

impl Record {
    fn is_held_by(&self, token: Token) -> Option<u32> {
        self.slots
            .iter()
            .find(|(_, entry)| entry.token == Some(token))
            .map(|(slot, _)| *slot)
    }

    fn why_not_held(&self, slot: Option<u32>) -> LossReason {
        match slot.and_then(|slot| self.slots.get(&slot)) {
            Some(entry) if entry.token.is_some() => LossReason::Taken,
            _ => LossReason::Deleted,
        }
    }
}

impl Model {
    /// An empty one, whose wall clock is so many microseconds ahead.
    pub(crate) fn ahead(micros: i64) -> Self {
        Self {
            clock_ahead: micros,
            ..Self::default()
        }
    }

    /// The record of `name`, without what is over at `now`.
    fn at(&mut self, name: &LockName, now: Instant) -> &mut Record {
        let record = self.names.entry(name.clone()).or_default();
        record.slots.retain(|_, entry| entry.ends > now);
        record.marks.retain(|_, until| *until > now);
        record
    }

    /// What the server's wall clock shows, in microseconds.
    pub(crate) fn clock(&self, moment: Moment) -> u64 {
        moment.micros.saturating_add_signed(self.clock_ahead)
    }

    /// The number of a grant: the next revision, or the next that is not below a floor, or one that was proposed.
    fn next_grant(&mut self, claim: &Claim, moment: Moment) -> u64 {
        if claim.at_least == Revision::default() {
            let time = self.clock(moment);
            let reach = u64::try_from(REACH.as_micros()).unwrap_or_default();
            let record = self.at(&claim.name, moment.now);
            let mut least = time;
            if claim.proposed.get().abs_diff(time) <= reach {
                least = claim.proposed.get();
                if record.last_revision == 0 {
                    least = least.max(time);
                }
            }
            record.last_revision = least.max(record.last_revision + 1);
            return record.last_revision;
        }
        let record = self.at(&claim.name, moment.now);
        record.last_revision = claim.at_least.get().max(record.last_revision + 1);
        record.last_revision
    }

    fn next_revision(&mut self, name: &LockName, moment: Moment) -> u64 {
        let micros = self.clock(moment);
        let record = self.at(name, moment.now);
        record.last_revision = micros.max(record.last_revision + 1);
        record.last_revision
    }

    pub(crate) fn claim(&mut self, claim: &Claim, moment: Moment) -> ClaimReply {
        let now = moment.now;
        let record = self.at(&claim.name, now);
        if record.marks.contains_key(claim.token.as_bytes()) {
            return ClaimReply::Ended;
        }
        let ends = now + claim.lease;
        if let Some(slot) = record.is_held_by(claim.token)
            && let Some(entry) = record.slots.get_mut(&slot)
        {
            entry.ends = entry.ends.max(ends);
            let mut fence = entry.fence;
            if fence < claim.at_least.get() {
                fence = self.next_grant(claim, moment);
                if let Some(entry) = self.at(&claim.name, now).slots.get_mut(&slot) {
                    entry.fence = fence;
                }
            }
            return ClaimReply::Granted {
                slot,
                fence: FencingToken::new(fence),
            };
        }
        let taken = record.slots.len();
        let mut free = (0..claim.slots).find(|slot| !record.slots.contains_key(slot));
        let mut first = record.slots.values().min_by_key(|entry| entry.ends);
        if let Some(exact) = claim.slot {
            let there = record.slots.get(&exact);
            free = there.is_none().then_some(exact);
            first = there.or(first);
        }
        match (free, first) {
            (Some(slot), _) if taken < claim.slots as usize => {
                let fence = self.next_grant(claim, moment);
                let entry = Entry {
                    token: Some(claim.token),
                    node_id: claim.node_id.clone(),
                    fence,
                    ends,
                };
                self.at(&claim.name, now).slots.insert(slot, entry);
                ClaimReply::Granted {
                    slot,
                    fence: FencingToken::new(fence),
                }
            }
            (_, first) => ClaimReply::Taken {
                retry_after: first.map_or(Duration::ZERO, |entry| entry.ends - now),
                holder: first.map(|entry| entry.node_id.clone()),
                revision: Revision::new(record.last_revision),
            },
        }
    }

    pub(crate) fn extend(&mut self, extension: &Extension, now: Instant) -> ExtendReply {
        let record = self.at(&extension.name, now);
        let slot = extension.slot;
        match record.slots.get_mut(&slot) {
            Some(entry) if entry.token == Some(extension.token) => {
                entry.ends = entry.ends.max(now + extension.lease);
                ExtendReply::Extended
            }
            _ => ExtendReply::NotHeld(record.why_not_held(Some(slot))),
        }
    }

    /// The answer, and after how long the slot is free.
    pub(crate) fn release(
        &mut self,
        release: &Release,
        moment: Moment,
    ) -> (ReleaseReply, Duration) {
        let now = moment.now;
        let record = self.at(&release.name, now);
        if let Some(mark) = release.mark {
            record.marks.insert(*release.token.as_bytes(), now + mark);
        }
        let Some(slot) = record.is_held_by(release.token) else {
            return (
                ReleaseReply::NotHeld(record.why_not_held(release.slot)),
                Duration::ZERO,
            );
        };
        let mut free_in = Duration::ZERO;
        if release.keep.is_zero() {
            record.slots.remove(&slot);
        } else if let Some(entry) = record.slots.get_mut(&slot) {
            entry.token = None;
            entry.ends = entry.ends.min(now + release.keep);
            free_in = entry.ends - now;
        }
        let revision = self.next_revision(&release.name, moment);
        self.at(&release.name, now).last_release = revision;
        let revision = Revision::new(revision);
        (ReleaseReply::Released { revision, told: 0 }, free_in)
    }

    /// How many slots were freed, and at which revision.
    pub(crate) fn evict(&mut self, name: &LockName, moment: Moment) -> (u32, Revision) {
        let record = self.at(name, moment.now);
        let freed = u32::try_from(record.slots.len()).unwrap_or(u32::MAX);
        record.slots.clear();
        let revision = self.next_revision(name, moment);
        self.at(name, moment.now).last_release = revision;
        (freed, Revision::new(revision))
    }

    /// Whether something was released after `since`, as far as this store remembers, or nobody holds anything.
    pub(crate) fn is_news(&mut self, name: &LockName, since: Revision, now: Instant) -> bool {
        let record = self.at(name, now);
        record.last_release > since.get() || record.slots.is_empty()
    }

    /// The taken slots of `name`.
    pub(crate) fn slots(&mut self, name: &LockName, now: Instant) -> &BTreeMap<u32, Entry> {
        &self.at(name, now).slots
    }
}
