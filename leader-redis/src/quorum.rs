//! [`RedisQuorumElector`]: the engine on several independent servers, of which a majority decides.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use futures::future::join_all;
use leader_core::store::{LeaseStore, StoreError};
use leader_core::{LeaderError, NodeId, Quorum, Step, StoreElector};

use crate::builder::RedisElectorBuilder;
use crate::client::Layout;
use crate::connect::{Member, Plan};
use crate::protocol::Protocol;
use crate::store::RedisStore;

/// Fewer could not do without any of them.
const FEWEST: usize = 3;

/// An elector on several independent Redis or Valkey servers: a lease is held by whoever holds it on a majority of them
/// (Redlock, with fencing tokens). What that promises, and what not, is said at [`Quorum`].
///
/// A clone is the same candidate. When the last clone is dropped its connections end too;
/// [`shutdown`](leader_core::ElectorExt::shutdown) ends them in order, after what is held was released.
///
/// ```no_run
/// use leader_core::{ElectorExt, LeaseOptions};
/// use leader_redis::RedisElector;
///
/// # async fn example() -> Result<(), leader_core::LeaderError> {
/// let elector = RedisElector::quorum(["redis://a", "redis://b", "redis://c", "redis://d", "redis://e"])
///     .node_id("billing-3")
///     .connect()
///     .await?;
/// let options = LeaseOptions::builder().auto_extend(true).build()?;
/// let closed = elector
///     .run_if_leader("invoice-close", &options, |lease| async move { lease.fence() })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisQuorumElector {
    elector: StoreElector<Quorum<RedisStore>>,
}

impl RedisQuorumElector {
    /// The store, which has one store for each server.
    #[must_use]
    pub fn store(&self) -> &Quorum<RedisStore> {
        self.elector.store()
    }
}

impl fmt::Debug for RedisQuorumElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisQuorumElector")
            .field("elector", &self.elector)
            .field("store", self.store())
            .finish()
    }
}

// Inlined, as is `connect`, so that the code of a second engine is made only for who has a quorum: it would be half of what
// this crate takes to be built.
leader_core::__delegate_elector!(
    #[inline]
    RedisQuorumElector,
    |this| this.elector
);

/// Builds a [`RedisQuorumElector`]; started by [`RedisElector::quorum`](crate::RedisElector::quorum). The options mean
/// what they mean for one server; those of [`RedisElectorBuilder`] that are not here are for one server only.
#[derive(Clone)]
#[must_use = "an elector is made by `connect()`"]
pub struct RedisQuorumBuilder {
    urls: Vec<String>,
    each: RedisElectorBuilder,
}

impl RedisQuorumBuilder {
    pub(crate) fn new(urls: impl IntoIterator<Item: Into<String>>) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            each: RedisElectorBuilder::new(),
        }
    }

    /// Who this candidate is, for people. Default `host:pid:random`.
    pub fn node_id(mut self, node_id: impl Into<NodeId>) -> Self {
        self.each = self.each.node_id(node_id);
        self
    }

    /// What keys and channels start with; see [`RedisElectorBuilder::key_prefix`].
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.each = self.each.key_prefix(prefix);
        self
    }

    /// How long one command may take on one server; see [`RedisElectorBuilder::command_timeout`]. All servers are asked at
    /// once, and those that have not answered by then are not waited for. A step may take two rounds of that.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.each = self.each.command_timeout(timeout);
        self
    }

    /// Which version of the protocol requests and answers are in; see [`RedisElectorBuilder::protocol`].
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.each = self.each.protocol(protocol);
        self
    }

    /// Whose certificates are believed, on all servers; see [`RedisElectorBuilder::ca_certificates`]. All URLs must be
    /// `rediss://` then.
    #[cfg(feature = "__tls")]
    pub fn ca_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.each = self.each.ca_certificates(pem);
        self
    }

    /// What is shown to servers that ask for a certificate, to all the same; see
    /// [`RedisElectorBuilder::client_certificate`]. All URLs must be `rediss://` then.
    #[cfg(feature = "__tls")]
    pub fn client_certificate(
        mut self,
        chain: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.each = self.each.client_certificate(chain, key);
        self
    }

    /// Whether connections and extensions live on a runtime of their own, on one thread for all servers; see
    /// [`RedisElectorBuilder::own_runtime`].
    pub fn own_runtime(mut self, own: bool) -> Self {
        self.each = self.each.own_runtime(own);
        self
    }

    /// How long [`shutdown`](leader_core::ElectorExt::shutdown) may take. Default 5 s.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.each = self.each.shutdown_grace(grace);
        self
    }

    /// Connects to all servers at once, and sees whether a majority of them answers. Those that do not are told of in the
    /// log, and connected to in the background: a server that comes back takes part again. All of them are waited for, so
    /// that one that is frozen, or whose host is silent, costs twice the command timeout at most; one that refuses costs
    /// nothing.
    ///
    /// Use an odd number of servers, 3 or 5: a fourth one has to be asked and tolerates no further failure. They must be
    /// independent: not replicas of each other, and not on one machine.
    ///
    /// # Errors
    ///
    /// - [`LeaderError::InvalidOptions`] names the option that cannot be honoured; nothing was sent then. Fewer than three
    ///   servers are refused, one that stands twice in the list, and whatever is no server of its own: clusters and
    ///   sentinels. One that has two names is refused when it was asked, if it answers now and this user may ask it (`INFO`).
    /// - [`LeaderError::Backend`] with [`Step::Connect`] within twice the command timeout when no majority answers; it says
    ///   for each server why not. Nothing is left behind.
    /// - [`LeaderError::NoRuntime`] outside a Tokio runtime, unless `own_runtime` is set.
    ///
    /// # Cancellation safety
    ///
    /// Connections that were under way when the future is dropped are closed.
    #[inline]
    pub async fn connect(self) -> Result<RedisQuorumElector, LeaderError> {
        let (node_id, grace) = self.each.identity();
        let quorum = self.connect_store().await?;
        let runtime = quorum.nodes().next().map(|store| store.runtime().clone());
        let mut builder = StoreElector::builder(quorum);
        if let Some(runtime) = runtime {
            builder = builder.runtime(runtime);
        }
        if let Some(node_id) = node_id {
            builder = builder.node_id(node_id);
        }
        if let Some(grace) = grace {
            builder = builder.shutdown_grace(grace);
        }
        Ok(RedisQuorumElector {
            elector: builder.build(),
        })
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
    #[inline]
    pub async fn connect_store(self) -> Result<Quorum<RedisStore>, LeaderError> {
        let plans = self.plans()?;
        let home = self.each.home("quorum")?;
        let connected = plans
            .into_iter()
            .map(|plan| plan.connect_in_time(home.clone()));
        let connected: Result<Vec<Member>, StoreError> =
            join_all(connected).await.into_iter().collect();
        let members =
            connected.map_err(|error| LeaderError::backend(Step::Connect, None, error))?;
        if let Err(error) = check_independence(&members) {
            join_all(members.iter().map(|member| member.store.close())).await;
            return Err(error);
        }
        let (mut stores, mut down) = (Vec::new(), Vec::new());
        for member in members {
            down.extend(member.why_not);
            stores.push(member.store);
        }
        let quorum = Quorum::new(stores)?;
        if down.len() > quorum.tolerates() {
            let error = too_few(&quorum, &down);
            quorum.close().await;
            return Err(LeaderError::backend(Step::Connect, None, error));
        }
        for error in down {
            tracing::warn!(%error, "a server of the quorum is not there; it is tried again in the background");
        }
        Ok(quorum)
    }

    pub(crate) fn plans(&self) -> Result<Vec<Plan>, LeaderError> {
        let refuse = |reason: String| Err(LeaderError::invalid_options("quorum", reason));
        let count = self.urls.len();
        if count < FEWEST {
            let servers = if count == 1 { "server" } else { "servers" };
            return refuse(format!(
                "{count} {servers}: a majority that survives the loss of one takes {FEWEST} at least"
            ));
        }
        let (mut plans, mut seen) = (Vec::with_capacity(count), HashSet::new());
        for url in &self.urls {
            let plan = self.each.clone().url(url).plan()?;
            let address = plan.address();
            let group = match plan.way.endpoint().layout() {
                Layout::OneServer => None,
                Layout::Sentinel => Some("what sentinels name"),
                Layout::Cluster => Some("a cluster"),
            };
            if let Some(group) = group {
                return refuse(format!(
                    "{address} is {group}, and no single server of its own: name servers, by `redis://` or `rediss://`"
                ));
            }
            if !seen.insert(address.to_lowercase()) {
                return refuse(format!("{address} stands in it twice, but has one vote"));
            }
            plans.push(plan);
        }
        Ok(plans)
    }
}

/// Two names of one server would give it two votes.
fn check_independence(members: &[Member]) -> Result<(), LeaderError> {
    let mut known: HashMap<&str, &str> = HashMap::new();
    for member in members {
        let Some(run_id) = &member.run_id else {
            continue;
        };
        let address = member.store.address();
        if let Some(other) = known.insert(run_id, address) {
            let reason = format!("{other} and {address} are the same server, which has one vote");
            return Err(LeaderError::invalid_options("quorum", reason));
        }
    }
    Ok(())
}

/// Why there is no majority.
fn too_few(quorum: &Quorum<RedisStore>, down: &[StoreError]) -> StoreError {
    let kinds: Vec<_> = down.iter().map(StoreError::kind).collect();
    let count = |kind| kinds.iter().filter(|other| **other == kind).count();
    let kind = kinds.iter().copied().max_by_key(|kind| count(*kind));
    let each: Vec<String> = down.iter().map(ToString::to_string).collect();
    let words = format!(
        "{} of {} servers do not answer, and {} have to: {}",
        down.len(),
        quorum.nodes().count(),
        quorum.majority(),
        each.join("; ")
    );
    StoreError::new(kind.unwrap_or(leader_core::BackendKind::Unreachable), words).not_run()
}

impl fmt::Debug for RedisQuorumBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisQuorumBuilder")
            .field("servers", &self.urls.len())
            .field("each", &self.each)
            .finish()
    }
}
