//! [`LocalElector`]: the engine on a store in this process. The embedded default, and a test double whose leases
//! really expire and which obeys `tokio::time::pause`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::elector::delegate_elector;
use crate::engine::StoreElector;
use crate::error::LossReason;
use crate::name::LockName;
use crate::node::NodeId;
use crate::options::LeaseOptions;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, Hint, HintSender, LeaseStore, REACH, Release,
    ReleaseReply, Revision, StoreError, Watching,
};
use crate::token::{FencingToken, Token};

/// An elector whose store is memory of this process: no server, the same meaning.
///
/// It elects among the tasks of one process, and it is the elector to test a service with: leases expire by Tokio's
/// clock, so under [`tokio::time::pause`](https://docs.rs/tokio/latest/tokio/time/fn.pause.html) a test of
/// an hour-long lease takes no time.
///
/// A clone is the same candidate; [`node`](Self::node) makes another candidate on the same store.
///
/// ```
/// use leader_core::{ElectorExt, LeaseOptions, LocalElector};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leader_core::LeaderError> {
/// let a = LocalElector::new();
/// let b = a.node("node-b");
/// let options = LeaseOptions::builder().wait(std::time::Duration::ZERO).build()?;
///
/// let lease = a.try_acquire("invoice-close", &options).await?.expect("nobody else stands");
/// assert!(b.try_acquire("invoice-close", &options).await?.is_none());
/// lease.release().await?;
/// assert!(b.try_acquire("invoice-close", &options).await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LocalElector {
    elector: StoreElector<LocalStore>,
}

impl LocalElector {
    /// A candidate on a store of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::on(LocalStore::new(), NodeId::random())
    }

    /// Another candidate on the same store.
    #[must_use]
    pub fn node(&self, node_id: impl Into<NodeId>) -> Self {
        Self::on(self.elector.store().clone(), node_id.into())
    }

    fn on(store: LocalStore, node_id: NodeId) -> Self {
        Self {
            elector: StoreElector::builder(store).node_id(node_id).build(),
        }
    }
}

impl Default for LocalElector {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalElector")
            .field("elector", &self.elector)
            .finish()
    }
}

delegate_elector!(LocalElector, |this| this.elector);

/// A [`LeaseStore`] in this process's memory. A clone is the same store.
///
/// Its time is Tokio's clock. It keeps nothing of a name that nobody holds, waits for, or has just given up.
#[derive(Clone)]
pub struct LocalStore {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    records: HashMap<LockName, Record>,
    /// One for all names: a name's record can then be forgotten without its numbers starting over.
    last_revision: u64,
    started: Instant,
    started_micros: u64,
    next_watcher: u64,
}

#[derive(Default)]
struct Record {
    slots: BTreeMap<u32, Entry>,
    /// Tokens that were ended while a claim of theirs might still be on its way, and until when to remember it.
    ended: HashMap<Token, Instant>,
    /// In the order of their arrival.
    watchers: BTreeMap<u64, HintSender>,
    /// Told of every change, and counted nowhere.
    observers: BTreeMap<u64, HintSender>,
    /// The last revision that a release took, as far as this record remembers.
    released: u64,
}

struct Entry {
    /// `None` when the tenure has ended and a minimum lease keeps the slot.
    token: Option<Token>,
    node_id: NodeId,
    fence: FencingToken,
    ends: Instant,
}

impl Record {
    fn forget_what_is_over(&mut self, now: Instant) {
        self.slots.retain(|_, entry| entry.ends > now);
        self.ended.retain(|_, until| *until > now);
    }

    fn is_empty(&self) -> bool {
        self.slots.is_empty()
            && self.ended.is_empty()
            && self.watchers.is_empty()
            && self.observers.is_empty()
    }

    /// Why `token` does not hold `slot`; meant for a record without expired entries.
    fn not_held(&self, slot: u32) -> LossReason {
        match self.slots.get(&slot) {
            Some(entry) if entry.token.is_some() => LossReason::Taken,
            _ => LossReason::Deleted,
        }
    }

    /// Takes out the slot that `token` has.
    fn take(&mut self, token: Token) -> Option<(u32, Entry)> {
        let mut slots = self.slots.iter();
        let slot = *slots.find(|(_, entry)| entry.token == Some(token))?.0;
        self.slots.remove_entry(&slot)
    }

    /// The lease that must end before this claim can be granted, if one must.
    fn in_the_way(&self, claim: &Claim) -> Option<&Entry> {
        let mut entries: Vec<&Entry> = self.slots.values().collect();
        entries.sort_by_key(|entry| entry.ends);
        // Where others ask for more slots than this candidate, several must end before one is free for it.
        let too_many = entries.len().checked_sub(claim.slots as usize);
        let last_to_leave = too_many.and_then(|too_many| entries.get(too_many).copied());
        let there = claim.slot.and_then(|slot| self.slots.get(&slot));
        last_to_leave
            .into_iter()
            .chain(there)
            .max_by_key(|entry| entry.ends)
    }

    /// Tells of a release: how many watchers were told.
    fn tell(&self, revision: u64, free_in: Duration) -> u32 {
        self.show();
        for watcher in self.watchers.values() {
            watcher.push(Hint::Released {
                revision: Revision::new(revision),
                free_in,
            });
        }
        u32::try_from(self.watchers.len()).unwrap_or(u32::MAX)
    }

    /// Tells of a change.
    fn show(&self) {
        for observer in self.observers.values() {
            observer.push(Hint::Changed);
        }
    }
}

impl Shared {
    fn micros(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.started);
        self.started_micros.saturating_add(micros(elapsed))
    }

    fn next_revision(&mut self, now: Instant) -> u64 {
        self.last_revision = self.micros(now).max(self.last_revision + 1);
        self.last_revision
    }

    /// The revision of a grant of `record`.
    fn next_grant(&mut self, record: &Record, claim: &Claim, now: Instant) -> FencingToken {
        let (time, proposed) = (self.micros(now), claim.proposed.get());
        FencingToken::new(if claim.at_least == Revision::default() {
            let is_near = proposed.abs_diff(time) <= micros(REACH);
            let time = if is_near { proposed } else { time };
            self.last_revision = time.max(self.last_revision + 1);
            self.last_revision
        } else {
            let number = claim.at_least.get().max(record.last_revision() + 1);
            self.last_revision = self.last_revision.max(number);
            number
        })
    }

    /// Runs `step` on the record of `name` without its expired entries, and forgets the record if nothing is left.
    fn step<T>(
        &mut self,
        name: &LockName,
        step: impl FnOnce(&mut Record, &mut Self, Instant) -> T,
    ) -> T {
        let now = Instant::now();
        // Taken out for the step, so that the step can also draw revisions.
        let mut record = self.records.remove(name).unwrap_or_else(|| Record {
            // A record of this name may have been forgotten: no release is later than this.
            released: self.last_revision,
            ..Record::default()
        });
        record.forget_what_is_over(now);
        let answer = step(&mut record, self, now);
        if !record.is_empty() {
            self.records.insert(name.clone(), record);
        }
        answer
    }
}

impl LocalStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Self::begun(since_epoch)
    }

    /// An empty store whose time is now so long after the epoch, whatever the system's clock says: its fencing tokens,
    /// and what is spread by them, are the same in each run of a test.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn starting_at(since_epoch: Duration) -> Self {
        Self::begun(since_epoch)
    }

    fn begun(since_epoch: Duration) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Shared {
                records: HashMap::new(),
                last_revision: 0,
                started: Instant::now(),
                started_micros: micros(since_epoch),
                next_watcher: 0,
            })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_watcher(&self) -> (u64, MutexGuard<'_, Shared>) {
        let mut shared = self.lock();
        let id = shared.next_watcher;
        shared.next_watcher += 1;
        (id, shared)
    }

    /// How many names have a record: somebody holds, waits for, or has just given up each of them.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn records(&self) -> usize {
        self.lock().records.len()
    }

    /// Takes the next revision, for a leader that is in a script only.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn next_revision(&self) -> Revision {
        Revision::new(self.lock().next_revision(Instant::now()))
    }

    fn claim_now(&self, claim: &Claim) -> ClaimReply {
        self.lock().step(&claim.name, |record, shared, now| {
            if record.ended.contains_key(&claim.token) {
                return ClaimReply::Ended;
            }
            let ends = now + bounded(claim.lease);
            if let Some((slot, mut entry)) = record.take(claim.token) {
                entry.ends = entry.ends.max(ends);
                if Revision::from(entry.fence) < claim.at_least {
                    entry.fence = shared.next_grant(record, claim, now);
                    record.show();
                }
                let fence = entry.fence;
                record.slots.insert(slot, entry);
                return ClaimReply::Granted { slot, fence };
            }
            if let Some(in_the_way) = record.in_the_way(claim) {
                return ClaimReply::Taken {
                    retry_after: in_the_way.ends - now,
                    holder: Some(in_the_way.node_id.clone()),
                    revision: Revision::new(record.last_revision()),
                };
            }
            let lowest = || (0..claim.slots).find(|slot| !record.slots.contains_key(slot));
            let slot = claim.slot.or_else(lowest).unwrap_or_default();
            let fence = shared.next_grant(record, claim, now);
            record.slots.insert(
                slot,
                Entry {
                    token: Some(claim.token),
                    node_id: claim.node_id.clone(),
                    fence,
                    ends,
                },
            );
            record.show();
            ClaimReply::Granted { slot, fence }
        })
    }

    fn extend_one(&self, extension: &Extension) -> ExtendReply {
        let slot = extension.slot;
        // Asked before the step forgets what has expired, to tell "expired" from "deleted".
        let mut shared = self.lock();
        let was_ours = shared
            .records
            .get(&extension.name)
            .and_then(|record| record.slots.get(&slot))
            .is_some_and(|entry| entry.token == Some(extension.token));
        shared.step(&extension.name, |record, _, now| {
            match record.slots.get_mut(&slot) {
                Some(entry) if entry.token == Some(extension.token) => {
                    entry.ends = entry.ends.max(now + bounded(extension.lease));
                    ExtendReply::Extended
                }
                _ if was_ours => ExtendReply::NotHeld(LossReason::Expired),
                _ => ExtendReply::NotHeld(record.not_held(slot)),
            }
        })
    }

    fn release_one(&self, release: &Release) -> ReleaseReply {
        self.lock().step(&release.name, |record, shared, now| {
            if let Some(mark) = release.mark {
                record.ended.insert(release.token, now + bounded(mark));
            }
            let held = record
                .slots
                .iter()
                .find(|(_, entry)| entry.token == Some(release.token))
                .map(|(slot, _)| *slot);
            let Some(slot) = held else {
                let reason = match release.slot {
                    Some(slot) => record.not_held(slot),
                    None => LossReason::Deleted,
                };
                return ReleaseReply::NotHeld(reason);
            };
            let mut free_in = Duration::ZERO;
            if release.keep.is_zero() {
                record.slots.remove(&slot);
            } else if let Some(entry) = record.slots.get_mut(&slot) {
                entry.token = None;
                entry.ends = entry.ends.min(now + bounded(release.keep));
                free_in = entry.ends - now;
            }
            let revision = shared.next_revision(now);
            record.released = revision;
            ReleaseReply::Released {
                revision: Revision::new(revision),
                told: record.tell(revision, free_in),
            }
        })
    }
}

impl Record {
    fn last_revision(&self) -> u64 {
        let granted = self.slots.values().map(|entry| entry.fence.get()).max();
        self.released.max(granted.unwrap_or_default())
    }
}

impl Default for LocalStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStore").finish_non_exhaustive()
    }
}

impl LeaseStore for LocalStore {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        Ok(self.claim_now(claim))
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        batch
            .iter()
            .map(|extension| Ok(self.extend_one(extension)))
            .collect()
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
        let (id, mut shared) = self.next_watcher();
        shared.step(name, |record, _, _| {
            if record.released > since.get() || record.slots.is_empty() {
                hints.push(Hint::Missed);
            }
            record.watchers.insert(id, hints);
        });
        Ok(Watching::new(Watcher {
            store: self.clone(),
            name: name.clone(),
            id,
        }))
    }

    async fn observe(&self, name: &LockName, hints: HintSender) -> Result<Watching, StoreError> {
        let (id, mut shared) = self.next_watcher();
        shared.step(name, |record, _, _| record.observers.insert(id, hints));
        let watching = Watching::new(Watcher {
            store: self.clone(),
            name: name.clone(),
            id,
        });
        Ok(watching.of_grants())
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        let holders = self.lock().step(name, |record, _, now| {
            let holder = |(slot, entry): (&u32, &Entry)| {
                let remaining = entry.ends - now;
                let holder = Holder::new(entry.node_id.clone(), *slot, entry.fence, remaining);
                if entry.token.is_some() {
                    holder
                } else {
                    holder.retained()
                }
            };
            record.slots.iter().map(holder).collect()
        });
        Ok(holders)
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        let evicted = self.lock().step(name, |record, shared, now| {
            let evicted = u32::try_from(record.slots.len()).unwrap_or(u32::MAX);
            if evicted > 0 {
                record.slots.clear();
                record.released = shared.next_revision(now);
                record.tell(record.released, Duration::ZERO);
            }
            evicted
        });
        Ok(evicted)
    }

    fn command_timeout(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn time_by_now(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.lock().micros(Instant::now())))
    }

    fn release_now(&self, release: &Release) -> Option<ReleaseReply> {
        Some(self.release_one(release))
    }
}

/// What anybody asks for is bounded, so that adding it to a clock cannot overflow.
fn bounded(duration: Duration) -> Duration {
    duration.min(LeaseOptions::MAX_LEASE)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

struct Watcher {
    store: LocalStore,
    name: LockName,
    id: u64,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut shared = self.store.lock();
        shared.step(&self.name, |record, _, _| {
            record.watchers.remove(&self.id);
            record.observers.remove(&self.id);
        });
    }
}
