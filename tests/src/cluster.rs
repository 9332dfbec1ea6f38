//! A cluster of the test's own: three primaries with a replica each.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::sleep;

use crate::resp::Reply;
use crate::server::Server;
use crate::until::{until, until_some};

const PRIMARIES: usize = 3;
const SLOTS: u16 = 16_384;
/// How long the nodes may take to agree on something, on a machine with much else to do.
const LIMIT: Duration = Duration::from_secs(30);
/// After this time of silence a node is taken for dead. A stalled machine must not look like that.
const NODE_TIMEOUT: &str = "2000";

/// Three primaries with a replica each, on the loopback interface. Slots are spread evenly.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use leader_tests::Cluster;
///
/// let cluster = Cluster::start().await;
/// let old = cluster.owner("greeting").await;
/// cluster.migrate("greeting").await;
/// assert_ne!(cluster.owner("greeting").await.port(), old.port());
/// # }
/// ```
pub struct Cluster {
    nodes: Vec<Server>,
    /// The ports of those that do not answer at present.
    down: Mutex<HashSet<u16>>,
}

/// A slot on its way from one node to another.
#[derive(Debug)]
#[must_use = "a migration that is not finished goes on for ever"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: String,
    from: &'a Server,
    to: &'a Server,
}

impl Cluster {
    /// Starts the nodes, and waits until each of them finds the cluster healthy.
    ///
    /// # Panics
    ///
    /// When there is no server binary on this machine, or the nodes do not come together.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// As [`Cluster::start`], with more options for each node, or other values for the usual ones.
    ///
    /// # Panics
    ///
    /// As [`Cluster::start`].
    pub async fn start_with(more: &[(&str, &str)]) -> Self {
        let node = |_| {
            let usual = [
                ("--cluster-node-timeout", NODE_TIMEOUT),
                ("--cluster-replica-validity-factor", "0"),
                // No replica leaves its primary for one that has lost its own.
                ("--cluster-migration-barrier", "10"),
                ("--repl-diskless-sync-delay", "0"),
            ];
            let builder = Server::builder().cluster_node();
            // Of two values the server takes the last.
            let all = usual
                .iter()
                .chain(more)
                .fold(builder, |builder, (option, value)| {
                    builder.arg(option).arg(value)
                });
            all.start()
        };
        let nodes = join_all((0..PRIMARIES * 2).map(node)).await;
        let cluster = Self {
            nodes,
            down: Mutex::default(),
        };
        cluster.join().await;
        cluster.until_healthy().await;
        cluster
    }

    async fn join(&self) {
        let (primaries, replicas) = self.nodes.split_at(PRIMARIES);
        let share = usize::from(SLOTS).div_ceil(PRIMARIES);
        let slots: Vec<String> = (0..SLOTS).map(|slot| slot.to_string()).collect();
        for (at, node) in self.nodes.iter().enumerate() {
            let epoch = (at + 1).to_string();
            told(node, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
        }
        for (node, slots) in primaries.iter().zip(slots.chunks(share)) {
            let mut command = vec!["CLUSTER", "ADDSLOTS"];
            command.extend(slots.iter().map(String::as_str));
            told(node, &command).await;
        }
        // Each meets each: hearsay takes longer.
        for (at, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[..at] {
                let port = other.port().to_string();
                told(node, &["CLUSTER", "MEET", "127.0.0.1", &port]).await;
            }
        }
        for (replica, primary) in replicas.iter().zip(primaries) {
            let id = id(primary).await;
            until("a replica knows its primary", LIMIT, async || {
                let command = ["CLUSTER", "REPLICATE", id.as_str()];
                replica.command(&command).await.error().is_none()
            })
            .await;
        }
    }

    /// Where clients connect: three of the nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let [a, b, c] = [0, 1, 2].map(|at: usize| self.nodes[at].addr());
        format!("redis-cluster://{a}?node={b}&node={c}")
    }

    /// All nodes: three that began as primaries, then the replicas of each in the same order.
    #[must_use]
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Those that answer.
    pub fn up(&self) -> impl Iterator<Item = &Server> {
        let down = self.down().clone();
        self.nodes
            .iter()
            .filter(move |node| !down.contains(&node.port()))
    }

    fn down(&self) -> std::sync::MutexGuard<'_, HashSet<u16>> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The primary that has the slot of `key`, as the first node sees it that answers.
    ///
    /// # Panics
    ///
    /// When nobody has it.
    pub async fn owner(&self, key: &str) -> &Server {
        let seen_by = self.up().next().unwrap_or(&self.nodes[0]);
        let slot = self.slot(key).await;
        let owner = self.owner_of_slot(seen_by, slot).await;
        owner.unwrap_or_else(|| panic!("slot {slot} has no owner"))
    }

    async fn owner_of_slot(&self, seen_by: &Server, slot: i64) -> Option<&Server> {
        let ranges = seen_by.command(&["CLUSTER", "SLOTS"]).await;
        let ranges = ranges.array().iter().map(Reply::array);
        let mut range =
            ranges.filter(|range| (range[0].integer()..=range[1].integer()).contains(&slot));
        let port = range.next()?.get(2)?.array()[1].integer();
        self.nodes
            .iter()
            .find(|node| i64::from(node.port()) == port)
    }

    /// The slot of `key`.
    pub async fn slot(&self, key: &str) -> i64 {
        let up = self.up().next().unwrap_or(&self.nodes[0]);
        up.command(&["CLUSTER", "KEYSLOT", key]).await.integer()
    }

    /// The replica of `primary`, as `primary` sees it.
    ///
    /// # Panics
    ///
    /// When it has none.
    pub async fn replica_of(&self, primary: &Server) -> &Server {
        let info = primary.command(&["INFO", "replication"]).await.text();
        let replica = self
            .nodes
            .iter()
            .find(|node| info.contains(&format!(",port={},", node.port())));
        replica.unwrap_or_else(|| panic!("{} has no replica:\n{info}", primary.addr()))
    }

    /// Kills a node; see [`Server::kill`].
    pub async fn kill(&self, node: &Server) {
        self.down().insert(node.port());
        node.kill().await;
    }

    /// Freezes a node; see [`Server::freeze`].
    pub async fn freeze(&self, node: &Server) {
        self.down().insert(node.port());
        node.freeze().await;
    }

    /// Thaws a node; see [`Server::thaw`].
    pub async fn thaw(&self, node: &Server) {
        node.thaw().await;
        self.down().remove(&node.port());
    }

    /// Waits until all nodes that answer agree that somebody else than `old` has the slot of `key`, and that the cluster
    /// is in order.
    ///
    /// # Panics
    ///
    /// When that takes longer than half a minute.
    pub async fn until_taken_over(&self, key: &str, old: &Server) -> &Server {
        let slot = self.slot(key).await;
        let what = format!("a replica takes over from {}", old.addr());
        until_some(&what, LIMIT, async || {
            let mut owner = None;
            for node in self.up() {
                let seen = self.owner_of_slot(node, slot).await?;
                let agreed = owner.is_none_or(|owner: &Server| owner.port() == seen.port());
                if !agreed || seen.port() == old.port() || !is_ok(node).await {
                    return None;
                }
                owner = Some(seen);
            }
            owner
        })
        .await
    }

    /// A replica takes over from a primary that was killed, without asking anybody (`CLUSTER FAILOVER TAKEOVER`), as an
    /// operator does. What it has not received is lost.
    pub async fn promote(&self, replica: &Server) {
        told(replica, &["CLUSTER", "FAILOVER", "TAKEOVER"]).await;
    }

    /// Starts a node that was killed again, empty, and waits until it follows whoever has taken over from it.
    ///
    /// # Panics
    ///
    /// When that takes longer than half a minute.
    pub async fn restart(&self, node: &Server) {
        node.restart().await;
        self.down().remove(&node.port());
        self.until_healthy().await;
    }

    /// A replica takes over from its primary, in agreement with it (`CLUSTER FAILOVER`).
    pub async fn fail_over(&self, primary: &Server, key: &str) -> &Server {
        let replica = self.replica_of(primary).await;
        let command = ["CLUSTER", "FAILOVER"];
        told(replica, &command).await;
        let again = async {
            loop {
                // Given up by the nodes after five seconds, when the machine stands still in the middle of it.
                sleep(Duration::from_secs(6)).await;
                replica.command(&command).await;
            }
        };
        tokio::select! {
            owner = self.until_taken_over(key, primary) => owner,
            never = again => never,
        }
    }

    /// Waits until all nodes that answer know each other, find every slot served, and replicas are in step.
    ///
    /// # Panics
    ///
    /// When that takes longer than half a minute.
    pub async fn until_healthy(&self) {
        until("the cluster is healthy", LIMIT, async || {
            for node in self.up() {
                let info = node.command(&["INFO", "replication"]).await.text();
                let primary = info.contains("role:master");
                let linked = info.contains(",state=online,") || !primary;
                let in_step = primary || info.contains("master_link_status:up");
                if !linked || !in_step || !is_ok(node).await {
                    return false;
                }
            }
            true
        })
        .await;
    }

    /// Runs a command on each node that answers.
    pub async fn everywhere(&self, command: &[&str]) {
        for node in self.up() {
            told(node, command).await;
        }
    }

    /// How often a command was executed, on all nodes that answer together.
    pub async fn command_calls(&self, command: &str) -> u64 {
        let calls = join_all(self.up().map(|node| node.command_calls(command))).await;
        calls.into_iter().sum()
    }

    /// Whether messages can stay at the nodes of one slot, as from Redis 7 on.
    pub async fn has_sharded_messages(&self) -> bool {
        let node = self.up().next().unwrap_or(&self.nodes[0]);
        let known = node.command(&["PUBSUB", "SHARDCHANNELS"]).await;
        known.error().is_none()
    }

    /// Starts counting anew, on all nodes that answer.
    pub async fn reset_stats(&self) {
        join_all(self.up().map(Server::reset_stats)).await;
    }

    /// Moves the slot of `key`, with all that is in it, to another primary.
    pub async fn migrate(&self, key: &str) -> &Server {
        let migration = self.begin_migration(key).await;
        migration.move_keys().await;
        migration.finish().await
    }

    /// Opens the slot of `key` for its migration to another primary: what is not there yet is asked for at the new place.
    ///
    /// # Panics
    ///
    /// When a node refuses.
    pub async fn begin_migration(&self, key: &str) -> Migration<'_> {
        let from = self.owner(key).await;
        let mut to = None;
        for node in self.up().filter(|node| node.port() != from.port()) {
            let info = node.command(&["INFO", "replication"]).await.text();
            if info.contains("role:master") {
                to = Some(node);
            }
        }
        let to = to.unwrap_or_else(|| panic!("there is no other primary"));
        let slot = self.slot(key).await.to_string();
        let (old, new) = (id(from).await, id(to).await);
        told(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &old]).await;
        told(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &new]).await;
        Migration {
            cluster: self,
            slot,
            from,
            to,
        }
    }
}

impl<'a> Migration<'a> {
    /// Moves the keys that are in the slot now.
    ///
    /// # Panics
    ///
    /// When a node refuses.
    pub async fn move_keys(&self) {
        let port = self.to.port().to_string();
        loop {
            let command = ["CLUSTER", "GETKEYSINSLOT", self.slot.as_str(), "100"];
            let keys = self.from.command(&command).await;
            let keys: Vec<String> = keys.array().iter().map(Reply::text).collect();
            if keys.is_empty() {
                return;
            }
            let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            command.extend(keys.iter().map(String::as_str));
            told(self.from, &command).await;
        }
    }

    /// Gives the slot to the new node, and waits until every node knows.
    ///
    /// # Panics
    ///
    /// When a node refuses.
    pub async fn finish(self) -> &'a Server {
        let id = id(self.to).await;
        let command = ["CLUSTER", "SETSLOT", self.slot.as_str(), "NODE", &id];
        // The new owner first: it claims the slot from then on.
        told(self.to, &command).await;
        told(self.from, &command).await;
        let slot = self.slot.parse().unwrap_or_default();
        until("every node knows the new owner", LIMIT, async || {
            for node in self.cluster.up() {
                let owner = self.cluster.owner_of_slot(node, slot).await;
                if owner.is_none_or(|owner| owner.port() != self.to.port()) {
                    return false;
                }
            }
            true
        })
        .await;
        self.to
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

async fn told(node: &Server, command: &[&str]) {
    if let Some(error) = node.command(command).await.error() {
        panic!(
            "{} refuses {}: {error}",
            node.addr(),
            command[..2].join(" ")
        );
    }
}

async fn id(node: &Server) -> String {
    node.command(&["CLUSTER", "MYID"]).await.text()
}

async fn is_ok(node: &Server) -> bool {
    let info = node.command(&["CLUSTER", "INFO"]).await.text();
    ["cluster_state:ok", "cluster_slots_ok:16384"]
        .iter()
        .chain(&["cluster_known_nodes:6"])
        .all(|line| info.lines().any(|l| l == *line))
}
