//! The harness keeps its word. A scenario that fails is then the library's fault.

use futures::future::join_all;
use leader_tests::resp::Connection;
use leader_tests::{Proxy, Reply, Server, Worker, until};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(5);
/// Long enough for an answer over loopback to have come, were one on its way.
const A_MOMENT: Duration = Duration::from_millis(50);

fn worker() -> Worker {
    Worker::spawn(env!("CARGO_BIN_EXE_worker"), &[])
}

async fn connect(server: &Server, proxy: &Proxy) -> Connection {
    let mut connection = server
        .connect_at(proxy.addr())
        .await
        .expect("the proxy is open");
    assert_eq!(
        connection
            .call(&["PING"])
            .await
            .expect("the proxy is open")
            .text(),
        "PONG"
    );
    connection
}

fn is_closed(answer: std::io::Result<Reply>) -> bool {
    answer.is_err_and(|e| {
        matches!(
            e.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        )
    })
}

#[tokio::test]
async fn server_answers_and_counts_commands() {
    let server = Server::start().await;
    assert_eq!(
        server.command(&["SET", "a", "1"]).await,
        Reply::Simple("OK".into())
    );
    assert_eq!(server.command(&["GET", "a"]).await.integer(), 1);
    assert_eq!(server.command(&["GET", "b"]).await, Reply::Nil);
    let nested = server
        .command(&["EVAL", "return {1, {'x', {}}}", "0"])
        .await;
    assert_eq!(nested.array()[1].array()[0].text(), "x");
    assert!(
        server
            .command(&["NONSENSE"])
            .await
            .error()
            .is_some_and(|text| text.starts_with("ERR"))
    );

    assert_eq!(server.command_calls("get").await, 2);
    assert_eq!(server.command_calls("incr").await, 0);
    server.command(&["SCRIPT", "LOAD", "return 1"]).await;
    assert_eq!(server.command_calls("SCRIPT LOAD").await, 1);
    server.reset_stats().await;
    assert_eq!(server.command_calls("get").await, 0);
}

#[tokio::test]
async fn server_is_gone_after_its_test() {
    let server = Server::start().await;
    let addr = server.addr();
    server.freeze().await;
    drop(server);
    let refused = TcpStream::connect(addr).expect_err("nobody listens there now");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn server_is_killed_and_restarts_empty_on_its_port() {
    let server = Server::start().await;
    server.command(&["SET", "a", "1"]).await;
    server.kill().await;
    let refused = server
        .try_command(&["PING"])
        .await
        .expect_err("a killed server is not there");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    server.restart().await;
    assert_eq!(server.command(&["GET", "a"]).await, Reply::Nil);
    server.command(&["SET", "a", "1"]).await;
    server.restart().await;
    assert_eq!(server.command(&["GET", "a"]).await, Reply::Nil);
}

#[tokio::test]
async fn server_freezes_and_thaws() {
    let server = Server::start().await;
    let mut connection = server.connect().await.expect("the server accepts");
    server.freeze().await;
    server.freeze().await;
    assert!(
        timeout(A_MOMENT, connection.call(&["SET", "a", "1"]))
            .await
            .is_err()
    );
    server.thaw().await;
    assert_eq!(
        connection
            .read()
            .await
            .expect("a thawed server answers")
            .text(),
        "OK"
    );
    server.freeze().await;
    server.kill().await;
}

#[tokio::test]
async fn server_has_passwords_users_and_options() {
    let server = Server::builder()
        .password("s3cret/@")
        .user("app on >pw ~* +@all -eval")
        .arg("--maxmemory")
        .arg("123mb")
        .start()
        .await;
    assert!(server.url().contains(":s3cret%2F%40@127.0.0.1:"));
    assert!(server.url_for("app", "pw").starts_with("redis://app:pw@"));

    let mut stranger = Connection::open(server.addr())
        .await
        .expect("the server accepts");
    let mut ask = async |args: &[&str]| stranger.call(args).await.expect("the server answers");
    assert!(
        ask(&["PING"])
            .await
            .error()
            .is_some_and(|text| text.starts_with("NOAUTH"))
    );
    assert_eq!(ask(&["AUTH", "app", "pw"]).await.text(), "OK");
    assert!(
        ask(&["EVAL", "return 1", "0"])
            .await
            .error()
            .is_some_and(|text| text.starts_with("NOPERM"))
    );
    assert_eq!(ask(&["AUTH", "s3cret/@"]).await.text(), "OK");
    assert_eq!(
        server
            .command(&["CONFIG", "GET", "maxmemory"])
            .await
            .array()[1]
            .integer(),
        123 << 20
    );
}

#[tokio::test]
async fn replica_follows_and_is_promoted() {
    let primary = Server::builder()
        .password("s3cret/@")
        .user("app on >pw ~* +@all")
        .start()
        .await;
    primary.command(&["SET", "a", "1"]).await;
    let replica = Server::replica_of(&primary).await;
    assert_eq!(replica.command(&["GET", "a"]).await.integer(), 1);
    let refusal = replica.command(&["SET", "b", "1"]).await;
    assert!(
        refusal
            .error()
            .is_some_and(|text| text.starts_with("READONLY"))
    );
    let login = |server: &Server| server.url().replace(&server.port().to_string(), "");
    assert_eq!(login(&primary), login(&replica));

    replica.freeze().await;
    primary.command(&["SET", "a", "2"]).await;
    replica.thaw().await;
    replica.until_in_sync_with(&primary).await;
    assert_eq!(replica.command(&["GET", "a"]).await.integer(), 2);
    primary.kill().await;
    replica.promote().await;
    replica.command(&["SET", "b", "1"]).await;
    assert_eq!(replica.command(&["GET", "b"]).await.integer(), 1);
}

#[tokio::test]
async fn replica_never_gets_what_was_on_its_way_from_a_killed_primary() {
    let primary = Server::start().await;
    let proxy = Proxy::start(primary.addr());
    let replica = Server::replica_through(&proxy, &primary).await;
    primary.command(&["SET", "a", "1"]).await;
    replica.until_in_sync_with(&primary).await;

    proxy.blackhole();
    primary.command(&["SET", "a", "2"]).await;
    primary.kill().await;
    replica.promote().await;
    assert_eq!(replica.command(&["GET", "a"]).await.integer(), 1);
}

#[tokio::test]
async fn servers_of_one_test_do_not_meet() {
    let servers = join_all((0..5).map(|_| Server::start())).await;
    for (number, server) in servers.iter().enumerate() {
        server
            .command(&["SET", "number", &number.to_string()])
            .await;
    }
    for (number, server) in servers.iter().enumerate() {
        assert_eq!(
            server.command(&["GET", "number"]).await.text(),
            number.to_string()
        );
    }
    let port = servers[0].port();
    drop(servers);
    assert_eq!(Server::builder().port(port).start().await.port(), port);
}

#[tokio::test]
async fn proxy_is_cut_and_heals() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut connection = connect(&server, &proxy).await;
    assert_eq!(proxy.connections(), 1);

    proxy.cut().await;
    assert_eq!(proxy.connections(), 0);
    assert!(is_closed(connection.call(&["PING"]).await));
    let mut late = Connection::open(proxy.addr())
        .await
        .expect("the proxy accepts, and closes");
    assert!(is_closed(late.call(&["PING"]).await));

    proxy.heal().await;
    connect(&server, &proxy).await;
}

#[tokio::test]
async fn proxy_listens_where_it_is_told_to() {
    let server = Server::start().await;
    let at = (Ipv4Addr::new(127, 0, 70, 1), server.port()).into();
    let proxy = Proxy::start_at(at, server.addr());
    assert_eq!(proxy.addr(), at);
    let _connection = connect(&server, &proxy).await;
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn proxy_closes_connections_and_takes_new_ones() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut connections = [
        connect(&server, &proxy).await,
        connect(&server, &proxy).await,
    ];
    proxy.kill_connections().await;
    for connection in &mut connections {
        assert!(is_closed(connection.call(&["PING"]).await));
    }
    connect(&server, &proxy).await;
}

#[tokio::test]
async fn proxy_tells_that_the_server_is_gone() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut connection = connect(&server, &proxy).await;
    server.kill().await;
    assert!(is_closed(connection.call(&["PING"]).await));
    let mut late = Connection::open(proxy.addr())
        .await
        .expect("the proxy accepts, and closes");
    assert!(is_closed(late.call(&["PING"]).await));
    server.restart().await;
    connect(&server, &proxy).await;
}

#[tokio::test]
async fn proxy_swallows_both_ways() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut idle = connect(&server, &proxy).await;
    let mut robbed = connect(&server, &proxy).await;
    proxy.blackhole();
    let mut late = Connection::open(proxy.addr())
        .await
        .expect("the proxy still accepts");
    assert!(
        timeout(A_MOMENT, robbed.call(&["SET", "a", "1"]))
            .await
            .is_err()
    );
    assert!(
        timeout(A_MOMENT, late.call(&["SET", "a", "1"]))
            .await
            .is_err()
    );
    until("both were robbed", LIMIT, async || proxy.robbed() == 2).await;
    assert_eq!(proxy.connections(), 3);
    assert_eq!(server.command(&["GET", "a"]).await, Reply::Nil);

    proxy.heal().await;
    assert_eq!(proxy.connections(), 1);
    assert_eq!(
        idle.call(&["PING"]).await.expect("it lost nothing").text(),
        "PONG"
    );
    assert!(is_closed(robbed.read().await));
}

#[tokio::test]
async fn proxy_hides_that_the_server_died_behind_a_black_hole() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut connection = connect(&server, &proxy).await;
    proxy.blackhole();
    server.kill().await;
    assert!(timeout(A_MOMENT, connection.read()).await.is_err());
    proxy.heal().await;
    assert!(is_closed(connection.read().await));
}

#[tokio::test]
async fn proxy_strands_present_connections_only() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut stranded = connect(&server, &proxy).await;
    proxy.strand_connections();
    connect(&server, &proxy).await;
    assert!(timeout(A_MOMENT, stranded.call(&["PING"])).await.is_err());
    proxy.heal().await;
    assert!(timeout(A_MOMENT, stranded.read()).await.is_err());
    proxy.kill_connections().await;
    assert!(is_closed(stranded.read().await));
}

#[tokio::test]
async fn proxy_holds_replies_and_keeps_their_order() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut connection = connect(&server, &proxy).await;
    proxy.hold_replies();
    for _ in 0..3 {
        connection
            .send(&["INCR", "n"])
            .await
            .expect("requests go on");
    }
    until("three replies are held", LIMIT, async || {
        proxy.held_replies() == 3
    })
    .await;
    assert_eq!(server.command(&["GET", "n"]).await.integer(), 3);
    assert!(timeout(A_MOMENT, connection.read()).await.is_err());

    proxy.release_replies();
    for number in 1..=3 {
        assert_eq!(
            connection.read().await.expect("replies go on").integer(),
            number
        );
    }
    assert_eq!(proxy.held_replies(), 0);
}

#[tokio::test]
async fn proxy_delays_each_direction() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut connection = connect(&server, &proxy).await;
    for delays in [[100, 0], [0, 100]] {
        proxy.delay_requests(Duration::from_millis(delays[0]));
        proxy.delay_replies(Duration::from_millis(delays[1]));
        let start = Instant::now();
        connection
            .call(&["PING"])
            .await
            .expect("a slow network is a network");
        assert!(start.elapsed() >= Duration::from_millis(100), "{delays:?}");
    }
}

#[tokio::test]
async fn proxy_loses_exactly_the_reply_it_is_told_to() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.addr());
    let mut connection = connect(&server, &proxy).await;
    let lost = proxy.lose_reply_to("INCR");
    // One packet, so that the replies come as one as well.
    connection
        .send_all(&[&["SET", "a", "1"], &["INCR", "n"], &["SET", "a", "2"]])
        .await
        .expect("requests go on");
    assert_eq!(
        connection
            .read()
            .await
            .expect("the reply before it comes")
            .text(),
        "OK"
    );
    assert!(is_closed(connection.read().await));
    lost.happened().await;
    assert_eq!(server.command(&["GET", "n"]).await.integer(), 1);

    let lost = proxy.lose_reply_to_nth(2, "INCR");
    let mut again = connect(&server, &proxy).await;
    assert_eq!(
        again
            .call(&["INCR", "n"])
            .await
            .expect("the first is let through")
            .integer(),
        2
    );
    assert!(is_closed(again.call(&["INCR", "n"]).await));
    lost.happened().await;
    assert_eq!(server.command(&["GET", "n"]).await.integer(), 3);
}

#[tokio::test]
async fn proxy_captures_a_request_and_delivers_it_late() {
    let server = Server::builder().password("secret").start().await;
    let proxy = Proxy::start(server.addr());
    assert!(server.url_at(proxy.addr()).starts_with("redis://:secret@"));
    let mut connection = Connection::open(proxy.addr())
        .await
        .expect("the proxy accepts");
    assert_eq!(
        connection
            .call(&["AUTH", "secret"])
            .await
            .expect("the proxy is open")
            .text(),
        "OK"
    );

    let captured = proxy.capture_request("INCR");
    assert!(is_closed(connection.call(&["INCR", "n"]).await));
    let captured = captured.caught().await;
    assert_eq!(proxy.connections(), 0);
    assert_eq!(server.command(&["GET", "n"]).await, Reply::Nil);
    assert_eq!(captured.deliver().await.integer(), 1);
}

#[tokio::test]
async fn worker_speaks_in_lines_and_listens() {
    let mut worker = worker();
    assert_eq!(worker.wait_for_line("rea", LIMIT).await, "ready");
    worker.say("hello");
    assert!(worker.next_line(A_MOMENT).await.is_none());
    worker.terminate();
    assert!(!worker.exit(LIMIT).await.success());
    assert!(worker.next_line(LIMIT).await.is_none());
}

#[tokio::test]
async fn worker_is_frozen_thawed_and_killed() {
    let mut worker = worker();
    worker.wait_for_line("ready", LIMIT).await;
    worker.freeze().await;
    worker.terminate();
    let ended = timeout(A_MOMENT, worker.exit(LIMIT)).await;
    assert!(ended.is_err(), "a frozen process does not even see SIGTERM");
    worker.thaw().await;
    worker.exit(LIMIT).await;

    let worker = self::worker();
    worker.freeze().await;
    worker.kill().await;
    assert!(!worker.exit(LIMIT).await.success());
}

/// Runs itself once more, as the test that is killed.
#[tokio::test]
async fn killed_tests_leave_no_server() {
    const INNER: &str = "LEADER_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        // With an option, so that a shared server is refused.
        let server = Server::builder()
            .arg("--maxclients")
            .arg("100")
            .start()
            .await;
        println!("\nserver at {}", server.addr());
        std::future::pending::<()>().await;
    }
    let program = std::env::current_exe().expect("the test knows its own program");
    let program = program.to_str().expect("its path is in UTF-8");
    let args = [
        &format!("{INNER}=1"),
        program,
        "--exact",
        "killed_tests_leave_no_server",
        "--nocapture",
    ];
    let mut test = Worker::spawn("env", &args);
    let line = test.wait_for_line("server at ", LIMIT).await;
    let addr = line.trim_start_matches("server at ");
    TcpStream::connect(addr).expect("its server runs");
    test.kill().await;
    until("its server is gone as well", LIMIT, async || {
        TcpStream::connect(addr).is_err()
    })
    .await;
}
