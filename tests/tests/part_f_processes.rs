//! Part F of the scenarios between real processes: hand-over by `resign()` and by SIGTERM, read from one log.

use std::time::Duration;

use leader_tests::{Proxy, Server, Worker, ms};
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(20);
const HAND_OVERS: usize = 20;

/// A line of the log: what the body under this fencing token did, and when.
#[derive(Debug)]
struct Line {
    what: String,
    fence: u64,
    micros: u64,
}

fn read(log: &tempfile::NamedTempFile) -> Vec<Line> {
    let text = std::fs::read_to_string(log.path()).unwrap();
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap().to_owned();
        Line {
            what: word(),
            fence: word().parse().unwrap(),
            micros: word().parse().unwrap(),
        }
    };
    text.lines().map(line).collect()
}

/// Checks that one body at a time wrote to the log, from its begin to its end, under growing fencing tokens. Gives the
/// time between the end of each and the begin of the next.
fn gaps(lines: &[Line]) -> Vec<Duration> {
    let mut gaps = Vec::new();
    let mut last: Option<&Line> = None;
    for line in lines {
        let follows = match last {
            None => line.what == "begin",
            Some(last) if last.what == "end" => line.what == "begin" && line.fence > last.fence,
            Some(last) => line.what != "begin" && line.fence == last.fence,
        };
        assert!(follows, "{line:?} after {last:?}");
        if let Some(last) = last.filter(|_| line.what == "begin") {
            gaps.push(Duration::from_micros(
                line.micros.saturating_sub(last.micros),
            ));
        }
        last = Some(line);
    }
    gaps.sort_unstable();
    gaps
}

async fn round_trip(server: &Server, network: &Proxy) -> Duration {
    let mut connection = server.connect_at(network.addr()).await.unwrap();
    let mut trips = Vec::new();
    for _ in 0..5 {
        let sent = Instant::now();
        connection.call(&["PING"]).await.unwrap();
        trips.push(sent.elapsed());
    }
    trips.sort_unstable();
    trips[trips.len() / 2]
}

#[tokio::test]
async fn f03_resign_and_sigterm_hand_over_to_a_body_that_never_overlaps() {
    let server = Server::start().await;
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().to_str().unwrap().to_owned();
    // A network slow enough that its round trips are what counts, and not how busy this machine is.
    let network = Proxy::start(server.addr());
    network.delay_requests(ms(10));
    network.delay_replies(ms(10));
    let url = network.url();
    let start = || {
        Worker::spawn(
            env!("CARGO_BIN_EXE_worker"),
            &["campaign", &url, "x", &path],
        )
    };

    let mut leader = start();
    leader.wait_for_line("leading", LIMIT).await;
    let mut waiter = start();
    waiter.wait_for_line("standing", LIMIT).await;
    // Each has connected, listened and led once before anything is counted.
    for _ in 0..2 {
        leader.say("resign");
        waiter.wait_for_line("leading", LIMIT).await;
        leader.wait_for_line("resigned", LIMIT).await;
        leader.say("stand");
        std::mem::swap(&mut leader, &mut waiter);
    }
    let scripts = server.command_calls("evalsha").await;
    for _ in 0..HAND_OVERS {
        leader.say("resign");
        waiter.wait_for_line("leading", LIMIT).await;
        leader.wait_for_line("resigned", LIMIT).await;
        leader.say("stand");
        std::mem::swap(&mut leader, &mut waiter);
    }
    let scripts = server.command_calls("evalsha").await - scripts;
    // A release and a claim, and the claim of the one who stands again; the lease is too long to be extended here.
    let hand_overs = u64::try_from(HAND_OVERS).unwrap();
    assert!(
        scripts <= 4 * hand_overs,
        "{scripts} scripts for {hand_overs} hand-overs"
    );

    for _ in 0..3 {
        leader.terminate();
        waiter.wait_for_line("leading", LIMIT).await;
        leader.wait_for_line("shut down", LIMIT).await;
        assert!(leader.exit(LIMIT).await.success());
        leader = std::mem::replace(&mut waiter, start());
        waiter.wait_for_line("standing", LIMIT).await;
    }
    waiter.terminate();
    assert!(waiter.exit(LIMIT).await.success());
    leader.terminate();
    assert!(leader.exit(LIMIT).await.success());

    let gaps = gaps(&read(&log));
    assert!(gaps.len() >= HAND_OVERS + 3);
    let trip = round_trip(&server, &network).await;
    let (median, worst) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
    println!(
        "{} hand-overs, {} scripts for {HAND_OVERS} of them; from the last line of the old body to the first of the new: median {median:?} \
         ({:.1} round trips of {trip:?}), worst {worst:?}",
        gaps.len(),
        scripts,
        median.as_secs_f64() / trip.as_secs_f64(),
    );
}
