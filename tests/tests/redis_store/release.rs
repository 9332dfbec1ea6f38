//! Letting go: only one's own, at once or after a minimum lease, and told to whoever waits.

use std::time::Duration;

use leader_core::LossReason;
use leader_core::store::{ClaimReply, LeaseStore, Release, ReleaseReply};
use leader_tests::resp::Connection;
use leader_tests::{Server, until, until_some};

use crate::steps::*;

/// What the next message on a subscribed connection says.
async fn next_message(watcher: &mut Connection) -> String {
    let message = tokio::time::timeout(LIMIT, watcher.read()).await;
    let message = message
        .expect("a message comes")
        .expect("the server is there");
    message.array()[2].text()
}

#[tokio::test]
async fn c02_a_release_after_expiry_and_takeover_leaves_the_successor_alone() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (late, successor) = (candidate(), candidate());
    late.wins(&store, SHORT).await;
    until_some("the lease ends", LIMIT, async || {
        match successor.claim(&store, LONG).await {
            ClaimReply::Granted { .. } => Some(()),
            _ => None,
        }
    })
    .await;
    let record = dump(&server, KEY).await;
    let reply = late.release(&store).await;
    assert_eq!(reply, ReleaseReply::NotHeld(LossReason::Taken));
    let kept = send(&store, &late.to_release().keeping(LONG)).await;
    assert_eq!(kept, ReleaseReply::NotHeld(LossReason::Taken));
    assert_eq!(dump(&server, KEY).await, record);
}

#[tokio::test]
async fn c02_a_release_after_expiry_says_so() {
    let server = Server::start().await;
    let store = store(&server).await;
    let late = candidate();
    late.wins(&store, SHORT).await;
    until("the lease ends", LIMIT, async || {
        store.inspect(&late.name).await.unwrap().is_empty()
    })
    .await;
    let reply = late.release(&store).await;
    assert_eq!(reply, ReleaseReply::NotHeld(LossReason::Expired));
    server.command(&["DEL", KEY]).await;
    let reply = late.release(&store).await;
    assert_eq!(reply, ReleaseReply::NotHeld(LossReason::Deleted));
    assert_eq!(server.command(&["EXISTS", KEY]).await.integer(), 0);
}

#[tokio::test]
async fn c04_a_slot_is_kept_for_the_minimum_lease_and_is_nobodys() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    let (_, fence) = holder.wins(&store, LONG).await;
    frees(&store, &holder.to_release().keeping(SHORT * 50)).await;

    let (retry_after, held_by, _) = candidate().loses(&store).await;
    assert!(retry_after <= SHORT * 50);
    assert_eq!(held_by, holder.node_id());
    let holders = store.inspect(&holder.name).await.unwrap();
    assert_eq!(holders.len(), 1);
    assert!(holders[0].is_retained());
    assert_eq!(holders[0].fence(), fence);

    // Its own token has no part in it any more.
    let record = dump(&server, KEY).await;
    holder.loses(&store).await;
    let again = holder.release(&store).await;
    assert_eq!(again, ReleaseReply::NotHeld(LossReason::Deleted));
    holder.extend(&store, LONG).await.unwrap();
    assert_eq!(dump(&server, KEY).await, record);

    let next = candidate();
    until_some("the minimum lease is over", LIMIT, async || {
        match next.claim(&store, LONG).await {
            ClaimReply::Granted { .. } => Some(()),
            _ => None,
        }
    })
    .await;
}

#[tokio::test]
async fn c04_a_slot_is_never_kept_beyond_its_lease() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let mut watcher = server.connect().await.unwrap();
    watcher.call(&["SUBSCRIBE", CHANNEL]).await.unwrap();
    let (revision, _) = frees(&store, &holder.to_release().keeping(Duration::MAX)).await;
    assert!(candidate().loses(&store).await.0 <= LONG);

    let told = next_message(&mut watcher).await;
    let (told_revision, free_in) = told.split_once(':').unwrap();
    assert_eq!(told_revision, revision.get().to_string());
    let free_in = Duration::from_micros(free_in.parse().unwrap());
    assert!(free_in > LONG / 2 && free_in <= LONG, "{free_in:?}");
}

#[tokio::test]
async fn c04_what_is_not_held_is_not_kept() {
    let server = Server::start().await;
    let store = store(&server).await;
    let stranger = candidate();
    let reply = send(&store, &stranger.to_release().keeping(LONG)).await;
    assert_eq!(reply, ReleaseReply::NotHeld(LossReason::Deleted));
    assert_eq!(server.command(&["EXISTS", KEY]).await.integer(), 0);
}

#[tokio::test]
async fn a_claim_that_comes_after_its_abandonment_is_ended() {
    let server = Server::start().await;
    let store = store(&server).await;
    let given_up = candidate();
    let reply = send(&store, &given_up.to_abandon(LONG)).await;
    assert_eq!(reply, ReleaseReply::NotHeld(LossReason::Deleted));
    assert!(ttl(&server, KEY).await > 0);
    assert_eq!(given_up.claim(&store, LONG).await, ClaimReply::Ended);
    // Nobody else minds, and it stays ended whoever leads.
    let other = candidate();
    other.wins(&store, LONG).await;
    assert_eq!(given_up.claim(&store, LONG).await, ClaimReply::Ended);
    frees(&store, &other.to_release()).await;
    assert_eq!(given_up.claim(&store, LONG).await, ClaimReply::Ended);
}

#[tokio::test]
async fn an_abandoned_claim_is_freed_wherever_it_was_granted() {
    let server = Server::start().await;
    let store = store(&server).await;
    let of_three = || candidate().of_slots(3);
    let others = [of_three(), of_three()];
    let given_up = of_three();
    others[0].wins(&store, LONG).await;
    others[1].wins(&store, LONG).await;
    assert_eq!(given_up.wins(&store, LONG).await.0, 2);

    frees(&store, &given_up.to_abandon(LONG)).await;
    assert_eq!(store.inspect(&given_up.name).await.unwrap().len(), 2);
    assert_eq!(given_up.claim(&store, LONG).await, ClaimReply::Ended);
    let again = send(&store, &given_up.to_abandon(LONG)).await;
    assert_eq!(again, ReleaseReply::NotHeld(LossReason::Deleted));
    assert_eq!(of_three().wins(&store, LONG).await.0, 2);
}

#[tokio::test]
async fn a_release_with_a_mark_ends_the_token_too() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    frees(&store, &holder.to_release().marking(LONG)).await;
    assert_eq!(holder.claim(&store, LONG).await, ClaimReply::Ended);

    // Without one, a late claim is a new one.
    let other = candidate();
    let (_, fence) = other.wins(&store, LONG).await;
    frees(&store, &other.to_release()).await;
    assert!(other.wins(&store, LONG).await.1 > fence);
}

#[tokio::test]
async fn marks_end_and_are_gone() {
    let server = Server::start().await;
    let store = store(&server).await;
    let given_up = candidate();
    send(&store, &given_up.to_abandon(SHORT)).await;
    until("the mark ends", LIMIT, async || {
        let reply = given_up.claim(&store, LONG).await;
        let granted = matches!(reply, ClaimReply::Granted { .. });
        assert!(granted || reply == ClaimReply::Ended, "{reply:?}");
        granted
    })
    .await;
    until("only the record is left", LIMIT, async || {
        server.command(&["DBSIZE"]).await.integer() == 1
    })
    .await;
}

#[tokio::test]
async fn a_mark_lasts_as_long_as_it_was_asked_for_whatever_marks_come_after() {
    let server = Server::start().await;
    let store = store(&server).await;
    let given_up = candidate();
    send(&store, &given_up.to_abandon(LONG)).await;
    send(&store, &candidate().to_abandon(SHORT)).await;
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(given_up.claim(&store, LONG).await, ClaimReply::Ended);
    // The record is there for as long as its marks, however long that is.
    send(&store, &candidate().to_abandon(Duration::MAX)).await;
    assert_eq!(given_up.claim(&store, LONG).await, ClaimReply::Ended);
    let keys = server.command(&["KEYS", "*"]).await;
    for key in keys.array() {
        assert!(ttl(&server, &key.text()).await > 0, "{key:?}");
    }
}

/// What claims cost does not grow with the marks: the record has one field for all of them.
#[tokio::test]
async fn many_marks_do_not_make_the_record_grow() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let abandoned: Vec<Candidate> = (0..300).map(|_| candidate()).collect();
    for each in &abandoned {
        send(&store, &each.to_abandon(LONG)).await;
    }
    // The slot, the last revision, and when the last mark ends.
    assert_eq!(server.command(&["HLEN", KEY]).await.integer(), 3);
    for each in abandoned.iter().step_by(50) {
        assert_eq!(each.claim(&store, LONG).await, ClaimReply::Ended);
    }
    candidate().loses(&store).await;

    // Other steps do not mind them.
    assert_eq!(store.inspect(&holder.name).await.unwrap().len(), 1);
    holder.extend(&store, LONG).await.unwrap();
    assert_eq!(store.evict(&holder.name).await.unwrap(), 1);
    frees(&store, &{
        holder.wins(&store, LONG).await;
        holder.to_release()
    })
    .await;
}

#[tokio::test]
async fn claims_look_for_marks_only_while_there_are_some() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    holder.release(&store).await;
    assert_eq!(server.command_calls("exists").await, 0);
    send(&store, &candidate().to_abandon(SHORT)).await;
    tokio::time::sleep(SHORT * 2).await;
    server.reset_stats().await;
    holder.wins(&store, LONG).await;
    assert_eq!(server.command_calls("exists").await, 0);
}

#[tokio::test]
async fn a_token_that_came_back_is_released_where_it_lives() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (first, back) = (candidate().of_slots(2), candidate().of_slots(2));
    first.wins(&store, SHORT * 25).await;
    assert_eq!(back.wins(&store, SHORT * 25).await.0, 1);
    until("both leases end", LIMIT, async || {
        store.inspect(&back.name).await.unwrap().is_empty()
    })
    .await;
    // Its expired entry is still in slot 1.
    assert_eq!(back.wins(&store, LONG).await.0, 0);
    frees(&store, &back.to_abandon(LONG)).await;
    assert!(store.inspect(&back.name).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_release_is_told_once_to_everybody_who_listens() {
    let server = Server::start().await;
    let store = store(&server).await;
    let mut watcher = server.connect().await.unwrap();
    watcher.call(&["SUBSCRIBE", CHANNEL]).await.unwrap();
    let mut pattern = server.connect().await.unwrap();
    pattern.call(&["PSUBSCRIBE", "leader:*"]).await.unwrap();

    let holder = candidate();
    let (_, fence) = holder.wins(&store, LONG).await;
    let (revision, told) = frees(&store, &holder.to_release()).await;
    assert!(revision.get() > fence.get());
    assert_eq!(told, 2);
    assert_eq!(
        next_message(&mut watcher).await,
        format!("{}:0", revision.get())
    );

    // What was not released is not told; what is kept is told with its time; what is evicted is told.
    holder.release(&store).await;
    send(&store, &holder.to_abandon(LONG)).await;
    let next = candidate();
    next.wins(&store, LONG).await;
    let (revision, _) = frees(&store, &next.to_release().keeping(LONG / 2)).await;
    let message = next_message(&mut watcher).await;
    let kept = (LONG / 2).as_micros();
    assert_eq!(message, format!("{}:{kept}", revision.get()));
    assert_eq!(store.evict(&next.name).await.unwrap(), 1);
    let message = next_message(&mut watcher).await;
    let (evicted, free_in) = message.split_once(':').unwrap();
    assert!(evicted.parse::<u64>().unwrap() > revision.get());
    assert_eq!(free_in, "0");
}

#[tokio::test]
async fn evicting_frees_all_slots_and_keeps_the_numbers() {
    let server = Server::start().await;
    let store = store(&server).await;
    assert_eq!(store.evict(&name(NAME)).await.unwrap(), 0);
    assert_eq!(server.command(&["EXISTS", KEY]).await.integer(), 0);

    let mut last = leader_core::FencingToken::new(0);
    let three: Vec<Candidate> = (0..3).map(|_| candidate().of_slots(3)).collect();
    for each in &three {
        last = each.wins(&store, LONG).await.1;
    }
    let kept = Release::new(name(NAME), three[2].token, 2).keeping(LONG / 2);
    frees(&store, &kept).await;
    assert_eq!(store.evict(&name(NAME)).await.unwrap(), 3);
    assert!(store.inspect(&name(NAME)).await.unwrap().is_empty());
    assert_eq!(store.evict(&name(NAME)).await.unwrap(), 0);

    // As if the clock had been ahead: only the number kept in the record can be the greater one.
    let ahead = (last.get() + 3_600_000_000).to_string();
    server.command(&["HSET", KEY, "f", &ahead]).await;
    candidate().wins(&store, LONG).await;
    store.evict(&name(NAME)).await.unwrap();
    let (_, fence) = candidate().wins(&store, LONG).await;
    assert_eq!(fence.get(), ahead.parse::<u64>().unwrap() + 3);
}

#[tokio::test]
async fn b10_looking_changes_nothing() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let record = dump(&server, KEY).await;
    for _ in 0..1000 {
        assert_eq!(store.inspect(&holder.name).await.unwrap().len(), 1);
    }
    assert_eq!(dump(&server, KEY).await, record);
    assert!(store.inspect(&name("nobody")).await.unwrap().is_empty());
    assert_eq!(server.command(&["DBSIZE"]).await.integer(), 1);
}
