//! [`RedisElectorBuilder`]: how to connect, checked before anything is sent.

use std::fmt;
use std::time::Duration;

use leader_core::{LeaderError, NodeId, Step};

use crate::acks::Need;
#[cfg(feature = "__tls")]
use crate::client::Endpoint;
use crate::client::{Layout, Place, Shared};
use crate::connect::{Home, Plan, Way};
use crate::elector::RedisElector;
use crate::fault::Failure;
use crate::keys::Keys;
use crate::protocol::Protocol;
use crate::runtime::Lodging;
use crate::store::RedisStore;
#[cfg(feature = "__tls")]
use crate::trust::{Own, Trust};
use crate::url;

/// Builds a [`RedisElector`]; started by [`RedisElector::builder`].
///
/// | option | default | meaning |
/// |---|---|---|
/// | `url` | | where the server is: `redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS; `redis-sentinel://` and `redis-cluster://` |
/// | `client` | | the service's own fred client, instead of a URL |
/// | `node_id` | `host:pid:random` | who this candidate is, for people |
/// | `key_prefix` | `leader` | what keys and channels start with |
/// | `command_timeout` | 500 ms | how long one command may take; 1 ms to 60 s |
/// | `replica_ack` | none | how many replicas have to acknowledge a lease, and within what time |
/// | `protocol` | RESP2 | the version of the protocol that is spoken |
/// | `ca_certificates` | the system's | with a TLS feature: whose certificates are believed |
/// | `client_certificate` | none | with a TLS feature: what is shown to a server that asks for it |
/// | `own_runtime` | `false` | connections and extensions on a thread of their own |
/// | `shutdown_grace` | 5 s | how long a shutdown may take |
#[derive(Clone)]
#[must_use = "an elector is made by `connect()`"]
pub struct RedisElectorBuilder {
    url: Option<String>,
    client: Option<Shared>,
    node_id: Option<NodeId>,
    key_prefix: String,
    command_timeout: Duration,
    acks: Option<Need>,
    protocol: Option<Protocol>,
    own_runtime: bool,
    shutdown_grace: Option<Duration>,
    #[cfg(feature = "__tls")]
    trust: Trust,
}

impl RedisElectorBuilder {
    pub(crate) fn new() -> Self {
        Self {
            url: None,
            client: None,
            node_id: None,
            key_prefix: Keys::DEFAULT_PREFIX.to_owned(),
            command_timeout: Duration::from_millis(500),
            acks: None,
            protocol: None,
            own_runtime: false,
            shutdown_grace: None,
            #[cfg(feature = "__tls")]
            trust: Trust::default(),
        }
    }

    /// Where the server is: `redis://[[user]:password@]host[:port][/database]`; `valkey://` is the same. `rediss://`
    /// is TLS, and needs one of the features `enable-rustls`, `enable-rustls-ring` or `enable-native-tls`.
    ///
    /// `redis-sentinel://sentinel[:port][/database]?sentinelServiceName=name&node=another:port` is the primary that the
    /// sentinels call `name`; `redis-cluster://node[:port]?node=another:port` is a cluster. What holds there is said on
    /// [the first page](crate#sentinel-and-cluster).
    ///
    /// ```no_run
    /// use leader_redis::RedisElector;
    ///
    /// # async fn example() -> Result<(), leader_core::LeaderError> {
    /// let behind_sentinels = RedisElector::connect(
    ///     "redis-sentinel://:secret@s1:26379?sentinelServiceName=billing&node=s2:26379&node=s3:26379",
    /// )
    /// .await?;
    /// let on_a_cluster =
    ///     RedisElector::connect("redis-cluster://:secret@a:7000?node=b:7000&node=c:7000").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Shares the service's own client, which must be connected and be of this very version of fred
    /// ([`leader_redis::fred`](crate::fred)). Commands go over it, each with this elector's time limit; whether it comes
    /// back after a lost connection is up to its own reconnect policy, so give it one. It is never closed from here. Only
    /// waiters need a second connection, for messages, with the same login, which this elector opens and closes itself.
    pub fn client(mut self, client: Shared) -> Self {
        self.client = Some(client);
        self
    }

    /// Who this candidate is, for people. Default `host:pid:random`.
    pub fn node_id(mut self, node_id: impl Into<NodeId>) -> Self {
        self.node_id = Some(node_id.into());
        self
    }

    /// What keys and channels start with: 1 to 64 ASCII letters, digits and `_ - . : /`. Default `leader`. Candidates
    /// with different prefixes do not see each other.
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefix = prefix.into();
        self
    }

    /// How long one command may take, from the call to the answer; 1 ms to 60 s. Default 500 ms. A dead or hung server
    /// is an error after this time. Keep it well below a third of the shortest lease, so that a lost extension can be
    /// sent again in time.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// Lets a grant count only once `replicas` of the server's replicas have acknowledged it within `timeout` (1 ms to
    /// 60 s), and an extension likewise (`WAIT`). A primary that dies with a grant which it had not replicated yet would
    /// otherwise take it along, and the promoted replica grant the same slot again.
    ///
    /// ```no_run
    /// use leader_redis::RedisElector;
    /// use std::time::Duration;
    ///
    /// # async fn example() -> Result<(), leader_core::LeaderError> {
    /// let elector = RedisElector::builder()
    ///     .url("redis://cache.internal:6379")
    ///     .replica_ack(1, Duration::from_millis(200))
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # When too few acknowledge
    ///
    /// The grant is undone, so that nobody waits for it, and the attempt fails with [`LeaderError::Backend`] of the kind
    /// [`TooFewReplicas`](leader_core::BackendKind::TooFewReplicas), which says how many did, and how many are connected;
    /// within its wait it tries again. An extension that fails is tried again until the lease's deadline; then it is lost.
    /// Others are told that somebody leads while a grant waits to be acknowledged.
    ///
    /// # What it costs
    ///
    /// A connection of its own, and for each grant one round trip more, to the slowest of the `replicas` fastest ones. An
    /// uncontended run is four commands instead of two. Grants and extensions that come while others wait to be
    /// acknowledged are then acknowledged together, by one `WAIT`.
    ///
    /// A step may take `timeout` twice on top of [`command_timeout`](Self::command_timeout), and 200 ms, since a lease may
    /// have to wait for those before it and since servers look at their clock ten times a second. Keep that well below a
    /// third of the shortest lease: what is longer leaves no second chance to an extension that failed.
    ///
    /// # What it leaves open
    ///
    /// This is no consensus. Whoever promotes a replica has to choose one that acknowledged: with one acknowledgement of
    /// two, the other replica may be chosen, and lacks the grant. Sentinel prefers the replica that has received most, of
    /// those that it can reach. Require as many as there are replicas, or at least so many that a promoted one is among
    /// them. A primary that was replaced and does not know goes on granting as long as enough replicas follow it; the
    /// server's `min-replicas-to-write` says when it stops. And a replica that restarts with nothing in its memory or on
    /// its disk has forgotten what it acknowledged. For the rest there are fencing tokens.
    ///
    /// Works on one server with replicas, and behind Sentinel. On a cluster it is refused.
    pub fn replica_ack(mut self, replicas: u32, timeout: Duration) -> Self {
        self.acks = Some(Need {
            replicas,
            limit: timeout,
            place: Place::Memory,
        });
        self
    }

    /// As [`replica_ack`](Self::replica_ack), and acknowledged only when it is on the disks of the server itself and of
    /// `replicas` replicas (`WAITAOF`), so that a power failure of all of them at once does not take it along. Needs
    /// Redis 7.2 or Valkey, with `appendonly yes` on all of them. With `appendfsync everysec`, the default, that takes up to
    /// two seconds, and with `always` a write to the disk; choose the timeout and the lease by that.
    pub fn replica_ack_on_disk(mut self, replicas: u32, timeout: Duration) -> Self {
        self.acks = Some(Need {
            replicas,
            limit: timeout,
            place: Place::Disk,
        });
        self
    }

    /// Which version of the protocol requests and answers are in. Default [`Protocol::Resp2`]; a client that is shared
    /// speaks what it speaks.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Believes servers whose certificates are of these authorities, in PEM, and no others; for `rediss://` URLs.
    /// Default: those that the operating system believes. A certificate must be for the host that the URL has, and in
    /// force; there is no way around that, and none back to a connection without TLS.
    ///
    /// ```no_run
    /// use leader_redis::RedisElector;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let elector = RedisElector::builder()
    ///     .url("rediss://billing:secret@cache.internal:6380")
    ///     .ca_certificates(std::fs::read("/etc/billing/ca.pem")?)
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "__tls")]
    pub fn ca_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.trust.authorities = Some(pem.into());
        self
    }

    /// Shows this certificate to a server that asks its clients for one (mutual TLS); for `rediss://` URLs. `chain` is
    /// the certificate and those between it and its authority, `key` its private key (PKCS #8), both in PEM.
    #[cfg(feature = "__tls")]
    pub fn client_certificate(
        mut self,
        chain: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        let (chain, key) = (chain.into(), key.into());
        self.trust.own = Some(Own { chain, key });
        self
    }

    /// Whether connections and extensions live on a runtime of their own, on one thread: work that blocks the worker
    /// threads of the service's runtime can then not starve them. Costs a thread, and waking it for each command.
    /// Without it, a multi-thread runtime keeps leases alive while a body blocks one of its workers, unless the body has
    /// sent a command of its own in the very same poll; a current-thread runtime does not.
    /// Default `false`: they live on the runtime that calls [`connect`](Self::connect), and end with it.
    pub fn own_runtime(mut self, own: bool) -> Self {
        self.own_runtime = own;
        self
    }

    /// How long [`shutdown`](leader_core::ElectorExt::shutdown) may take. Default 5 s.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = Some(grace);
        self
    }

    /// Connects, logs in, and sees whether the server answers.
    ///
    /// # Errors
    ///
    /// - [`LeaderError::InvalidOptions`] names the option that cannot be honoured; nothing was sent then.
    /// - [`LeaderError::Backend`] with [`Step::Connect`] within twice the command timeout, on a cluster four times, and
    ///   behind sentinels twice for each and once more: nothing listens there, the login was refused, the server hangs, or
    ///   loads its data; it is not part of a cluster, or no sentinel knows the name. Nothing is left behind.
    /// - [`LeaderError::NoRuntime`] outside a Tokio runtime, unless `own_runtime` is set.
    ///
    /// # Cancellation safety
    ///
    /// A connection that was under way when the future is dropped is closed.
    pub async fn connect(self) -> Result<RedisElector, LeaderError> {
        let (node_id, grace) = self.identity();
        let store = self.connect_store().await?;
        Ok(RedisElector::new(store, node_id, grace))
    }

    /// As [`connect`](Self::connect), without the engine: for those who bring one of their own. Node id and shutdown
    /// grace mean nothing then.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    ///
    /// # Cancellation safety
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_store(self) -> Result<RedisStore, LeaderError> {
        let plan = self.plan()?;
        let home = self.home(&plan.address())?;
        let connected = plan.connect(home).await;
        connected.map_err(|error| LeaderError::backend(Step::Connect, None, error))
    }

    /// What is to be connected, if all that was set can be honoured.
    pub(crate) fn plan(&self) -> Result<Plan, LeaderError> {
        let keys = Keys::new(&self.key_prefix)?;
        check_timeout(self.command_timeout)?;
        if let Some(need) = &self.acks {
            need.check()?;
        }
        let way = self.way()?;
        if self.acks.is_some() && way.endpoint().layout() == Layout::Cluster {
            let reason =
                "each node of a cluster has replicas of its own, and they cannot be asked yet";
            return Err(LeaderError::invalid_options("replica_ack", reason));
        }
        Ok(Plan {
            way,
            keys,
            timeout: self.command_timeout,
            acks: self.acks,
        })
    }

    fn way(&self) -> Result<Way, LeaderError> {
        match (&self.url, &self.client) {
            (Some(url), None) => {
                let endpoint = url::endpoint(url)?;
                #[cfg(feature = "__tls")]
                let endpoint = self.secured(url, endpoint)?;
                Ok(Way::Open(
                    endpoint.speaking(self.protocol.unwrap_or_default()),
                ))
            }
            (None, Some(client)) => {
                #[cfg(feature = "__tls")]
                if let Some(option) = self.trust.set() {
                    let reason = "`client` is set, which brings its own TLS; set one of them";
                    return Err(LeaderError::invalid_options(option, reason));
                }
                let reason = if self.own_runtime {
                    "it cannot be combined with `own_runtime`: a client lives on the runtime that connected it"
                } else if self.protocol.is_some() {
                    "it cannot be combined with `protocol`: a client speaks what it speaks"
                } else {
                    return Ok(Way::Share(client.clone()));
                };
                Err(LeaderError::invalid_options("client", reason))
            }
            (None, None) => Err(LeaderError::invalid_options(
                "url",
                "it is missing; set `url` or `client`",
            )),
            (Some(_), Some(_)) => Err(LeaderError::invalid_options(
                "url",
                "`client` is set as well; set one of them",
            )),
        }
    }

    /// The endpoint by TLS, if that is what the URL asks for.
    #[cfg(feature = "__tls")]
    fn secured(&self, url: &str, endpoint: Endpoint) -> Result<Endpoint, LeaderError> {
        let refused = |(option, why)| LeaderError::invalid_options(option, why);
        if url::asks_for_tls(url) {
            return endpoint.by_tls(&self.trust).map_err(refused);
        }
        match self.trust.set() {
            None => Ok(endpoint),
            Some(option) => {
                let reason =
                    "the URL asks for no TLS, so nothing would be checked; write `rediss://`";
                Err(LeaderError::invalid_options(option, reason))
            }
        }
    }

    /// Where the connections to `address` will live.
    pub(crate) fn home(&self, address: &str) -> Result<Home, LeaderError> {
        if !self.own_runtime {
            let lodging = Lodging::of_caller().ok_or(LeaderError::NoRuntime)?;
            return Ok(Home::new(lodging, None));
        }
        let (lodging, own) = Lodging::own().map_err(|error| {
            let error = Failure::Client(error.to_string()).at(address, None);
            LeaderError::backend(Step::Connect, None, error)
        })?;
        Ok(Home::new(lodging, Some(own)))
    }

    /// Who stands, and how long a shutdown may take.
    pub(crate) fn identity(&self) -> (Option<NodeId>, Option<Duration>) {
        (self.node_id.clone(), self.shutdown_grace)
    }
}

impl fmt::Debug for RedisElectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisElectorBuilder")
            .field("node_id", &self.node_id)
            .field("key_prefix", &self.key_prefix)
            .field("command_timeout", &self.command_timeout)
            .field("replica_ack", &self.acks)
            .field("own_runtime", &self.own_runtime)
            .finish_non_exhaustive()
    }
}

fn check_timeout(timeout: Duration) -> Result<(), LeaderError> {
    let (shortest, longest) = (Duration::from_millis(1), Duration::from_secs(60));
    if (shortest..=longest).contains(&timeout) {
        return Ok(());
    }
    let reason = format!("{timeout:?} is out of range; a command may take 1 ms to 60 s");
    Err(LeaderError::invalid_options("command_timeout", reason))
}
