//! What the scenarios stand on: private servers, a network that misbehaves on command, second processes, and waiting
//! for a condition instead of sleeping.
//!
//! - [`Server`]: a Redis or Valkey of the test's own, that can be killed, restarted, frozen and asked what it executed.
//! - [`Cluster`]: three primaries with a replica each, whose slots can be moved and whose nodes can be killed.
//! - [`Sentinels`]: a primary, its replicas, and the three sentinels that replace it when it is gone.
//! - [`Pair`]: a primary that fails over to its replica, and the address that moves with it.
//! - [`Postgres`]: a database of the test's own, as the resource that leaders write to.
//! - [`Proxy`]: a TCP connection between client and server that can be cut, swallowed, delayed, or robbed of one reply.
//! - [`until`] and [`until_some`]: poll a condition, and fail with a message when it does not come true in time.
//! - `Authority` and `Certificate`, with the feature `tls`: what a server with TLS needs.
//! - [`elector_at`]: how an elector on a server begins, in the protocol that is being tested.
//! - [`World`] and [`on_every_store!`]: one story, played on each store.
//! - [`Worker`]: a second process that speaks in lines and can be frozen and killed.
//!
//! The harness panics where a test cannot go on, with a text that says what to do about it.

#[cfg(feature = "tls")]
mod certificates;
mod cluster;
mod elector;
mod pair;
mod postgres;
mod process;
mod proxy;
pub mod resp;
mod sentinels;
mod server;
mod signal;
mod suite;
mod until;
mod world;

#[cfg(feature = "tls")]
pub use certificates::{Authority, Certificate};
pub use cluster::{Cluster, Migration};
pub use elector::{connect_in_time, elector_at, quorum_at};
pub use pair::Pair;
pub use postgres::Postgres;
pub use process::Worker;
pub use proxy::{CapturedRequest, LostReply, Proxy};
pub use resp::Reply;
pub use sentinels::Sentinels;
pub use server::{Server, ServerBuilder};
pub use suite::every_promise_is_kept;
pub use until::{until, until_some};
pub use world::{Local, Redis, World, at_once, is_skipped, lead, ms, options, patient, waiting};
