//! One of several workers consumes the order feed. The leader is killed, frozen, and retired; each time another worker
//! takes over, and every order is written once.
//!
//! ```text
//! cargo run --example order_feed                                           in this process, no server
//! cargo run --example order_feed -- --redis redis://127.0.0.1:6379         the leases on Redis
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `worker.rs` | what a service would have: a guarded stream of orders, read from where the last leader stopped |
//! | `feed.rs` | the orders, kept and numbered by a broker, as in a Redis Stream |
//! | `ledger.rs` | where orders are written: it refuses a leader whose time is over |
//! | `fate.rs` | what happens to the leader, and when |

mod fate;
mod feed;
mod ledger;
mod worker;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leader_core::{Elector, ElectorExt, LeaderError, LocalElector};
use leader_redis::RedisElector;

use self::fate::Fates;
use self::feed::Feed;
use self::ledger::Ledger;
use self::worker::Worker;

const WORKERS: usize = 4;
const ORDERS: u64 = 200;
/// How often an order comes in.
const PACE: Duration = Duration::from_millis(10);
/// When to give up: ten times what it takes on a machine with nothing else to do.
const LONGEST: Duration = Duration::from_secs(60);

const HELP: &str = "\
An order feed that one of four workers consumes, while its leaders are killed, frozen and retired.

Usage: order_feed [--redis URL]

  (nothing)       the leases in this process, no server
  --redis URL     the leases on Redis; redis://[[user]:password@]host[:port][/database]
  -h, --help      this text

Exit code: 0 when every order was written once, 1 when not or when Redis failed, 2 when the arguments are wrong.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let played = match args.as_slice() {
        [] => {
            let store = LocalElector::new();
            play("the in-process store", move |node_id| {
                let elector = store.node(node_id);
                async move { Ok(Arc::new(elector) as Arc<dyn Elector>) }
            })
        }
        ["--redis", url] => {
            let url = (*url).to_owned();
            // Once before anything begins, so that a server which cannot be used is told in one line.
            if let Err(error) = check(&url) {
                eprintln!("order_feed: {error}");
                return ExitCode::FAILURE;
            }
            play("Redis", move |node_id| connect(url.clone(), node_id))
        }
        ["-h" | "--help"] => {
            tell(format_args!("{}", HELP.trim_end()));
            return ExitCode::SUCCESS;
        }
        // Not repeated: it may be a URL with a password in it.
        _ => {
            eprintln!("order_feed: wrong arguments; see --help");
            return ExitCode::from(2);
        }
    };
    if played {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn check(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let elector = RedisElector::connect(url).await?;
        elector.shutdown().await;
        Ok(())
    })
}

async fn connect(url: String, node_id: String) -> Result<Arc<dyn Elector>, LeaderError> {
    let elector = RedisElector::builder().url(url).node_id(node_id);
    Ok(Arc::new(elector.connect().await?))
}

/// Each worker has a thread and a runtime of its own, with its own connections, and shares nothing but what services on
/// several machines share: the lease's store, the feed, and the ledger. A thread that stands still is then as dead as a
/// killed process: nothing extends its lease, and nothing releases it.
fn play<C, Connecting>(store: &str, connect: C) -> bool
where
    C: Fn(String) -> Connecting + Clone + Send + 'static,
    Connecting: Future<Output = Result<Arc<dyn Elector>, LeaderError>>,
{
    tell(format_args!(
        "{WORKERS} workers stand for the order feed, with leases on {store}; {ORDERS} orders come in.\n"
    ));
    let (feed, ledger) = (Arc::new(Feed::default()), Arc::new(Ledger::default()));
    let fates = Arc::new(Fates::new());
    for number in 1..=WORKERS {
        let node_id = format!("worker-{number}");
        let worker = Worker::new(&node_id, feed.clone(), ledger.clone(), fates.clone());
        let (connect, troubled) = (connect.clone(), ledger.clone());
        std::thread::spawn(move || {
            if let Err(error) = live(&worker, || connect(node_id)) {
                troubled.trouble();
                eprintln!("order_feed: {error}");
            }
        });
    }

    let begun = Instant::now();
    for _ in 0..ORDERS {
        feed.publish();
        std::thread::sleep(PACE);
    }
    while !(ledger.written() == ORDERS && fates.all_met()) && begun.elapsed() < LONGEST {
        if ledger.troubled() {
            break;
        }
        std::thread::sleep(PACE);
    }
    ledger.verdict(&fates).told()
}

fn live<Connecting>(
    worker: &Worker,
    connect: impl FnOnce() -> Connecting,
) -> Result<(), worker::FeedError>
where
    Connecting: Future<Output = Result<Arc<dyn Elector>, LeaderError>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(worker::FeedError::Runtime)?;
    runtime.block_on(async {
        let elector = connect().await?;
        let ended = worker.work(&elector).await;
        elector.shutdown().await;
        ended
    })
}

/// Prints a line. That nobody reads it any more (`| head`) is no reason to stop.
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
