//! [`Site`]: the store of a bench, made of one node or of several, which can be stopped and can lose their memory.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::join_all;
use leader_core::store::LeaseStore;
use leader_core::{
    Elector, LeaderError, LocalStore, LockName, Quorum, StoreElector, StoreElectorBuilder,
};
use leader_redis::RedisElector;
use tokio::sync::watch;

use crate::erase::erase;
use crate::line::Line;
use crate::reach::{Link, Reach, Wire};

/// Keys of the workbench stand apart from those of services on the same server.
pub(crate) const KEY_PREFIX: &str = "leader-workbench";
const COMMAND_TIMEOUT: Duration = Duration::from_millis(500);

/// Where the workbench keeps its leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the memory of this process: that many nodes, of which a majority decides when there is more than one.
    Memory(usize),
    /// On Redis or Valkey servers, of which a majority decides when there is more than one.
    Redis(Vec<String>),
    /// On one that has to have its grants on a replica before they count.
    Acknowledged(String),
}

impl Place {
    /// Whether the library takes these servers, of which none is asked.
    ///
    /// # Errors
    ///
    /// A sentence on the first URL that it does not take, or on a server that is there twice.
    pub fn check(&self) -> Result<(), String> {
        let urls = match self {
            Self::Memory(_) => return Ok(()),
            Self::Redis(urls) => &urls[..],
            Self::Acknowledged(url) => std::slice::from_ref(url),
        };
        for (number, url) in urls.iter().enumerate() {
            if let Some(reason) = refusal(RedisElector::builder().url(url).connect_store()) {
                return Err(match urls.len() {
                    1 => reason,
                    _ => format!("server {}: {reason}", number + 1),
                });
            }
        }
        match refusal(RedisElector::quorum(urls).connect_store()) {
            Some(reason) if urls.len() > 1 => Err(reason),
            _ => Ok(()),
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Memory(1) => "memory",
            Self::Memory(_) => "memory_quorum",
            Self::Redis(urls) if urls.len() == 1 => "redis",
            Self::Redis(_) => "redis_quorum",
            Self::Acknowledged(_) => "redis_acknowledged",
        }
    }
}

/// What the library has against the options of an elector: where there is no runtime it goes no further than to read them.
fn refusal<T>(connecting: impl Future<Output = Result<T, LeaderError>> + Send) -> Option<String> {
    let checked = || match connecting.now_or_never()? {
        Err(LeaderError::InvalidOptions { reason, .. }) => Some(reason),
        _ => None,
    };
    std::thread::scope(|scope| scope.spawn(checked).join().unwrap_or_default())
}

/// Whether a node answers, and how often it has lost its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Power {
    pub(crate) stopped: bool,
    pub(crate) memories_lost: u32,
}

/// One node of the store.
#[derive(Debug)]
pub(crate) struct Node {
    ground: Ground,
    pub(crate) power: watch::Sender<Power>,
}

#[derive(Debug)]
enum Ground {
    Memory(Mutex<LocalStore>),
    Redis { url: String, acknowledged: bool },
}

impl Node {
    fn new(ground: Ground) -> Self {
        Self {
            ground,
            power: watch::Sender::new(Power::default()),
        }
    }

    fn in_memory() -> Self {
        Self::new(Ground::Memory(Mutex::new(fresh())))
    }

    fn on_redis(url: &str, acknowledged: bool) -> Self {
        let url = url.to_owned();
        Self::new(Ground::Redis { url, acknowledged })
    }

    /// A wire to this node. A server is connected to from the runtime of the caller, and with it the wire ends.
    fn wire(&self) -> Wire {
        let (url, acknowledged) = match &self.ground {
            Ground::Memory(_) => return Wire::Memory,
            Ground::Redis { url, acknowledged } => (url, *acknowledged),
        };
        let builder = RedisElector::builder()
            .url(url)
            .key_prefix(KEY_PREFIX)
            .command_timeout(COMMAND_TIMEOUT);
        let builder = if acknowledged {
            builder.replica_ack(1, Duration::from_millis(200))
        } else {
            builder
        };
        Wire::Redis(Line::to(builder, COMMAND_TIMEOUT))
    }

    /// The store in memory, as it is now.
    pub(crate) fn memory(&self) -> LocalStore {
        match &self.ground {
            Ground::Memory(store) => store.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Ground::Redis { .. } => fresh(),
        }
    }

    /// Loses its records and its numbers, as a server that restarts and had nothing on disk; or says why it did not.
    pub(crate) async fn forget(&self, name: &LockName) -> Result<(), String> {
        match &self.ground {
            Ground::Memory(store) => {
                *store.lock().unwrap_or_else(PoisonError::into_inner) = fresh();
            }
            Ground::Redis { url, .. } => erase(url, name).await?,
        }
        self.power.send_modify(|power| power.memories_lost += 1);
        Ok(())
    }
}

/// An empty store. Its time is the workbench's, so that its fencing tokens are short enough to be compared by eye, and
/// are greater than those of a store whose memory was lost before.
fn fresh() -> LocalStore {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    LocalStore::starting_at(BEGAN.elapsed())
}

/// All nodes of the store.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) place: Place,
    pub(crate) nodes: Vec<Arc<Node>>,
}

impl Site {
    pub(crate) fn new(place: Place) -> Self {
        let nodes = match &place {
            Place::Memory(nodes) => (0..*nodes).map(|_| Node::in_memory()).collect(),
            Place::Redis(urls) => urls.iter().map(|url| Node::on_redis(url, false)).collect(),
            Place::Acknowledged(url) => vec![Node::on_redis(url, true)],
        };
        let nodes: Vec<Node> = nodes;
        Self {
            place,
            nodes: nodes.into_iter().map(Arc::new).collect(),
        }
    }

    /// All nodes forget at once, or those of these numbers: how it went with each.
    pub(crate) async fn forget(
        &self,
        nodes: Range<usize>,
        name: &LockName,
    ) -> Vec<(usize, Result<(), String>)> {
        let forget = |number: usize| async move { (number, self.nodes[number].forget(name).await) };
        join_all(nodes.map(forget)).await
    }

    /// What node `number` is called in a sentence.
    pub(crate) fn called(&self, number: usize) -> String {
        match self.nodes.len() {
            1 => "the store".to_owned(),
            _ => format!("node {}", number + 1),
        }
    }

    /// An elector whose way to the store is `link`. Its connections live on the runtime of the caller.
    pub(crate) async fn elector(
        &self,
        node_id: &str,
        link: &watch::Sender<Link>,
    ) -> Result<Arc<dyn Elector>, LeaderError> {
        let wires: Vec<Wire> = self.nodes.iter().map(|node| node.wire()).collect();
        let opened = join_all(wires.iter().map(Wire::is_open)).await;
        let mut failed = opened.into_iter().filter_map(Result::err);
        // A minority may be missing, and is tried again while the others decide.
        if let Some(error) = failed.nth((self.nodes.len() - 1) / 2) {
            return Err(error);
        }
        let ways = self.nodes.iter().zip(wires);
        let ways = ways.map(|(node, wire)| Reach::new(node.clone(), wire, link.subscribe()));
        let ways: Vec<Reach> = ways.collect();
        Ok(match <[Reach; 1]>::try_from(ways) {
            Ok([way]) => finished(StoreElector::builder(way), node_id),
            Err(ways) => finished(StoreElector::builder(Quorum::new(ways)?), node_id),
        })
    }
}

fn finished<S: LeaseStore>(builder: StoreElectorBuilder<S>, node_id: &str) -> Arc<dyn Elector> {
    let builder = builder
        .node_id(node_id)
        .shutdown_grace(Duration::from_secs(2));
    Arc::new(builder.build())
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place.kind())
    }
}
