//! h01: the primary dies with a grant that it had not replicated yet, the replica is promoted, and a peer is elected.

use std::time::Duration;

use leader_core::fencing::FenceGate;
use leader_core::{BackendKind, ElectorExt, LeaderError, LossReason};
use leader_tests::{Proxy, Server, at_once, lead, options, patient, until, waiting};
use tokio::sync::oneshot;

use crate::steps::*;

#[tokio::test]
async fn h01_with_replica_ack_the_first_grant_never_counted() {
    let pair = Pair::start().await;
    let first = elector_at(&pair.primary.url()).replica_ack(1, LIMIT);
    let first = first.connect().await.expect("the server answers");
    pair.link.blackhole();
    let attempt = tokio::spawn({
        let first = first.clone();
        async move { first.try_acquire("x", &at_once()).await }
    });
    until_waiting(&pair.primary).await;
    assert_eq!(first.state("x").await.unwrap().holders().len(), 1);
    pair.fail_over().await;
    let error = attempt.await.unwrap().unwrap_err();
    let LeaderError::Backend {
        kind: BackendKind::Unreachable,
        ..
    } = &error
    else {
        panic!("{error:?}");
    };

    let second = elector_at(&pair.replica.url())
        .connect()
        .await
        .expect("the server answers");
    let lease = lead(&second, "x", &at_once()).await;
    lease.release().await.unwrap();
}

#[tokio::test]
async fn h01_what_was_acknowledged_survives_the_primary() {
    let pair = Pair::start().await;
    let first = elector_at(&pair.primary.url()).replica_ack(1, LIMIT);
    let first = first.connect().await.expect("the server answers");
    let lease = lead(&first, "x", &at_once()).await;
    pair.link.blackhole();
    pair.fail_over().await;

    let second = elector_at(&pair.replica.url())
        .connect()
        .await
        .expect("the server answers");
    assert!(second.try_acquire("x", &at_once()).await.unwrap().is_none());
    let holders = second.state("x").await.unwrap();
    assert_eq!(holders.holders()[0].fence(), lease.fence());
}

/// The address of the primary moves to the new one, as behind a sentinel: there the first holder's next extension, which
/// is due after a third of the lease, finds its record gone.
#[tokio::test]
async fn h01_without_it_the_first_holder_loses_its_lease_by_itself_and_its_token_is_the_lower_one()
{
    let pair = Pair::start().await;
    let address = Proxy::start(pair.primary.addr());
    let first = elector_at(&address.url())
        .connect()
        .await
        .expect("the server answers");
    let lease = Duration::from_secs(6);
    let extended = options(waiting(Duration::ZERO, lease).auto_extend(true));
    pair.link.blackhole();
    let (elected, leads) = oneshot::channel();
    let run = tokio::spawn({
        let first = first.clone();
        async move {
            let run = first.run_if_leader("x", &extended, async |lease| {
                let _ = elected.send(lease);
                std::future::pending::<()>().await;
            });
            run.await
        }
    });
    let held = leads.await.expect("nobody else leads");
    address.lead_to(pair.replica.addr());
    pair.fail_over().await;
    let peer = elector_at(&address.url())
        .connect()
        .await
        .expect("the server answers");
    let peers = lead(&peer, "x", &at_once()).await;
    assert!(held.is_valid(), "for as long as it does not know");
    let ledger = FenceGate::new("");
    *ledger.enter(peers.fence()).await.unwrap() = "the peer's";
    let stale = ledger.enter(held.fence()).await.unwrap_err();
    assert_eq!((stale.presented, stale.seen), (held.fence(), peers.fence()));

    let error = run.await.unwrap().unwrap_err();
    let LeaderError::LeaseLost {
        reason: LossReason::Taken | LossReason::Deleted,
        fence,
        ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(*fence, held.fence());
    assert!(peers.is_valid());
}

#[tokio::test]
async fn an_elector_that_follows_to_the_new_primary_asks_the_replicas_of_that_one() {
    let pair = Pair::start().await;
    let address = Proxy::start(pair.primary.addr());
    let elector = elector_at(&address.url()).replica_ack(1, SOON);
    let elector = elector.connect().await.expect("the server answers");
    let lease = lead(&elector, "x", &patient()).await;
    address.lead_to(pair.replica.addr());
    pair.fail_over().await;
    until(
        "it says that the new primary has no replica",
        LIMIT,
        async || {
            let error = lease.extend(LONG).await.unwrap_err();
            error
                .to_string()
                .contains("0 of 1 replica acknowledged within 100ms; 0 are connected")
        },
    )
    .await;
    assert!(lease.is_valid());
    let replica = Server::replica_of(&pair.replica).await;
    until("it acknowledges", LIMIT, async || {
        lease.extend(LONG).await.is_ok()
    })
    .await;
    lease.release().await.unwrap();
    replica.kill().await;
}
