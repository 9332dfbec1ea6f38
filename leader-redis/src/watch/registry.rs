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
        let watchers = self.senders(|shared| shared.by_channel.get(channel).into_iter().collect());
        push_all(&watchers, hint);
    }

    pub(super) fn tell_all(&self, hint: Hint) {
        let watchers = self.senders(|shared| shared.by_channel.values().collect());
        push_all(&watchers, hint);
    }

    /// Collected under the lock, to be pushed to after it: a push wakes the watcher, whose waker may be anything, and
    /// may end a watch.
    fn senders(&self, of: impl Fn(&Shared) -> Vec<&Vec<(u64, HintSender)>>) -> Vec<HintSender> {
        let shared = self.lock();
        let each = of(&shared).into_iter().flatten();
        each.map(|(_, hints)| hints.clone()).collect()
    }
}

fn push_all(watchers: &[HintSender], hint: Hint) {
    for hints in watchers {
        hints.push(hint);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Wake, Waker};

    use leader_core::store::hints;

    use super::*;

    /// Ends its watch as soon as it is woken, as a task may that is dropped then.
    struct Hasty {
        watchers: Arc<Watchers>,
        id: u64,
    }

    impl Wake for Hasty {
        fn wake(self: Arc<Self>) {
            assert!(
                self.watchers.shared.try_lock().is_ok(),
                "woken under the lock"
            );
            self.watchers.remove("channel", self.id);
        }
    }

    #[test]
    fn a_waker_may_end_its_watch() {
        let watchers = Arc::new(Watchers::default());
        let tell: [fn(&Watchers); 2] = [
            |watchers| watchers.tell("channel", Hint::Missed),
            |watchers| watchers.tell_all(Hint::Missed),
        ];
        for tell in tell {
            let (sender, mut told) = hints();
            let id = watchers.add("channel", sender);
            let hasty = Hasty {
                watchers: watchers.clone(),
                id,
            };
            let waker = Waker::from(Arc::new(hasty));
            let mut told = Box::pin(told.told());
            assert!(
                told.as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            tell(&watchers);
            assert_eq!(watchers.count("channel"), 0);
        }
    }
}
