//! Being granted a slot: idempotent, refused honestly, fenced, and never without an expiry.

use std::collections::HashSet;
use std::time::Duration;

use leader_core::store::{ClaimReply, LeaseStore, ReleaseReply, Revision};
use leader_core::{BackendKind, FencingToken};
use leader_tests::{Proxy, Reply, Server, elector_at, until};

use crate::steps::*;

#[tokio::test]
async fn a03_a_claim_with_the_token_in_force_is_granted_again() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    let granted = holder.wins(&store, LONG).await;
    assert_eq!(holder.wins(&store, LONG).await, granted);

    let (_, held_by, _) = candidate().loses(&store).await;
    assert_eq!(held_by, holder.node_id());
    // Full, but for its own.
    assert_eq!(holder.wins(&store, LONG).await, granted);
    assert_eq!(store.inspect(&name(NAME)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a03_a_claim_repeated_lengthens_its_lease_and_never_shortens_it() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    holder.wins(&store, SHORT).await;
    assert!(candidate().loses(&store).await.0 > LONG / 2);
    holder.wins(&store, LONG * 2).await;
    assert!(candidate().loses(&store).await.0 > LONG);
}

#[tokio::test]
async fn a03_reply_lost_then_resent() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = store_at(&proxy.url()).await;
    let (holder, peer) = (candidate().of_slots(2), candidate().of_slots(2));
    peer.wins(&store, LONG).await;

    let lost = proxy.lose_reply_to(holder.token.to_hex());
    let error = store.claim(&holder.to_claim(LONG)).await.unwrap_err();
    lost.happened().await;
    assert_eq!(error.kind(), BackendKind::Unreachable);
    assert!(error.may_have_run());

    let mut again = None;
    until("the connection is back", LIMIT, async || {
        again = store.claim(&holder.to_claim(LONG)).await.ok();
        again.is_some()
    })
    .await;
    let holders = store.inspect(&name(NAME)).await.unwrap();
    assert_eq!(holders.len(), 2, "{holders:?}");
    assert_eq!(
        again,
        Some(ClaimReply::Granted {
            slot: 1,
            fence: holders
                .iter()
                .map(leader_core::Holder::fence)
                .max()
                .unwrap(),
        })
    );
}

#[tokio::test]
async fn a_floor_lifts_a_record_and_its_slot_alike() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    let (slot, fence) = holder.wins(&store, LONG).await;
    let floor = fence.get() + 1000;
    let claim = holder.to_claim(LONG).at_least(Revision::new(floor));
    let lifted = ClaimReply::Granted {
        slot,
        fence: FencingToken::new(floor),
    };
    assert_eq!(store.claim(&claim).await.unwrap(), lifted);

    let record = server.command(&["HMGET", KEY, "f", "0"]).await;
    let digits = format!("{floor:016}");
    assert_eq!(record.array()[0].text(), digits);
    assert_eq!(record.array()[1].text()[48..64], digits);
    assert_eq!(holder.wins(&store, LONG).await.1.get(), floor);
}

#[tokio::test]
async fn g02_a_server_that_remembers_nothing_takes_no_number_below_its_time() {
    let server = Server::start().await;
    let store = store(&server).await;
    assert_eq!(store.time_by_now(), None, "nothing was answered yet");
    candidate_for("another").wins(&store, LONG).await;
    let time = store.time_by_now().expect("it has told its time");
    let behind = time - Duration::from_millis(500);
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap();
    let claim = candidate()
        .to_claim(LONG)
        .proposing(Revision::new(micros(behind)));
    match store.claim(&claim).await.unwrap() {
        ClaimReply::Granted { fence, .. } => assert!(fence.get() >= micros(time)),
        other => panic!("not granted: {other:?}"),
    }
}

#[tokio::test]
async fn a_floor_is_lifted_on_a_full_server() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    let (slot, fence) = holder.wins(&store, LONG).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let claim = holder
        .to_claim(LONG)
        .at_least(Revision::new(fence.get() + 1));
    let lifted = ClaimReply::Granted {
        slot,
        fence: FencingToken::new(fence.get() + 1),
    };
    assert_eq!(store.claim(&claim).await.unwrap(), lifted);
    let error = store.claim(&candidate_for("another").to_claim(LONG)).await;
    assert_eq!(error.unwrap_err().kind(), BackendKind::OutOfMemory);
}

#[tokio::test]
async fn a07_the_longest_and_the_shortest_lease_have_an_expiry() {
    let server = Server::start().await;
    let store = store(&server).await;
    for lease in [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_millis(10),
        Duration::from_secs(365 * 24 * 60 * 60),
        Duration::MAX,
    ] {
        let holder = candidate_for(&format!("lease-{}", lease.as_millis()));
        holder.wins(&store, lease).await;
        let key = format!("leader:{{{}}}:lease", holder.name);
        assert!(ttl(&server, &key).await > 0, "{lease:?}");
        holder.release(&store).await;
        assert!(ttl(&server, &key).await > 0, "{lease:?}");
    }
}

#[tokio::test]
async fn the_key_outlives_every_lease_by_half_a_day_and_is_gone_in_the_end() {
    const HOUR: i64 = 60 * 60 * 1000;
    let server = Server::start().await;
    let store = store(&server).await;
    let week = Duration::from_secs(7 * 24 * 60 * 60);

    let long = candidate().of_slots(2);
    long.wins(&store, week).await;
    let after_long = ttl(&server, KEY).await;
    assert!(after_long > (7 * 24 + 12) * HOUR, "{after_long}");
    assert!(after_long <= (7 * 24 + 24) * HOUR, "{after_long}");

    // A short lease beside it does not shorten what the long one needs, nor does its release.
    let short = candidate().of_slots(2);
    let (slot, _) = short.wins(&store, SHORT).await;
    assert!(ttl(&server, KEY).await > (7 * 24 + 12) * HOUR);
    store.release(&short.to_release()).await.unwrap();
    assert_eq!(slot, 1);
    assert!(ttl(&server, KEY).await > (7 * 24 + 12) * HOUR);

    // Whatever shortened it, the next grant and the next extension make it long enough again.
    server.command(&["PEXPIRE", KEY, "60000"]).await;
    long.wins(&store, LONG).await;
    assert!(ttl(&server, KEY).await > 12 * HOUR);
    server.command(&["PEXPIRE", KEY, "60000"]).await;
    long.extend(&store, week * 2).await.unwrap();
    assert!(ttl(&server, KEY).await > (14 * 24 + 12) * HOUR);
}

#[tokio::test]
async fn a08_two_names_never_share_a_key_or_a_counter() {
    let server = Server::start().await;
    let store = store(&server).await;
    let longest = "x".repeat(255);
    let names = [
        "a",
        "a:lease",
        "a:released",
        "A",
        "a/b",
        "a.b",
        "0",
        &longest,
    ];
    for of in names {
        candidate_for(of).wins(&store, LONG).await;
        candidate_for(of).loses(&store).await;
    }
    let keys = server.command(&["KEYS", "*"]).await;
    let keys: HashSet<String> = keys.array().iter().map(Reply::text).collect();
    assert_eq!(keys.len(), names.len(), "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("leader:{")));
}

#[tokio::test]
async fn a08_two_prefixes_do_not_see_each_other() {
    let server = Server::start().await;
    let ours = store(&server).await;
    let theirs = elector_at(server.url());
    let theirs = theirs.key_prefix("leader:a").connect_store().await.unwrap();
    candidate().wins(&ours, LONG).await;
    candidate().wins(&theirs, LONG).await;
}

#[tokio::test]
async fn a15_what_is_not_ours_is_a_clear_error_and_stays_as_it_is() {
    let server = Server::start().await;
    let store = store(&server).await;
    let long = "9".repeat(100);
    let foreign: [&[&str]; 11] = [
        &["SET", KEY, "theirs", "EX", "1000"],
        &["SET", KEY, "theirs"],
        &["RPUSH", KEY, "theirs"],
        &["HSET", KEY, "field", "value"],
        &["HSET", KEY, "0", ""],
        &["HSET", KEY, "0", &long],
        &["HSET", KEY, "f", "not a number"],
        &["HSET", KEY, "m", "7"],
        &["HSET", KEY, "f", "7", "m", "theirs"],
        &["HSET", KEY, "f", "7", "name", "theirs"],
        &["HSET", KEY, "f", "7", "0", "x".repeat(100).leak()],
    ];
    let holder = candidate();
    for command in foreign {
        server.command(&["DEL", KEY]).await;
        server.command(command).await;
        let (before, lives) = (dump(&server, KEY).await, ttl(&server, KEY).await);
        // A revision with nothing else to it could be ours; only claims look at every field.
        let looks_ours = command.get(2) == Some(&"f") && command.get(3) == Some(&"7");

        let mut errors = vec![store.claim(&holder.to_claim(LONG)).await.unwrap_err()];
        if !looks_ours {
            errors.extend(holder.extend(&store, LONG).await.err());
            errors.extend(store.release(&holder.to_release()).await.err());
            errors.extend(store.release(&holder.to_abandon(LONG)).await.err());
            errors.extend(store.inspect(&holder.name).await.err());
            errors.extend(store.evict(&holder.name).await.err());
            assert_eq!(errors.len(), 6, "{command:?}: {errors:?}");
        }
        for error in errors {
            assert_eq!(error.kind(), BackendKind::WrongType, "{command:?}: {error}");
            assert!(error.to_string().contains(KEY), "{command:?}: {error}");
            assert!(!error.may_have_run());
        }
        assert_eq!(dump(&server, KEY).await, before, "{command:?}");
        assert!((ttl(&server, KEY).await < 0) == (lives < 0), "{command:?}");
    }
}

#[tokio::test]
async fn g01_fencing_tokens_of_many_candidates_strictly_increase() {
    let server = Server::start().await;
    let store = store(&server).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut fences = Vec::new();
            while fences.len() < 50 {
                let candidate = candidate();
                if let ClaimReply::Granted { fence, .. } = candidate.claim(&store, LONG).await {
                    // A re-sent claim gets the same token.
                    assert_eq!(candidate.wins(&store, LONG).await.1, fence);
                    fences.push(fence);
                    assert!(matches!(
                        candidate.release(&store).await,
                        ReleaseReply::Released { revision, .. } if revision.get() > fence.get()
                    ));
                }
            }
            fences
        });
    }
    let each = tasks.join_all().await;
    assert!(each.iter().all(|fences| fences.is_sorted()));
    let all: HashSet<FencingToken> = each.iter().flatten().copied().collect();
    assert_eq!(all.len(), 20 * 50);
}

#[tokio::test]
async fn g02_fencing_tokens_grow_over_the_loss_of_all_records() {
    let server = Server::start().await;
    let store = store(&server).await;
    let mut last = candidate().wins(&store, LONG).await.1;
    let losses: [&[&str]; 3] = [&["DEL", KEY], &["FLUSHALL"], &["HDEL", KEY, "f", "0"]];
    for loss in losses {
        server.command(loss).await;
        let fence = candidate().wins(&store, LONG).await.1;
        assert!(fence > last, "after {loss:?}: {fence} is not over {last}");
        last = fence;
    }
}

#[tokio::test]
async fn g02_fencing_tokens_grow_over_a_failover_to_a_replica_without_the_last_grant() {
    let primary = Server::builder();
    let primary = primary.arg("--repl-diskless-sync-delay").arg("0");
    let (primary, replica) = (primary.start().await, Server::start().await);
    // Replication goes through a proxy, which can lose it.
    let link = Proxy::start(primary.addr());
    let port = link.addr().port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]).await;

    let before = store(&primary).await;
    let known = candidate();
    let (_, first) = known.wins(&before, LONG).await;
    let (released, _) = frees(&before, &known.to_release()).await;
    let last_number = async || {
        let number = replica.command(&["HGET", KEY, "f"]).await;
        (number != Reply::Nil).then(|| number.integer().cast_unsigned())
    };
    until("the replica has what was released", LIMIT, async || {
        last_number().await == Some(released.get())
    })
    .await;

    link.cut().await;
    let (_, last) = candidate().wins(&before, LONG).await;
    assert!(last > first);
    primary.kill().await;
    replica.command(&["REPLICAOF", "NO", "ONE"]).await;

    // Neither the lease nor its number came over.
    assert_eq!(last_number().await, Some(released.get()));
    let after = store(&replica).await;
    let (_, next) = candidate().wins(&after, LONG).await;
    assert!(next > last, "{next} is not over {last}");
}

#[tokio::test]
async fn g02_fencing_tokens_grow_when_the_servers_clock_was_ahead() {
    let server = Server::start().await;
    let store = store(&server).await;
    let first = candidate();
    let (_, fence) = first.wins(&store, LONG).await;
    first.release(&store).await;
    // As if the clock that issued the last one had been an hour ahead.
    let ahead = fence.get() + 3_600_000_000;
    server
        .command(&["HSET", KEY, "f", &ahead.to_string()])
        .await;

    let next = candidate();
    assert_eq!(next.wins(&store, LONG).await.1.get(), ahead + 1);
    let (revision, _) = frees(&store, &next.to_release()).await;
    assert_eq!(revision.get(), ahead + 2);
    let last = candidate();
    assert_eq!(last.wins(&store, LONG).await.1.get(), ahead + 3);
    // In the record as well, digit by digit.
    let kept = server.command(&["HGET", KEY, "f"]).await.text();
    assert_eq!(kept, (ahead + 3).to_string());
}

#[tokio::test]
async fn h04_scripts_are_loaded_again_between_any_two_steps() {
    let server = Server::start().await;
    let store = store(&server).await;
    let flush = async || server.command(&["SCRIPT", "FLUSH"]).await;
    for _ in 0..3 {
        let holder = candidate();
        flush().await;
        let granted = holder.wins(&store, LONG).await;
        flush().await;
        assert_eq!(holder.wins(&store, LONG).await, granted);
        flush().await;
        holder.extend(&store, LONG).await.unwrap();
        flush().await;
        assert_eq!(store.inspect(&holder.name).await.unwrap().len(), 1);
        flush().await;
        frees(&store, &holder.to_release()).await;
        flush().await;
        assert_eq!(store.evict(&holder.name).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn h04_scripts_are_flushed_under_load() {
    let server = Server::start().await;
    let store = store(&server).await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            for run in 0..50 {
                let holder = candidate_for(&format!("{task}/{run}"));
                holder.wins(&store, LONG).await;
                frees(&store, &holder.to_release()).await;
            }
        });
    }
    let mut flushes = server.connect().await.unwrap();
    while !tasks.is_empty() {
        flushes.call(&["SCRIPT", "FLUSH"]).await.unwrap();
        if let Ok(Some(task)) = tokio::time::timeout(Duration::ZERO, tasks.join_next()).await {
            task.unwrap();
        }
    }
}

#[tokio::test]
async fn a_claim_and_its_release_are_two_commands() {
    let server = Server::start().await;
    let store = store(&server).await;
    // The scripts are known from here on.
    let first = candidate();
    first.wins(&store, LONG).await;
    first.release(&store).await;

    server.reset_stats().await;
    let second = candidate();
    second.wins(&store, LONG).await;
    second.release(&store).await;
    let mut commands = server.commands().await;
    assert_eq!(commands.remove("evalsha"), Some(2));
    // And within them, work that is known.
    for (within, times) in [
        ("hgetall", 1),
        ("hmget", 1),
        ("hset", 2),
        ("time", 2),
        ("pttl", 1),
        ("publish", 1),
    ] {
        assert_eq!(commands.remove(within), Some(times), "{within}");
    }
    // The harness's own; servers before 7.0 count no sub-commands.
    let harness = ["info", "config", "config|resetstat"];
    commands.retain(|command, _| !harness.contains(&command.as_str()));
    assert!(commands.is_empty(), "{commands:?}");
}
