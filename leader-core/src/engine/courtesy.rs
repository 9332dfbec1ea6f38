//! Who goes first after a release: others who were told of it, before this process asks again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::name::LockName;

/// Names that this process has just released while others waited for them in the store. It lets them go first for a
/// moment: a holder that asks again without a gap, or a process with a long queue of its own, would otherwise always
/// be faster than anybody who has yet to be told.
#[derive(Default)]
pub(crate) struct Courtesy {
    until: Mutex<HashMap<LockName, Instant>>,
    names: AtomicUsize,
}

impl Courtesy {
    /// A few round trips of a local network.
    const PAUSE: Duration = Duration::from_millis(10);

    fn lock(&self) -> MutexGuard<'_, HashMap<LockName, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(this: &Arc<Self>, name: &LockName, runtime: &Handle) {
        let until = Instant::now() + Self::PAUSE;
        let mut names = this.lock();
        let begun = names.insert(name.clone(), until).is_none();
        this.names.store(names.len(), Ordering::Release);
        drop(names);
        if begun {
            let pause = Pause {
                courtesy: this.clone(),
                name: name.clone(),
            };
            runtime.spawn(async move { pause.courtesy.over(&pause.name).await });
        }
    }

    async fn over(&self, name: &LockName) {
        while let Some(until) = self.until(name)
            && Instant::now() < until
        {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Until when others go first.
    #[inline]
    pub(crate) fn until(&self, name: &LockName) -> Option<Instant> {
        if self.names.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.lock().get(name).copied()
    }
}

/// The task that ends a pause; over when dropped, with its runtime as well.
struct Pause {
    courtesy: Arc<Courtesy>,
    name: LockName,
}

impl Drop for Pause {
    fn drop(&mut self) {
        let mut names = self.courtesy.lock();
        names.remove(&self.name);
        self.courtesy.names.store(names.len(), Ordering::Release);
    }
}
