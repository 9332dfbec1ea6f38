//! [`Wakeups`]: tells waiters of releases, over one subscriber connection that is made with the first of them.
//!
//! One task, the listener, owns the subscriptions: it alone subscribes and unsubscribes, so that the two of one channel
//! never overtake each other, however watches come and go. It re-subscribes after a reconnect itself, since watchers
//! may be told to ask again only once the server listens again.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leader_core::BackendKind;
use leader_core::store::{Hint, HintSender, Revision};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::client::{Connection, Endpoint, Incident, Incidents, Purpose, Terms};
use crate::fault::Failure;
use crate::reply;

/// The watchers of one store.
pub(crate) struct Wakeups {
    endpoint: Endpoint,
    terms: Terms,
    watchers: Arc<Watchers>,
    listener: tokio::sync::Mutex<Option<Listener>>,
    closed: AtomicBool,
}

struct Listener {
    connection: Arc<Connection>,
    orders: mpsc::UnboundedSender<Order>,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

enum Order {
    /// See to it that the channel is subscribed, and say so.
    Subscribe {
        channel: String,
        done: oneshot::Sender<Result<(), Failure>>,
    },
    /// Unsubscribe the channel if nobody watches it any more.
    Settle { channel: String },
}

impl Wakeups {
    pub(crate) fn new(endpoint: Endpoint, terms: Terms) -> Self {
        Self {
            endpoint,
            terms,
            watchers: Arc::default(),
            listener: tokio::sync::Mutex::new(None),
            closed: AtomicBool::new(false),
        }
    }

    /// Tells `hints` what is told on `channel`, until the returned value is dropped, and that something was missed if
    /// the record at `key` is not at `since` any more.
    pub(crate) async fn watch(
        &self,
        channel: String,
        key: &str,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watch, Failure> {
        let (connection, orders) = self.listener().await?;
        let watch = Watch {
            id: self.watchers.add(&channel, hints.clone()),
            watchers: self.watchers.clone(),
            orders,
            channel,
        };
        let (done, subscribed) = oneshot::channel();
        let order = Order::Subscribe {
            channel: watch.channel.clone(),
            done,
        };
        let gone = || Failure::NotSent(None);
        watch.orders.send(order).map_err(|_| gone())?;
        subscribed.await.map_err(|_| gone())??;
        // On the connection that subscribes, so that the server has subscribed before it reads: from here on, what is
        // not in the answer will be told.
        let field = match connection.field(key, "f").await {
            Ok(field) => field,
            Err(failure) => {
                recover(&connection, &failure).await;
                return Err(failure);
            }
        };
        if reply::revision(&field)? != Some(since) {
            hints.push(Hint::Missed);
        }
        Ok(watch)
    }

    /// How many watches of `channel` there are in this process.
    pub(crate) fn count(&self, channel: &str) -> u32 {
        let watchers = self.watchers.lock();
        let count = watchers.by_channel.get(channel).map_or(0, Vec::len);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    async fn listener(&self) -> Result<(Arc<Connection>, mpsc::UnboundedSender<Order>), Failure> {
        let mut listener = self.listener.lock().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(Failure::NotSent(None));
        }
        let present = match listener.take() {
            Some(present) if !present.orders.is_closed() => present,
            _ => self.listen().await?,
        };
        let shared = (present.connection.clone(), present.orders.clone());
        *listener = Some(present);
        Ok(shared)
    }

    async fn listen(&self) -> Result<Listener, Failure> {
        let connection = Connection::open(&self.endpoint, Purpose::Messages, &self.terms).await?;
        let connection = Arc::new(connection);
        let (orders, received) = mpsc::unbounded_channel();
        let listening = Listening {
            incidents: connection.incidents(),
            connection: connection.clone(),
            watchers: self.watchers.clone(),
            orders: received,
            subscribed: HashSet::new(),
            intact: true,
            next_beat: Instant::now(),
            heartbeat: heartbeat(self.terms.limit),
            retry: self.terms.limit.max(Duration::from_millis(100)),
        };
        let task = self.terms.lodging.spawn(listening.run()).abort_handle();
        Ok(Listener {
            connection,
            orders,
            task,
        })
    }

    /// Ends the subscriber connection. Watches are told nothing from then on.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let listener = self.listener.lock().await.take();
        if let Some(listener) = listener {
            listener.task.abort();
            listener.connection.close().await;
        }
    }
}

impl fmt::Debug for Wakeups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakeups")
            .field("channels", &self.watchers.lock().by_channel.len())
            .finish_non_exhaustive()
    }
}

/// A watch, ended by dropping it, from anywhere.
pub(crate) struct Watch {
    watchers: Arc<Watchers>,
    orders: mpsc::UnboundedSender<Order>,
    channel: String,
    id: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.watchers.remove(&self.channel, self.id) {
            // Without a listener there is no subscription either.
            let channel = std::mem::take(&mut self.channel);
            let _ = self.orders.send(Order::Settle { channel });
        }
    }
}

#[derive(Default)]
struct Watchers {
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

    fn add(&self, channel: &str, hints: HintSender) -> u64 {
        let mut shared = self.lock();
        shared.last_id += 1;
        let id = shared.last_id;
        let watchers = shared.by_channel.entry(channel.to_owned()).or_default();
        watchers.push((id, hints));
        id
    }

    /// Whether that was the channel's last watcher.
    fn remove(&self, channel: &str, id: u64) -> bool {
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

    fn has(&self, channel: &str) -> bool {
        self.lock().by_channel.contains_key(channel)
    }

    fn channels(&self) -> Vec<String> {
        self.lock().by_channel.keys().cloned().collect()
    }

    fn tell(&self, channel: &str, hint: Hint) {
        for (_, hints) in self.lock().by_channel.get(channel).into_iter().flatten() {
            hints.push(hint);
        }
    }

    fn tell_all(&self, hint: Hint) {
        for (_, hints) in self.lock().by_channel.values().flatten() {
            hints.push(hint);
        }
    }
}

/// The listener at work.
struct Listening {
    connection: Arc<Connection>,
    watchers: Arc<Watchers>,
    orders: mpsc::UnboundedReceiver<Order>,
    incidents: Incidents,
    subscribed: HashSet<String>,
    /// Whether the subscriptions are known to stand.
    intact: bool,
    /// When to look after the connection again, while somebody watches.
    next_beat: Instant,
    heartbeat: Duration,
    /// How long to wait after subscriptions could not be restored.
    retry: Duration,
}

/// How often a quiet connection is asked for a sign of life while somebody watches: one that is half-open would never
/// tell anything again. Not so often that the next question hides from fred that the last one was not answered.
fn heartbeat(limit: Duration) -> Duration {
    (limit * 10)
        .clamp(Duration::from_secs(1), Duration::from_secs(5))
        .max(limit * 3)
}

impl Listening {
    async fn run(mut self) {
        loop {
            let watched = !self.intact || !self.subscribed.is_empty();
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => self.obey(order).await,
                    None => return,
                },
                incident = self.incidents.next() => match incident {
                    Incident::Message { channel, text } => {
                        self.watchers.tell(&channel, hint(&text));
                        if self.intact {
                            self.next_beat = Instant::now() + self.heartbeat;
                        }
                    }
                    Incident::Lost => self.watchers.tell_all(Hint::Missed),
                    Incident::Reconnected => {
                        // After a failure to restore, not before its pause is over.
                        if self.intact {
                            self.next_beat = Instant::now();
                        }
                        self.intact = false;
                    }
                    Incident::Closed => return self.watchers.tell_all(Hint::Missed),
                },
                () = tokio::time::sleep_until(self.next_beat), if watched => self.beat().await,
            }
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Subscribe { channel, done } => {
                if done.is_closed() {
                    return;
                }
                let subscribed = self.subscribe(channel).await;
                let _ = done.send(subscribed);
            }
            Order::Settle { channel } => {
                if !self.watchers.has(&channel) && self.subscribed.remove(&channel) {
                    self.connection.unsubscribe(&channel).await;
                }
            }
        }
    }

    async fn subscribe(&mut self, channel: String) -> Result<(), Failure> {
        if self.subscribed.contains(&channel) {
            return Ok(());
        }
        self.connection.subscribe(&channel).await?;
        if self.subscribed.is_empty() && self.intact {
            self.next_beat = Instant::now() + self.heartbeat;
        }
        self.subscribed.insert(channel);
        Ok(())
    }

    /// Restores the subscriptions if they may be gone; else asks for a sign of life, in want of which fred makes a new
    /// connection.
    async fn beat(&mut self) {
        if self.intact {
            self.next_beat = Instant::now() + self.heartbeat;
            let _ = self.connection.ping().await;
            return;
        }
        if let Err(failure) = self.restore().await {
            tracing::debug!(?failure, "no subscriptions yet after a reconnect");
            self.next_beat = Instant::now() + self.retry;
            recover(&self.connection, &failure).await;
        } else {
            self.intact = true;
            self.next_beat = Instant::now() + self.heartbeat;
        }
    }

    async fn restore(&mut self) -> Result<(), Failure> {
        let channels = self.watchers.channels();
        self.subscribed.clear();
        if channels.is_empty() {
            return Ok(());
        }
        self.connection.resubscribe(channels.clone()).await?;
        // The answer means that the server has subscribed: who asks again now misses nothing.
        self.connection.ping().await?;
        self.subscribed.extend(channels);
        self.watchers.tell_all(Hint::Missed);
        Ok(())
    }
}

/// A refused subscription is answered out of turn: fred takes the refusal for the answer to the next command, and every
/// later answer for that of the command before. Only a new connection sets that right.
async fn recover(connection: &Connection, failure: &Failure) {
    if matches!(
        failure.kind(),
        BackendKind::Denied | BackendKind::MalformedReply
    ) {
        connection.reconnect().await;
    }
}

/// Reads `<revision>:<microseconds until free>`.
fn hint(text: &str) -> Hint {
    let read = || {
        let (revision, free_in) = text.split_once(':')?;
        Some(Hint::Released {
            revision: Revision::new(revision.parse().ok()?),
            free_in: Duration::from_micros(free_in.parse().ok()?),
        })
    };
    read().unwrap_or(Hint::Missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_cannot_be_read_means_ask_again() {
        assert_eq!(
            hint("1759836153000000:1500"),
            Hint::Released {
                revision: Revision::new(1_759_836_153_000_000),
                free_in: Duration::from_micros(1500),
            }
        );
        for text in ["", ":", "7", "7:", ":7", "-7:0", "7:0:0", "seven:0", "{}"] {
            assert_eq!(hint(text), Hint::Missed, "{text:?}");
        }
    }
}
