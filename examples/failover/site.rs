//! A primary, its replica, and an address that moves with the role, as a virtual address or a name does.

use leader_tests::{Proxy, Server};

use crate::tell;

pub(crate) struct Site {
    /// Where candidates connect.
    address: Proxy,
    primary: Server,
    replica: Server,
    /// Between primary and replica.
    replication: Proxy,
}

impl Site {
    pub(crate) async fn start() -> Self {
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

    pub(crate) fn url(&self) -> String {
        self.address.url()
    }

    /// Replication is asynchronous: what the primary acknowledges from now on, the replica has not received yet.
    pub(crate) fn lag(&self) {
        self.replication.blackhole();
        tell(format_args!("the replica lags behind its primary"));
    }

    /// The primary is killed, the replica is promoted, and the address leads to it. Gives the new primary.
    pub(crate) async fn fail_over(&self) -> &Server {
        self.primary.kill().await;
        self.replica.promote().await;
        self.address.lead_to(self.replica.addr());
        self.address.kill_connections().await;
        tell(format_args!(
            "the primary is killed, and the replica promoted in its place"
        ));
        &self.replica
    }
}
