//! Subscribing, on one connection.

use std::time::Duration;

use fred::interfaces::{ClientLike, PubsubInterface};
use fred::types::config::Options;
use fred::types::{ClusterHash, CustomCommand, Value};

use super::{Connection, Visit, is_pong};
use crate::fault::Failure;
use crate::reply::Reply;

impl Connection {
    /// Subscribes, if there is a connection now, and reads one field of a hash behind that. The answer means that the
    /// server had subscribed before it read.
    pub(super) async fn subscribe_and_read(
        &self,
        channel: &str,
        key: &str,
        field: &str,
    ) -> Result<Reply, Failure> {
        let channels = vec![channel.to_owned()];
        let options = self.options(self.terms.limit);
        let args = vec![key.into(), field.into()];
        self.subscribe(channels, &options, "HGET", args).await
    }

    /// Subscribes on a connection that is just coming back; returns when the server has.
    pub(super) async fn resubscribe(&self, channels: Vec<String>) -> Result<(), Failure> {
        let options = Options {
            fail_fast: false,
            ..self.options(self.terms.limit)
        };
        let pong = self
            .subscribe(channels, &options, "PING", Vec::new())
            .await?;
        is_pong(&pong)
    }

    /// In one go with a command whose answer is awaited. fred tells nothing of the answer to a subscription itself; a
    /// refusal of it is taken for the answer to whatever was sent next, which must be this command, and must not be
    /// sent so late that the refusal is dropped instead.
    async fn subscribe(
        &self,
        channels: Vec<String>,
        options: &Options,
        name: &'static str,
        args: Vec<Value>,
    ) -> Result<Reply, Failure> {
        let command = CustomCommand::new_static(name, ClusterHash::Random, false);
        let pipeline = self.client.pipeline();
        let answer = async {
            let queue = pipeline.with_options(options);
            queue.subscribe(channels).await?;
            queue.custom::<Value, Value>(command, args).await?;
            pipeline.last::<Value>().await
        };
        answer
            .await
            .map(Reply::from)
            .map_err(|error| self.failure(&error))
    }

    /// Sees whether subscriptions may be ended: a refusal would not be seen later, when nothing is asked behind it.
    pub(super) async fn may_unsubscribe(&self) -> Result<(), Failure> {
        let options = self.options(self.terms.limit);
        let command = CustomCommand::new_static("PING", ClusterHash::Random, false);
        let pipeline = self.client.pipeline();
        let answer = async {
            let queue = pipeline.with_options(&options);
            queue.unsubscribe("none").await?;
            queue
                .custom::<Value, Value>(command, Vec::<Value>::new())
                .await?;
            pipeline.last::<Value>().await
        };
        let pong = answer.await.map_err(|error| self.failure(&error))?;
        is_pong(&pong.into())
    }

    /// Ends a subscription, if there is a connection now; when there is none, there is no subscription either.
    pub(super) async fn unsubscribe(&self, channel: &str) {
        let client = self.client.with_options(&self.options(self.terms.limit));
        let _ = client.unsubscribe(channel).await;
    }

    /// Subscribes to a channel of one slot of a cluster. The refusal of a node that has not got the slot comes in turn,
    /// unlike that of other subscriptions: fred takes whatever comes for the answer to a command that it does not know.
    pub(super) async fn subscribe_shard(
        &self,
        channel: &str,
        limit: Duration,
    ) -> Result<Reply, Failure> {
        let args = vec![channel.into()];
        self.send("SSUBSCRIBE", channel.as_bytes(), args, Visit::Owner, limit)
            .await
    }

    /// Ends a subscription to a channel of one slot, if there is a connection now. Unlike a subscription, it is refused out
    /// of turn: by a node that has not got the slot any more, say. Only a new connection sets that right.
    pub(super) async fn unsubscribe_shard(&self, channel: &str) {
        let options = self.options(self.terms.limit);
        let command = CustomCommand::new_static("PING", ClusterHash::Random, false);
        let pipeline = self.client.pipeline();
        let answer = async {
            let queue = pipeline.with_options(&options);
            queue.sunsubscribe(channel).await?;
            queue
                .custom::<Value, Value>(command, Vec::<Value>::new())
                .await?;
            pipeline.last::<Value>().await
        };
        let answer = answer.await.map_err(|error| self.failure(&error));
        match answer.and_then(|pong| is_pong(&pong.into())) {
            // Without a connection there is no subscription either.
            Ok(()) | Err(Failure::NotSent(_)) => {}
            Err(_) => self.reconnect().await,
        }
    }

    /// Whether there is a key of the channel's name, which is of no interest: but only who has the slot answers.
    pub(super) async fn exists(
        &self,
        visit: Visit,
        channel: &str,
        limit: Duration,
    ) -> Result<Reply, Failure> {
        let args = vec![channel.into()];
        self.send("EXISTS", channel.as_bytes(), args, visit, limit)
            .await
    }

    /// Says that somebody waits for the name of the channel.
    pub(super) async fn mark(
        &self,
        visit: Visit,
        channel: &str,
        limit: Duration,
    ) -> Result<Reply, Failure> {
        let args = vec![channel.into(), "".into(), "PX".into(), MARKED_FOR.into()];
        self.send("SET", channel.as_bytes(), args, visit, limit)
            .await
    }
}

/// How long a name is known as waited for, in milliseconds: three times as long as until that is said again.
const MARKED_FOR: i64 = 15_000;
