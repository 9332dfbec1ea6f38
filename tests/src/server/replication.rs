//! A primary and its replicas: attaching one, waiting for it, promoting it.

use super::{START_LIMIT, Server, ServerBuilder};
use crate::proxy::Proxy;
use crate::until::until;
use std::net::SocketAddr;

impl ServerBuilder {
    /// A replica of `primary` from its start. It has the primary's password, so that clients can go from one to the
    /// other.
    pub fn replica_of(self, primary: &Server) -> Self {
        self.replica_at(primary, primary.addr)
    }

    fn replica_at(mut self, primary: &Server, addr: SocketAddr) -> Self {
        let args = &mut self.settings.args;
        args.push("--replicaof".to_owned());
        args.push(addr.ip().to_string());
        args.push(addr.port().to_string());
        if let Some(admin) = &primary.admin {
            args.extend(["--masterauth".to_owned(), admin.password.clone()]);
            let user = admin.user.iter().cloned();
            args.extend(user.flat_map(|user| ["--masteruser".to_owned(), user]));
        }
        if let Some(login) = &primary.client {
            self.settings.password = Some(login.password.clone());
        }
        self
    }
}

impl Server {
    /// Starts a replica of `primary`, and waits until it has all that the primary has. Its port is one of its own; it is
    /// killed, frozen and asked as any other server.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use leader_tests::Server;
    ///
    /// let primary = Server::start().await;
    /// primary.command(&["SET", "greeting", "hello"]).await;
    /// let replica = Server::replica_of(&primary).await;
    /// primary.kill().await;
    /// replica.promote().await;
    /// assert_eq!(replica.command(&["GET", "greeting"]).await.text(), "hello");
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// As [`ServerBuilder::start`], and when the replica does not come up to the primary. In containers it can do so only
    /// on the host's network.
    pub async fn replica_of(primary: &Self) -> Self {
        Self::replica_at(primary, primary.addr).await
    }

    /// As [`Server::replica_of`], by way of a proxy before the primary. What a black hole has swallowed never arrives;
    /// what was sent to a frozen replica by a primary that was killed meanwhile may, once it thaws.
    ///
    /// # Panics
    ///
    /// As [`Server::replica_of`].
    pub async fn replica_through(proxy: &Proxy, primary: &Self) -> Self {
        Self::replica_at(primary, proxy.addr()).await
    }

    async fn replica_at(primary: &Self, addr: SocketAddr) -> Self {
        // The primary would wait for 5 s for more replicas that come at the same time.
        for (option, value) in [
            ("repl-diskless-sync", "yes"),
            ("repl-diskless-sync-delay", "0"),
        ] {
            primary.command(&["CONFIG", "SET", option, value]).await;
        }
        let replica = Self::builder().replica_at(primary, addr).start().await;
        replica.until_in_sync_with(primary).await;
        replica
    }

    /// Waits until this replica has all that `primary` has written.
    ///
    /// # Panics
    ///
    /// When it does not come up to it within 20 s, or one of the two cannot be asked.
    pub async fn until_in_sync_with(&self, primary: &Self) {
        let what = format!("the replica at {} is up to {}", self.addr, primary.addr);
        let port = format!(",port={},state=online", self.port());
        until(&what, START_LIMIT, async || {
            let theirs = primary.command(&["INFO", "replication"]).await.text();
            let ours = self.command(&["INFO", "replication"]).await.text();
            theirs.contains(&port)
                && field(&ours, "master_link_status") == Some("up")
                && field(&ours, "slave_repl_offset") == field(&theirs, "master_repl_offset")
        })
        .await;
    }

    /// Makes a primary of this replica, as an operator or a sentinel does in a failover: whatever it has received by now
    /// is what there is.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn promote(&self) {
        let answer = self.command(&["REPLICAOF", "NO", "ONE"]).await;
        if let Some(error) = answer.error() {
            panic!("the replica at {} is not promoted: {error}", self.addr);
        }
    }
}

/// A line of `INFO`: `name:value`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut values = info.lines().filter_map(|line| line.split_once(':'));
    values.find(|(n, _)| *n == name).map(|(_, value)| value)
}
