//! Leader election and leases on Redis and Valkey, for Tokio services.
//!
//! [`RedisElector`] is an elector of `leader-core` whose store is Redis (6.2 or later) or Valkey: one server, the
//! primary behind sentinels, or a cluster. What it means to stand, to lead, to lose and to let go is said there. Here is
//! only what is the server's.
//!
//! ```no_run
//! use leader_core::{ElectorExt, LeaseOptions};
//! use leader_redis::RedisElector;
//!
//! # async fn close_invoices() {}
//! # async fn example() -> Result<(), leader_core::LeaderError> {
//! let elector = RedisElector::connect("redis://127.0.0.1:6379").await?;
//! let options = LeaseOptions::builder().auto_extend(true).build()?;
//! elector.run_if_leader("invoice-close", &options, |_lease| close_invoices()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it costs
//!
//! An uncontended run is two commands and two round trips: one script claims, one releases and wakes waiters. Leases
//! that are due together are extended by one script. A waiter asks once, then listens on a channel.
//!
//! # Sentinel and Cluster
//!
//! | URL | what it is |
//! |---|---|
//! | `redis-sentinel://[[user]:password@]host[:port][/database]?sentinelServiceName=name&node=host:port&node=..` | the primary that sentinels call `name`; the hosts are theirs, the login is the primary's. `sentinelUsername=` and `sentinelPassword=` are for the sentinels themselves |
//! | `redis-cluster://[[user]:password@]host[:port]?node=host:port&node=..` | a cluster, some of whose nodes are named |
//!
//! `rediss-` is TLS, `valkey-` and `valkeys-` are the same. [`RedisElectorBuilder::client`] takes clients of both kinds.
//! Everything is asked of primaries; replicas are not read from.
//!
//! A failover takes its time. Meanwhile commands fail as unreachable, timed out, read-only or not ready: waiters go on
//! until their `wait` is over, extensions until the lease's own deadline. So a lease that shall outlive a failover must be
//! longer than that takes, and its grant must have reached the replica that is promoted: replication is asynchronous. If
//! it had not, the lease is lost at its next extension, and another candidate may have been elected before that; its
//! fencing token is greater ([`FencingToken`](leader_core::FencingToken) says of which clocks that is assumed).
//! [`replica_ack`](RedisElectorBuilder::replica_ack) is for those who cannot have that, on a primary and behind Sentinel.
//!
//! On a cluster each name lives in one slot, and each node has a connection of its own: one that is down costs no lease
//! on the others. A batch of extensions is one script call for each slot. Redirections are followed within a command's
//! time limit. A slot may be moved while its names are led, and while somebody waits for them.
//!
//! Releases are told by sharded messages (Redis 7, Valkey), which stay with the slot. When a slot moves or a primary is
//! replaced, what was told in between is missed. Waiters subscribe anew as soon as this process learns of it, and look
//! for it every 2 s (every four command timeouts, from 1 s to 2 s, but never more often than every three), then ask
//! again. A cluster of Redis 6.2 has only messages that every node passes on to every other: there a release is told
//! while somebody waits, which a key of the channel's name says, and otherwise not.
//!
//! Behind Sentinel, a sentinel that takes connections and never answers is passed over when an elector connects. When
//! the connection is lost later, fred asks the sentinels in their order and waits in vain for such a one, as long as it is
//! the first.
//! A shared client of a cluster has fred's own way there: while one node is out of reach, commands to the others fail too.
//!
//! # What a user of the server must be allowed
//!
//! The README has the line of an access control list that suffices, with nothing in it that is not needed. What a user
//! lacks is named in errors of the kind `Denied`, or in a warning where only waiters are late for it.
//!
//! # What it needs of the client
//!
//! The connection is [`fred`]'s, re-exported in the version that a shared client must have. What fred writes to the `log`
//! facade at the levels `debug` and `trace` has commands in it, but not their arguments, unless its feature
//! `network-logs` is on: then lease tokens are logged too.

mod acks;
mod builder;
mod client;
mod clock;
mod connect;
mod elector;
mod fault;
mod fenced;
// What must hold of any input: shown by the property tests, and by `cargo fuzz`, which alone sees it from outside.
#[cfg(test)]
#[allow(unreachable_pub, reason = "it is public to the fuzz targets")]
mod fuzzing;
#[cfg(all(fuzzing, not(test)))]
#[doc(hidden)]
#[allow(missing_docs, reason = "not public")]
pub mod fuzzing;
mod keys;
mod observe;
mod protocol;
mod quorum;
mod reply;
mod runtime;
mod script;
mod store;
#[cfg(feature = "__tls")]
mod trust;
mod url;
mod watch;

pub use builder::RedisElectorBuilder;
pub use elector::RedisElector;
pub use fenced::{FencedKey, FencedValue};
pub use fred;
pub use protocol::Protocol;
pub use quorum::{RedisQuorumBuilder, RedisQuorumElector};
pub use store::RedisStore;
