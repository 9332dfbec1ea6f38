//! A primary that becomes a replica of another while somebody waits for its replicas.

use futures::poll;
use leader_core::store::LeaseStore;
use leader_tests::{Server, lead, patient};

use crate::steps::*;

/// Makes the primary a replica, as sentinels do with one that comes back.
async fn demote(pair: &Pair) -> Server {
    let other = Server::start().await;
    let port = other.port().to_string();
    let command = ["REPLICAOF", "127.0.0.1", &port];
    assert_eq!(pair.primary.command(&command).await.text(), "OK");
    other
}

/// Who waits there is sent away with a code of its own. The lease is still in force, and may be extended elsewhere.
#[tokio::test]
async fn b02_an_extension_that_waits_there_may_be_tried_again() {
    let pair = Pair::start().await;
    let store = store(&pair, LIMIT).await;
    let candidate = candidate_for("x");
    candidate.wins(&store).await;
    pair.replica.freeze().await;
    let mut extension = Box::pin(candidate.extend(&store));
    assert!(poll!(&mut extension).is_pending());
    let (_new, extended) = futures::join!(
        async {
            until_waiting(&pair.primary).await;
            demote(&pair).await
        },
        extension
    );
    let error = extended.unwrap_err();
    assert!(error.kind().is_transient(), "{:?}: {error}", error.kind());
    pair.replica.thaw().await;
    store.close().await;
}

/// The server answers that it cannot wait; that is no mistake of the user's.
#[tokio::test]
async fn who_connects_to_a_replica_may_try_again() {
    let pair = Pair::start().await;
    let builder = elector_at(&pair.replica.url()).replica_ack(1, SOON);
    let Err(leader_core::LeaderError::Backend { kind, .. }) = builder.connect().await else {
        panic!("it connected");
    };
    assert_eq!(kind, leader_core::BackendKind::ReadOnly);
}

#[tokio::test]
async fn b02_a_lease_outlives_the_demotion_of_its_primary() {
    let pair = Pair::start().await;
    let elector = elector_at(&pair.primary.url()).replica_ack(1, LIMIT);
    let elector = elector.connect().await.expect("the server answers");
    let lease = lead(&elector, "x", &patient()).await;
    let _other = demote(&pair).await;
    let error = lease.extend(LONG).await.unwrap_err();
    assert!(lease.is_valid(), "{error}");
}
