//! Three primaries with a replica each, which follow behind: a primary that is killed may take grants with it.
//!
//! Clients of a cluster connect where its nodes tell them to. For a proxy before each node, and for each worker one of
//! its own, the nodes do not tell a host (`unknown-endpoint`): clients then ask the host that they came by for the port
//! that they are told. Each worker comes by an address of its own of the loopback interface, on which the proxies have
//! the ports of the nodes.

use std::net::{IpAddr, Ipv4Addr};

use leader_tests::{Cluster as Nodes, Server};
use tokio::time::sleep;

use super::single::hit;
use super::{Site, Wires};
use crate::clock::Clock;
use crate::fault::Kind;
use crate::job::Job;
use crate::plan::Strike;
use crate::record::Forgot;
use crate::worker::Store;

pub(crate) struct Cluster {
    nodes: Nodes,
    names: Vec<String>,
    wires: Wires,
}

impl Cluster {
    pub(crate) async fn start(workers: usize, jobs: &[Job]) -> Self {
        let nodes = Nodes::start_with(&[
            ("--cluster-preferred-endpoint-type", "unknown-endpoint"),
            // Only the director decides who takes over, and a busy machine changes nothing else either. After an
            // election a replica stands for no other for four times the node timeout, so that is not long.
            ("--cluster-replica-no-failover", "yes"),
            ("--cluster-require-full-coverage", "no"),
            ("--cluster-node-timeout", "1500"),
        ])
        .await;
        let addrs: Vec<_> = nodes.nodes().iter().map(Server::addr).collect();
        let wires = Wires::by_host(workers, &addrs, |worker| {
            IpAddr::V4(Ipv4Addr::new(
                127,
                0,
                77,
                u8::try_from(worker + 1).unwrap_or(u8::MAX),
            ))
        });
        Self {
            nodes,
            names: jobs.iter().map(|job| job.name.clone()).collect(),
            wires,
        }
    }

    /// The name that is meant, which says which node is. A name is the hash tag of its keys.
    fn name(&self, target: usize) -> &str {
        &self.names[target % self.names.len()]
    }

    /// The names that live where that one does.
    async fn beside(&self, name: &str) -> Vec<String> {
        let port = self.nodes.owner(name).await.port();
        let mut beside = Vec::new();
        for other in &self.names {
            if self.nodes.owner(other).await.port() == port {
                beside.push(other.clone());
            }
        }
        beside
    }
}

impl Site for Cluster {
    fn store(&self, worker: usize) -> Store {
        let urls = self.wires.urls(worker);
        let [a, b, c] = [0, 1, 2].map(|at: usize| urls[at].trim_start_matches("redis://"));
        Store::One {
            url: format!("redis-cluster://{a}?node={b}&node={c}"),
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }

    async fn server(&self, target: usize) -> usize {
        let owner = self.nodes.owner(self.name(target)).await.port();
        let mut nodes = self.nodes.nodes().iter();
        nodes
            .position(|node| node.port() == owner)
            .unwrap_or_default()
    }

    async fn strike(&self, strike: &Strike, clock: Clock) -> Option<Forgot> {
        let name = self.name(strike.target);
        let primary = self.nodes.owner(name).await;
        match strike.kind {
            Kind::Failover => {
                let names = self.beside(name).await;
                let replica = self.nodes.replica_of(primary).await;
                // What is granted from here on, the replica will not have.
                self.nodes.freeze(replica).await;
                let cut_off = ["CLIENT", "KILL", "TYPE", "replica"];
                primary.command(&cut_off).await;
                sleep(strike.hold).await;
                self.nodes.kill(primary).await;
                self.nodes.thaw(replica).await;
                self.nodes.promote(replica).await;
                let by = clock.now();
                self.nodes.until_taken_over(name, primary).await;
                self.nodes.restart(primary).await;
                return Some(Forgot { names, by });
            }
            Kind::HandOver => {
                self.nodes.fail_over(primary, name).await;
                self.nodes.until_healthy().await;
            }
            Kind::SlotMoved => _ = self.nodes.migrate(name).await,
            _ => hit(primary, strike).await,
        }
        None
    }
}
