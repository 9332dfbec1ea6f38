//! [`RedisElector`]: the engine on a [`RedisStore`].

use std::fmt;
use std::time::Duration;

use leader_core::{LeaderError, NodeId, StoreElector};

use crate::builder::RedisElectorBuilder;
use crate::quorum::RedisQuorumBuilder;
use crate::store::RedisStore;

/// An elector on Redis or Valkey: one server, the primary behind sentinels, or a cluster.
///
/// A clone is the same candidate. When the last clone is dropped its connections end too;
/// [`shutdown`](leader_core::ElectorExt::shutdown) ends them in order, after what is held was released.
///
/// ```no_run
/// use leader_core::{ElectorExt, LeaseOptions};
/// use leader_redis::RedisElector;
///
/// # async fn example() -> Result<(), leader_core::LeaderError> {
/// let elector = RedisElector::connect("redis://127.0.0.1:6379").await?;
/// let options = LeaseOptions::builder().auto_extend(true).build()?;
/// let closed = elector
///     .run_if_leader("invoice-close", &options, |lease| async move { lease.fence() })
///     .await?;
/// assert!(closed.is_some(), "nobody else leads");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisElector {
    elector: StoreElector<RedisStore>,
}

impl RedisElector {
    /// Starts building an elector.
    ///
    /// ```no_run
    /// use leader_redis::RedisElector;
    /// use std::time::Duration;
    ///
    /// # async fn example() -> Result<(), leader_core::LeaderError> {
    /// let elector = RedisElector::builder()
    ///     .url("redis://user:secret@cache.internal:6379/0")
    ///     .node_id("billing-3")
    ///     .command_timeout(Duration::from_millis(200))
    ///     .own_runtime(true)
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> RedisElectorBuilder {
        RedisElectorBuilder::new()
    }

    /// Starts building an elector on several independent servers, of which a majority decides. A URL may have a login.
    ///
    /// ```no_run
    /// use leader_redis::RedisElector;
    /// use std::time::Duration;
    ///
    /// # async fn example() -> Result<(), leader_core::LeaderError> {
    /// let elector = RedisElector::quorum(["redis://a", "redis://b", "redis://:secret@c:6380"])
    ///     .command_timeout(Duration::from_millis(200))
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn quorum(urls: impl IntoIterator<Item: Into<String>>) -> RedisQuorumBuilder {
        RedisQuorumBuilder::new(urls)
    }

    /// An elector on the server at `url`, with the defaults of [`RedisElectorBuilder`].
    ///
    /// # Errors
    ///
    /// As [`RedisElectorBuilder::connect`].
    ///
    /// # Cancellation safety
    ///
    /// As [`RedisElectorBuilder::connect`].
    pub async fn connect(url: impl Into<String>) -> Result<Self, LeaderError> {
        Self::builder().url(url).connect().await
    }

    pub(crate) fn new(store: RedisStore, node_id: Option<NodeId>, grace: Option<Duration>) -> Self {
        // Extensions and releases are of no use without the connections, and with them they go on, also when a runtime
        // from which a lease was acquired has ended.
        let runtime = store.runtime().clone();
        let mut builder = StoreElector::builder(store).runtime(runtime);
        if let Some(node_id) = node_id {
            builder = builder.node_id(node_id);
        }
        if let Some(grace) = grace {
            builder = builder.shutdown_grace(grace);
        }
        Self {
            elector: builder.build(),
        }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &RedisStore {
        self.elector.store()
    }
}

impl fmt::Debug for RedisElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisElector")
            .field("elector", &self.elector)
            .field("store", self.store())
            .finish()
    }
}

leader_core::__delegate_elector!(RedisElector, |this| this.elector);
