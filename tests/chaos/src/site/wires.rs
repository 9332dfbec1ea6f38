//! The network between workers and servers: a proxy for each of the one before each of the other.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;
use leader_tests::Proxy;
use tokio::sync::Mutex;

/// By worker, and by server.
pub(crate) struct Wires {
    proxies: Vec<Vec<Proxy>>,
    /// One fault of the network at a time: a proxy that is healed of one would be healed of the other.
    turn: Mutex<()>,
}

/// Whose connections a fault of the network is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Worker(usize),
    Server(usize),
}

/// What is wrong with them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Cut,
    Silent,
    Slow(Duration),
}

impl Wires {
    pub(crate) fn new(workers: usize, servers: &[SocketAddr]) -> Self {
        Self::made(workers, servers, |_, server| Proxy::start(server))
    }

    /// Each worker has a host of its own, on which it finds the servers by their ports.
    pub(crate) fn by_host(
        workers: usize,
        servers: &[SocketAddr],
        host: impl Fn(usize) -> IpAddr,
    ) -> Self {
        Self::made(workers, servers, |worker, server| {
            Proxy::start_at(SocketAddr::new(host(worker), server.port()), server)
        })
    }

    fn made(
        workers: usize,
        servers: &[SocketAddr],
        proxy: impl Fn(usize, SocketAddr) -> Proxy,
    ) -> Self {
        let of_a_worker = |worker| {
            servers
                .iter()
                .map(|server| proxy(worker, *server))
                .collect()
        };
        Self {
            proxies: (0..workers).map(of_a_worker).collect(),
            turn: Mutex::new(()),
        }
    }

    /// Where that worker connects.
    pub(crate) fn urls(&self, worker: usize) -> Vec<String> {
        self.proxies[worker].iter().map(Proxy::url).collect()
    }

    /// Troubles them for a while.
    pub(crate) async fn trouble(&self, whose: End, trouble: Trouble, length: Duration) {
        let _turn = self.turn.lock().await;
        let all: Vec<&Proxy> = match whose {
            End::Worker(worker) => self.proxies[worker].iter().collect(),
            End::Server(server) => self.proxies.iter().map(|wires| &wires[server]).collect(),
        };
        for proxy in &all {
            match trouble {
                Trouble::Cut => proxy.cut().await,
                Trouble::Silent => proxy.blackhole(),
                Trouble::Slow(delay) => {
                    proxy.delay_requests(delay);
                    proxy.delay_replies(delay);
                }
            }
        }
        tokio::time::sleep(length).await;
        join_all(all.iter().map(|proxy| proxy.heal())).await;
    }

    /// Leads all workers to another server in the place of that one, as an address does that moves.
    pub(crate) async fn lead_to(&self, server: usize, addr: SocketAddr) {
        for wires in &self.proxies {
            wires[server].lead_to(addr);
            wires[server].kill_connections().await;
        }
    }
}
