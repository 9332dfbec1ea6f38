//! [`Observation`]: one look-out for the changes of a name.
//!
//! Nobody is told of what nobody observes: grants and releases look into the record that they read anyway, for a field
//! that says until when somebody does. It is written here, again and again while the observation lasts.

use std::sync::{Arc, Weak};
use std::time::Duration;

use leader_core::LockName;
use leader_core::store::{Hint, HintSender, Hints, StoreError, hints};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::client::Words;
use crate::reply;
use crate::script::OBSERVE;
use crate::store::{Inner, micros};
use crate::watch::Watch;

/// How long a name is known as observed.
const LIVES: Duration = Duration::from_secs(30);
/// How often that is said again, and after a failure.
const RENEWAL: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(1);

/// Ends when dropped.
pub(crate) struct Observation {
    renewal: AbortHandle,
    _watch: Watch,
}

impl Observation {
    /// Listens first, so that whatever is told once the record says that somebody listens, is heard.
    pub(crate) async fn begin(
        inner: &Arc<Inner>,
        name: &LockName,
        observer: HintSender,
    ) -> Result<Self, StoreError> {
        let key = inner.keys.record(name);
        let (sender, told) = hints();
        let channel = inner.keys.changes(name);
        let watch = inner.wakeups.watch(channel, &key, None, sender).await;
        let watch = watch.map_err(|failure| inner.error(&key, failure))?;
        say_observed(inner, &key).await?;
        let renewal = Renewal {
            inner: Arc::downgrade(inner),
            key,
            told,
            observer,
        };
        Ok(Self {
            renewal: inner.home.lodging.spawn(renewal.run()).abort_handle(),
            _watch: watch,
        })
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Whether it was observed until now.
async fn say_observed(inner: &Inner, key: &str) -> Result<bool, StoreError> {
    let mut words = Words::on(1);
    words.push(key);
    words.push_number(micros(LIVES));
    let answer = inner.commands.run(&OBSERVE, &words.into_call()).await;
    answer
        .and_then(|answer| Ok(reply::observe(&answer)?))
        .map_err(|failure| inner.error(key, failure))
}

/// Passes on what is told, and sees to it that it is.
struct Renewal {
    inner: Weak<Inner>,
    key: String,
    told: Hints,
    observer: HintSender,
}

impl Renewal {
    async fn run(mut self) {
        let mut due = Instant::now() + RENEWAL;
        loop {
            let hint = tokio::select! {
                hint = self.told.next() => Some(hint),
                () = sleep_until(due) => None,
            };
            if let Some(hint) = hint {
                self.observer.push(hint);
                if hint != Hint::Missed {
                    continue;
                }
                // The server may be another one now, which does not know that the name is observed.
            }
            let Some(inner) = self.inner.upgrade() else {
                return;
            };
            let said = say_observed(&inner, &self.key).await;
            drop(inner);
            due = Instant::now() + if said.is_ok() { RENEWAL } else { RETRY };
            match said {
                Ok(true) => {}
                Ok(false) => self.observer.push(Hint::Missed),
                Err(error) => {
                    tracing::debug!(key = %self.key, %error, "changes may not be told to observers");
                }
            }
        }
    }
}
