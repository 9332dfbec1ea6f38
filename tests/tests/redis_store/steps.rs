//! Short words for the steps of a store.

use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
    StoreError,
};
use leader_core::{FencingToken, LockName, NodeId, Token};
use leader_redis::RedisStore;
use leader_tests::{Server, elector_at};

/// A lease that does not end during a test.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// A lease whose end a test waits for.
pub(crate) const SHORT: Duration = Duration::from_millis(40);
/// Far more than anything here takes on a machine that is busy.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

pub(crate) const NAME: &str = "invoice-close";
pub(crate) const KEY: &str = "leader:{invoice-close}:lease";
pub(crate) const CHANNEL: &str = "leader:{invoice-close}:released";

pub(crate) fn name(name: &str) -> LockName {
    LockName::new(name).expect("the name is valid")
}

/// A store whose time limit a busy machine does not meet by chance.
pub(crate) async fn store(server: &Server) -> RedisStore {
    store_at(&server.url()).await
}

pub(crate) async fn store_at(url: &str) -> RedisStore {
    let builder = elector_at(url);
    let builder = builder.command_timeout(Duration::from_secs(5));
    builder.connect_store().await.expect("the server answers")
}

/// A candidate's token, and what it asks for.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) name: LockName,
    pub(crate) token: Token,
    pub(crate) slots: u32,
}

pub(crate) fn candidate() -> Candidate {
    candidate_for(NAME)
}

pub(crate) fn candidate_for(of: &str) -> Candidate {
    Candidate {
        name: name(of),
        token: Token::random(),
        slots: 1,
    }
}

impl Candidate {
    pub(crate) fn of_slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// The number that its node id has.
    pub(crate) fn node_id(&self) -> NodeId {
        NodeId::new(format!("node-{}", &self.token.to_hex()[..6]))
    }

    pub(crate) fn to_claim(&self, lease: Duration) -> Claim {
        Claim::new(self.name.clone(), self.node_id(), self.token, lease).of_slots(self.slots)
    }

    pub(crate) async fn claim(&self, store: &RedisStore, lease: Duration) -> ClaimReply {
        let reply = store.claim(&self.to_claim(lease)).await;
        reply.expect("the server answers a claim")
    }

    /// Claims, and must be granted a slot.
    pub(crate) async fn wins(&self, store: &RedisStore, lease: Duration) -> (u32, FencingToken) {
        match self.claim(store, lease).await {
            ClaimReply::Granted { slot, fence } => (slot, fence),
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Claims, and must be told that the slots are taken.
    pub(crate) async fn loses(&self, store: &RedisStore) -> (Duration, NodeId, Revision) {
        match self.claim(store, LONG).await {
            ClaimReply::Taken {
                retry_after,
                holder: Some(holder),
                revision,
            } => (retry_after, holder, revision),
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) fn extension(&self, slot: u32, lease: Duration) -> Extension {
        Extension::new(self.name.clone(), self.token, slot, lease)
    }

    pub(crate) async fn extend(
        &self,
        store: &RedisStore,
        lease: Duration,
    ) -> Result<ExtendReply, StoreError> {
        let mut replies = store.extend(&[self.extension(0, lease)]).await;
        assert_eq!(replies.len(), 1);
        replies.remove(0)
    }

    pub(crate) fn to_release(&self) -> Release {
        Release::new(self.name.clone(), self.token, 0)
    }

    pub(crate) fn to_abandon(&self, mark: Duration) -> Release {
        Release::abandoned(self.name.clone(), self.token, mark)
    }

    pub(crate) async fn release(&self, store: &RedisStore) -> ReleaseReply {
        send(store, &self.to_release()).await
    }
}

pub(crate) async fn send(store: &RedisStore, release: &Release) -> ReleaseReply {
    let reply = store.release(release).await;
    reply.expect("the server answers a release")
}

/// Releases, and must have held what it released.
pub(crate) async fn frees(store: &RedisStore, release: &Release) -> (Revision, u32) {
    match send(store, release).await {
        ReleaseReply::Released { revision, told } => (revision, told),
        other => panic!("nothing was released: {other:?}"),
    }
}

/// For how long the key lives on, in milliseconds; negative without an expiry.
pub(crate) async fn ttl(server: &Server, key: &str) -> i64 {
    server.command(&["PTTL", key]).await.integer()
}

/// The whole record of a name, as it is.
pub(crate) async fn dump(server: &Server, key: &str) -> leader_tests::Reply {
    server.command(&["DUMP", key]).await
}
