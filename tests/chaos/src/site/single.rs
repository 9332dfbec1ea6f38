//! One server, that keeps on disk what it acknowledges.

use leader_tests::{Server, ServerBuilder};
use tokio::time::sleep;

use super::{Site, Wires};
use crate::clock::Clock;
use crate::fault::Kind;
use crate::plan::Strike;
use crate::record::Forgot;
use crate::worker::Store;

pub(crate) struct Single {
    server: Server,
    wires: Wires,
}

/// A server that has written to its disk what it answers.
pub(super) fn that_remembers() -> ServerBuilder {
    let settings = ["--appendonly", "yes", "--appendfsync", "always"];
    settings
        .into_iter()
        .fold(Server::builder(), ServerBuilder::arg)
}

impl Single {
    pub(crate) async fn start(workers: usize) -> Self {
        let server = that_remembers().start().await;
        let wires = Wires::new(workers, &[server.addr()]);
        Self { server, wires }
    }
}

impl Site for Single {
    fn store(&self, worker: usize) -> Store {
        Store::One {
            url: self.wires.urls(worker).remove(0),
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }

    async fn strike(&self, strike: &Strike, _: Clock) -> Option<Forgot> {
        hit(&self.server, strike).await;
        None
    }
}

/// The faults of one server by itself.
pub(super) async fn hit(server: &Server, strike: &Strike) {
    match strike.kind {
        Kind::ServerKilled | Kind::ServerForgot => {
            server.kill().await;
            sleep(strike.hold).await;
            server.restart().await;
        }
        Kind::ServerFrozen => {
            server.freeze().await;
            sleep(strike.hold).await;
            server.thaw().await;
        }
        other => panic!("no server can be hit by `{other}`"),
    }
}
