//! A primary and its replica, that grants wait for, and an address that moves with the role.

use leader_tests::Server;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::single::hit;
use super::{Site, Wires};
use crate::clock::Clock;
use crate::fault::Kind;
use crate::plan::Strike;
use crate::record::Forgot;
use crate::worker::Store;

pub(crate) struct Replicated {
    pair: Mutex<Pair>,
    wires: Wires,
}

struct Pair {
    primary: Server,
    replica: Server,
}

impl Replicated {
    pub(crate) async fn start(workers: usize) -> Self {
        let primary = Server::start().await;
        let replica = Server::replica_of(&primary).await;
        let wires = Wires::new(workers, &[primary.addr()]);
        Self {
            pair: Mutex::new(Pair { primary, replica }),
            wires,
        }
    }
}

impl Site for Replicated {
    fn store(&self, worker: usize) -> Store {
        Store::Replicated {
            url: self.wires.urls(worker).remove(0),
            replicas: 1,
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }

    async fn strike(&self, strike: &Strike, _: Clock) -> Option<Forgot> {
        let mut pair = self.pair.lock().await;
        match strike.kind {
            Kind::Failover => {
                pair.primary.kill().await;
                sleep(strike.hold).await;
                pair.replica.promote().await;
                self.wires.lead_to(0, pair.replica.addr()).await;
                // The next failover has a replica again that has all.
                let replica = Server::replica_of(&pair.replica).await;
                pair.primary = std::mem::replace(&mut pair.replica, replica);
            }
            Kind::ReplicaFrozen => {
                pair.replica.freeze().await;
                sleep(strike.hold).await;
                pair.replica.thaw().await;
            }
            _ => hit(&pair.primary, strike).await,
        }
        None
    }
}
