//! A [`Record`]: what a store in memory keeps of one name.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::LossReason;
use crate::node::NodeId;
use crate::store::{Claim, Hint, HintSender, Revision};
use crate::token::{FencingToken, Token};

pub(super) struct Record {
    pub(super) slots: Slots,
    /// The last revision that a release took, as far as this record remembers.
    pub(super) released: u64,
    /// What most records never have.
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    /// Tokens that were ended while a claim of theirs might still be on its way, and until when to remember it.
    ended: HashMap<Token, Instant>,
    /// In the order of their arrival.
    watchers: BTreeMap<u64, HintSender>,
    /// Told of every change, and counted nowhere.
    observers: BTreeMap<u64, HintSender>,
}

impl More {
    fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.watchers.is_empty() && self.observers.is_empty()
    }
}

/// The slots that are taken, by number. Mostly there is one: a list costs less than a tree.
#[derive(Default)]
pub(super) struct Slots(Vec<(u32, Entry)>);

pub(super) struct Entry {
    /// `None` when the tenure has ended and a minimum lease keeps the slot.
    pub(super) token: Option<Token>,
    pub(super) node_id: NodeId,
    pub(super) fence: FencingToken,
    pub(super) ends: Instant,
}

impl Slots {
    fn place(&self, slot: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&slot, |(slot, _)| *slot)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Entry> {
        let place = self.place(slot).ok()?;
        self.0.get(place).map(|(_, entry)| entry)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        let place = self.place(slot).ok()?;
        self.0.get_mut(place).map(|(_, entry)| entry)
    }

    pub(super) fn insert(&mut self, slot: u32, entry: Entry) {
        match self.place(slot) {
            Ok(place) => self.0.splice(place..=place, [(slot, entry)]).for_each(drop),
            Err(place) => {
                self.0.reserve_exact(1);
                self.0.insert(place, (slot, entry));
            }
        }
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<Entry> {
        let place = self.place(slot).ok()?;
        Some(self.0.remove(place).1)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.0.iter().map(|(slot, entry)| (*slot, entry))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The slot that `token` has.
    pub(super) fn of(&self, token: Token) -> Option<u32> {
        self.iter()
            .find_map(|(slot, entry)| (entry.token == Some(token)).then_some(slot))
    }

    /// The lowest slot that is free.
    pub(super) fn lowest_free(&self) -> u32 {
        let taken = self.iter().map(|(slot, _)| slot);
        let in_a_row = taken.zip(0..).take_while(|(slot, next)| slot == next);
        in_a_row.last().map_or(0, |(slot, _)| slot + 1)
    }
}

impl Record {
    /// A record of a name of which none is remembered: no release is later than `revision`.
    pub(super) fn since(revision: u64, slots: Slots) -> Self {
        Self {
            slots,
            released: revision,
            more: None,
        }
    }

    pub(super) fn forget_what_is_over(&mut self, now: Instant) {
        self.slots.0.retain(|(_, entry)| entry.ends > now);
        if let Some(more) = &mut self.more {
            more.ended.retain(|_, until| *until > now);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.more.as_ref().is_none_or(|more| more.is_empty())
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Whether `token` was ended with a mark that still stands.
    pub(super) fn has_ended(&self, token: Token) -> bool {
        let more = self.more.as_ref();
        more.is_some_and(|more| more.ended.contains_key(&token))
    }

    /// Remembers until then that `token` was ended.
    pub(super) fn mark(&mut self, token: Token, until: Instant) {
        self.more().ended.insert(token, until);
    }

    pub(super) fn watch(&mut self, id: u64, hints: HintSender) {
        self.more().watchers.insert(id, hints);
    }

    pub(super) fn observe(&mut self, id: u64, hints: HintSender) {
        self.more().observers.insert(id, hints);
    }

    /// Ends a watch or an observation.
    pub(super) fn leave(&mut self, id: u64) {
        if let Some(more) = &mut self.more {
            more.watchers.remove(&id);
            more.observers.remove(&id);
        }
    }

    /// Why `token` does not hold `slot`; meant for a record without expired entries.
    pub(super) fn not_held(&self, slot: u32) -> LossReason {
        match self.slots.get(slot) {
            Some(entry) if entry.token.is_some() => LossReason::Taken,
            _ => LossReason::Deleted,
        }
    }

    /// Takes out the slot that `token` has.
    pub(super) fn take(&mut self, token: Token) -> Option<(u32, Entry)> {
        let slot = self.slots.of(token)?;
        Some((slot, self.slots.remove(slot)?))
    }

    /// The lease that must end before this claim can be granted, if one must.
    pub(super) fn in_the_way(&self, claim: &Claim) -> Option<&Entry> {
        if self.slots.is_empty() {
            return None;
        }
        let mut entries: Vec<&Entry> = self.slots.iter().map(|(_, entry)| entry).collect();
        entries.sort_by_key(|entry| entry.ends);
        // Where others ask for more slots than this candidate, several must end before one is free for it.
        let too_many = entries.len().checked_sub(claim.slots as usize);
        let last_to_leave = too_many.and_then(|too_many| entries.get(too_many).copied());
        let there = claim.slot.and_then(|slot| self.slots.get(slot));
        last_to_leave
            .into_iter()
            .chain(there)
            .max_by_key(|entry| entry.ends)
    }

    /// Tells of a release: how many watchers were told.
    #[inline]
    pub(super) fn tell(&self, revision: u64, free_in: Duration) -> u32 {
        self.show();
        let watchers = self.more.iter().flat_map(|more| more.watchers.values());
        let mut told = 0;
        for watcher in watchers {
            watcher.push(Hint::Released {
                revision: Revision::new(revision),
                free_in,
            });
            told += 1;
        }
        told
    }

    /// Tells of a change.
    #[inline]
    pub(super) fn show(&self) {
        let observers = self.more.iter().flat_map(|more| more.observers.values());
        for observer in observers {
            observer.push(Hint::Changed);
        }
    }

    /// Where the name's history stands.
    pub(super) fn last_revision(&self) -> u64 {
        let granted = self.slots.iter().map(|(_, entry)| entry.fence.get()).max();
        self.released.max(granted.unwrap_or_default())
    }
}
