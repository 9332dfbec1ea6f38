//! A primary with replicas, and three sentinels that watch over it.

use std::time::Duration;

use futures::future::join_all;

use crate::resp::Reply;
use crate::server::Server;
use crate::until::{until, until_some};

/// What the sentinels call the primary.
const SERVICE: &str = "mymaster";
const LIMIT: Duration = Duration::from_secs(30);

/// A primary, two replicas, and three sentinels of which two must agree. A primary that is silent for half a second is
/// replaced.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Sentinels {
    /// Starts them, and waits until the sentinels know each other and the replicas.
    ///
    /// # Panics
    ///
    /// When there is no server binary on this machine, or they do not come together.
    pub async fn start() -> Self {
        let primary = Server::start().await;
        let replicas = [
            Server::replica_of(&primary).await,
            Server::replica_of(&primary).await,
        ];
        let sentinels = join_all((0..3).map(|_| Server::builder().sentinel().start())).await;
        let port = primary.port().to_string();
        for sentinel in &sentinels {
            watch_over(sentinel, &port).await;
        }
        let mut servers = vec![primary];
        servers.extend(replicas);
        let all = Self { servers, sentinels };
        until("the sentinels know each other", LIMIT, async || {
            for sentinel in &all.sentinels {
                let known = sentinel.command(&["SENTINEL", "MASTER", SERVICE]).await;
                let known: Vec<String> = known.array().iter().map(Reply::text).collect();
                let is =
                    |name: &str, value: &str| known.chunks(2).any(|pair| pair == [name, value]);
                if !is("num-other-sentinels", "2")
                    || !is("num-slaves", "2")
                    || !is("flags", "master")
                {
                    return false;
                }
            }
            true
        })
        .await;
        all
    }

    /// Where clients ask for the primary: at each of the sentinels.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_for(SERVICE)
    }

    /// [`Sentinels::url`] for another name of a primary.
    #[must_use]
    pub fn url_for(&self, service: &str) -> String {
        let [a, b, c] = [0, 1, 2].map(|at: usize| self.sentinels[at].addr());
        format!("redis-sentinel://{a}?sentinelServiceName={service}&node={b}&node={c}")
    }

    /// The servers: the first primary, then the replicas.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The sentinels.
    #[must_use]
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// The primary that all sentinels agree on.
    ///
    /// # Panics
    ///
    /// When they do not within half a minute.
    pub async fn primary(&self) -> &Server {
        until_some("the sentinels agree on a primary", LIMIT, async || {
            self.agreed().await
        })
        .await
    }

    async fn agreed(&self) -> Option<&Server> {
        let mut agreed = None;
        for sentinel in &self.sentinels {
            let command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE];
            let port = sentinel.command(&command).await.array().get(1)?.integer();
            if *agreed.get_or_insert(port) != port {
                return None;
            }
        }
        self.servers
            .iter()
            .find(|server| Some(i64::from(server.port())) == agreed)
    }

    /// A replica takes over by hand, as an operator may have it: the sentinels are told at once, and the clients of the old
    /// primary keep their connections to it.
    ///
    /// # Panics
    ///
    /// When somebody refuses.
    pub async fn hand_over(&self) -> &Server {
        let old = self.primary().await;
        let new = self
            .servers
            .iter()
            .find(|server| server.port() != old.port())
            .unwrap_or_else(|| panic!("there is no replica"));
        for sentinel in &self.sentinels {
            told(sentinel, &["SENTINEL", "REMOVE", SERVICE]).await;
        }
        let port = new.port().to_string();
        told(new, &["REPLICAOF", "NO", "ONE"]).await;
        told(old, &["REPLICAOF", "127.0.0.1", &port]).await;
        for sentinel in &self.sentinels {
            watch_over(sentinel, &port).await;
        }
        new
    }

    /// Waits until all sentinels agree on another primary than `old`, and that one is a primary by its own account.
    ///
    /// # Panics
    ///
    /// When that takes longer than half a minute.
    pub async fn until_replaced(&self, old: &Server) -> &Server {
        let what = format!("another primary than {} is agreed on", old.addr());
        until_some(&what, LIMIT, async || {
            let new = self.agreed().await?;
            if new.port() == old.port() {
                return None;
            }
            let role = new.try_command(&["ROLE"]).await.ok()?;
            (role.array()[0].text() == "master").then_some(new)
        })
        .await
    }

    /// Waits until `server` is a replica by its own account: a primary that came back too late.
    ///
    /// # Panics
    ///
    /// When that takes longer than half a minute.
    pub async fn until_demoted(&self, server: &Server) {
        let what = format!("{} is a replica", server.addr());
        until(&what, LIMIT, async || {
            let role = server.try_command(&["ROLE"]).await;
            role.is_ok_and(|role| role.array()[0].text() == "slave")
        })
        .await;
    }
}

async fn watch_over(sentinel: &Server, port: &str) {
    for command in [
        &["SENTINEL", "MONITOR", SERVICE, "127.0.0.1", port, "2"][..],
        &["SENTINEL", "SET", SERVICE, "down-after-milliseconds", "500"],
        &["SENTINEL", "SET", SERVICE, "failover-timeout", "3000"],
    ] {
        told(sentinel, command).await;
    }
}

async fn told(server: &Server, command: &[&str]) {
    if let Some(error) = server.command(command).await.error() {
        panic!("{} refuses {}: {error}", server.addr(), command.join(" "));
    }
}
