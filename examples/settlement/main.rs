//! The night job that started it all: a settlement that must run once a night, on five machines whose clocks disagree.
//!
//! ```text
//! cargo run --example settlement                                           in this process, no server
//! cargo run --example settlement -- --redis redis://127.0.0.1:6379         the same on Redis
//! cargo run --example settlement -- --redis redis://127.0.0.1:6379 --candidate 1     one of five processes
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `candidate.rs` | what a service would have: stand for election, settle, or be skipped |
//! | `schedule.rs` | when the nights begin, by clocks that are wrong, and the time limits that follow |
//! | `ledger.rs` | what happened, counted where it happened, and the verdict |
//! | `args.rs` | the command line |

mod args;
mod candidate;
mod ledger;
mod schedule;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use leader_core::{Elector, ElectorExt, LeaderError, LocalElector};
use leader_redis::RedisElector;
use tokio::time::{Instant, sleep};

use self::args::Command;
use self::candidate::{Candidate, JOB};
use self::ledger::Ledger;
use self::schedule::{
    CANDIDATES, CLOCK_SPREAD, COMMAND_TIMEOUT, DAY, LEASE, MIN_LEASE, NIGHTS, Night, WORK,
};

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match args::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => {
            tell(format_args!("{}", args::HELP.trim_end()));
            return ExitCode::SUCCESS;
        }
        Ok(Command::Local) => all_on_the_local_store().await,
        Ok(Command::Redis { url }) => all_on_redis(&url).await,
        Ok(Command::OneOnRedis { url, number }) => one_on_redis(&url, number).await,
        Err(mistake) => {
            eprintln!("settlement: {mistake}");
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("settlement: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn all_on_the_local_store() -> Result<bool, LeaderError> {
    let store = LocalElector::new();
    let electors = (1..=CANDIDATES)
        .map(|number| Arc::new(store.node(node_id(number))) as Arc<dyn Elector>)
        .collect();
    all(electors, "the in-process store").await
}

async fn all_on_redis(url: &str) -> Result<bool, LeaderError> {
    let mut electors = Vec::new();
    for number in 1..=CANDIDATES {
        electors.push(connect(url, number).await?);
    }
    all(electors, "Redis").await
}

/// All candidates in this process, each with an elector of its own.
async fn all(electors: Vec<Arc<dyn Elector>>, store: &str) -> Result<bool, LeaderError> {
    tell(format_args!(
        "{} candidates stand for `{JOB}` on {store}, for {NIGHTS} nights.\n\
         Their clocks disagree by up to {} ms, and the work takes only {} ms: a late clock finds the work done.\n\
         A min_lease of {} s keeps the slot taken until every clock has struck.\n",
        electors.len(),
        CLOCK_SPREAD.as_millis(),
        WORK.as_millis(),
        MIN_LEASE.as_secs(),
    ));
    let ledger = Arc::new(Ledger::default());
    for number in 1..=NIGHTS {
        if !until_free(&electors[0]).await? {
            return Ok(false);
        }
        let night = Night::soon(number);
        let mut tasks = tokio::task::JoinSet::new();
        for (number, elector) in (1..).zip(&electors) {
            let candidate = Candidate::new(number, elector.clone(), ledger.clone())?;
            tasks.spawn(async move { candidate.stand(night).await });
        }
        while let Some(ended) = tasks.join_next().await {
            if ended.is_err() {
                ledger.trouble();
            }
        }
    }
    for elector in &electors {
        elector.shutdown().await;
    }
    Ok(ledger.verdict_on_all().told())
}

/// Waits until nobody holds the slot any more: whoever led last, also in an earlier run of this program, is kept by its
/// minimum lease. This only puts off the next night, which in life is a day away. Whether a candidate runs is decided by
/// standing for election, and by nothing else.
async fn until_free(elector: &dyn Elector) -> Result<bool, LeaderError> {
    let begun = Instant::now();
    while let Some(holder) = elector.state(JOB).await?.holders().first() {
        if begun.elapsed() > LEASE * 2 {
            eprintln!(
                "settlement: {} goes on leading `{JOB}`: this program runs elsewhere on this Redis",
                holder.node_id()
            );
            return Ok(false);
        }
        let (node_id, remaining) = (holder.node_id(), holder.remaining());
        tell(format_args!(
            "         {node_id} keeps the slot for another {:.1} s",
            remaining.as_secs_f64()
        ));
        sleep(remaining + Duration::from_millis(10)).await;
    }
    Ok(true)
}

/// One candidate in this process; the others are in processes of their own.
async fn one_on_redis(url: &str, number: usize) -> Result<bool, LeaderError> {
    let elector = connect(url, number).await?;
    let (nights, first) = Night::from_the_next_full_minute();
    tell(format_args!(
        "candidate {number} of {CANDIDATES}: {NIGHTS} nights, {} s apart; the first is at {first}\n\
         Start the other candidates now. Each must say the same time of day.\n",
        DAY.as_secs()
    ));
    let ledger = Arc::new(Ledger::default());
    let candidate = Candidate::new(number, elector.clone(), ledger.clone())?;
    for night in nights {
        candidate.stand(night).await;
    }
    elector.shutdown().await;
    Ok(ledger.verdict_on_one(number).told())
}

async fn connect(url: &str, number: usize) -> Result<Arc<dyn Elector>, LeaderError> {
    let elector = RedisElector::builder()
        .url(url)
        .node_id(node_id(number))
        .command_timeout(COMMAND_TIMEOUT)
        .connect()
        .await?;
    Ok(Arc::new(elector))
}

/// Who a candidate is, for people.
fn node_id(number: usize) -> String {
    format!("candidate-{number}")
}

/// Prints a line. That nobody reads it any more (`| head`) is no reason to stop.
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
