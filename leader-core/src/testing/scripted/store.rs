//! [`ScriptedStore`]: a store in memory that does as its script says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{BackendKind, LossReason};
use crate::hints::{Hint, HintSender};
use crate::local::LocalStore;
use crate::name::LockName;
use crate::node::NodeId;
use crate::options::LeaseOptions;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
    StoreError, Watching,
};
use crate::token::FencingToken;

/// What happens to whoever asks the store.
#[derive(Clone, Debug)]
pub(super) enum Script {
    /// It is granted what is free.
    Lead,
    /// It finds every slot of every name taken by this leader.
    Follow { leader: NodeId, fence: FencingToken },
    /// It gets an error of this kind.
    Fail(BackendKind),
}

/// Leases are real ones, in a [`LocalStore`]; the script stands before it.
#[derive(Clone)]
pub(super) struct ScriptedStore {
    leases: LocalStore,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    script: Script,
    watchers: BTreeMap<u64, HintSender>,
    next_watcher: u64,
}

impl ScriptedStore {
    pub(super) fn new() -> Self {
        Self {
            leases: LocalStore::new(),
            shared: Arc::new(Mutex::new(Shared {
                script: Script::Lead,
                watchers: BTreeMap::new(),
                next_watcher: 0,
            })),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn script(&self) -> Script {
        self.shared().script.clone()
    }

    /// Another script from now on; whoever waits asks again.
    pub(super) fn turn(&self, script: Script) {
        self.shared().script = script;
        self.tell();
    }

    /// The script in which `leader` leads, with a fencing token after all those that were granted here.
    pub(super) fn led_by(&self, leader: NodeId) -> Script {
        let fence = FencingToken::new(self.leases.next_revision().get());
        Script::Follow { leader, fence }
    }

    /// Frees the slot of a token, past the script.
    pub(super) fn free(&self, release: &Release) {
        let _ = self.leases.release_now(release, Instant::now());
    }

    /// Whoever waits asks again.
    pub(super) fn tell(&self) {
        for watcher in self.shared().watchers.values() {
            watcher.push(Hint::Missed);
        }
    }
}

/// For how long a scripted leader leads if nobody asks: it extends its lease whenever somebody does.
fn leaders_lease() -> Duration {
    LeaseOptions::default().lease()
}

fn scripted(kind: BackendKind) -> StoreError {
    StoreError::new(kind, "the script says so").not_run()
}

impl LeaseStore for ScriptedStore {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        match self.script() {
            Script::Lead => self.leases.claim(claim).await,
            Script::Follow { leader, fence } => Ok(ClaimReply::Taken {
                retry_after: leaders_lease(),
                holder: Some(leader),
                revision: fence.into(),
            }),
            Script::Fail(kind) => Err(scripted(kind)),
        }
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        match self.script() {
            Script::Lead => self.leases.extend(batch).await,
            Script::Follow { .. } => {
                let taken = |extension: &Extension| {
                    let Extension {
                        name, token, slot, ..
                    } = extension;
                    // Nobody releases what was taken, and it must not stand in the way of a later script.
                    self.free(&Release::new(name.clone(), *token, *slot));
                    Ok(ExtendReply::NotHeld(LossReason::Taken))
                };
                batch.iter().map(taken).collect()
            }
            Script::Fail(kind) => vec![Err(scripted(kind)); batch.len()],
        }
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        match self.script() {
            Script::Lead | Script::Follow { .. } => self.leases.release(release).await,
            Script::Fail(kind) => Err(scripted(kind)),
        }
    }

    async fn watch(
        &self,
        _name: &LockName,
        _since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        // Releases need no telling: there is one elector on this store, and it tells its own waiters.
        let mut shared = self.shared();
        if let Script::Fail(kind) = shared.script {
            return Err(scripted(kind));
        }
        let id = shared.next_watcher;
        shared.next_watcher += 1;
        shared.watchers.insert(id, hints);
        drop(shared);
        let store = self.clone();
        Ok(Watching::new(Watcher { store, id }))
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        match self.script() {
            Script::Lead => self.leases.inspect(name).await,
            Script::Follow { leader, fence } => {
                Ok(vec![Holder::new(leader, 0, fence, leaders_lease())])
            }
            Script::Fail(kind) => Err(scripted(kind)),
        }
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        match self.script() {
            Script::Lead => {
                let evicted = self.leases.evict(name).await;
                self.tell();
                evicted
            }
            // The leader is back before anybody can look.
            Script::Follow { .. } => Ok(1),
            Script::Fail(kind) => Err(scripted(kind)),
        }
    }

    fn command_timeout(&self) -> Duration {
        self.leases.command_timeout()
    }

    fn release_now(&self, release: &Release, now: Instant) -> Option<ReleaseReply> {
        match self.script() {
            Script::Lead | Script::Follow { .. } => self.leases.release_now(release, now),
            Script::Fail(_) => None,
        }
    }
}

struct Watcher {
    store: ScriptedStore,
    id: u64,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.store.shared().watchers.remove(&self.id);
    }
}
