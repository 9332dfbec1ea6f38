//! Five independent servers, of which a minority is in trouble at a time.
//!
//! Three of them keep on disk what they acknowledge. The other two keep nothing: killed, they stay away for as long as
//! the longest lease, as `guide::accidents` asks of a server that comes back empty.

use leader_tests::Server;

use super::single::{hit, that_remembers};
use super::{Site, Wires};
use crate::clock::Clock;
use crate::plan::Strike;
use crate::record::Forgot;
use crate::worker::Store;

pub(crate) struct Quorum {
    servers: Vec<Server>,
    wires: Wires,
}

impl Quorum {
    pub(crate) async fn start(workers: usize) -> Self {
        let mut servers = Vec::new();
        for number in 0..5 {
            let builder = if number < 3 {
                that_remembers()
            } else {
                Server::builder()
            };
            servers.push(builder.start().await);
        }
        let addrs: Vec<_> = servers.iter().map(Server::addr).collect();
        let wires = Wires::new(workers, &addrs);
        Self { servers, wires }
    }
}

impl Site for Quorum {
    fn store(&self, worker: usize) -> Store {
        Store::Quorum {
            urls: self.wires.urls(worker),
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }

    async fn strike(&self, strike: &Strike, _: Clock) -> Option<Forgot> {
        hit(&self.servers[strike.target], strike).await;
        None
    }
}
