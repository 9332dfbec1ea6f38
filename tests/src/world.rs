//! The stores on which a scenario is played: one story, told on each of them.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use leader_core::{ElectorExt, Lease, LeaseOptions, LeaseOptionsBuilder, LocalElector};
use leader_redis::RedisElector;

use crate::elector::elector_at;
use crate::server::Server;

/// A store of the test's own, and candidates on it.
pub trait World: Send + Sync + Sized + 'static {
    /// How much longer than on the local store, whose time is exact, leases live where they have to be extended in real
    /// time, on a machine that may stall.
    const PACE: u32;

    /// A candidate on this store.
    type Elector: leader_core::Elector + Clone + Debug + 'static;

    /// A fresh, empty store.
    fn start() -> impl Future<Output = Self>;

    /// Another candidate.
    fn candidate(&self, node_id: &str) -> impl Future<Output = Self::Elector>;
}

/// The store in this process, whose time is Tokio's.
#[derive(Debug)]
pub struct Local(LocalElector);

impl World for Local {
    const PACE: u32 = 1;

    type Elector = LocalElector;

    async fn start() -> Self {
        Self(LocalElector::new())
    }

    async fn candidate(&self, node_id: &str) -> LocalElector {
        self.0.node(node_id)
    }
}

/// A Redis server of the test's own; each candidate has its own connections.
#[derive(Debug)]
pub struct Redis(Server);

impl Redis {
    /// The server, to be killed, say.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.0
    }
}

impl World for Redis {
    const PACE: u32 = 3;

    type Elector = RedisElector;

    async fn start() -> Self {
        Self(Server::start().await)
    }

    async fn candidate(&self, node_id: &str) -> RedisElector {
        let builder = elector_at(self.0.url())
            .node_id(node_id)
            // A shared machine stalls for longer than a server does.
            .command_timeout(Duration::from_secs(5));
        match builder.connect().await {
            Ok(elector) => elector,
            Err(error) => panic!("no candidate on {}: {error}", self.0.addr()),
        }
    }
}

/// Plays each scenario, an `async fn name<W: World>(world: W)`, on every store: on the local one under paused time, on
/// a real Redis in real time.
#[macro_export]
macro_rules! on_every_store {
    ($($scenario:ident),+ $(,)?) => {
        mod local {
            $(
                #[tokio::test(start_paused = true)]
                async fn $scenario() {
                    super::$scenario(<$crate::Local as $crate::World>::start().await).await;
                }
            )+
        }

        mod redis {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    super::$scenario(<$crate::Redis as $crate::World>::start().await).await;
                }
            )+
        }
    };
}

/// Milliseconds.
#[must_use]
pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Options with this wait and this lease; everything else is the default.
pub fn waiting(wait: Duration, lease: Duration) -> LeaseOptionsBuilder {
    LeaseOptions::builder().wait(wait).lease(lease)
}

/// Options of a candidate that asks once, for a lease that outlives any test.
///
/// # Panics
///
/// Never: the options are valid.
#[must_use]
pub fn at_once() -> LeaseOptions {
    options(waiting(Duration::ZERO, Duration::from_secs(60)))
}

/// Options of a candidate that is patient, for a lease that outlives any test: when it is elected, that was not
/// because a lease ran out.
#[must_use]
pub fn patient() -> LeaseOptions {
    options(waiting(Duration::from_secs(20), Duration::from_secs(60)))
}

/// Builds options that the test knows to be valid.
///
/// # Panics
///
/// When they are not.
#[must_use]
#[track_caller]
pub fn options(builder: LeaseOptionsBuilder) -> LeaseOptions {
    match builder.build() {
        Ok(options) => options,
        Err(error) => panic!("the test's own options are wrong: {error}"),
    }
}

/// Acquires, and fails the test when somebody else leads.
///
/// # Panics
///
/// When somebody else leads, or the store fails.
pub async fn lead(
    elector: &impl leader_core::Elector,
    name: &str,
    options: &LeaseOptions,
) -> Lease {
    match elector.try_acquire(name, options).await {
        Ok(Some(lease)) => lease,
        Ok(None) => panic!(
            "`{name}` is led by somebody else: {:?}",
            elector.state(name).await
        ),
        Err(error) => panic!("no lease on `{name}`: {error}"),
    }
}

/// Whether somebody else leads, seen from this candidate.
///
/// # Panics
///
/// When the store fails.
pub async fn is_skipped(
    elector: &impl leader_core::Elector,
    name: &str,
    options: &LeaseOptions,
) -> bool {
    match elector.try_acquire(name, options).await {
        Ok(lease) => lease.is_none(),
        Err(error) => panic!("an attempt at `{name}` failed: {error}"),
    }
}
