//! Too few replicas, lost answers, and connections that break: never taken for an acknowledgement.

use leader_core::store::{ClaimReply, ExtendReply, LeaseStore};
use leader_core::{BackendKind, ElectorExt, LeaderError, LossReason, Step};
use leader_tests::{Proxy, Server, at_once, lead, ms, options, patient, until, waiting};

use crate::steps::*;

#[tokio::test]
async fn a_frozen_replica_makes_no_grant_and_nothing_is_left() {
    let pair = Pair::start().await;
    let elector = elector_at(&pair.primary.url()).replica_ack(1, SOON);
    let elector = elector.connect().await.expect("the server answers");
    pair.replica.freeze().await;

    let error = elector.try_acquire("x", &at_once()).await.unwrap_err();
    let LeaderError::Backend {
        step: Step::Claim,
        kind: BackendKind::TooFewReplicas,
        ..
    } = &error
    else {
        panic!("{error:?}");
    };
    let addr = pair.primary.addr();
    assert_eq!(
        error.to_string(),
        format!(
            "claim `x`: the store is short of replicas: {addr}: 0 of 1 replica acknowledged within 100ms; 1 is connected"
        )
    );
    assert!(elector.state("x").await.unwrap().holders().is_empty());

    pair.replica.thaw().await;
    lead(&elector, "x", &patient())
        .await
        .release()
        .await
        .unwrap();
}

#[tokio::test]
async fn an_attempt_that_waits_is_elected_when_the_replica_is_back() {
    let pair = Pair::start().await;
    let elector = elector_at(&pair.primary.url()).replica_ack(1, SOON);
    let elector = elector.connect().await.expect("the server answers");
    pair.replica.freeze().await;
    let patient = options(waiting(LIMIT, LONG));
    let attempt = async {
        let lease = elector.try_acquire("x", &patient).await;
        lease.unwrap().expect("nobody else leads")
    };
    let back = async {
        until("it was refused twice", LIMIT, async || {
            pair.primary.command_calls("wait").await >= 3
        })
        .await;
        pair.replica.thaw().await;
    };
    let (lease, ()) = futures::join!(attempt, back);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn fewer_replicas_than_are_needed_are_counted() {
    let pair = Pair::start().await;
    let builder = elector_at(&pair.primary.url()).replica_ack(2, SOON);
    let store = builder.connect_store().await.expect("the server answers");
    let candidate = candidate_for("x");
    let enough = "1 of 2 replicas acknowledged within 100ms; 1 is connected";
    until("the one there is acknowledges in time", LIMIT, async || {
        let error = candidate.claim(&store).await.unwrap_err();
        assert!(!error.may_have_run(), "it was undone");
        error.to_string().ends_with(enough)
    })
    .await;
    let second = Server::replica_of(&pair.primary).await;
    until("both do", LIMIT, async || {
        candidate.claim(&store).await.is_ok()
    })
    .await;
    second.kill().await;
}

#[tokio::test]
async fn b02_an_extension_that_no_replica_has_is_tried_again() {
    let pair = Pair::start().await;
    let (store, sure) = (store(&pair, SOON).await, store(&pair, LIMIT).await);
    let holder = candidate_for("x");
    holder.wins(&sure).await;
    pair.replica.freeze().await;
    let error = holder.extend(&store).await.unwrap_err();
    assert_eq!(error.kind(), BackendKind::TooFewReplicas);
    assert!(error.kind().is_transient() && error.may_have_run());
    assert!(holder.is_held(&store).await);

    // Nothing is shortened, and what does not lengthen the lease has to be acknowledged as well.
    let error = holder.extend(&store).await.unwrap_err();
    assert_eq!(error.kind(), BackendKind::TooFewReplicas);
    pair.replica.thaw().await;
    pair.replica.until_in_sync_with(&pair.primary).await;
    until("the same store is acknowledged again", LIMIT, async || {
        match holder.extend(&store).await {
            Ok(reply) => {
                assert_eq!(reply, ExtendReply::Extended);
                true
            }
            // Its limit is short.
            Err(error) => {
                assert_eq!(error.kind(), BackendKind::TooFewReplicas);
                false
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_extension_that_changes_nothing_is_acknowledged_as_well() {
    let pair = Pair::start().await;
    let (store, sure) = (store(&pair, SOON).await, store(&pair, LIMIT).await);
    let holder = candidate_for("x");
    holder.wins(&sure).await;
    pair.replica.freeze().await;
    let short = leader_core::store::Extension::new(holder.name.clone(), holder.token, 0, ms(50));
    let error = store.extend(&[short]).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), BackendKind::TooFewReplicas);
}

#[tokio::test]
async fn b02_a_lease_that_no_replica_hears_of_is_lost_at_its_deadline() {
    let pair = Pair::start().await;
    let elector = elector_at(&pair.primary.url()).replica_ack(1, SOON);
    let elector = elector.connect().await.expect("the server answers");
    let short = options(waiting(LIMIT, ms(1200)).auto_extend(true));
    let lost = elector.run_if_leader("x", &short, async |_| {
        pair.replica.freeze().await;
        std::future::pending::<()>().await;
    });
    let error = lost.await.unwrap_err();
    let LeaderError::LeaseLost {
        reason: LossReason::Expired,
        ..
    } = &error
    else {
        panic!("{error:?}");
    };
}

#[tokio::test]
async fn a_script_that_the_server_forgot_is_no_acknowledgement() {
    let pair = Pair::start().await;
    let (store, sure) = (store(&pair, SOON).await, store(&pair, LIMIT).await);
    let holder = candidate_for("x");
    holder.wins(&sure).await;
    pair.replica.freeze().await;
    pair.primary.command(&["SCRIPT", "FLUSH"]).await;
    let error = holder.extend(&store).await.unwrap_err();
    assert_eq!(error.kind(), BackendKind::TooFewReplicas);
}

/// On a new connection, which has written nothing, a wait is answered at once: as if all was well. That none is sent there
/// is owed to `fail_fast` and to the single attempt together; each of them suffices.
#[tokio::test]
async fn a_wait_that_lost_its_connection_is_not_sent_on_another() {
    let pair = Pair::start().await;
    let way = Proxy::start(pair.primary.addr());
    let store = elector_at(&way.url()).replica_ack(1, LIMIT);
    let store = store.connect_store().await.expect("the server answers");
    candidate_for("warm").wins(&store).await;
    pair.replica.freeze().await;
    pair.primary.reset_stats().await;
    let caught = way.capture_request("WAIT");
    let candidate = candidate_for("x");
    let error = candidate.claim(&store).await.unwrap_err();
    assert_eq!(error.kind(), BackendKind::Unreachable, "{error}");
    let _never_delivered = caught.caught().await;
    assert_eq!(pair.primary.command_calls("wait").await, 0);
    assert!(!candidate.is_held(&store).await, "it was undone");

    pair.replica.thaw().await;
    until("it is connected again", LIMIT, async || {
        matches!(
            candidate_for("x").claim(&store).await,
            Ok(ClaimReply::Granted { .. })
        )
    })
    .await;
}

#[tokio::test]
async fn answers_that_are_lost_are_no_acknowledgement() {
    let pair = Pair::start().await;
    let way = Proxy::start(pair.primary.addr());
    let store = elector_at(&way.url()).replica_ack(1, LIMIT);
    let store = store.connect_store().await.expect("the server answers");
    candidate_for("warm").wins(&store).await;
    // Of the confirming write, which is the second script, and of the wait behind it.
    for (n, lost) in [(2, "EVALSHA"), (1, "WAIT")] {
        let lost = way.lose_reply_to_nth(n, lost);
        let candidate = candidate_for("x");
        let error = candidate.claim(&store).await.unwrap_err();
        lost.happened().await;
        assert_eq!(error.kind(), BackendKind::Unreachable, "{error}");
        assert!(!candidate.is_held(&store).await, "it was undone");
        until("it is connected again", LIMIT, async || {
            let probe = candidate_for("probe");
            let granted = probe.claim(&store).await.is_ok();
            store.release(&probe.to_release()).await.unwrap();
            granted
        })
        .await;
    }
}
