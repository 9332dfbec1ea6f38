//! a06, b03, a05: whatever is wrong with a server is an error that says so, in bounded time, and never contention.

use std::time::{Duration, Instant};

use leader_core::store::{ClaimReply, ExtendReply, LeaseStore, Release, ReleaseReply, StoreError};
use leader_core::{BackendKind, LeaderError, LossReason};
use leader_redis::RedisStore;
use leader_tests::{Proxy, Server, connect_in_time, elector_at, until, until_some};

use crate::impostor::Impostor;
use crate::steps::*;

/// Short, where a test waits for it to pass.
const TIMEOUT: Duration = Duration::from_millis(400);

async fn hasty_store(url: &str) -> RedisStore {
    let builder = elector_at(url).command_timeout(TIMEOUT);
    connect_in_time(async || builder.clone().connect_store().await).await
}

/// The error of each step that a candidate takes.
async fn errors_of_all_steps(store: &RedisStore, of: &Candidate) -> Vec<StoreError> {
    let errors: Vec<Option<StoreError>> = vec![
        store.claim(&of.to_claim(LONG)).await.err(),
        of.extend(store, LONG).await.err(),
        store.release(&of.to_release()).await.err(),
        store.release(&of.to_abandon(LONG)).await.err(),
        store.evict(&of.name).await.err(),
    ];
    let steps = errors.len();
    let errors: Vec<StoreError> = errors.into_iter().flatten().collect();
    assert_eq!(errors.len(), steps, "a step did not fail: {errors:?}");
    errors
}

#[track_caller]
fn all_are(errors: &[StoreError], kind: BackendKind, server: &Server) {
    for error in errors {
        assert_eq!(error.kind(), kind, "{error}");
        assert!(
            error.to_string().contains(&server.addr().to_string()),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a06_a_read_only_server_says_so_even_where_nothing_is_to_be_written() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (holder, other) = (candidate(), candidate_for("held-by-nobody"));
    holder.wins(&store, LONG).await;
    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;

    for each in [&holder, &candidate(), &other] {
        let errors = errors_of_all_steps(&store, each).await;
        all_are(&errors, BackendKind::ReadOnly, &server);
        assert!(errors.iter().all(|error| !error.may_have_run()));
    }
    // Who leads can still be read.
    assert_eq!(store.inspect(&holder.name).await.unwrap().len(), 1);

    server.command(&["REPLICAOF", "NO", "ONE"]).await;
    holder.extend(&store, LONG).await.unwrap();
}

#[tokio::test]
async fn a06_a_server_out_of_memory_says_so() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    let granted = holder.wins(&store, LONG).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let newcomer = candidate_for("newcomer");
    let error = store.claim(&newcomer.to_claim(LONG)).await.unwrap_err();
    assert!(!error.may_have_run());
    all_are(&[error], BackendKind::OutOfMemory, &server);
    // Contention is still contention.
    candidate().loses(&store).await;
    assert_eq!(server.command(&["DBSIZE"]).await.integer(), 1);

    // What is held stays held, and can be given back: neither makes the record grow.
    let extended = holder.extend(&store, LONG * 2).await.unwrap();
    assert_eq!(extended, ExtendReply::Extended);
    assert_eq!(holder.wins(&store, LONG * 3).await, granted);
    assert!(candidate().loses(&store).await.0 > LONG * 2);
    frees(&store, &holder.to_release().keeping(LONG / 2)).await;
    assert_eq!(store.evict(&holder.name).await.unwrap(), 1);
    let error = store.claim(&holder.to_claim(LONG)).await.unwrap_err();
    all_are(&[error], BackendKind::OutOfMemory, &server);
}

#[tokio::test]
async fn a06_a_batch_is_extended_by_a_server_out_of_memory() {
    let server = Server::start().await;
    let store = store(&server).await;
    let names = ["a", "b", "c"];
    let holders: Vec<Candidate> = names.into_iter().map(candidate_for).collect();
    for holder in &holders {
        holder.wins(&store, LONG).await;
    }
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let mut batch: Vec<_> = holders.iter().map(|h| h.extension(0, LONG * 2)).collect();
    batch.insert(1, candidate_for("nobody").extension(0, LONG));
    let replies = store.extend(&batch).await;
    let extended = replies
        .iter()
        .filter(|r| matches!(r, Ok(ExtendReply::Extended)));
    assert_eq!(extended.count(), names.len(), "{replies:?}");
    assert!(
        matches!(replies[1], Ok(ExtendReply::NotHeld(_))),
        "{replies:?}"
    );
}

/// A claim that nobody waits for any more must not come true, however full the server is.
#[tokio::test]
async fn a06_a_claim_is_abandoned_on_a_server_out_of_memory() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    frees(&store, &holder.to_abandon(LONG)).await;
    let other = candidate_for("never-claimed");
    let reply = send(&store, &other.to_abandon(LONG)).await;
    assert_eq!(reply, ReleaseReply::NotHeld(LossReason::Deleted));
    for given_up in [&holder, &other] {
        assert_eq!(given_up.claim(&store, LONG).await, ClaimReply::Ended);
    }
}

#[tokio::test]
async fn a06_a_server_busy_with_a_script_says_so() {
    let server = Server::start().await;
    let store = store(&server).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    server
        .command(&["CONFIG", "SET", "lua-time-limit", "1"])
        .await;
    let mut busy = server.connect().await.unwrap();
    busy.send(&["EVAL", "while true do end", "0"])
        .await
        .unwrap();
    let error = until_some("the server is busy", LIMIT, async || {
        holder.extend(&store, LONG).await.err()
    })
    .await;
    all_are(&[error], BackendKind::NotReady, &server);
    all_are(
        &errors_of_all_steps(&store, &holder).await,
        BackendKind::NotReady,
        &server,
    );
    server.command(&["SCRIPT", "KILL"]).await;
    until("the script is over", LIMIT, async || {
        holder.extend(&store, LONG).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a06_a_denied_command_says_so_and_has_neither_password_nor_user() {
    let rules = [
        ("unscripted", "-evalsha"),
        ("unwriting", "-hset -hdel"),
        ("elsewhere", "resetkeys ~theirs:*"),
    ];
    for (user, rule) in rules {
        let line = format!("{user} on >pa55word ~* &* +@all {rule}");
        let server = Server::builder().user(&line).start().await;
        let store = store_at(&server.url_for(user, "pa55word")).await;
        let errors = errors_of_all_steps(&store, &candidate()).await;
        all_are(&errors, BackendKind::Denied, &server);
        for error in errors {
            let told = format!("{error} {error:?}");
            assert!(!told.contains("pa55word") && !told.contains(user), "{told}");
            assert!(!error.may_have_run());
        }
    }
}

#[tokio::test]
async fn a_user_who_may_not_publish_still_frees_its_slot() {
    let line = "quiet on >pa55word ~* resetchannels +@all";
    let server = Server::builder().user(line).start().await;
    let store = store_at(&server.url_for("quiet", "pa55word")).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    let (_, told) = frees(&store, &holder.to_release()).await;
    assert_eq!(told, 0);
    candidate().wins(&store, LONG).await;
    assert_eq!(store.evict(&holder.name).await.unwrap(), 1);
}

#[tokio::test]
async fn a06_a_server_that_is_down_is_unreachable_and_comes_back() {
    let server = Server::start().await;
    let store = hasty_store(&server.url()).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    server.kill().await;
    until("commands are not even sent", LIMIT, async || {
        let errors = errors_of_all_steps(&store, &holder).await;
        assert!(
            errors.iter().all(|error| error.kind().is_transient()),
            "{errors:?}"
        );
        errors.iter().all(|error| {
            let words = error.to_string();
            error.kind() == BackendKind::Unreachable
                && !error.may_have_run()
                && words.contains("connection refused")
                && words.contains(&server.addr().to_string())
        })
    })
    .await;

    server.restart().await;
    until("the connection is back", LIMIT, async || {
        store.claim(&holder.to_claim(LONG)).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a06_a_hung_server_is_no_answer_in_time() {
    let server = Server::start().await;
    let store = hasty_store(&server.url()).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    server.freeze().await;
    let asked = Instant::now();
    let error = store.claim(&holder.to_claim(LONG)).await.unwrap_err();
    assert!(asked.elapsed() >= TIMEOUT / 2);
    assert!(error.may_have_run());
    let told = error.to_string();
    assert!(told.ends_with(": no answer within 400ms"), "{told}");
    all_are(&[error], BackendKind::TimedOut, &server);
    server.thaw().await;
    until("the server answers", LIMIT, async || {
        holder.extend(&store, LONG).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a06_a_half_open_connection_is_noticed_and_replaced() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = hasty_store(&proxy.url()).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    proxy.strand_connections();
    let error = store.claim(&holder.to_claim(LONG)).await.unwrap_err();
    assert_eq!(error.kind(), BackendKind::TimedOut);
    until("a new connection was made", LIMIT, async || {
        holder.extend(&store, LONG).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_command_that_was_given_up_in_the_queue_is_never_sent() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = hasty_store(&proxy.url()).await;
    // The script is known from here on.
    candidate().wins(&store, LONG).await;
    server.command(&["FLUSHALL"]).await;
    proxy.cut().await;
    // For a moment the client may take commands although it has no connection. Each of these is given up at once.
    let (mut given_up, mut refused) = (0, 0);
    until("commands are refused at once", LIMIT, async || {
        let claim = candidate_for(&format!("{given_up}-{refused}")).to_claim(LONG);
        match tokio::time::timeout(Duration::from_millis(1), store.claim(&claim)).await {
            Ok(Err(error)) if !error.may_have_run() => refused += 1,
            Ok(Ok(reply)) => panic!("answered without a connection: {reply:?}"),
            _ => given_up += 1,
        }
        refused == 10
    })
    .await;
    // Until the last of them has had its time, as long as a queue could keep it.
    tokio::time::sleep(TIMEOUT).await;
    proxy.heal().await;
    until("the connection is back", LIMIT, async || {
        store.inspect(&name(NAME)).await.is_ok()
    })
    .await;
    assert_eq!(server.command(&["DBSIZE"]).await.integer(), 0);
}

#[tokio::test]
async fn c03_a_release_over_a_cut_connection_succeeds_after_it() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = hasty_store(&proxy.url()).await;
    let holder = candidate();
    holder.wins(&store, LONG).await;
    proxy.cut().await;
    let error = store.release(&holder.to_release()).await.unwrap_err();
    assert!(error.kind().is_transient(), "{error}");
    proxy.heal().await;
    until("the release gets through", LIMIT, async || {
        // Which of the two depends on whether an earlier one was executed and only its answer lost.
        matches!(
            store.release(&holder.to_release()).await,
            Ok(ReleaseReply::Released { .. } | ReleaseReply::NotHeld(LossReason::Deleted))
        )
    })
    .await;
    candidate().wins(&store, LONG).await;
}

#[tokio::test]
async fn a_late_claim_is_undone_by_the_release_that_was_sent_after_it() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let store = hasty_store(&proxy.url()).await;
    // The scripts are known from here on.
    let other = candidate_for("other");
    other.wins(&store, LONG).await;
    other.release(&store).await;
    let given_up = candidate();
    // The claim is held up on its way; its attempt gives it up and ends its token over another connection.
    let captured = proxy.capture_request(given_up.token.to_hex());
    store.claim(&given_up.to_claim(LONG)).await.unwrap_err();
    let captured = captured.caught().await;
    until("the abandonment gets through", LIMIT, async || {
        store.release(&given_up.to_abandon(LONG)).await.is_ok()
    })
    .await;
    let late = captured.deliver().await;
    assert_eq!(late.array()[0].text(), "ended");
    candidate().wins(&store, LONG).await;
}

#[tokio::test]
async fn a06_answers_of_a_server_that_is_not_ready() {
    let impostor = Impostor::start("").await;
    let store = hasty_store(&impostor.url()).await;
    for (words, kind) in [
        (
            "LOADING Redis is loading the dataset in memory",
            BackendKind::NotReady,
        ),
        ("MASTERDOWN Link with MASTER is down", BackendKind::NotReady),
        ("TRYAGAIN Multiple keys request", BackendKind::NotReady),
        ("NOREPLICAS Not enough good replicas", BackendKind::NotReady),
        ("MISCONF Redis is configured to save", BackendKind::ReadOnly),
        ("NOAUTH Authentication required.", BackendKind::Denied),
        ("ERR unknown command 'EVALSHA'", BackendKind::Other),
    ] {
        impostor.says(&format!("-{words}\r\n"));
        for error in errors_of_all_steps(&store, &candidate()).await {
            assert_eq!(error.kind(), kind, "{words}");
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.to_string().contains(&impostor.addr.to_string()));
        }
    }
    // This one ends the connection, as fred takes it for the end of a cluster.
    impostor.says("-CLUSTERDOWN The cluster is down\r\n");
    let error = store.claim(&candidate().to_claim(LONG)).await.unwrap_err();
    assert_eq!(error.kind(), BackendKind::NotReady, "{error}");
    until("the connection is back", LIMIT, async || {
        let error = store.inspect(&name(NAME)).await.unwrap_err();
        error.kind() == BackendKind::NotReady && !error.may_have_run()
    })
    .await;
}

#[tokio::test]
async fn a06_a_server_that_loads_its_data_says_so_before_commands_are_sent() {
    const LOADING: &str = "-LOADING Redis is loading the dataset in memory\r\n";
    let impostor = Impostor::start("").await;
    let store = hasty_store(&impostor.url()).await;
    impostor.greets(LOADING);
    let connect = elector_at(impostor.url()).connect().await.unwrap_err();
    assert!(
        matches!(&connect, LeaderError::Backend { kind, .. } if *kind == BackendKind::NotReady),
        "{connect}"
    );
    // Ends the connection, as a restart does.
    impostor.says("no answer\r\n");
    until(
        "it is known why there is no connection",
        LIMIT,
        async || {
            let error = store.claim(&candidate().to_claim(LONG)).await.unwrap_err();
            let words = error.to_string();
            error.kind() == BackendKind::NotReady
                && words.contains("LOADING")
                && !error.may_have_run()
        },
    )
    .await;
}

#[tokio::test]
async fn a_strange_answer_is_never_a_grant() {
    let impostor = Impostor::start("").await;
    let store = hasty_store(&impostor.url()).await;
    for answer in [
        "+OK\r\n",
        ":1\r\n",
        "$-1\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*1\r\n$7\r\ngranted\r\n",
        "*3\r\n$7\r\ngranted\r\n:-1\r\n:5\r\n",
        "*3\r\n$7\r\ngranted\r\n$1\r\n0\r\n$1\r\n5\r\n",
        "*2\r\n$7\r\ngranted\r\n*1\r\n:1\r\n",
        "$6\r\n\u{fffd}\u{fffd}\r\n",
    ] {
        impostor.says(answer);
        for error in errors_of_all_steps(&store, &candidate()).await {
            assert_eq!(
                error.kind(),
                BackendKind::MalformedReply,
                "{answer:?}: {error}"
            );
            assert!(error.may_have_run());
        }
        let batch = [
            candidate().extension(0, LONG),
            candidate().extension(0, LONG),
        ];
        assert!(store.extend(&batch).await.iter().all(Result::is_err));
    }
    // Bytes that are no answer at all end the connection.
    impostor.says("HTTP/1.1 200 OK\r\n\r\n");
    store.claim(&candidate().to_claim(LONG)).await.unwrap_err();
}

#[tokio::test]
async fn a05_a_claim_that_was_executed_after_its_time_is_found_by_its_token() {
    let server = Server::start().await;
    let store = hasty_store(&server.url()).await;
    let pause = ["CLIENT", "PAUSE", "100000", "WRITE"];
    server.command(&pause).await;
    let late = candidate();
    let error = store.claim(&late.to_claim(LONG)).await.unwrap_err();
    assert_eq!(error.kind(), BackendKind::TimedOut);
    server.command(&["CLIENT", "UNPAUSE"]).await;
    // Whether or not the claim came through: after this it is gone, and stays gone.
    until("the abandonment gets through", LIMIT, async || {
        store.release(&late.to_abandon(LONG)).await.is_ok()
    })
    .await;
    assert!(store.inspect(&late.name).await.unwrap().is_empty());
    assert_eq!(late.claim(&store, LONG).await, ClaimReply::Ended);
    let unseen = Release::new(late.name.clone(), late.token, 0);
    assert!(matches!(
        send(&store, &unseen).await,
        ReleaseReply::NotHeld(_)
    ));
}
