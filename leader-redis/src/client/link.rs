//! [`Link`]: what the store talks through, one connection or those of a cluster.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{Either, join_all};

use super::cluster::Cluster;
use super::topology::Topology;
use super::{Call, Connection, Endpoint, Incidents, Layout, Purpose, Shared, Terms};
use crate::fault::Failure;
use crate::reply::{self, Reply};
use crate::script::Script;

/// What the store talks through.
pub(crate) enum Link {
    /// To one server, to the primary that sentinels name, or whatever a client that was passed in is connected to.
    One(Connection),
    /// To the nodes of a cluster.
    Many(Cluster),
}

/// The nodes of a cluster, as far as they are known.
#[derive(Clone)]
pub(crate) struct Known(Arc<Topology>);

impl Link {
    pub(crate) async fn open(endpoint: &Endpoint, terms: &Terms) -> Result<Self, Failure> {
        Self::made(endpoint, Purpose::Commands, terms).await
    }

    /// To one server: connected, or going on trying, and why that is needed.
    pub(crate) async fn open_in_time(
        endpoint: &Endpoint,
        terms: &Terms,
    ) -> Result<(Self, Option<Failure>), Failure> {
        let (connection, why_not) = Connection::open_in_time(endpoint, terms).await?;
        Ok((Self::One(connection), why_not))
    }

    /// For messages. What is `known` of a cluster need not be asked for.
    pub(crate) async fn listen(
        endpoint: &Endpoint,
        known: Option<Known>,
        terms: &Terms,
    ) -> Result<Self, Failure> {
        let purpose = Purpose::Messages;
        match known {
            Some(Known(topology)) => {
                let cluster = Cluster::on(topology, endpoint, purpose, terms);
                Ok(Self::Many(cluster))
            }
            None => Self::made(endpoint, purpose, terms).await,
        }
    }

    async fn made(endpoint: &Endpoint, purpose: Purpose, terms: &Terms) -> Result<Self, Failure> {
        Ok(match endpoint.layout() {
            Layout::Cluster => Self::Many(Cluster::open(endpoint, purpose, terms).await?),
            Layout::OneServer | Layout::Sentinel => {
                Self::One(Connection::open(endpoint, purpose, terms).await?)
            }
        })
    }

    /// Uses the connections of somebody else, who also ends them.
    pub(crate) fn share(client: Shared, terms: &Terms) -> Result<Self, Failure> {
        Connection::share(client, terms).map(Self::One)
    }

    pub(crate) fn known(&self) -> Option<Known> {
        match self {
            Self::One(_) => None,
            Self::Many(cluster) => Some(Known(cluster.topology())),
        }
    }

    /// Whether keys live in slots: those of one command must be in the same.
    pub(crate) fn has_slots(&self) -> bool {
        match self {
            Self::One(connection) => connection.layout == Layout::Cluster,
            Self::Many(_) => true,
        }
    }

    /// Runs a script on keys that are all of one slot, where there are slots.
    pub(crate) fn run<'a>(
        &'a self,
        script: &'static Script,
        call: &'a Call,
    ) -> impl Future<Output = Result<Reply, Failure>> + Send + use<'a> {
        match self {
            Self::One(connection) => Either::Left(connection.run(script, call)),
            // Boxed: whoever awaits a step has all of this in the type of his own future.
            Self::Many(cluster) => Either::Right(cluster.run(script, call).boxed()),
        }
    }

    /// Reads one field of a hash.
    pub(crate) async fn field(&self, key: &str, field: &str) -> Result<Reply, Failure> {
        match self {
            Self::One(connection) => connection.field(key, field).await,
            Self::Many(cluster) => cluster.field(key, field).boxed().await,
        }
    }

    /// The name that a server has given itself as it started, if it tells.
    pub(crate) async fn run_id(&self) -> Option<String> {
        match self {
            Self::One(connection) => reply::run_id(&connection.info("server").await.ok()?),
            Self::Many(_) => None,
        }
    }

    /// Asks for a sign of life.
    pub(crate) async fn ping(&self) -> Result<(), Failure> {
        match self {
            Self::One(connection) => connection.ping().await,
            Self::Many(cluster) => cluster.ping().await,
        }
    }

    /// Sees whether subscriptions may be ended, where that is not seen each time.
    pub(crate) async fn may_unsubscribe(&self) -> Result<(), Failure> {
        match self {
            Self::One(connection) => connection.may_unsubscribe().await,
            Self::Many(_) => Ok(()),
        }
    }

    /// Subscribes, if there is a connection now, and reads one field of a hash behind that. The answer means that the
    /// server had subscribed before it read.
    pub(crate) async fn subscribe_and_read(
        &self,
        channel: &str,
        key: &str,
        field: &str,
    ) -> Result<Reply, Failure> {
        match self {
            Self::One(connection) => connection.subscribe_and_read(channel, key, field).await,
            Self::Many(cluster) => {
                cluster.subscribe(channel).await?;
                cluster.field(key, field).await
            }
        }
    }

    /// Subscribes on connections that are just coming back; answers which channels are subscribed, and why others are not.
    pub(crate) async fn resubscribe(
        &self,
        channels: Vec<String>,
    ) -> (Vec<String>, Result<(), Failure>) {
        match self {
            Self::One(connection) => match connection.resubscribe(channels.clone()).await {
                Ok(()) => (channels, Ok(())),
                Err(failure) => (Vec::new(), Err(failure)),
            },
            Self::Many(cluster) => {
                let each = channels.into_iter().map(async |channel| {
                    let answer = cluster.renew(&channel).boxed().await;
                    answer.map(|()| channel)
                });
                let (mut done, mut result) = (Vec::new(), Ok(()));
                for answer in join_all(each).await {
                    match answer {
                        Ok(channel) => done.push(channel),
                        Err(failure) => result = Err(failure),
                    }
                }
                (done, result)
            }
        }
    }

    /// Looks whether messages would still come; answers as [`resubscribe`](Self::resubscribe). One server is asked for a sign of life, in want of which fred makes a new
    /// connection. The nodes of a cluster are asked for each subscription once more: a slot that goes to another node
    /// takes its subscriptions with it without a word, as fred keeps to itself what the node says of that.
    pub(crate) async fn look_after(
        &self,
        channels: Vec<String>,
    ) -> (Vec<String>, Result<(), Failure>) {
        match self {
            Self::One(connection) => {
                let _ = connection.ping().await;
                (channels, Ok(()))
            }
            Self::Many(_) => self.resubscribe(channels).await,
        }
    }

    /// Ends a subscription, if there is a connection now; when there is none, there is no subscription either.
    pub(crate) async fn unsubscribe(&self, channel: &str) {
        match self {
            Self::One(connection) => connection.unsubscribe(channel).await,
            Self::Many(cluster) => cluster.unsubscribe(channel).await,
        }
    }

    /// Sets right what an answer out of turn has left, by a new connection. Those of a cluster come in turn.
    pub(crate) async fn reconnect(&self) {
        if let Self::One(connection) = self {
            connection.reconnect().await;
        }
    }

    /// What happens from now on.
    pub(crate) fn incidents(&self) -> Incidents {
        match self {
            Self::One(connection) => connection.incidents(),
            Self::Many(cluster) => cluster.incidents(),
        }
    }

    /// Ends the connections, after what was sent before, within one limit. Somebody else's go on.
    pub(crate) async fn close(&self) {
        match self {
            Self::One(connection) => connection.close().await,
            Self::Many(cluster) => cluster.close().await,
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(connection) => connection.fmt(f),
            Self::Many(cluster) => cluster.fmt(f),
        }
    }
}
