//! A primary with a replica, and candidates whose grants the replica has to acknowledge.

use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, StoreError,
};
use leader_core::{FencingToken, LockName, NodeId, Token};
use leader_redis::{RedisElectorBuilder, RedisStore};
use leader_tests::{Proxy, Server, until};

/// A lease that does not end during a test.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Far more than anything here takes on a machine that is busy.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);
/// How long a replica has, where none answers and a test waits for that.
pub(crate) const SOON: Duration = Duration::from_millis(100);

/// A primary and its replica, with a network between them that can be broken.
pub(crate) struct Pair {
    pub(crate) primary: Server,
    pub(crate) replica: Server,
    pub(crate) link: Proxy,
}

impl Pair {
    pub(crate) async fn start() -> Self {
        let primary = Server::start().await;
        let link = Proxy::start(primary.addr());
        let replica = Server::replica_through(&link, &primary).await;
        Self {
            primary,
            replica,
            link,
        }
    }

    /// What fails over in an instant: what the primary has sent and the replica has not got is lost.
    pub(crate) async fn fail_over(&self) {
        self.primary.kill().await;
        self.replica.promote().await;
    }
}

/// An elector whose commands a busy machine does not fail by chance.
pub(crate) fn elector_at(url: &str) -> RedisElectorBuilder {
    leader_tests::elector_at(url).command_timeout(Duration::from_secs(5))
}

/// A store that needs one replica, within `limit`.
pub(crate) async fn store(pair: &Pair, limit: Duration) -> RedisStore {
    let builder = elector_at(&pair.primary.url()).replica_ack(1, limit);
    builder.connect_store().await.expect("the server answers")
}

/// A candidate's token, and what it asks for.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) name: LockName,
    pub(crate) token: Token,
}

pub(crate) fn candidate_for(name: &str) -> Candidate {
    Candidate {
        name: LockName::new(name).expect("the name is valid"),
        token: Token::random(),
    }
}

impl Candidate {
    pub(crate) async fn claim(&self, store: &RedisStore) -> Result<ClaimReply, StoreError> {
        let (name, node) = (self.name.clone(), NodeId::new("n"));
        store.claim(&Claim::new(name, node, self.token, LONG)).await
    }

    pub(crate) async fn wins(&self, store: &RedisStore) -> FencingToken {
        match self.claim(store).await {
            Ok(ClaimReply::Granted { fence, .. }) => fence,
            other => panic!("not granted: {other:?}"),
        }
    }

    pub(crate) async fn extend(&self, store: &RedisStore) -> Result<ExtendReply, StoreError> {
        let extension = Extension::new(self.name.clone(), self.token, 0, LONG);
        let mut replies = store.extend(&[extension]).await;
        replies.pop().expect("an answer for each")
    }

    pub(crate) fn to_release(&self) -> Release {
        Release::new(self.name.clone(), self.token, 0)
    }

    pub(crate) async fn is_held(&self, store: &RedisStore) -> bool {
        let holders = store.inspect(&self.name).await;
        !holders.expect("the server answers").is_empty()
    }
}

/// Waits until the server keeps a connection waiting for replicas.
pub(crate) async fn until_waiting(server: &Server) {
    until("a connection waits for replicas", LIMIT, async || {
        let clients = server.command(&["INFO", "clients"]).await.text();
        clients.contains("blocked_clients:1")
    })
    .await;
}
