//! A worker process: a candidate for every job, that writes down what it believes and what it does.
//!
//! It is given its [`Orders`] as its only argument, says `ready` when it stands, and ends when its standard input is
//! closed, as it is when the director ends, however that ends.

mod leading;
mod standing;
mod writing;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use leader_core::{Elector, LeaderError};
use leader_sim::Dice;
use leader_tests::{elector_at, quorum_at};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

use crate::clock::Clock;
use crate::job::Job;
use crate::record::{Log, Record};
use writing::Resource;

/// What a worker is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    /// Its number.
    pub(crate) worker: usize,
    /// How many processes with this number there were before it.
    pub(crate) life: u32,
    /// Where its log goes.
    pub(crate) log: PathBuf,
    /// Where leases are.
    pub(crate) store: Store,
    /// How long a command may take, in milliseconds.
    pub(crate) command_ms: u64,
    /// The server of the fenced values, which nothing happens to.
    pub(crate) resource: String,
    /// What it stands for.
    pub(crate) jobs: Vec<Job>,
    /// What it throws its dice by.
    pub(crate) seed: u64,
    /// How it is wrong, to see the checker find it out.
    pub(crate) wrong: Option<Wrong>,
}

/// How a worker connects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Store {
    /// To one server, or to a cluster.
    One { url: String },
    /// To a primary, and leases count once this many replicas have them.
    Replicated { url: String, replicas: u32 },
    /// To several, of which a majority decides.
    Quorum { urls: Vec<String> },
}

/// Mistakes that a worker can be told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wrong {
    /// It takes its lease for valid without looking, and goes on when it is lost.
    Deaf,
    /// It writes to the fenced value past the fence.
    Unfenced,
    /// It holds on to what it leads and never lets anybody else lead: the lease stays when its work is over.
    Hoarding,
}

impl Wrong {
    /// By its name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "deaf" => Some(Self::Deaf),
            "unfenced" => Some(Self::Unfenced),
            "hoarding" => Some(Self::Hoarding),
            _ => None,
        }
    }
}

/// What all candidates of a worker share.
pub(crate) struct Worker {
    pub(crate) orders: Orders,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) elector: Arc<dyn Elector>,
    pub(crate) resource: Resource,
}

/// Obeys the orders, until nobody can speak to this process any more.
///
/// # Errors
///
/// The log or the server of the fenced values is not there.
pub async fn work(orders: Orders) -> Result<(), Box<dyn Error>> {
    let clock = Clock::new();
    let log = Log::create(&orders.log)?;
    log.write(&Record::Life {
        worker: orders.worker,
        life: orders.life,
        at: clock.now(),
    });
    let resource = Resource::connect(&orders, log.clone(), clock).await?;
    tokio::select! {
        () = closed() => Ok(()),
        () = stand(orders, clock, log, resource) => Ok(()),
    }
}

async fn stand(orders: Orders, clock: Clock, log: Log, resource: Resource) {
    let elector = connect(&orders, clock, &log).await;
    println!("ready");
    let worker = Arc::new(Worker {
        orders,
        clock,
        log,
        elector,
        resource,
    });
    let candidates = worker.orders.jobs.iter().zip(0..).map(|(job, index)| {
        let dice = Dice::of(
            worker.orders.seed,
            u64::from(worker.orders.life),
            (worker.orders.worker as u64) << 32 | index,
        );
        // A task of its own for each, as in a service.
        tokio::spawn(standing::candidate(worker.clone(), job.clone(), dice))
    });
    for candidate in candidates.collect::<Vec<_>>() {
        if let Err(error) = candidate.await {
            panic!("a candidate ended: {error}");
        }
    }
}

/// Connects, in spite of what happens to the servers at this moment.
async fn connect(orders: &Orders, clock: Clock, log: &Log) -> Arc<dyn Elector> {
    loop {
        match attempt(orders).await {
            Ok(elector) => return elector,
            Err(error) => {
                let why = error.to_string();
                log.write(&Record::Unconnected {
                    at: clock.now(),
                    why,
                });
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
    }
}

fn attempt(orders: &Orders) -> BoxFuture<'_, Result<Arc<dyn Elector>, LeaderError>> {
    let node_id = format!("worker-{}-{}", orders.worker, orders.life);
    let limit = Duration::from_millis(orders.command_ms);
    // Some have their connections and extensions on a thread of their own, as a service may.
    let own = orders.worker % 2 == 1;
    Box::pin(async move {
        Ok(match &orders.store {
            Store::One { url } => {
                let elector = elector_at(url).node_id(node_id).command_timeout(limit);
                Arc::new(elector.own_runtime(own).connect().await?) as Arc<dyn Elector>
            }
            Store::Replicated { url, replicas } => {
                let elector = elector_at(url).node_id(node_id).command_timeout(limit);
                let elector = elector.replica_ack(*replicas, limit).own_runtime(own);
                Arc::new(elector.connect().await?)
            }
            Store::Quorum { urls } => {
                let elector = quorum_at(urls).node_id(node_id).command_timeout(limit);
                Arc::new(elector.own_runtime(own).connect().await?)
            }
        })
    })
}

async fn closed() {
    let mut ignored = [0; 64];
    while matches!(tokio::io::stdin().read(&mut ignored).await, Ok(read) if read > 0) {}
}
