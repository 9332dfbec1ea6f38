//! [`Cluster`]: a connection to each node of a cluster, and the way to the one that has a key.
//!
//! Each node has a connection of its own, as if it were the only server. fred's own client of clusters has one task for
//! all nodes, which serves none of them while one is being connected to: a primary that dies would cost the leases on
//! all others.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use leader_core::BackendKind;
use tokio::sync::{OnceCell, mpsc};

use super::topology::Topology;
use super::{
    Call, Connection, Endpoint, Incident, Incidents, Node, Purpose, Terms, Visit, slot_of,
};
use crate::fault::{Failure, Redirect};
use crate::reply::Reply;
use crate::script::Script;

/// A slot that is being moved can send a command on twice; more than that is a cluster that is not in order.
const MOST_REDIRECTIONS: usize = 5;

/// The connections to the nodes of a cluster, each made when it is first needed.
#[derive(Clone)]
pub(crate) struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    endpoint: Endpoint,
    purpose: Purpose,
    terms: Terms,
    topology: Arc<Topology>,
    peers: Mutex<HashMap<Node, Peer>>,
    /// When the map was last asked for. Locked while it is being asked for.
    asked: tokio::sync::Mutex<Option<Instant>>,
    /// Whether channels live in slots, as they do from Redis 7 on.
    sharded: AtomicBool,
    closed: AtomicBool,
    told: mpsc::UnboundedSender<Incident>,
    /// Taken by whoever listens.
    heard: Mutex<Option<mpsc::UnboundedReceiver<Incident>>>,
}

/// A node, connected to when it is first needed.
type Peer = Arc<OnceCell<Arc<Connection>>>;

/// What is asked of the owner of a slot.
#[derive(Clone, Copy)]
enum Ask<'a> {
    Run(&'static Script, &'a Call),
    Field(&'a str, &'a str),
    Subscribe(&'a str),
    /// As messages come that all nodes pass on.
    Listen(&'a str),
    /// See `Cluster::subscribe`.
    Mark(&'a str),
    /// See `Cluster::renew`.
    Look(&'a str),
}

impl Ask<'_> {
    async fn put(
        self,
        connection: &Connection,
        visit: Visit,
        limit: Duration,
    ) -> Result<Reply, Failure> {
        match self {
            Self::Run(script, call) => connection.run_as(visit, script, call, limit).await,
            Self::Field(key, field) => connection.field_as(visit, key, field, limit).await,
            Self::Subscribe(channel) => connection.subscribe_shard(channel, limit).await,
            Self::Listen(channel) => {
                let channels = vec![channel.to_owned()];
                connection.resubscribe(channels).await.map(|()| Reply::Nil)
            }
            Self::Look(channel) => connection.exists(visit, channel, limit).await,
            Self::Mark(channel) => connection.mark(visit, channel, limit).await,
        }
    }
}

impl Cluster {
    /// Finds the nodes, by asking those that the endpoint names, and connects to all that have slots. It is over within
    /// three limits.
    pub(super) async fn open(
        endpoint: &Endpoint,
        purpose: Purpose,
        terms: &Terms,
    ) -> Result<Self, Failure> {
        let cluster = Self::on(Arc::new(Topology::new()), endpoint, purpose, terms);
        let mut asked: FuturesUnordered<_> = endpoint
            .hosts()
            .into_iter()
            .map(|node| cluster.ask_for_map(node))
            .collect();
        let mut last = Failure::NotSent(None);
        loop {
            match asked.next().await {
                Some(Ok(())) => break,
                Some(Err(failure)) => last = failure,
                None => return Err(last),
            }
        }
        drop(asked);
        cluster.retire();
        // What cannot be reached now may be later, and is nobody's concern until it is needed.
        let nodes = cluster.inner.topology.primaries();
        let connect = nodes.iter().map(|node| cluster.inner.connect(node));
        let _ = tokio::time::timeout(terms.limit, join_all(connect)).await;
        Ok(cluster)
    }

    /// The nodes of a cluster that is known already.
    pub(super) fn on(
        topology: Arc<Topology>,
        endpoint: &Endpoint,
        purpose: Purpose,
        terms: &Terms,
    ) -> Self {
        let (told, heard) = mpsc::unbounded_channel();
        Self {
            inner: Arc::new(Inner {
                endpoint: endpoint.clone(),
                purpose,
                terms: terms.clone(),
                topology,
                peers: Mutex::default(),
                asked: tokio::sync::Mutex::default(),
                sharded: AtomicBool::new(true),
                closed: AtomicBool::new(false),
                told,
                heard: Mutex::new(Some(heard)),
            }),
        }
    }

    pub(super) fn topology(&self) -> Arc<Topology> {
        self.inner.topology.clone()
    }

    pub(super) async fn run(&self, script: &'static Script, call: &Call) -> Result<Reply, Failure> {
        self.ask(slot_of(call.key()), Ask::Run(script, call)).await
    }

    pub(super) async fn field(&self, key: &str, field: &str) -> Result<Reply, Failure> {
        self.ask(slot_of(key), Ask::Field(key, field)).await
    }

    /// Subscribes to a channel at the node that has its slot. Again is as good as once.
    ///
    /// Servers before Redis 7 have only messages that every node passes on to every other. There, a release tells of
    /// itself only while somebody waits, which a key of the channel's name says.
    pub(super) async fn subscribe(&self, channel: &str) -> Result<(), Failure> {
        let (inner, slot) = (&self.inner, slot_of(channel));
        if inner.sharded.load(Ordering::Relaxed) {
            match self.ask(slot, Ask::Subscribe(channel)).await {
                Err(failure) if failure.is_unknown_command() => {
                    inner.sharded.store(false, Ordering::Relaxed);
                }
                answer => return answer.map(drop),
            }
        }
        self.ask(slot, Ask::Listen(channel)).await?;
        self.ask(slot, Ask::Mark(channel)).await.map(drop)
    }

    /// Subscribes, and sees to it that the node has the slot: a replica, as which a former primary may have come back, lets
    /// clients subscribe as well, and does not say that it has dropped them meanwhile.
    pub(super) async fn renew(&self, channel: &str) -> Result<(), Failure> {
        let look = self.ask(slot_of(channel), Ask::Look(channel));
        let (subscribed, looked) = tokio::join!(self.subscribe(channel), look);
        subscribed.and(looked.map(drop))
    }

    /// Ends a subscription, where there is a connection.
    pub(super) async fn unsubscribe(&self, channel: &str) {
        let Some(node) = self.inner.topology.owner(slot_of(channel)) else {
            return;
        };
        let peer = self.inner.peers().get(&node).cloned();
        let Some(connection) = peer.as_ref().and_then(|peer| peer.get()) else {
            return;
        };
        if self.inner.sharded.load(Ordering::Relaxed) {
            connection.unsubscribe_shard(channel).await;
        } else {
            connection.unsubscribe(channel).await;
        }
    }

    /// What happens to the connections to all nodes. Only the first caller is told.
    pub(super) fn incidents(&self) -> Incidents {
        let mut heard = self
            .inner
            .heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let told = heard.take().unwrap_or_else(|| mpsc::unbounded_channel().1);
        Incidents::of_many(told, self.inner.topology.changes())
    }

    /// Whether some node answers.
    pub(super) async fn ping(&self) -> Result<(), Failure> {
        let nodes = self.inner.topology.primaries();
        let mut pings: FuturesUnordered<_> = nodes
            .iter()
            .map(async |node| self.inner.connect(node).await?.ping().await)
            .collect();
        let mut last = Failure::NotSent(None);
        while let Some(answer) = pings.next().await {
            match answer {
                Ok(()) => return Ok(()),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// Asks the node that has `slot`, and whom that node names, until one answers.
    async fn ask(&self, slot: u16, ask: Ask<'_>) -> Result<Reply, Failure> {
        let inner = &self.inner;
        let (asked, limit) = (Instant::now(), inner.terms.limit);
        let Some(mut node) = inner.topology.owner(slot) else {
            self.look_again(None);
            let words = "CLUSTERDOWN no node is known to have the slot";
            return Err(Failure::Refused(words.to_owned()));
        };
        let mut visit = Visit::Owner;
        let mut redirections = 0;
        loop {
            let rest = || limit.saturating_sub(asked.elapsed());
            let answer = match tokio::time::timeout(rest(), inner.connect(&node)).await {
                Ok(Ok(connection)) => ask.put(&connection, visit, rest()).await,
                Ok(Err(failure)) => Err(Failure::NotSent(Some(Box::new(failure)))),
                Err(_) => Err(Failure::NotSent(Some(Box::new(Failure::NoAnswer(
                    inner.terms.stated,
                ))))),
            };
            let failure = match answer {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            redirections += 1;
            match failure.redirect() {
                Some(_) if redirections > MOST_REDIRECTIONS => {
                    let words = "TRYAGAIN the nodes of the cluster disagree on who has the slot";
                    return Err(Failure::Refused(words.to_owned()));
                }
                Some(Redirect::Moved { slot, host, port }) => {
                    (node, visit) = (node.beside(host, port), Visit::Owner);
                    inner.topology.moved(slot, node.clone());
                    self.look_again(None);
                }
                Some(Redirect::Ask { host, port }) => {
                    (node, visit) = (node.beside(host, port), Visit::Asking);
                }
                None => {
                    let gone = [BackendKind::Unreachable, BackendKind::TimedOut];
                    if gone.contains(&failure.kind()) || failure.is_from_a_replica() {
                        self.look_again(Some(node));
                    }
                    return Err(failure);
                }
            }
        }
    }

    /// Asks for the map anew, in the background, unless that is under way or has just been done. `silent` is asked last.
    fn look_again(&self, silent: Option<Node>) {
        let cluster = self.clone();
        self.inner.terms.lodging.spawn(async move {
            let Ok(mut asked) = cluster.inner.asked.try_lock() else {
                return;
            };
            // Who asks in vain will ask again.
            if asked.is_some_and(|asked| asked.elapsed() < SHORTEST_LOOK) {
                return;
            }
            cluster.read_map(silent.as_ref()).await;
            *asked = Some(Instant::now());
        });
    }

    async fn read_map(&self, silent: Option<&Node>) {
        let inner = &self.inner;
        let connected = |node: &Node| {
            let peers = inner.peers();
            peers.get(node).is_some_and(|peer| peer.initialized())
        };
        let mut nodes: Vec<Node> = inner.topology.primaries().into_iter().collect();
        nodes.extend(inner.endpoint.hosts());
        nodes.sort_by_key(|node| (silent == Some(node), !connected(node)));
        for node in nodes {
            if inner.closed.load(Ordering::Acquire) {
                return;
            }
            if self.ask_for_map(node).await.is_ok() {
                self.retire();
                return;
            }
        }
    }

    async fn ask_for_map(&self, node: Node) -> Result<(), Failure> {
        let answer = self.inner.connect(&node).await?.slots().await?;
        let read = self.inner.topology.read(&answer, &node);
        read.ok_or_else(|| Failure::Refused("CLUSTERDOWN no slots are served yet".to_owned()))
    }

    /// Ends the connections to nodes that have no slots.
    fn retire(&self) {
        let primaries = self.inner.topology.primaries();
        let mut retired = Vec::new();
        self.inner.peers().retain(|node, peer| {
            let needed = primaries.contains(node);
            if !needed {
                retired.push(peer.clone());
            }
            needed
        });
        for peer in retired {
            // Whatever was subscribed there is not any more.
            let _ = self.inner.told.send(Incident::Reconnected);
            self.inner.terms.lodging.spawn(async move {
                if let Some(connection) = peer.get() {
                    connection.close().await;
                }
            });
        }
    }

    pub(super) async fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        let peers: Vec<Peer> = self.inner.peers().drain().map(|(_, peer)| peer).collect();
        let connections = peers.iter().filter_map(|peer| peer.get());
        join_all(connections.map(|connection| connection.close())).await;
    }
}

/// The map is asked for at most so often.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

impl Inner {
    fn peers(&self) -> MutexGuard<'_, HashMap<Node, Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection to a node, made now if need be.
    async fn connect(&self, node: &Node) -> Result<Arc<Connection>, Failure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Failure::NotSent(None));
        }
        let peer = self.peers().entry(node.clone()).or_default().clone();
        let connect = async || {
            let endpoint = self.endpoint.at(node);
            let connection = Connection::open(&endpoint, self.purpose, &self.terms).await?;
            if self.purpose == Purpose::Messages {
                let passing_on = pass_on(connection.incidents(), self.told.clone());
                self.terms.lodging.spawn(passing_on);
            }
            Ok(Arc::new(connection))
        };
        peer.get_or_try_init(connect).await.cloned()
    }
}

/// Passes on what happens to one connection, until its end.
async fn pass_on(mut incidents: Incidents, told: mpsc::UnboundedSender<Incident>) {
    loop {
        match incidents.next().await {
            Incident::Closed => return,
            incident => {
                if told.send(incident).is_err() {
                    return;
                }
            }
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("nodes", &self.inner.peers().len())
            .finish_non_exhaustive()
    }
}
