//! Connecting, and leaving nothing behind.

use std::time::{Duration, Instant};

use leader_core::store::LeaseStore;
use leader_core::{BackendKind, LeaderError, Step};
use leader_redis::fred::interfaces::ClientLike;
use leader_redis::fred::types::config::{Config, ServerConfig};
use leader_redis::fred::types::{Builder, RespVersion};
use leader_redis::{Protocol, RedisElector, RedisElectorBuilder};
use leader_tests::{Proxy, Server, elector_at, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::steps::*;

const TIMEOUT: Duration = Duration::from_millis(500);

fn to(url: &str) -> RedisElectorBuilder {
    elector_at(url).command_timeout(TIMEOUT)
}

#[track_caller]
fn refused(error: &LeaderError, kind: BackendKind, address: &str) {
    let LeaderError::Backend {
        step,
        name,
        kind: told,
        ..
    } = error
    else {
        panic!("not the server's failure: {error:?}");
    };
    assert_eq!((*step, *told), (Step::Connect, kind), "{error}");
    assert!(name.is_none());
    let told = format!("{error} {error:?}");
    assert!(told.contains(address), "{told}");
    assert!(!told.contains("pa55word"), "{told}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let server = Server::start().await;
    let (url, address) = (server.url(), server.addr().to_string());
    drop(server);
    let error = to(&url).connect().await.unwrap_err();
    refused(&error, BackendKind::Unreachable, &address);
    assert_eq!(
        error.to_string(),
        format!("connect to the store: the store is unreachable: {address}: connection refused")
    );

    let error = to("redis://:pa55word@no-such-host.invalid:6379")
        .connect()
        .await
        .unwrap_err();
    let kinds = [BackendKind::Unreachable, BackendKind::TimedOut];
    assert!(
        matches!(&error, LeaderError::Backend { kind, .. } if kinds.contains(kind)),
        "{error}"
    );
    let told = error.to_string();
    assert!(!told.contains("pa55word"), "{told}");
    // In people's words, not in those of a program that prints its variables.
    assert!(!told.contains(['{', '"']), "{told}");
}

#[tokio::test]
async fn something_else_than_a_redis_server_is_asked_about() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let web_server = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = client.read(&mut request).await;
            let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
            let _ = client.write_all(answer).await;
        }
    });
    let url = format!("redis://{address}");
    let error = to(&url).connect().await.unwrap_err();
    refused(&error, BackendKind::MalformedReply, &address);
    let told = error.to_string();
    assert!(told.ends_with("is this a Redis server?"), "{told}");
    web_server.abort();
}

#[tokio::test]
async fn a_wrong_password_is_denied() {
    let server = Server::builder().password("pa55word!").start().await;
    let address = server.addr().to_string();
    for url in [
        format!("redis://:pa55word@{address}"),
        format!("redis://nobody:pa55word@{address}"),
        format!("redis://{address}"),
    ] {
        let error = to(&url).connect().await.unwrap_err();
        refused(&error, BackendKind::Denied, &address);
    }
    to(&server.url()).connect().await.unwrap();
}

#[tokio::test]
async fn a_password_may_have_any_character() {
    let password = "pa55 \"w'o\\rd\" ä\t#";
    let server = Server::builder().password(password).start().await;
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let builder = RedisElector::builder().url(server.url()).protocol(protocol);
        // Commands and messages.
        used(builder).await;
    }
    let mut config = Config::from_url("redis://127.0.0.1").unwrap();
    config.server = ServerConfig::new_centralized("127.0.0.1", server.port());
    config.password = Some(password.to_owned());
    let client = Builder::from_config(config).build().unwrap();
    client.init().await.unwrap();
    used(RedisElector::builder().client(client.clone())).await;
    client.quit().await.unwrap();
}

#[tokio::test]
async fn a_hung_server_is_no_answer_in_time() {
    let server = Server::start().await;
    server.freeze().await;
    let asked = Instant::now();
    let error = to(&server.url()).connect().await.unwrap_err();
    refused(&error, BackendKind::TimedOut, &server.addr().to_string());
    // The time that the option has, not what of it is used within.
    let told = error.to_string();
    assert!(told.ends_with(": no answer within 500ms"), "{told}");
    assert!(asked.elapsed() < LIMIT);

    let proxy = Proxy::start(server.addr());
    proxy.blackhole();
    let error = to(&proxy.url()).connect().await.unwrap_err();
    refused(&error, BackendKind::TimedOut, &proxy.addr().to_string());
    server.thaw().await;
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_refused() {
    let server = Server::start().await;
    let url = format!("{}/200", server.url());
    let error = to(&url).connect().await.unwrap_err();
    refused(&error, BackendKind::Other, &server.addr().to_string());
    assert!(error.to_string().contains("out of range"), "{error}");

    let store = to(&format!("{}/3", server.url()))
        .connect_store()
        .await
        .unwrap();
    candidate().wins(&store, LONG).await;
    assert_eq!(server.command(&["DBSIZE"]).await.integer(), 0);
}

#[tokio::test]
async fn options_that_cannot_be_honoured_are_refused() {
    let url = "redis://billing:pa55word@127.0.0.1:1";
    let client = || Builder::default_centralized().build().unwrap();
    for (builder, named) in [
        (RedisElector::builder(), "url"),
        (to("redis://"), "url"),
        (to("rediss://:pa55word@cache"), "url"),
        (to("redis-cluster://:pa55word@cache/3"), "url"),
        (to("redis-sentinel://:pa55word@cache"), "url"),
        (to(url).client(client()), "url"),
        (to(url).key_prefix(""), "key_prefix"),
        (to(url).key_prefix("a{b}"), "key_prefix"),
        (to(url).command_timeout(Duration::ZERO), "command_timeout"),
        (
            to(url).command_timeout(Duration::from_micros(999)),
            "command_timeout",
        ),
        (
            to(url).command_timeout(Duration::from_secs(61)),
            "command_timeout",
        ),
        (
            RedisElector::builder().client(client()).own_runtime(true),
            "client",
        ),
        (
            RedisElector::builder()
                .client(client())
                .protocol(Protocol::Resp3),
            "client",
        ),
    ] {
        let shown = format!("{builder:?}");
        assert!(
            !shown.contains("pa55word") && !shown.contains("billing"),
            "{shown}"
        );
        let error = builder.connect().await.unwrap_err();
        assert!(
            matches!(&error, LeaderError::InvalidOptions { option, .. } if *option == named),
            "{named}: {error:?}"
        );
        assert!(
            !format!("{error} {error:?}").contains("pa55word"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn nothing_shows_the_password() {
    let server = Server::builder().password("pa55word").start().await;
    let elector = elector_at(server.url()).connect().await.unwrap();
    let shown = format!("{elector:?} {:?}", elector.store());
    assert!(shown.contains(&server.addr().to_string()), "{shown}");
    assert!(!shown.contains("pa55word"), "{shown}");
}

async fn connections(server: &Server) -> usize {
    let list = server.command(&["CLIENT", "LIST"]).await.text();
    // But for the one that asks.
    list.lines().count() - 1
}

/// Runs `scene` and waits until the server and the runtime have as little to do as before it.
async fn leaves_nothing_behind(server: &Server, scene: impl AsyncFnOnce()) {
    let before = connections(server).await;
    let metrics = Handle::current().metrics();
    let tasks = metrics.num_alive_tasks();
    scene().await;
    until("no connection is left", LIMIT, async || {
        connections(server).await <= before
    })
    .await;
    until("no task is left", LIMIT, async || {
        metrics.num_alive_tasks() <= tasks
    })
    .await;
}

async fn used(builder: RedisElectorBuilder) -> RedisElector {
    let elector = builder.connect().await.unwrap();
    let store = elector.store();
    let holder = candidate();
    holder.wins(store, LONG).await;
    let (hints, _told) = leader_core::store::hints();
    let revision = candidate().loses(store).await.2;
    let watching = store.watch(&holder.name, revision, hints).await.unwrap();
    holder.release(store).await;
    drop(watching);
    elector
}

#[tokio::test]
async fn c07_a_dropped_elector_leaves_nothing_behind() {
    let server = Server::start().await;
    for own in [false, true] {
        leaves_nothing_behind(&server, async || {
            for run in 0..5 {
                let elector = used(elector_at(server.url()).own_runtime(own)).await;
                assert!(connections(&server).await >= 2);
                let clone = elector.clone();
                drop(elector);
                candidate_for(&format!("{own}/{run}"))
                    .wins(clone.store(), SHORT)
                    .await;
            }
        })
        .await;
    }
    until("no thread is left", LIMIT, async || {
        threads("leader-redis") == 0
    })
    .await;
}

fn threads(named: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux tells its threads");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks
        .filter_map(name)
        .filter(|comm| comm.trim() == named)
        .count()
}

#[tokio::test]
async fn c07_a_closed_elector_leaves_nothing_behind() {
    let server = Server::start().await;
    for own in [false, true] {
        leaves_nothing_behind(&server, async || {
            let elector = used(elector_at(server.url()).own_runtime(own)).await;
            leader_core::ElectorExt::shutdown(&elector).await;
            // Of that elector, its connections are gone although it is still there.
            until("no connection is left", LIMIT, async || {
                connections(&server).await == 0
            })
            .await;
            let late = candidate();
            let error = elector
                .store()
                .claim(&late.to_claim(LONG))
                .await
                .unwrap_err();
            assert!(!error.may_have_run(), "{error}");
            let (hints, _told) = leader_core::store::hints();
            let since = leader_core::store::Revision::default();
            elector
                .store()
                .watch(&late.name, since, hints)
                .await
                .unwrap_err();
        })
        .await;
    }
}

#[tokio::test]
async fn c07_a_failed_connect_leaves_nothing_behind() {
    let server = Server::builder().password("pa55word").start().await;
    leaves_nothing_behind(&server, async || {
        let wrong = format!("redis://:wrong@{}", server.addr());
        for own in [false, true] {
            to(&wrong).own_runtime(own).connect().await.unwrap_err();
            // Given up half-way.
            let connect = to(&server.url()).own_runtime(own).connect();
            let _ = tokio::time::timeout(Duration::from_micros(300), connect).await;
        }
    })
    .await;
}

#[tokio::test]
async fn c09_closing_ends_in_time_when_the_server_is_gone() {
    let server = Server::start().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    for frozen in [true, false] {
        let elector = used(to(&server.url()).command_timeout(TIMEOUT * 2)).await;
        if frozen {
            server.freeze().await;
        } else {
            server.kill().await;
        }
        let asked = Instant::now();
        elector.store().close().await;
        drop(elector);
        assert!(asked.elapsed() < LIMIT);
        until("no task is left", LIMIT, async || {
            Handle::current().metrics().num_alive_tasks() <= tasks
        })
        .await;
        server.restart().await;
    }
}

#[test]
fn c06_electors_and_watches_are_dropped_anywhere() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let servers = runtime();
    let server = servers.block_on(Server::start());
    for own in [false, true] {
        // Outside any runtime, and after theirs has ended.
        for drop_before_runtime in [false, true] {
            let short = runtime();
            let (elector, watching) = short.block_on(async {
                let builder = elector_at(server.url()).own_runtime(own);
                let elector = builder.connect().await.unwrap();
                candidate().claim(elector.store(), SHORT).await;
                let (hints, _told) = leader_core::store::hints();
                let since = leader_core::store::Revision::default();
                let watching = elector.store().watch(&name(NAME), since, hints).await;
                (elector, watching.unwrap())
            });
            if drop_before_runtime {
                drop((watching, elector));
                drop(short);
            } else {
                drop(short);
                // Of no use any more, unless its runtime is its own; but nothing worse.
                let claim = candidate_for("late").to_claim(SHORT);
                let claimed = servers.block_on(elector.store().claim(&claim));
                assert_eq!(claimed.is_ok(), own, "{claimed:?}");
                drop((watching, elector));
            }
        }
        // By a task, while its runtime shuts down.
        let short = runtime();
        short.block_on(async {
            let builder = elector_at(server.url()).own_runtime(own);
            let elector = builder.connect().await.unwrap();
            let (hints, _told) = leader_core::store::hints();
            let since = leader_core::store::Revision::default();
            let watching = elector
                .store()
                .watch(&name(NAME), since, hints)
                .await
                .unwrap();
            tokio::spawn(async move {
                let _both = (watching, elector);
                std::future::pending::<()>().await;
            });
        });
    }
    servers.block_on(async {
        until("no connection is left", LIMIT, async || {
            connections(&server).await == 0
        })
        .await;
    });
}

async fn shared_client(
    server: &Server,
    version: RespVersion,
) -> leader_redis::fred::clients::Client {
    let mut config = Config::from_url(&server.url()).unwrap();
    config.version = version;
    let client = Builder::from_config(config).build().unwrap();
    client.init().await.unwrap();
    client
}

#[tokio::test]
async fn a_shared_client_is_used_and_left_as_it_was() {
    for version in [RespVersion::RESP2, RespVersion::RESP3] {
        let server = Server::builder().password("pa55word").start().await;
        let client = shared_client(&server, version).await;
        leaves_nothing_behind(&server, async || {
            let elector = used(RedisElector::builder().client(client.clone())).await;
            // One more, for messages.
            assert_eq!(connections(&server).await, 2);
            leader_core::ElectorExt::shutdown(&elector).await;
        })
        .await;
        let pong = tokio::time::timeout(LIMIT, client.ping::<String>(None)).await;
        assert_eq!(pong.expect("the client goes on").unwrap(), "PONG");
        assert_eq!(connections(&server).await, 1);
        client.quit().await.unwrap();
    }
}

#[tokio::test]
async fn a_shared_client_that_is_not_connected_is_a_clear_error() {
    let server = Server::start().await;
    let config = Config::from_url(&server.url()).unwrap();
    let client = Builder::from_config(config).build().unwrap();
    let error = RedisElector::builder()
        .client(client)
        .connect()
        .await
        .unwrap_err();
    refused(&error, BackendKind::Unreachable, &server.addr().to_string());
    assert!(error.to_string().contains("init()"), "{error}");
}
