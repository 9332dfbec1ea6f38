//! [`LocalStore`]: leases in this process's memory.

use std::collections::{HashMap, hash_map};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::record::{Entry, Record, Slots};
use crate::error::LossReason;
use crate::name::LockName;
use crate::options::LeaseOptions;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, Hint, HintSender, LeaseStore, REACH, Release,
    ReleaseReply, Revision, StoreError, Watching,
};
use crate::token::FencingToken;

/// A [`LeaseStore`] in this process's memory. A clone is the same store.
///
/// Its time is Tokio's clock. It keeps nothing of a name that nobody holds, waits for, or has just given up.
#[derive(Clone)]
pub struct LocalStore {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    records: HashMap<LockName, Record>,
    /// Those of the last record that was forgotten, none of them taken: a name that is led again and again allocates
    /// them once.
    spare: Slots,
    revisions: Revisions,
    next_watcher: u64,
}

/// One history for all names: a name's record can then be forgotten without its numbers starting over.
struct Revisions {
    last: u64,
    started: Instant,
    started_micros: u64,
}

impl Revisions {
    fn time(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.started);
        self.started_micros.saturating_add(micros(elapsed))
    }

    fn next(&mut self, now: Instant) -> u64 {
        self.last = self.time(now).max(self.last + 1);
        self.last
    }

    /// The revision of a grant of `record`.
    fn next_grant(&mut self, record: &Record, claim: &Claim, now: Instant) -> FencingToken {
        FencingToken::new(if claim.at_least == Revision::default() {
            let (time, proposed) = (self.time(now), claim.proposed.get());
            let is_near = proposed.abs_diff(time) <= micros(REACH);
            let time = if is_near { proposed } else { time };
            self.last = time.max(self.last + 1);
            self.last
        } else {
            let number = claim.at_least.get().max(record.last_revision() + 1);
            self.last = self.last.max(number);
            number
        })
    }
}

impl Shared {
    /// Runs `step` on the record of `name` without the entries that have expired by `now`, and forgets the record if
    /// nothing is left.
    fn step<T>(
        &mut self,
        name: &LockName,
        now: Instant,
        step: impl FnOnce(&mut Record, &mut Revisions) -> T,
    ) -> T {
        let mut record = match self.records.entry(name.clone()) {
            hash_map::Entry::Occupied(record) => record,
            hash_map::Entry::Vacant(place) => {
                let slots = std::mem::take(&mut self.spare);
                place.insert_entry(Record::since(self.revisions.last, slots))
            }
        };
        record.get_mut().forget_what_is_over(now);
        let answer = step(record.get_mut(), &mut self.revisions);
        if record.get().is_empty() {
            self.spare = record.remove().slots;
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
                spare: Slots::default(),
                revisions: Revisions {
                    last: 0,
                    started: Instant::now(),
                    started_micros: micros(since_epoch),
                },
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
        Revision::new(self.lock().revisions.next(Instant::now()))
    }

    fn claim_at(&self, claim: &Claim, now: Instant) -> ClaimReply {
        self.lock().step(&claim.name, now, |record, revisions| {
            if record.has_ended(claim.token) {
                return ClaimReply::Ended;
            }
            let ends = now + bounded(claim.lease);
            if let Some((slot, mut entry)) = record.take(claim.token) {
                entry.ends = entry.ends.max(ends);
                if Revision::from(entry.fence) < claim.at_least {
                    entry.fence = revisions.next_grant(record, claim, now);
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
            let slot = claim.slot.unwrap_or_else(|| record.slots.lowest_free());
            let fence = revisions.next_grant(record, claim, now);
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
        let (mut shared, now) = (self.lock(), Instant::now());
        let was_ours = shared
            .records
            .get(&extension.name)
            .and_then(|record| record.slots.get(slot))
            .is_some_and(|entry| entry.token == Some(extension.token));
        shared.step(&extension.name, now, |record, _| {
            match record.slots.get_mut(slot) {
                Some(entry) if entry.token == Some(extension.token) => {
                    entry.ends = entry.ends.max(now + bounded(extension.lease));
                    ExtendReply::Extended
                }
                _ if was_ours => ExtendReply::NotHeld(LossReason::Expired),
                _ => ExtendReply::NotHeld(record.not_held(slot)),
            }
        })
    }

    fn release_at(&self, release: &Release, now: Instant) -> ReleaseReply {
        self.lock().step(&release.name, now, |record, revisions| {
            if let Some(mark) = release.mark {
                record.mark(release.token, now + bounded(mark));
            }
            let Some(slot) = record.slots.of(release.token) else {
                let reason = match release.slot {
                    Some(slot) => record.not_held(slot),
                    None => LossReason::Deleted,
                };
                return ReleaseReply::NotHeld(reason);
            };
            let mut free_in = Duration::ZERO;
            if release.keep.is_zero() {
                record.slots.remove(slot);
            } else if let Some(entry) = record.slots.get_mut(slot) {
                entry.token = None;
                entry.ends = entry.ends.min(now + bounded(release.keep));
                free_in = entry.ends - now;
            }
            let revision = revisions.next(now);
            record.released = revision;
            ReleaseReply::Released {
                revision: Revision::new(revision),
                told: record.tell(revision, free_in),
            }
        })
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
        Ok(self.claim_at(claim, Instant::now()))
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        batch
            .iter()
            .map(|extension| Ok(self.extend_one(extension)))
            .collect()
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        Ok(self.release_at(release, Instant::now()))
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        let (id, mut shared) = self.next_watcher();
        shared.step(name, Instant::now(), |record, _| {
            if record.released > since.get() || record.slots.is_empty() {
                hints.push(Hint::Missed);
            }
            record.watch(id, hints);
        });
        Ok(Watching::new(Watcher {
            store: self.clone(),
            name: name.clone(),
            id,
        }))
    }

    async fn observe(&self, name: &LockName, hints: HintSender) -> Result<Watching, StoreError> {
        let (id, mut shared) = self.next_watcher();
        shared.step(name, Instant::now(), |record, _| {
            record.observe(id, hints);
        });
        let watching = Watching::new(Watcher {
            store: self.clone(),
            name: name.clone(),
            id,
        });
        Ok(watching.of_grants())
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        let now = Instant::now();
        let holders = self.lock().step(name, now, |record, _| {
            let holder = |(slot, entry): (u32, &Entry)| {
                let remaining = entry.ends - now;
                let holder = Holder::new(entry.node_id.clone(), slot, entry.fence, remaining);
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
        let now = Instant::now();
        let evicted = self.lock().step(name, now, |record, revisions| {
            let evicted = u32::try_from(record.slots.len()).unwrap_or(u32::MAX);
            if evicted > 0 {
                record.slots.clear();
                record.released = revisions.next(now);
                record.tell(record.released, Duration::ZERO);
            }
            evicted
        });
        Ok(evicted)
    }

    fn time_by_now(&self) -> Option<Duration> {
        let time = self.lock().revisions.time(Instant::now());
        Some(Duration::from_micros(time))
    }

    fn command_timeout(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn claim_now(&self, claim: &Claim, now: Instant) -> Option<ClaimReply> {
        Some(self.claim_at(claim, now))
    }

    fn release_now(&self, release: &Release, now: Instant) -> Option<ReleaseReply> {
        Some(self.release_at(release, now))
    }
}

/// What anybody asks for is bounded, so that adding it to a clock cannot overflow.
fn bounded(duration: Duration) -> Duration {
    duration.min(LeaseOptions::MAX_LEASE)
}

struct Watcher {
    store: LocalStore,
    name: LockName,
    id: u64,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut shared = self.store.lock();
        shared.step(&self.name, Instant::now(), |record, _| {
            record.leave(self.id);
        });
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
