//! [`RedisElectorBuilder`]: how to connect, checked before anything is sent.

use std::fmt;
use std::time::Duration;

use leader_core::{LeaderError, NodeId, Step};

use crate::client::{Connection, Endpoint, Purpose, Shared, Terms};
use crate::elector::RedisElector;
use crate::fault::Failure;
use crate::keys::Keys;
use crate::protocol::Protocol;
use crate::runtime::{Lodging, OwnRuntime};
use crate::store::RedisStore;
#[cfg(feature = "__tls")]
use crate::trust::{Own, Trust};
use crate::url;
use crate::watch::Wakeups;

/// Builds a [`RedisElector`]; started by [`RedisElector::builder`].
///
/// | option | default | meaning |
/// |---|---|---|
/// | `url` | | where the server is: `redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS |
/// | `client` | | the service's own fred client, instead of a URL |
/// | `node_id` | `host:pid:random` | who this candidate is, for people |
/// | `key_prefix` | `leader` | what keys and channels start with |
/// | `command_timeout` | 500 ms | how long one command may take; 1 ms to 60 s |
/// | `protocol` | RESP2 | the version of the protocol that is spoken |
/// | `ca_certificates` | the system's | with a TLS feature: whose certificates are believed |
/// | `client_certificate` | none | with a TLS feature: what is shown to a server that asks for it |
/// | `own_runtime` | `false` | connections and extensions on a thread of their own |
/// | `shutdown_grace` | 5 s | how long a shutdown may take |
#[must_use = "an elector is made by `connect()`"]
pub struct RedisElectorBuilder {
    url: Option<String>,
    client: Option<Shared>,
    node_id: Option<NodeId>,
    key_prefix: String,
    command_timeout: Duration,
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
            protocol: None,
            own_runtime: false,
            shutdown_grace: None,
            #[cfg(feature = "__tls")]
            trust: Trust::default(),
        }
    }

    /// Where the server is: `redis://[[user]:password@]host[:port][/database]`; `valkey://` is the same. `rediss://`
    /// is TLS, and needs one of the features `enable-rustls`, `enable-rustls-ring` or `enable-native-tls`.
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
    /// - [`LeaderError::Backend`] with [`Step::Connect`] within twice the command timeout: nothing listens there, the
    ///   login was refused, the server hangs, or loads its data. Nothing is left behind.
    /// - [`LeaderError::NoRuntime`] outside a Tokio runtime, unless `own_runtime` is set.
    ///
    /// # Cancellation safety
    ///
    /// A connection that was under way when the future is dropped is closed.
    pub async fn connect(self) -> Result<RedisElector, LeaderError> {
        let (node_id, grace) = (self.node_id.clone(), self.shutdown_grace);
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
        let keys = Keys::new(&self.key_prefix)?;
        let timeout = self.command_timeout;
        check_timeout(timeout)?;
        let way = self.way()?;
        let address = way.endpoint().address();
        let refused = |failure: Failure| {
            LeaderError::backend(Step::Connect, None, failure.at(&address, None))
        };

        let (lodging, own_runtime) = self.lodging().map_err(|error| match error {
            Some(error) => refused(Failure::Client(error.to_string())),
            None => LeaderError::NoRuntime,
        })?;
        let terms = Terms {
            limit: within(timeout),
            stated: timeout,
            lodging: lodging.clone(),
        };
        let (endpoint, limit) = (way.endpoint(), timeout * 2);
        // Where the time limit has a clock, wherever the caller is.
        let connect = lodging.spawn({
            let terms = terms.clone();
            async move {
                let connect = tokio::time::timeout(limit, way.go(&terms));
                connect.await.unwrap_or(Err(Failure::NoAnswer(limit)))
            }
        });
        let commands = connect
            .await
            .unwrap_or_else(|error| Err(Failure::Client(error.to_string())))
            .map_err(refused)?;
        let wakeups = Wakeups::new(endpoint, terms);
        Ok(RedisStore::new(
            commands,
            wakeups,
            keys,
            address,
            timeout,
            lodging,
            own_runtime,
        ))
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
                let reason = if !Endpoint::of(client).is_one_server() {
                    "Cluster and Sentinel come in a later version; pass a client of one server"
                } else if self.own_runtime {
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

    fn lodging(&self) -> Result<(Lodging, Option<OwnRuntime>), Option<std::io::Error>> {
        if self.own_runtime {
            let (lodging, own) = Lodging::own()?;
            Ok((lodging, Some(own)))
        } else {
            let lodging = Lodging::of_caller().ok_or(None)?;
            Ok((lodging, None))
        }
    }
}

impl fmt::Debug for RedisElectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisElectorBuilder")
            .field("node_id", &self.node_id)
            .field("key_prefix", &self.key_prefix)
            .field("command_timeout", &self.command_timeout)
            .field("own_runtime", &self.own_runtime)
            .finish_non_exhaustive()
    }
}

/// How to get a connection.
enum Way {
    Open(Endpoint),
    Share(Shared),
}

impl Way {
    fn endpoint(&self) -> Endpoint {
        match self {
            Self::Open(endpoint) => endpoint.clone(),
            Self::Share(client) => Endpoint::of(client),
        }
    }

    async fn go(self, terms: &Terms) -> Result<Connection, Failure> {
        let connection = match self {
            Self::Open(endpoint) => Connection::open(&endpoint, Purpose::Commands, terms).await?,
            Self::Share(client) => Connection::share(client, terms)?,
        };
        connection.ping().await?;
        Ok(connection)
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

/// What of `timeout` the connection itself may use: a little less, so that its own error, which knows the server,
/// comes before the engine's patience ends.
fn within(timeout: Duration) -> Duration {
    timeout.saturating_sub((timeout / 20).min(Duration::from_millis(20)))
}
