//! Releases under way in the background: the next attempt at the same name waits for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::name::LockName;

/// Releases under way in the background, by name. The next attempt of this process at such a name waits for the first
/// try of each: whoever drops a lease and asks again must not be told that somebody leads who was itself.
#[derive(Default)]
pub(crate) struct Settlements {
    by_name: Mutex<HashMap<LockName, Vec<CancellationToken>>>,
    /// How many names there are, so that the usual case takes no lock.
    names: AtomicUsize,
}

/// A release under way; over when dropped.
pub(crate) struct Settling {
    settlements: Arc<Settlements>,
    name: LockName,
    over: CancellationToken,
}

impl Settlements {
    fn lock(&self) -> MutexGuard<'_, HashMap<LockName, Vec<CancellationToken>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(this: &Arc<Self>, name: &LockName) -> Settling {
        let over = CancellationToken::new();
        let mut by_name = this.lock();
        by_name.entry(name.clone()).or_default().push(over.clone());
        this.names.store(by_name.len(), Ordering::Release);
        Settling {
            settlements: this.clone(),
            name: name.clone(),
            over,
        }
    }

    /// Whether a release of `name` is under way.
    #[inline]
    pub(crate) fn has(&self, name: &LockName) -> bool {
        self.names.load(Ordering::Acquire) > 0 && self.lock().contains_key(name)
    }

    /// Waits until the releases of `name` that are under way now are over. Those that begin later are not waited for:
    /// there may always be another.
    pub(crate) async fn settled(&self, name: &LockName) {
        if self.names.load(Ordering::Acquire) == 0 {
            return;
        }
        let under_way = self.lock().get(name).cloned().unwrap_or_default();
        for over in under_way {
            over.cancelled().await;
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        // Fired first, which is how it is known from the others.
        self.over.cancel();
        let mut by_name = self.settlements.lock();
        if let Some(under_way) = by_name.get_mut(&self.name) {
            under_way.retain(|over| !over.is_cancelled());
            if under_way.is_empty() {
                by_name.remove(&self.name);
            }
        }
        self.settlements
            .names
            .store(by_name.len(), Ordering::Release);
    }
}
