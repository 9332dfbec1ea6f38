//! [`Watchers`]: who watches which channel in this process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leader_core::store::{Hint, HintSender};

#[derive(Default)]
pub(super) struct Watchers {
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    by_channel: HashMap<String, Vec<(u64, HintSender)>>,
    last_id: u64,
}

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, channel: &str, hints: HintSender) -> u64 {
        let mut shared = self.lock();
        shared.last_id += 1;
        let id = shared.last_id;
        let watchers = shared.by_channel.entry(channel.to_owned()).or_default();
        watchers.push((id, hints));
        id
    }

    /// Whether that was the channel's last watcher.
    pub(super) fn remove(&self, channel: &str, id: u64) -> bool {
        let mut shared = self.lock();
        let Some(watchers) = shared.by_channel.get_mut(channel) else {
            return false;
        };
        watchers.retain(|(other, _)| *other != id);
        let last = watchers.is_empty();
        if last {
            shared.by_channel.remove(channel);
        }
        last
    }

    /// How many watchers the channel has.
    pub(super) fn count(&self, channel: &str) -> usize {
        self.lock().by_channel.get(channel).map_or(0, Vec::len)
    }

    pub(super) fn has(&self, channel: &str) -> bool {
        self.lock().by_channel.contains_key(channel)
    }

    pub(super) fn channels(&self) -> Vec<String> {
        self.lock().by_channel.keys().cloned().collect()
    }

    pub(super) fn tell(&self, channel: &str, hint: Hint) {
        for (_, hints) in self.lock().by_channel.get(channel).into_iter().flatten() {
            hints.push(hint);
        }
    }

    pub(super) fn tell_all(&self, hint: Hint) {
        for (_, hints) in self.lock().by_channel.values().flatten() {
            hints.push(hint);
        }
    }
}
