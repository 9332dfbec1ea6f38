//! A primary, its replica, and an address that moves with the role.

use leader_tests::{Proxy, Server};

use crate::witness::Witness;

pub(crate) struct Site {
    /// Where clients connect.
    address: Proxy,
    primary: Server,
    replica: Server,
    /// Between the two.
    replication: Proxy,
    witness: Witness,
    /// The grants of the primaries that are gone.
    told: Vec<Vec<u64>>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let primary = Server::start().await;
        let witness = Witness::of(primary.addr());
        let (replica, replication) = replica_of(&primary).await;
        Self {
            address: Proxy::start(primary.addr()),
            primary,
            replica,
            replication,
            witness,
            told: Vec::new(),
        }
    }

    pub(crate) fn url(&self) -> String {
        self.address.url()
    }

    /// From now on the replica learns nothing more.
    pub(crate) fn cut_off_the_replica(&self) {
        self.replication.blackhole();
    }

    /// Kills the primary, promotes the replica, leads clients to it, and gives it a replica of its own.
    pub(crate) async fn fail_over(&mut self) {
        self.primary.kill().await;
        let witness = Witness::of(self.replica.addr());
        self.replica.promote().await;
        self.address.lead_to(self.replica.addr());
        self.address.kill_connections().await;
        let (replica, replication) = replica_of(&self.replica).await;
        self.primary = std::mem::replace(&mut self.replica, replica);
        self.replication = replication;
        let gone = std::mem::replace(&mut self.witness, witness);
        self.told.push(gone.grants());
    }

    /// The grants of each primary in turn, in its own order.
    pub(crate) fn grants_of_all_primaries(self) -> Vec<Vec<u64>> {
        let Self {
            primary,
            witness,
            mut told,
            ..
        } = self;
        drop(primary);
        told.push(witness.grants());
        told
    }
}

async fn replica_of(primary: &Server) -> (Server, Proxy) {
    let replication = Proxy::start(primary.addr());
    let replica = Server::replica_through(&replication, primary).await;
    (replica, replication)
}
