//! What one elector holds: every tenure from its grant until its release is over.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tenure::Tenure;

#[derive(Default)]
pub(crate) struct Holdings {
    by_key: Mutex<ByKey>,
}

type ByKey = HashMap<u64, Arc<Tenure>, BuildHasherDefault<KeyHasher>>;

impl Holdings {
    fn lock(&self) -> MutexGuard<'_, ByKey> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, tenure: Arc<Tenure>) {
        self.lock().insert(tenure.key, tenure);
    }

    pub(super) fn has(&self, tenure: &Tenure) -> bool {
        self.lock().contains_key(&tenure.key)
    }

    /// Whether the tenure was there to be removed.
    pub(super) fn remove(&self, tenure: &Tenure) -> bool {
        // Not dropped under the lock: it may be the last of it.
        let removed = self.lock().remove(&tenure.key);
        removed.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// In the order of the grants.
    pub(super) fn all(&self) -> Vec<Arc<Tenure>> {
        let mut all: Vec<_> = self.lock().values().cloned().collect();
        all.sort_unstable_by_key(|tenure| tenure.key);
        all
    }
}

/// Spreads keys, which are numbers of the elector's own making: nobody can choose them to collide.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write_u64(&mut self, key: u64) {
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
