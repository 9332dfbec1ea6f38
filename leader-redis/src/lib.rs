//! Leader election and leases on Redis and Valkey, for Tokio services.
//!
//! [`RedisElector`] is an elector of `leader-core` whose store is one Redis (6.2 or later) or Valkey server: what it
//! means to stand, to lead, to lose and to let go is said there. Here is only what is the server's.
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
//! # What a user of the server must be allowed
//!
//! With access control lists: `~leader:* &leader:*` (the prefix of keys and channels), and the commands `evalsha eval
//! hgetall hmget hget hset hdel set exists pttl pexpire time publish subscribe unsubscribe ping hello client|id info`;
//! with acknowledgement by replicas also `wait`, or `waitaof` where it is on disk. Values of a [`FencedKey`] need their
//! own keys and `persist` as well.
//!
//! # What it needs of the client
//!
//! The connection is [`fred`]'s, re-exported in the version that a shared client must have. What fred writes to the `log`
//! facade at the levels `debug` and `trace` has commands in it, but not their arguments, unless its feature
//! `network-logs` is on: then lease tokens are logged too.

mod acks;
mod builder;
mod client;
mod connect;
mod elector;
mod fault;
mod fenced;
mod keys;
mod quorum;
mod reply;
mod runtime;
mod script;
mod store;
mod url;
mod watch;

pub use builder::RedisElectorBuilder;
pub use elector::RedisElector;
pub use fenced::{FencedKey, FencedValue};
pub use fred;
pub use quorum::{RedisQuorumBuilder, RedisQuorumElector};
pub use store::RedisStore;
