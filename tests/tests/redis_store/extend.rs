//! Living longer: only what is in force, never less, and each lease of a batch by itself.

use std::time::Duration;

use leader_core::store::{ClaimReply, ExtendReply, LeaseStore};
use leader_core::{BackendKind, LossReason};
use leader_tests::{Server, until};

use crate::steps::*;

const NOT_HELD: fn(LossReason) -> ExtendReply = ExtendReply::NotHeld;

#[tokio::test]
async fn b04_a_deleted_record_is_lost_and_said_to_be_deleted() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    for loss in [&["DEL", KEY][..], &["FLUSHALL"], &["HDEL", KEY, "0"]] {
        holder.wins(&store, LONG).await;
        server.command(loss).await;
        let extended = holder.extend(&store, LONG).await.unwrap();
        assert_eq!(extended, NOT_HELD(LossReason::Deleted), "{loss:?}");
        let exists = server.command(&["HEXISTS", KEY, "0"]).await.integer();
        assert_eq!(exists, 0, "{loss:?} brought something back");
    }
}

#[tokio::test]
async fn b04_a_successor_is_left_alone() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (holder, successor) = (candidate(), candidate());
    holder.wins(&store, LONG).await;
    assert_eq!(store.evict(&holder.name).await.unwrap(), 1);
    let freed = holder.extend(&store, LONG).await.unwrap();
    assert_eq!(freed, NOT_HELD(LossReason::Deleted));

    successor.wins(&store, LONG).await;
    let record = dump(&server, KEY).await;
    let extended = holder.extend(&store, LONG * 9).await.unwrap();
    assert_eq!(extended, NOT_HELD(LossReason::Taken));
    assert!(!matches!(
        holder.release(&store).await,
        leader_core::store::ReleaseReply::Released { .. }
    ));
    assert_eq!(dump(&server, KEY).await, record);
}

#[tokio::test]
async fn b06_an_extension_never_shortens() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let extended = holder.extend(&store, LONG * 2).await.unwrap();
    assert_eq!(extended, ExtendReply::Extended);
    let record = dump(&server, KEY).await;
    for shorter in [SHORT, LONG] {
        let extended = holder.extend(&store, shorter).await.unwrap();
        assert_eq!(extended, ExtendReply::Extended);
    }
    assert_eq!(dump(&server, KEY).await, record);
    assert!(candidate().loses(&store).await.0 > LONG);
}

#[tokio::test]
async fn an_extension_keeps_the_fencing_token_and_the_node_id() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    let (_, fence) = holder.wins(&store, SHORT * 50).await;
    holder.extend(&store, LONG).await.unwrap();
    let holders = store.inspect(&holder.name).await.unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].fence(), fence);
    assert_eq!(*holders[0].node_id(), holder.node_id());
    assert!(holders[0].remaining() > LONG / 2);
}

#[tokio::test]
async fn b07_an_expired_lease_is_not_revived() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, SHORT).await;
    until("the lease ends", LIMIT, async || {
        store.inspect(&holder.name).await.unwrap().is_empty()
    })
    .await;
    let extended = holder.extend(&store, LONG).await.unwrap();
    assert_eq!(extended, NOT_HELD(LossReason::Expired));
    assert!(store.inspect(&holder.name).await.unwrap().is_empty());
    candidate().wins(&store, LONG).await;
}

#[tokio::test]
async fn c08_an_extension_after_the_release_brings_nothing_back() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    for keep in [Duration::ZERO, LONG / 2] {
        store.evict(&holder.name).await.unwrap();
        holder.wins(&store, LONG).await;
        frees(&store, &holder.to_release().keeping(keep)).await;
        let record = dump(&server, KEY).await;
        let extended = holder.extend(&store, LONG).await.unwrap();
        assert_eq!(extended, NOT_HELD(LossReason::Deleted));
        assert_eq!(dump(&server, KEY).await, record);
    }
}

#[tokio::test]
async fn a_batch_is_answered_one_by_one_in_its_order() {
    let server = Server::start().await;
    let store = store(&server).await;
    let held = candidate_for("held");
    held.wins(&store, LONG).await;
    let taken = candidate_for("taken");
    candidate_for("taken").wins(&store, LONG).await;
    let deleted = candidate_for("deleted");
    let string = candidate_for("string");
    server
        .command(&["SET", "leader:{string}:lease", "theirs"])
        .await;
    let hash = candidate_for("hash");
    server
        .command(&["HSET", "leader:{hash}:lease", "a", "b"])
        .await;
    let last = candidate_for("last");
    last.wins(&store, LONG).await;

    let batch = [&held, &string, &taken, &hash, &deleted, &last, &held];
    let batch: Vec<_> = batch.iter().map(|each| each.extension(0, LONG)).collect();
    let replies = store.extend(&batch).await;
    let replies: Vec<_> = replies
        .into_iter()
        .map(|reply| reply.map_err(|error| (error.kind(), error.to_string())))
        .collect();
    assert_eq!(replies[0], Ok(ExtendReply::Extended));
    for (foreign, key) in [(1, "leader:{string}:lease"), (3, "leader:{hash}:lease")] {
        let (kind, words) = replies[foreign].clone().unwrap_err();
        assert_eq!(kind, BackendKind::WrongType);
        assert!(words.contains(key), "{words}");
    }
    assert_eq!(replies[2], Ok(NOT_HELD(LossReason::Taken)));
    assert_eq!(replies[4], Ok(NOT_HELD(LossReason::Deleted)));
    assert_eq!(replies[5], Ok(ExtendReply::Extended));
    assert_eq!(replies[6], Ok(ExtendReply::Extended));
    assert_eq!(replies.len(), 7);
}

#[tokio::test]
async fn hundreds_of_leases_are_one_command() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holders: Vec<Candidate> = (0..600).map(|n| candidate_for(&n.to_string())).collect();
    for holder in &holders {
        assert!(matches!(
            holder.claim(&store, LONG).await,
            ClaimReply::Granted { .. }
        ));
    }
    server.command(&["DEL", "leader:{300}:lease"]).await;
    store.extend(&[holders[0].extension(0, LONG)]).await;

    server.reset_stats().await;
    let batch: Vec<_> = holders.iter().map(|h| h.extension(0, LONG * 2)).collect();
    let replies = store.extend(&batch).await;
    assert_eq!(replies.len(), 600);
    for (n, reply) in replies.into_iter().enumerate() {
        let expected = if n == 300 {
            NOT_HELD(LossReason::Deleted)
        } else {
            ExtendReply::Extended
        };
        assert_eq!(reply.unwrap(), expected, "{n}");
    }
    assert_eq!(server.command_calls("evalsha").await, 1);
    assert!(store.extend(&[]).await.is_empty());
    assert_eq!(server.command_calls("evalsha").await, 1);
}
