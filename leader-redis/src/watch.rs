//! [`Wakeups`]: tells waiters of releases, over a subscriber connection that is made with the first of them.

mod listener;
mod registry;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leader_core::store::{Hint, HintSender, Revision};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle};

use self::listener::{Listening, Order, recover};
use self::registry::Watchers;
use crate::client::{Endpoint, Known, Link, Terms};
use crate::fault::Failure;
use crate::reply;

/// The watchers of one store.
pub(crate) struct Wakeups {
    endpoint: Endpoint,
    /// The cluster's nodes, if the connection for commands knows them.
    known: Option<Known>,
    terms: Terms,
    watchers: Arc<Watchers>,
    listener: tokio::sync::Mutex<Present>,
    closed: AtomicBool,
}

/// The listener, as far as there is one.
#[derive(Default)]
enum Present {
    #[default]
    Nobody,
    /// In a task of its own: whoever waits for it may go before it is there, and the next takes it over.
    Connecting(JoinHandle<Result<Listener, Failure>>),
    Listening(Listener),
}

struct Listener {
    link: Arc<Link>,
    orders: mpsc::UnboundedSender<Order>,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Wakeups {
    pub(crate) fn new(endpoint: Endpoint, known: Option<Known>, terms: Terms) -> Self {
        Self {
            endpoint,
            known,
            terms,
            watchers: Arc::default(),
            listener: tokio::sync::Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Tells `hints` what is told on `channel`, until the returned value is dropped, and that something was missed if
    /// the record at `key` is not at `since` any more, where that is of interest.
    pub(crate) async fn watch(
        &self,
        channel: String,
        key: &str,
        since: Option<Revision>,
        hints: HintSender,
    ) -> Result<Watch, Failure> {
        let (link, orders) = self.listener().await?;
        let watch = Watch {
            id: self.watchers.add(&channel, hints.clone()),
            watchers: self.watchers.clone(),
            orders,
            channel,
        };
        let (done, answer) = oneshot::channel();
        let order = Order::Subscribe {
            channel: watch.channel.clone(),
            key: key.to_owned(),
            done,
        };
        let gone = || Failure::NotSent(None);
        watch.orders.send(order).map_err(|_| gone())?;
        let field = match answer.await.map_err(|_| gone())? {
            Ok(field) => field,
            Err(failure) => {
                recover(&link, &failure).await;
                return Err(failure);
            }
        };
        let revision = reply::revision(&field)?;
        if since.is_some() && revision != since {
            hints.push(Hint::Missed);
        }
        Ok(watch)
    }

    /// How many watches of `channel` there are in this process.
    pub(crate) fn count(&self, channel: &str) -> u32 {
        u32::try_from(self.watchers.count(channel)).unwrap_or(u32::MAX)
    }

    async fn listener(&self) -> Result<(Arc<Link>, mpsc::UnboundedSender<Order>), Failure> {
        let mut present = self.listener.lock().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(Failure::NotSent(None));
        }
        let mut begun = false;
        loop {
            match &mut *present {
                Present::Listening(listener) if !listener.orders.is_closed() => {
                    return Ok((listener.link.clone(), listener.orders.clone()));
                }
                Present::Nobody | Present::Listening(_) => {
                    begun = true;
                    *present = Present::Connecting(self.listen());
                }
                Present::Connecting(listening) => {
                    let over_before = !begun && listening.is_finished();
                    let listener = listening.await;
                    *present = Present::Nobody;
                    match listener {
                        Ok(Ok(listener)) => *present = Present::Listening(listener),
                        // Nobody waited for it any more, and it may have been long ago.
                        _ if over_before => {}
                        Ok(Err(failure)) => return Err(failure),
                        Err(error) => return Err(Failure::Client(error.to_string())),
                    }
                }
            }
        }
    }

    fn listen(&self) -> JoinHandle<Result<Listener, Failure>> {
        let (endpoint, terms) = (self.endpoint.clone(), self.terms.clone());
        let (known, watchers) = (self.known.clone(), self.watchers.clone());
        self.terms.lodging.spawn(async move {
            let link = Link::listen(&endpoint, known, &terms).await?;
            link.may_unsubscribe().await?;
            let link = Arc::new(link);
            let (orders, received) = mpsc::unbounded_channel();
            let listening = Listening::new(link.clone(), watchers, received, terms.limit);
            let task = terms.lodging.spawn(listening.run()).abort_handle();
            Ok(Listener { link, orders, task })
        })
    }

    /// Ends the subscriber connection. Watches are told nothing from then on.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        match std::mem::take(&mut *self.listener.lock().await) {
            Present::Nobody => {}
            // What comes of it is dropped.
            Present::Connecting(listening) => listening.abort(),
            Present::Listening(listener) => {
                listener.task.abort();
                listener.link.close().await;
            }
        }
    }
}

impl fmt::Debug for Wakeups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakeups")
            .field("channels", &self.watchers.channels().len())
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
