//! The only module that knows fred, the client library: another one could take its place.
//!
//! What fred does unless told otherwise would hurt here: commands that wait for ever or are sent again, connections
//! that end for good with their first failure or are half-open unnoticed. `settings` tells it otherwise. A command's
//! options hold only for `custom`; the calls for scripts drop them (`clippy.toml` forbids those).

mod acked;
mod call;
mod cluster;
mod endpoint;
mod incidents;
mod link;
mod login;
mod settings;
mod subscriptions;
#[cfg(feature = "__tls")]
mod tls;
mod topology;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fred::error::{Error, ErrorKind};
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::config::Options;
use fred::types::{ClusterHash, CustomCommand, Value};
use futures::future::{Either, ready};
use tokio::task::{AbortHandle, JoinHandle};

pub(crate) use self::acked::{Acked, Place, Wait};
pub(crate) use self::call::{Call, Words};
pub(crate) use self::endpoint::{Endpoint, Layout, Node};
use self::incidents::{Despair, Mishaps};
pub(crate) use self::incidents::{Incident, Incidents};
pub(crate) use self::link::{Known, Link};
use self::settings::{builder, failure, options};
#[cfg(any(test, fuzzing))]
pub(crate) use self::topology::Topology;
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

/// As what a command comes to a node of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    /// The node has the slot.
    Owner,
    /// The node is about to get the slot, and another one said that it has the key already.
    Asking,
}

/// A connection to a server, which comes back by itself when it was lost.
pub(crate) struct Connection {
    client: Shared,
    terms: Terms,
    layout: Layout,
    /// `None` when the client is somebody else's.
    router: Option<Router>,
    mishaps: Mutex<Mishaps>,
    opened: Instant,
    /// Since when nothing has been answered although something was asked, in milliseconds after `opened`; or 0.
    unheard_since: AtomicU64,
    /// When a server was last left because it is no primary any more, in milliseconds after `opened`; or 0.
    demoted_at: AtomicU64,
}

impl Connection {
    /// Connects, and logs in if the endpoint says how. It is over within two limits, for each sentinel if there are any.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        purpose: Purpose,
        terms: &Terms,
    ) -> Result<Self, Failure> {
        let mut opened = Self::open_once(endpoint, purpose, terms).await;
        // fred goes on to the next sentinel when one cannot be reached, but not when it is silent.
        for endpoint in endpoint.with_another_sentinel_first() {
            if !matches!(opened, Err(Failure::NoAnswer(_))) {
                break;
            }
            opened = Self::open_once(&endpoint, purpose, terms).await;
        }
        opened
    }

    async fn open_once(
        endpoint: &Endpoint,
        purpose: Purpose,
        terms: &Terms,
    ) -> Result<Self, Failure> {
        let built = builder(endpoint, purpose, terms.limit).build();
        let client = built.map_err(|error| failure(&error, terms.stated))?;
        let named = |error: &Error| match (endpoint.service(), error.details()) {
            (Some(service), "Missing primary address in response from sentinel node.") => {
                Failure::Client(format!("no sentinel knows a primary `{service}`"))
            }
            _ => failure(error, terms.stated),
        };
        let mishaps = Mutex::new(Mishaps::of(&client));
        let connecting = client.clone();
        // A task of its own: given up half-way, fred would connect all the same, and never end it.
        let connect = async move { connecting.init().await.map(Router::new) };
        let router = match terms.lodging.spawn(connect).await {
            Ok(Ok(router)) => router,
            Ok(Err(error)) => return Err(named(&error)),
            Err(error) => return Err(Failure::Client(error.to_string())),
        };
        Ok(Self::of(client, Some(router), mishaps, terms))
    }

    /// As [`open`](Self::open), but goes on trying where that fails, and says why it did; over within one limit.
    async fn open_in_time(
        endpoint: &Endpoint,
        terms: &Terms,
    ) -> Result<(Self, Option<Failure>), Failure> {
        let mut builder = builder(endpoint, Purpose::Commands, terms.limit);
        builder.with_config(|config| config.fail_fast = false);
        let client = builder.build();
        let client = client.map_err(|error| failure(&error, terms.stated))?;
        let mishaps = Mutex::new(Mishaps::of(&client));
        let (connecting, limit) = (client.clone(), terms.limit);
        let (tell, connected) = tokio::sync::oneshot::channel();
        let connect = terms.lodging.spawn(async move {
            let mut errors = connecting.error_rx();
            let router = Router::new(connecting.connect());
            // From here on it ends with its owner, who may have gone.
            let _ = tell.send(router);
            let failed = tokio::time::timeout(limit, async {
                tokio::select! {
                    connected = connecting.wait_for_connect() => connected.err(),
                    error = errors.recv() => error.ok().map(|(error, _)| error),
                }
            });
            failed.await
        });
        let router = connected.await;
        let router = router.map_err(|error| Failure::Client(error.to_string()))?;
        let this = Self::of(client, Some(router), mishaps, terms);
        let why_not = match connect.await {
            _ if this.client.is_connected() => None,
            Ok(Ok(Some(error))) => Some(failure(&error, terms.stated)),
            _ => Some(Failure::NoAnswer(terms.stated)),
        };
        Ok((this, why_not))
    }

    fn of(client: Shared, router: Option<Router>, mishaps: Mutex<Mishaps>, terms: &Terms) -> Self {
        Self {
            layout: Endpoint::of(&client).layout(),
            client,
            terms: terms.clone(),
            router,
            mishaps,
            opened: Instant::now(),
            unheard_since: AtomicU64::new(0),
            demoted_at: AtomicU64::new(0),
        }
    }

    /// Uses the connection of somebody else, who also ends it.
    pub(crate) fn share(client: Shared, terms: &Terms) -> Result<Self, Failure> {
        if !client.is_connected() {
            let words = "the client that was passed in is not connected; call its `init()` first";
            return Err(Failure::Cut(words.to_owned()));
        }
        let mishaps = Mutex::new(Mishaps::of(&client));
        Ok(Self::of(client, None, mishaps, terms))
    }

    /// Runs a script.
    pub(crate) fn run(
        &self,
        script: &'static Script,
        call: &Call,
    ) -> impl Future<Output = Result<Reply, Failure>> + Send {
        self.run_as(Visit::Owner, script, call, self.terms.limit)
    }

    async fn run_as(
        &self,
        visit: Visit,
        script: &'static Script,
        call: &Call,
        limit: Duration,
    ) -> Result<Reply, Failure> {
        let asked = Instant::now();
        let digest = call.of(script.digest());
        let answer = match self.send("EVALSHA", call.key(), digest, visit, limit).await {
            // After a restart or `SCRIPT FLUSH`. The server remembers the script from then on.
            Err(failure) if failure.is_unknown_script() => {
                let rest = limit.saturating_sub(asked.elapsed());
                let source = call.of(script.source());
                self.send("EVAL", call.key(), source, visit, rest).await
            }
            answer => answer,
        };
        answer.map_err(|failure| failure.within(script))
    }

    /// Reads one field of a hash.
    pub(crate) async fn field(&self, key: &str, field: &str) -> Result<Reply, Failure> {
        let limit = self.terms.limit;
        self.field_as(Visit::Owner, key, field, limit).await
    }

    async fn field_as(
        &self,
        visit: Visit,
        key: &str,
        field: &str,
        limit: Duration,
    ) -> Result<Reply, Failure> {
        let args = vec![key.into(), field.into()];
        self.send("HGET", key.as_bytes(), args, visit, limit).await
    }

    /// Asks for a sign of life.
    pub(crate) async fn ping(&self) -> Result<(), Failure> {
        let limit = self.terms.limit;
        let pong = self.send("PING", &[], Vec::new(), Visit::Owner, limit);
        is_pong(&pong.await?)
    }

    /// What the server tells of itself in this section.
    pub(crate) async fn info(&self, section: &'static str) -> Result<Reply, Failure> {
        let args = vec![section.into()];
        let limit = self.terms.limit;
        self.send("INFO", &[], args, Visit::Owner, limit).await
    }

    /// Which nodes have which slots, by this one's account.
    async fn slots(&self) -> Result<Reply, Failure> {
        let args = vec!["SLOTS".into()];
        let limit = self.terms.limit;
        self.send("CLUSTER", &[], args, Visit::Owner, limit).await
    }

    /// Sends a command within `limit`. To be awaited at once: whether the connection is lost is looked at now. Once begun
    /// it is seen through when the caller goes: fred keeps a command that it could not send yet until its time is over,
    /// and only who still waits then tells fred that it is.
    fn send<'a>(
        &'a self,
        name: &'static str,
        key: &[u8],
        args: Vec<Value>,
        visit: Visit,
        limit: Duration,
    ) -> impl Future<Output = Result<Reply, Failure>> + Send + use<'a> {
        if let Err(failure) = self.refuse_if_lost() {
            return Either::Left(ready(Err(failure)));
        }
        // Of interest on a cluster only.
        let hash = match self.layout {
            Layout::Cluster => ClusterHash::Custom(slot_of(key)),
            _ => ClusterHash::Random,
        };
        let command = CustomCommand::new_static(name, hash, false);
        let options = self.options(limit);
        let client = self.client.clone();
        // Made in its box, once optimised: a future of fred's is some kilobytes, and would be moved there.
        let work = Box::write(Box::new_uninit(), async move {
            match visit {
                Visit::Owner => {
                    let client = client.with_options(&options);
                    client.custom::<Value, Value>(command, args).await
                }
                Visit::Asking => {
                    let asking = CustomCommand::new_static("ASKING", ClusterHash::Random, false);
                    let pipeline = client.pipeline();
                    let queue = pipeline.with_options(&options);
                    queue.custom::<Value, Value>(asking, Vec::new()).await?;
                    queue.custom::<Value, Value>(command, args).await?;
                    pipeline.last::<Value>().await
                }
            }
        });
        let work = self.terms.lodging.see_through(Box::into_pin(work));
        Either::Right(async move {
            let answer = match self.unless_given_up(work).await {
                Ok(value) => Ok(value.into()),
                Err(error) => Err(self.failure(&error)),
            };
            self.note(&answer);
            answer
        })
    }

    /// What is sent while a connection is lost waits behind fred's order to come back, for as long as that takes, and
    /// would be sent afterwards, when nobody waits for it any more.
    fn refuse_if_lost(&self) -> Result<(), Failure> {
        // Of several nodes, the others may well be there.
        if self.layout != Layout::Cluster && self.mishaps().are_not_over() {
            return Err(Failure::NotSent(self.why_disconnected().map(Box::new)));
        }
        Ok(())
    }

    /// The answer, or why there will be none: the connection was lost after the command was handed over, and could not be
    /// made anew. It may have been sent, or be sent yet.
    async fn unless_given_up<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if self.layout == Layout::Cluster {
            return answer.await;
        }
        let despair = Despair::of(&self.client).of_coming_back();
        tokio::select! {
            biased;
            answer = answer => answer,
            error = despair => Err(Error::new(ErrorKind::IO, error.details().to_owned())),
        }
    }

    fn mishaps(&self) -> MutexGuard<'_, Mishaps> {
        self.mishaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server is heard of, and is still what it was.
    fn note(&self, answer: &Result<Reply, Failure>) {
        match answer {
            Err(Failure::NoAnswer(_)) => self.unheard(),
            Err(failure) if failure.is_from_a_replica() => self.demoted(),
            Ok(reply) if self.layout == Layout::Sentinel && reply.is_from_a_replica() => {
                self.demoted();
            }
            _ => self.unheard_since.store(0, Ordering::Relaxed),
        }
    }

    /// The options of one command.
    fn options(&self, limit: Duration) -> Options {
        let mut options = options(limit);
        if self.layout == Layout::Cluster {
            // Each redirection takes one.
            options.max_attempts = Some(3);
        }
        options
    }

    /// The server is no primary any more: the sentinels know who is. Those that demote it end its connections as a rule,
    /// but not when they do not reach it.
    fn demoted(&self) {
        if self.router.is_none() || self.layout != Layout::Sentinel {
            return;
        }
        let now = u64::try_from(self.opened.elapsed().as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let pause = u64::try_from(self.terms.limit.as_millis() * 2).unwrap_or(u64::MAX);
        let last = self.demoted_at.load(Ordering::Relaxed);
        if last != 0 && now.saturating_sub(last) < pause {
            return;
        }
        let noticed =
            self.demoted_at
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
        if noticed.is_ok() {
            self.replace();
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
        if !self.client.is_connected() {
            // Nothing was sent that could be waited for, and fred would wait for a connection to say good-bye.
            task.abort();
            return;
        }
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
        self.mishaps()
            .last()
            .map(|error| failure(error, self.terms.stated))
    }
}

/// The places in `keys` of those that may go into one command where keys live in slots.
pub(crate) fn by_slot(keys: impl Iterator<Item = String>) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (at, key) in keys.enumerate() {
        places.entry(slot_of(key)).or_default().push(at);
    }
    places.into_values().collect()
}

/// The cluster slot of a key or a channel.
fn slot_of(key: impl AsRef<[u8]>) -> u16 {
    fred::util::redis_keyslot(key.as_ref())
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
