//! [`LocalElector`]: the engine on a store in this process. The embedded default, and a test double whose leases
//! really expire and which obeys `tokio::time::pause`.

mod record;
mod store;

use std::fmt;

pub use self::store::LocalStore;
use crate::elector::delegate_elector;
use crate::engine::StoreElector;
use crate::node::NodeId;

/// An elector whose store is memory of this process: no server, the same meaning.
///
/// It elects among the tasks of one process, and it is the elector to test a service with: leases expire by Tokio's
/// clock, so under [`tokio::time::pause`](https://docs.rs/tokio/latest/tokio/time/fn.pause.html) a test of
/// an hour-long lease takes no time.
///
/// A clone is the same candidate; [`node`](Self::node) makes another candidate on the same store.
///
/// ```
/// use leader_core::{ElectorExt, LeaseOptions, LocalElector};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leader_core::LeaderError> {
/// let a = LocalElector::new();
/// let b = a.node("node-b");
/// let options = LeaseOptions::builder().wait(std::time::Duration::ZERO).build()?;
///
/// let lease = a.try_acquire("invoice-close", &options).await?.expect("nobody else stands");
/// assert!(b.try_acquire("invoice-close", &options).await?.is_none());
/// lease.release().await?;
/// assert!(b.try_acquire("invoice-close", &options).await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LocalElector {
    elector: StoreElector<LocalStore>,
}

impl LocalElector {
    /// A candidate on a store of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::on(LocalStore::new(), NodeId::random())
    }

    /// Another candidate on the same store.
    #[must_use]
    pub fn node(&self, node_id: impl Into<NodeId>) -> Self {
        Self::on(self.elector.store().clone(), node_id.into())
    }

    fn on(store: LocalStore, node_id: NodeId) -> Self {
        Self {
            elector: StoreElector::builder(store).node_id(node_id).build(),
        }
    }
}

impl Default for LocalElector {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalElector")
            .field("elector", &self.elector)
            .finish()
    }
}

delegate_elector!(LocalElector, |this| this.elector);
