//! The listener: the one task that owns the subscriptions.
//!
//! It alone subscribes and unsubscribes, so that the two of one channel never overtake each other, however watches come
//! and go. It re-subscribes after a reconnect itself, since watchers may be told to ask again only once the server
//! listens again.

use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use leader_core::BackendKind;
use leader_core::store::Hint;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::registry::Watchers;
use crate::client::{Incident, Incidents, Link};
use crate::fault::Failure;
use crate::reply::{self, Reply};

pub(super) enum Order {
    /// See to it that the channel is subscribed, and answer with the revision at `key` from then on.
    Subscribe {
        channel: String,
        key: String,
        done: oneshot::Sender<Result<Reply, Failure>>,
    },
    /// Unsubscribe the channel if nobody watches it any more.
    Settle { channel: String },
}

/// A subscription under way: its channel and the answer; or the end of one, of which there is nothing to note.
type Asked = Pin<Box<dyn Future<Output = Option<(String, Result<Reply, Failure>)>> + Send>>;

/// The listener at work.
pub(super) struct Listening {
    link: Arc<Link>,
    watchers: Arc<Watchers>,
    orders: mpsc::UnboundedReceiver<Order>,
    incidents: Incidents,
    /// What the server is known to have subscribed.
    subscribed: HashSet<String>,
    /// Subscriptions under way.
    asked: FuturesUnordered<Asked>,
    standing: Standing,
    /// When to look after the connection again, while somebody watches.
    next_beat: Instant,
    heartbeat: Duration,
    /// How long to wait after subscriptions could not be restored.
    retry: Duration,
}

/// What is known of the subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Intact,
    /// Those that are known to be subscribed are; others are not, as far as is known.
    InPart,
    /// All may be gone.
    Unknown,
}

/// How often a quiet connection is asked for a sign of life while somebody watches: one that is half-open would never
/// tell anything again. Not so often that the next question hides from fred that the last one was not answered. On a
/// cluster more often, as this is also how it is known that a slot has moved.
fn heartbeat(limit: Duration, link: &Link) -> Duration {
    let (first, longest) = if link.has_slots() { (4, 2) } else { (10, 5) };
    (limit * first)
        .clamp(Duration::from_secs(1), Duration::from_secs(longest))
        .max(limit * 3)
}

impl Listening {
    pub(super) fn new(
        link: Arc<Link>,
        watchers: Arc<Watchers>,
        orders: mpsc::UnboundedReceiver<Order>,
        limit: Duration,
    ) -> Self {
        Self {
            incidents: link.incidents(),
            heartbeat: heartbeat(limit, &link),
            link,
            watchers,
            orders,
            subscribed: HashSet::new(),
            asked: FuturesUnordered::new(),
            standing: Standing::Intact,
            next_beat: Instant::now(),
            retry: limit.max(Duration::from_millis(100)),
        }
    }

    fn intact(&self) -> bool {
        self.standing == Standing::Intact
    }

    pub(super) async fn run(mut self) {
        loop {
            let watched = !self.intact() || !self.subscribed.is_empty();
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => self.obey(order).await,
                    None => return,
                },
                incident = self.incidents.next() => match incident {
                    Incident::Message { channel, told } => {
                        self.watchers.tell(&channel, reply::hint(&told));
                        if self.intact() {
                            self.next_beat = Instant::now() + self.heartbeat;
                        }
                    }
                    Incident::Lost => self.watchers.tell_all(Hint::Missed),
                    Incident::Reconnected => {
                        // After a failure to restore, not before its pause is over.
                        if self.intact() {
                            self.next_beat = Instant::now();
                        }
                        self.standing = Standing::Unknown;
                    }
                    Incident::Closed => return self.watchers.tell_all(Hint::Missed),
                },
                Some(answered) = self.asked.next() => self.note(answered),
                () = tokio::time::sleep_until(self.next_beat), if watched => self.beat().await,
            }
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Subscribe { done, .. } if done.is_closed() => {}
            Order::Subscribe { channel, key, done } => {
                let link = self.link.clone();
                let known = self.subscribed.contains(&channel);
                self.ask(Box::pin(async move {
                    let answer = if known {
                        link.field(&key, "f").await
                    } else {
                        link.subscribe_and_read(&channel, &key, "f").await
                    };
                    let _ = done.send(answer.clone());
                    Some((channel, answer))
                }))
                .await;
            }
            Order::Settle { channel } => {
                if !self.watchers.has(&channel) {
                    self.subscribed.remove(&channel);
                    // Also when it is not known to be subscribed: it may be yet.
                    let link = self.link.clone();
                    self.ask(Box::pin(async move {
                        link.unsubscribe(&channel).await;
                        None
                    }))
                    .await;
                }
            }
        }
    }

    /// Polls the request here for the first time, which puts it in the queue: so that orders are sent in their order,
    /// though none waits for the answer to another.
    async fn ask(&mut self, mut asked: Asked) {
        match poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await {
            Poll::Ready(answered) => self.note(answered),
            Poll::Pending => self.asked.push(asked),
        }
    }

    fn note(&mut self, answered: Option<(String, Result<Reply, Failure>)>) {
        let Some((channel, answer)) = answered else {
            return;
        };
        // Whoever has gone meanwhile has left an order to unsubscribe.
        if answer.is_ok() && self.watchers.has(&channel) {
            if self.subscribed.is_empty() && self.intact() {
                self.next_beat = Instant::now() + self.heartbeat;
            }
            self.subscribed.insert(channel);
        }
    }

    /// Restores the subscriptions that may be gone; else looks whether they still stand.
    async fn beat(&mut self) {
        let result = if self.intact() {
            let channels = self.subscribed.iter().cloned().collect();
            let (standing, result) = self.link.look_after(channels).await;
            self.subscribed = standing.into_iter().collect();
            result
        } else {
            self.restore().await
        };
        let Err(failure) = result else {
            self.standing = Standing::Intact;
            self.next_beat = Instant::now() + self.heartbeat;
            return;
        };
        tracing::debug!(?failure, "not all subscriptions stand");
        self.standing = Standing::InPart;
        self.next_beat = Instant::now() + self.retry;
        if recover(&self.link, &failure).await {
            // Refused for good, it seems: asking every now and then is all that is left.
            self.watchers.tell_all(Hint::Missed);
        }
    }

    async fn restore(&mut self) -> Result<(), Failure> {
        if self.standing == Standing::Unknown {
            self.subscribed.clear();
            self.standing = Standing::InPart;
        }
        let mut channels = self.watchers.channels();
        channels.retain(|channel| !self.subscribed.contains(channel));
        if channels.is_empty() {
            return Ok(());
        }
        let (subscribed, result) = self.link.resubscribe(channels).await;
        for channel in subscribed {
            // Only now: who asks again from here on misses nothing.
            self.watchers.tell(&channel, Hint::Missed);
            self.subscribed.insert(channel);
        }
        result
    }
}

/// A refused subscription is answered out of turn: fred takes the refusal for the answer to the next command, and every
/// later answer for that of the command before. Only a new connection sets that right. Answers whether it came to that.
pub(super) async fn recover(link: &Link, failure: &Failure) -> bool {
    let out_of_turn = matches!(
        failure.kind(),
        BackendKind::Denied | BackendKind::MalformedReply
    );
    if out_of_turn {
        link.reconnect().await;
    }
    out_of_turn
}
