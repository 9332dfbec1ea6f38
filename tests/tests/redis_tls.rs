//! TLS: everything goes by it, only whom we trust is spoken to, and what is wrong is said soon.
#![cfg(feature = "tls")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use leader_core::{BackendKind, ElectorExt, LeaderError, LeaderEvent, Step};
use leader_redis::{RedisElector, RedisElectorBuilder};
use leader_tests::{
    Authority, Server, at_once, elector_at, is_skipped, lead, ms, options, patient, quorum_at,
    until, waiting,
};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

/// Far more than anything here takes on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(10);
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

fn trusting(url: &str, authority: &Authority) -> RedisElectorBuilder {
    let builder = elector_at(url).ca_certificates(authority.pem());
    builder.command_timeout(Duration::from_secs(5))
}

async fn connect(builder: RedisElectorBuilder) -> RedisElector {
    match builder.connect().await {
        Ok(elector) => elector,
        Err(error) => panic!("no elector: {error}"),
    }
}

/// Why there is no connection, in the error's own words; it is no grant, no hang and no other failure.
async fn refusal(builder: RedisElectorBuilder) -> String {
    let refused = tokio::time::timeout(LIMIT, builder.connect()).await;
    let error = refused.expect("it is bounded").expect_err("it is refused");
    let LeaderError::Backend { step, kind, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*step, Step::Connect, "{error}");
    let kinds = [BackendKind::Unreachable, BackendKind::TimedOut];
    assert!(kinds.contains(kind), "{kind:?}: {error}");
    let told = error.to_string();
    assert!(told.contains("(TLS)"), "{told}");
    assert!(!told.contains("pa55word"), "{told}");
    told
}

/// Of the server's connections, how many came in by TLS, and how many of them have subscribed.
async fn by_tls(server: &Server) -> (usize, usize) {
    let url = server.tls_url("127.0.0.1");
    let local = format!(
        "laddr={} ",
        url.rsplit(['/', '@']).next().unwrap_or_default()
    );
    let list = server.command(&["CLIENT", "LIST"]).await.text();
    let ours = list.lines().filter(|line| line.contains(&local));
    let subscribed = ours.clone().filter(|line| !line.contains(" sub=0 "));
    (ours.count(), subscribed.count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elections_waits_wakes_and_extensions_go_by_tls() {
    let authority = Authority::new();
    let certificate = authority.issue(&HOSTS);
    let builder = Server::builder().password("pa55word");
    let server = builder.tls(&certificate, "no").start().await;
    for host in HOSTS {
        let url = server.tls_url(host);
        let a = connect(trusting(&url, &authority)).await;
        let b = connect(trusting(&url, &authority).own_runtime(true)).await;

        let extended = options(waiting(Duration::ZERO, ms(3000)).auto_extend(true));
        let mut events = a.events();
        let lease = lead(&a, "x", &extended).await;
        assert!(is_skipped(&b, "x", &at_once()).await);
        let extended =
            async { while !matches!(events.next().await, Some(LeaderEvent::Extended { .. })) {} };
        let extended = tokio::time::timeout(LIMIT, extended).await;
        extended.expect("it is extended");

        let waiter = b.clone();
        let waiting = tokio::spawn(async move { lead(&waiter, "x", &patient()).await });
        until("the waiter listens, by TLS as well", LIMIT, async || {
            by_tls(&server).await == (3, 1)
        })
        .await;
        lease.release().await.unwrap();
        // Its lease had not run out: it was woken.
        let next = tokio::time::timeout(LIMIT, waiting)
            .await
            .expect("woken")
            .unwrap();
        next.release().await.unwrap();

        a.shutdown().await;
        b.shutdown().await;
        until("no connection is left", LIMIT, async || {
            by_tls(&server).await == (0, 0)
        })
        .await;
    }
}

#[tokio::test]
async fn a_connection_that_was_lost_comes_back_by_tls() {
    let authority = Authority::new();
    let server = Server::builder();
    let server = server.tls(&authority.issue(&HOSTS), "no").start().await;
    let elector = connect(trusting(&server.tls_url("localhost"), &authority)).await;
    server.restart().await;
    until("it is elected again", LIMIT, async || {
        matches!(elector.try_acquire("x", &at_once()).await, Ok(Some(_)))
    })
    .await;
    assert_eq!(by_tls(&server).await.0, 1);
}

#[tokio::test]
async fn a_certificate_that_is_not_to_be_trusted_is_refused() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    for (certificate, why) in [
        (theirs.issue(&HOSTS), "an authority that is not trusted"),
        (ours.issue(&["cache.internal"]), "for another host"),
        (ours.issue_expired(&HOSTS), "has expired"),
    ] {
        let builder = Server::builder().password("pa55word");
        let server = builder.tls(&certificate, "no").start().await;
        for host in HOSTS {
            let told = refusal(trusting(&server.tls_url(host), &ours)).await;
            assert!(told.contains(why), "{why}: {told}");
        }
        // Nor is it one that the system trusts.
        let told = refusal(elector_at(server.tls_url("localhost"))).await;
        assert!(told.contains("certificate"), "{told}");
        assert_eq!(server.command_calls("evalsha").await, 0);
    }
}

/// Each URL that asks for TLS, of a server, a cluster, and a primary behind sentinels.
fn urls_at(addr: SocketAddr) -> [String; 3] {
    [
        format!("rediss://:pa55word@{addr}"),
        format!("rediss-cluster://:pa55word@{addr}"),
        format!(
            "valkeys-sentinel://:pa55word@{addr}?sentinelServiceName=x&sentinelPassword=pa55word"
        ),
    ]
}

#[tokio::test]
async fn a_server_without_tls_is_refused_and_told_nothing() {
    let authority = Authority::new();
    let server = Server::start().await;
    for url in urls_at(server.addr()) {
        refusal(elector_at(&url).command_timeout(ms(500))).await;
        refusal(trusting(&url, &authority).command_timeout(ms(500))).await;
    }
    assert_eq!(server.command_calls("auth").await, 0);

    // All that goes over the wire begins a handshake.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let urls = urls_at(listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = tokio::spawn({
        let heard = heard.clone();
        async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut bytes = [0; 4096];
                let read = client.read(&mut bytes).await.unwrap_or(0);
                heard.lock().await.push(bytes[..read].to_vec());
                // Closed: it would have to connect anew to go on in plain text.
            }
        }
    });
    for url in urls {
        let before = heard.lock().await.len();
        refusal(trusting(&url, &authority).command_timeout(ms(500))).await;
        assert!(heard.lock().await.len() > before, "{url} sent nothing");
    }
    listening.abort();
    let heard = heard.lock().await;
    for bytes in heard.iter() {
        assert_eq!(
            bytes.first(),
            Some(&22),
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[tokio::test]
async fn a_cluster_is_spoken_to_by_tls() {
    let authority = Authority::new();
    let builder = Server::builder().tls(&authority.issue(&HOSTS), "no");
    let cluster = [("--cluster-enabled", "yes"), ("--tls-cluster", "yes")];
    let builder = cluster.iter().fold(builder, |builder, (option, value)| {
        builder.arg(option).arg(value)
    });
    let server = builder.start().await;
    let slots: Vec<String> = (0..16_384).map(|slot| slot.to_string()).collect();
    let mut all = vec!["CLUSTER", "ADDSLOTS"];
    all.extend(slots.iter().map(String::as_str));
    server.command(&all).await;
    until("it serves all slots", LIMIT, async || {
        let info = server.command(&["CLUSTER", "INFO"]).await.text();
        info.contains("cluster_state:ok")
    })
    .await;

    let url = server.tls_url("localhost");
    let url = url.replace("rediss://", "rediss-cluster://");
    a_waiter_is_woken_by_tls(&url, &authority, &server).await;
}

#[tokio::test]
async fn sentinels_and_their_primary_are_spoken_to_by_tls() {
    let authority = Authority::new();
    let certificate = authority.issue(&HOSTS);
    let server = Server::builder().tls(&certificate, "no").start().await;
    // What a sentinel watches over it asks by TLS, and so it names that port.
    let sentinel = Server::builder().sentinel().tls(&certificate, "no");
    let sentinel = sentinel.arg("--tls-replication").arg("yes").start().await;
    let port = server.tls_url("localhost");
    let port = port.rsplit(':').next().unwrap_or_default();
    let watched = ["SENTINEL", "MONITOR", "billing", "127.0.0.1", port, "1"];
    assert_eq!(sentinel.command(&watched).await.text(), "OK");

    let url = sentinel.tls_url("localhost");
    let url = url.replace("rediss://", "rediss-sentinel://");
    let url = url + "?sentinelServiceName=billing";
    a_waiter_is_woken_by_tls(&url, &authority, &server).await;
}

/// Two candidates at `url`, which leads to `server`: one waits, and is woken. Nothing of it goes without TLS.
async fn a_waiter_is_woken_by_tls(url: &str, authority: &Authority, server: &Server) {
    let holder = connect(trusting(url, authority)).await;
    let waiter = connect(trusting(url, authority)).await;
    let lease = lead(&holder, "x", &at_once()).await;
    let waiting = tokio::spawn(async move { lead(&waiter, "x", &patient()).await });
    until("the waiter listens", LIMIT, async || {
        let mut listens = false;
        for kind in ["CHANNELS", "SHARDCHANNELS"] {
            let channels = server.command(&["PUBSUB", kind, "leader:*"]).await;
            listens |= channels.error().is_none() && !channels.array().is_empty();
        }
        listens
    })
    .await;
    let list = server.command(&["CLIENT", "LIST"]).await.text();
    let plain = format!("laddr={} ", server.addr());
    let plain = list.lines().filter(|line| line.contains(&plain));
    assert_eq!(plain.count(), 1, "the harness and somebody else: {list}");
    lease.release().await.unwrap();
    let next = tokio::time::timeout(LIMIT, waiting).await;
    drop(next.expect("woken").unwrap());
}

#[tokio::test]
async fn the_servers_of_a_quorum_are_spoken_to_by_tls() {
    let authority = Authority::new();
    let certificate = authority.issue(&HOSTS);
    let own = authority.issue(&["billing"]);
    let start = || Server::builder().tls(&certificate, "yes").start();
    let servers = [start().await, start().await, start().await];
    let mut urls = servers.each_ref().map(|server| server.tls_url("localhost"));
    let quorum = |urls: &[String; 3]| {
        let builder = quorum_at(urls.clone()).ca_certificates(authority.pem());
        let builder = builder.client_certificate(own.chain.clone(), own.key.clone());
        builder.command_timeout(Duration::from_secs(5))
    };
    let elector = quorum(&urls).connect().await.expect("all answer");
    drop(lead(&elector, "x", &at_once()).await);
    for server in &servers {
        assert_eq!(by_tls(server).await, (1, 0));
    }
    // Not even one of them goes without.
    urls[2] = servers[2].url();
    let error = quorum(&urls).connect().await.unwrap_err();
    assert!(error.to_string().contains("asks for no TLS"), "{error}");
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_ours() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Server::builder();
    let server = server.tls(&authority.issue(&HOSTS), "yes").start().await;
    let to = || trusting(&server.tls_url("localhost"), &authority);

    let (own, foreign) = (authority.issue(&["billing"]), other.issue(&["billing"]));
    let elector = connect(to().client_certificate(own.chain.clone(), own.key.clone())).await;
    drop(lead(&elector, "x", &at_once()).await);

    let told = refusal(to()).await;
    assert!(told.contains("client_certificate"), "{told}");
    let told = refusal(to().client_certificate(foreign.chain, foreign.key)).await;
    assert!(told.contains("client_certificate"), "{told}");
}

#[tokio::test]
async fn all_servers_of_a_quorum_are_spoken_to_by_tls() {
    let (authority, other) = (Authority::new(), Authority::new());
    let certificate = authority.issue(&HOSTS);
    let start = || Server::builder().tls(&certificate, "yes").start();
    let servers = [start().await, start().await, start().await];
    let urls = servers.each_ref().map(|server| server.tls_url("localhost"));
    let ours = authority.issue(&["billing"]);
    let trusting = |authority: &Authority| {
        let builder = leader_tests::quorum_at(urls.clone()).ca_certificates(authority.pem());
        builder.client_certificate(ours.chain.clone(), ours.key.clone())
    };
    let candidate = trusting(&authority).connect().await.expect("all answer");
    lead(&candidate, "x", &at_once())
        .await
        .release()
        .await
        .unwrap();
    for server in &servers {
        assert_eq!(by_tls(server).await.0, 1);
    }
    let told = trusting(&other).connect().await.unwrap_err().to_string();
    assert!(told.contains("(TLS)"), "{told}");
}

#[tokio::test]
async fn what_is_no_certificate_is_refused_before_anything_is_sent() {
    let authority = Authority::new();
    let own = authority.issue(&["billing"]);
    let tls = || RedisElector::builder().url("rediss://:pa55word@127.0.0.1:1");
    let plain = || RedisElector::builder().url("redis://:pa55word@127.0.0.1:1");
    let pem = authority.pem();
    for (builder, named) in [
        (tls().ca_certificates(""), "ca_certificates"),
        (tls().ca_certificates("not PEM"), "ca_certificates"),
        (tls().ca_certificates(own.key.clone()), "ca_certificates"),
        (plain().ca_certificates(pem.clone()), "ca_certificates"),
        (
            tls().client_certificate("", own.key.clone()),
            "client_certificate",
        ),
        (
            tls().client_certificate(own.chain.clone(), "pa55word"),
            "client_certificate",
        ),
        (
            tls().client_certificate(pem.clone(), own.key.clone()),
            "client_certificate",
        ),
        (
            plain().client_certificate(own.chain.clone(), own.key.clone()),
            "client_certificate",
        ),
    ] {
        let shown = format!("{builder:?}");
        assert!(
            !shown.contains("pa55word") && !shown.contains("BEGIN"),
            "{shown}"
        );
        let error = builder.connect().await.unwrap_err();
        assert!(
            matches!(&error, LeaderError::InvalidOptions { option, .. } if *option == named),
            "{named}: {error:?}"
        );
        let told = format!("{error} {error:?}");
        assert!(
            !told.contains("pa55word") && !told.contains("BEGIN"),
            "{told}"
        );
    }
}
