//! A small billing service whose jobs are annotated, in five replicas that all do everything at the same time.
//!
//! ```text
//! cargo run --example annotated_jobs                                           in this process, no server
//! cargo run --example annotated_jobs -- --redis redis://127.0.0.1:6379         the same on Redis
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `billing.rs` | the service, as its author wrote it, and the attributes |
//! | `database.rs` | what the replicas share, and how often each job really ran |

mod billing;
mod database;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use futures::future::join_all;
use leader_core::{Elector, ElectorExt, LocalElector, RunOutcome, with_elector};
use leader_redis::RedisElector;

use self::billing::{Billing, BillingError};
use self::database::{Database, Job};

const REPLICAS: usize = 5;

const HELP: &str = "\
A small billing service whose jobs are annotated, in five replicas that all do everything at the same time.

Usage: annotated_jobs [--redis URL]

  (nothing)       the leases in this process, no server
  --redis URL     the leases on Redis; redis://[[user]:password@]host[:port][/database]
  -h, --help      this text

Exit code: 0 when each job ran as often as it should, 1 when not or when Redis failed, 2 when the arguments are wrong.
";

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let played = match args.as_slice() {
        [] => all_on_the_local_store().await,
        ["--redis", url] => all_on_redis(url).await,
        ["-h" | "--help"] => {
            tell(format_args!("{}", HELP.trim_end()));
            return ExitCode::SUCCESS;
        }
        // Not repeated: it may be a URL with a password in it.
        _ => {
            eprintln!("annotated_jobs: wrong arguments; see --help");
            return ExitCode::from(2);
        }
    };
    match played {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("annotated_jobs: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn all_on_the_local_store() -> Result<bool, BillingError> {
    let store = LocalElector::new();
    let electors = (1..=REPLICAS).map(|number| store.node(node_id(number)));
    play(electors.map(|elector| Arc::new(elector) as _).collect()).await
}

async fn all_on_redis(url: &str) -> Result<bool, BillingError> {
    let mut electors: Vec<Arc<dyn Elector>> = Vec::new();
    for number in 1..=REPLICAS {
        let elector = RedisElector::builder().url(url).node_id(node_id(number));
        electors.push(Arc::new(elector.connect().await?));
    }
    play(electors).await
}

fn node_id(number: usize) -> String {
    format!("replica-{number}")
}

/// Each job, on all replicas at once.
async fn play(electors: Vec<Arc<dyn Elector>>) -> Result<bool, BillingError> {
    let database = Database::default();
    let replicas: Vec<_> = electors
        .iter()
        .map(|elector| Billing::new(elector.clone(), &database))
        .collect();

    until_free(&electors[0]).await?;

    // A free function finds its elector in the scope that a service puts around its work, once.
    let closing = electors
        .iter()
        .map(|elector| with_elector(elector.clone(), billing::close_invoices(&database)));
    for (number, closed) in (1..).zip(join_all(closing).await) {
        match closed? {
            Some(summary) => say(number, format_args!("closed {} invoices", summary.invoices)),
            None => say(number, format_args!("closed nothing: another replica does")),
        }
    }

    // A method names the field that its elector is in. Two tenants are two names.
    for tenant in ["acme", "globex"] {
        let reports = replicas.iter().map(|replica| replica.report(tenant));
        join_all(reports)
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
    }

    // At most three at once.
    let calls = replicas.iter().map(Billing::call_partner);
    for (number, called) in (1..).zip(join_all(calls).await) {
        match called? {
            RunOutcome::Elected(reply) => say(number, format_args!("the partner says {reply}")),
            RunOutcome::Skipped(_) => say(number, format_args!("had no turn with the partner")),
            RunOutcome::ActionFailed(never) => match never {},
        }
    }

    // Whoever does not refresh the rate takes the one that is there.
    let rates = join_all(replicas.iter().map(Billing::exchange_rate)).await;
    for (number, rate) in (1..).zip(rates) {
        say(number, format_args!("the exchange rate is {}", rate?));
    }

    // A stream: one replica reads the orders, for the others it is empty.
    let feeds = replicas.iter().map(|replica| replica.orders("eu"));
    let feeds = join_all(feeds.map(TryStreamExt::try_collect::<Vec<_>>)).await;
    for (number, orders) in (1..).zip(feeds) {
        say(number, format_args!("read {} orders", orders?.len()));
    }

    for elector in electors {
        elector.shutdown().await;
    }
    Ok(verdict(&database))
}

/// Waits until the minimum leases of an earlier run of this program are over. This only puts off the jobs; whether a
/// replica runs one is decided by standing for election, and by nothing else.
async fn until_free(elector: &dyn Elector) -> Result<(), BillingError> {
    for name in billing::NAMES {
        while let Some(holder) = elector.state(name).await?.holders().first() {
            tokio::time::sleep(holder.remaining() + Duration::from_millis(10)).await;
        }
    }
    Ok(())
}

/// Says what is wrong, then the counts. Whether nothing is wrong.
fn verdict(database: &Database) -> bool {
    let expected = [
        (Job::Close, 1),
        (Job::Report, 2),
        (Job::CallPartner, REPLICAS),
        (Job::Refresh, 1),
        (Job::ReadOrders, 1),
    ];
    tell(format_args!(""));
    let mut right = true;
    for (job, times) in expected {
        let ran = database.ran(job);
        if ran != times {
            right = false;
            tell(format_args!(
                "wrong: {job:?} ran {ran} times instead of {times}"
            ));
        }
    }
    let at_once = database.partner_calls_at_once();
    if at_once > billing::PARTNER_SLOTS {
        right = false;
        tell(format_args!("wrong: {at_once} called the partner at once"));
    }
    tell(format_args!(
        "annotated_jobs: {REPLICAS} replicas; ran: close {}, report {}, partner {} with {at_once} at once, rate {}, orders {}",
        database.ran(Job::Close),
        database.ran(Job::Report),
        database.ran(Job::CallPartner),
        database.ran(Job::Refresh),
        database.ran(Job::ReadOrders),
    ));
    right
}

fn say(number: usize, words: fmt::Arguments<'_>) {
    tell(format_args!("{}  {words}", node_id(number)));
}

/// Prints a line. That nobody reads it any more (`| head`) is no reason to stop.
fn tell(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
