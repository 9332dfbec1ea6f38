//! [`Pair`]: a primary, its replica, and an address that moves with the role, as a virtual address or a name does.

use crate::proxy::Proxy;
use crate::server::Server;

/// A primary that can fail over to its replica, and the one address that candidates know.
#[derive(Debug)]
pub struct Pair {
    /// Where candidates connect.
    address: Proxy,
    primary: Server,
    replica: Server,
    /// Between primary and replica.
    replication: Proxy,
}

impl Pair {
    /// Starts both, and waits until the replica has what the primary has.
    ///
    /// # Panics
    ///
    /// As [`Server::replica_of`].
    pub async fn start() -> Self {
        let primary = Server::start().await;
        let replication = Proxy::start(primary.addr());
        let replica = Server::replica_through(&replication, &primary).await;
        Self {
            address: Proxy::start(primary.addr()),
            primary,
            replica,
            replication,
        }
    }

    /// The URL of the address that moves.
    #[must_use]
    pub fn url(&self) -> String {
        self.address.url()
    }

    /// Replication is asynchronous: what the primary acknowledges from now on, the replica has not received yet.
    pub fn lag(&self) {
        self.replication.blackhole();
    }

    /// The primary is killed, the replica is promoted, and the address leads to it. Gives the new primary.
    ///
    /// # Panics
    ///
    /// As [`Server::kill`] and [`Server::promote`].
    pub async fn fail_over(&self) -> &Server {
        self.primary.kill().await;
        self.replica.promote().await;
        self.address.lead_to(self.replica.addr());
        self.address.kill_connections().await;
        &self.replica
    }
}
