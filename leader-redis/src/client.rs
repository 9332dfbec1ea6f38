//! The only module that knows fred, the client library: another one could take its place.
//!
//! What fred does unless told otherwise would hurt here: commands that wait for ever or are sent again, connections
//! that end for good with their first failure or are half-open unnoticed. `settings` tells it otherwise. A command's
//! options hold only for `custom`; the calls for scripts drop them (`clippy.toml` forbids those).

mod acked;
mod endpoint;
mod incidents;
mod login;
mod settings;
#[cfg(feature = "__tls")]
mod tls;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fred::error::Error;
use fred::interfaces::{ClientLike, PubsubInterface};
use fred::types::config::Options;
use fred::types::{ClusterHash, CustomCommand, Value};
use tokio::task::{AbortHandle, JoinHandle};

pub(crate) use self::acked::{Acked, Call, Place, Wait};
pub(crate) use self::endpoint::Endpoint;
use self::incidents::Mishaps;
pub(crate) use self::incidents::{Incident, Incidents};
use self::settings::{builder, failure, options};
use crate::fault::Failure;
use crate::reply::Reply;
use crate::runtime::Lodging;
use crate::script::Script;

/// The client of a service that shares it.
pub(crate) type Shared = fred::clients::Client;

/// The digest under which a server knows a script.
pub(crate) fn sha1(text: &str) -> String {
    fred::util::sha1_hash(text)
}

/// How long one command may take, and where connections live.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) limit: Duration,
    /// What users are told the limit is: what they set it to.
    pub(crate) stated: Duration,
    pub(crate) lodging: Lodging,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Requests and their answers.
    Commands,
    /// Messages. It speaks RESP3, in which commands are allowed beside subscriptions.
    Messages,
}

/// One argument of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Number(u64),
}

impl From<Arg<'_>> for Value {
    fn from(arg: Arg<'_>) -> Self {
        match arg {
            Arg::Text(text) => text.into(),
            Arg::Bytes(bytes) => bytes.into(),
            Arg::Number(number) => Self::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
        }
    }
}

/// A connection to a server, which comes back by itself when it was lost.
pub(crate) struct Connection {
    client: Shared,
    terms: Terms,
    /// `None` when the client is somebody else's.
    router: Option<Router>,
    mishaps: Mutex<Mishaps>,
    opened: Instant,
    /// Since when nothing has been answered although something was asked, in milliseconds after `opened`; or 0.
    unheard_since: AtomicU64,
}

impl Connection {
    /// Connects, and logs in if the endpoint says how. It is over within two limits.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        purpose: Purpose,
        terms: &Terms,
    ) -> Result<Self, Failure> {
        let limit = terms.limit;
        let built = builder(endpoint, purpose, limit).build();
        let client = built.map_err(|error| failure(&error, terms.stated))?;
        let mishaps = Mutex::new(Mishaps::of(&client));
        let connecting = client.clone();
        // A task of its own: given up half-way, fred would connect all the same, and never end it.
        let connect = async move { connecting.init().await.map(Router::new) };
        let router = match terms.lodging.spawn(connect).await {
            Ok(Ok(router)) => router,
            Ok(Err(error)) => return Err(failure(&error, terms.stated)),
            Err(error) => return Err(Failure::Client(error.to_string())),
        };
        Ok(Self {
            client,
            terms: terms.clone(),
            router: Some(router),
            mishaps,
            opened: Instant::now(),
            unheard_since: AtomicU64::new(0),
        })
    }

    /// Uses the connection of somebody else, who also ends it.
    pub(crate) fn share(client: Shared, terms: &Terms) -> Result<Self, Failure> {
        if !client.is_connected() {
            let words = "the client that was passed in is not connected; call its `init()` first";
            return Err(Failure::Cut(words.to_owned()));
        }
        Ok(Self {
            mishaps: Mutex::new(Mishaps::of(&client)),
            client,
            terms: terms.clone(),
            router: None,
            opened: Instant::now(),
            unheard_since: AtomicU64::new(0),
        })
    }

    /// Runs a script on `keys`, the first of which decides the cluster slot.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[&str],
        args: &[Arg<'_>],
    ) -> Result<Reply, Failure> {
        let request = |script: &str| {
            let mut all: Vec<Value> = Vec::with_capacity(2 + keys.len() + args.len());
            all.push(script.into());
            all.push(Arg::Number(keys.len() as u64).into());
            all.extend(keys.iter().map(|key| Value::from(*key)));
            all.extend(args.iter().map(|arg| Value::from(*arg)));
            all
        };
        let key = keys.first().copied().unwrap_or_default();
        let (asked, limit) = (Instant::now(), self.terms.limit);
        let answer = self.send("EVALSHA", key, request(script.digest()), limit);
        let answer = match answer.await {
            // After a restart or `SCRIPT FLUSH`. The server remembers the script from then on.
            Err(failure) if failure.is_unknown_script() => {
                let rest = limit.saturating_sub(asked.elapsed());
                self.send("EVAL", key, request(script.source()), rest).await
            }
            answer => answer,
        };
        answer.map_err(|failure| failure.within(script))
    }

    /// Reads one field of a hash.
    pub(crate) async fn field(&self, key: &str, field: &str) -> Result<Reply, Failure> {
        let args = vec![key.into(), field.into()];
        self.send("HGET", key, args, self.terms.limit).await
    }

    /// Asks for a sign of life.
    pub(crate) async fn ping(&self) -> Result<(), Failure> {
        let pong = self.send("PING", "", Vec::new(), self.terms.limit).await?;
        is_pong(&pong)
    }

    /// Sends a command within `limit`. It is seen through when the caller goes: fred keeps a command that it could not
    /// send yet until its time is over, and only who still waits then tells fred that it is.
    async fn send(
        &self,
        name: &'static str,
        key: &str,
        args: Vec<Value>,
        limit: Duration,
    ) -> Result<Reply, Failure> {
        let slot = fred::util::redis_keyslot(key.as_bytes());
        let command = CustomCommand::new_static(name, ClusterHash::Custom(slot), false);
        let client = self.client.with_options(&options(limit));
        let work = async move { client.custom::<Value, Value>(command, args).await };
        let answer = match self.terms.lodging.see_through(work).await {
            Ok(value) => Ok(value.into()),
            Err(error) => Err(self.failure(&error)),
        };
        self.note(&answer);
        answer
    }

    /// Whether the server is heard of.
    fn note(&self, answer: &Result<Reply, Failure>) {
        if let Err(Failure::NoAnswer(_)) = answer {
            self.unheard();
        } else {
            self.unheard_since.store(0, Ordering::Relaxed);
        }
    }

    /// A connection on which nothing has been answered for long is replaced. fred does that only where nothing new is
    /// sent meanwhile: each command starts its patience anew.
    fn unheard(&self) {
        if self.router.is_none() {
            return;
        }
        let limit = self.terms.limit.as_millis();
        let now = self.opened.elapsed().as_millis();
        let since = u64::try_from(now.saturating_sub(limit))
            .unwrap_or(u64::MAX)
            .max(1);
        let known =
            self.unheard_since
                .compare_exchange(0, since, Ordering::Relaxed, Ordering::Relaxed);
        let Err(since) = known else {
            return;
        };
        if now.saturating_sub(u128::from(since)) < limit * 2 {
            return;
        }
        // Only one of those who notice acts.
        let noticed =
            self.unheard_since
                .compare_exchange(since, 0, Ordering::Relaxed, Ordering::Relaxed);
        if noticed.is_ok() {
            self.replace();
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
        let channels = vec![channel.to_owned()];
        let options = options(self.terms.limit);
        let args = vec![key.into(), field.into()];
        self.subscribe(channels, &options, "HGET", args).await
    }

    /// Subscribes on a connection that is just coming back; returns when the server has.
    pub(crate) async fn resubscribe(&self, channels: Vec<String>) -> Result<(), Failure> {
        let options = Options {
            fail_fast: false,
            ..options(self.terms.limit)
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
    pub(crate) async fn may_unsubscribe(&self) -> Result<(), Failure> {
        let options = options(self.terms.limit);
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
    pub(crate) async fn unsubscribe(&self, channel: &str) {
        let client = self.client.with_options(&options(self.terms.limit));
        let _ = client.unsubscribe(channel).await;
    }

    /// Drops the present connection and makes a new one, which it waits for as long as for an answer.
    pub(crate) async fn reconnect(&self) {
        let _ = self.replace().await;
    }

    fn replace(&self) -> JoinHandle<()> {
        let (client, limit) = (self.client.clone(), self.terms.limit);
        self.terms.lodging.spawn(async move {
            // fred goes on trying when this has ended.
            let _ = tokio::time::timeout(limit, client.force_reconnection()).await;
        })
    }

    /// What happens to this connection from now on.
    pub(crate) fn incidents(&self) -> Incidents {
        Incidents::of(&self.client)
    }

    /// Ends the connection, after what was sent before, within one limit. Somebody else's goes on.
    pub(crate) async fn close(&self) {
        let Some(router) = &self.router else {
            return;
        };
        let Some(mut task) = router.take() else {
            return;
        };
        let (client, limit) = (self.client.clone(), self.terms.limit);
        // A task of its own, so that it is done also when the caller does not wait for it.
        let closing = self.terms.lodging.spawn(async move {
            let quit = async {
                let _ = client.quit().await;
                let _ = (&mut task).await;
            };
            if tokio::time::timeout(limit, quit).await.is_err() {
                task.abort();
            }
        });
        let _ = closing.await;
    }

    fn failure(&self, error: &Error) -> Failure {
        match failure(error, self.terms.stated) {
            Failure::NotSent(_) => Failure::NotSent(self.why_disconnected().map(Box::new)),
            failure => failure,
        }
    }

    fn why_disconnected(&self) -> Option<Failure> {
        let mut mishaps = self.mishaps.lock().unwrap_or_else(PoisonError::into_inner);
        mishaps
            .last()
            .map(|error| failure(error, self.terms.stated))
    }
}

fn is_pong(reply: &Reply) -> Result<(), Failure> {
    match reply {
        Reply::Text(pong) if pong == "PONG" => Ok(()),
        other => Err(Failure::Malformed(format!("PING was answered {other}"))),
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("connected", &self.client.is_connected())
            .finish_non_exhaustive()
    }
}

/// fred's task behind a client of ours. fred leaves it and its connection behind when the client is dropped.
struct Router {
    task: Mutex<Option<JoinHandle<Result<(), Error>>>>,
    abort: AbortHandle,
}

impl Router {
    fn new(task: JoinHandle<Result<(), Error>>) -> Self {
        Self {
            abort: task.abort_handle(),
            task: Mutex::new(Some(task)),
        }
    }

    fn take(&self) -> Option<JoinHandle<Result<(), Error>>> {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.take()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        // Unless it was closed before, in which case it has ended or will.
        if self.take().is_some() {
            self.abort.abort();
        }
    }
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        match value {
            Value::Integer(number) => Self::Number(number),
            Value::String(text) => Self::Text(text.to_string()),
            Value::Bytes(bytes) => match String::from_utf8(bytes.to_vec()) {
                Ok(text) => Self::Text(text),
                Err(bytes) => Self::Bytes(bytes.into_bytes()),
            },
            Value::Null => Self::Nil,
            Value::Array(values) => Self::List(values.into_iter().map(Self::from).collect()),
            Value::Boolean(_) => Self::Strange("boolean"),
            Value::Double(_) => Self::Strange("double"),
            Value::Map(_) => Self::Strange("map"),
            Value::Queued => Self::Strange("queued"),
        }
    }
}
