//! The soak: thousands of leases are held and extended for minutes while others come and go in every way there is, and
//! nothing may be lost or grow.

mod churn;
mod hold;
mod report;
mod sample;
mod tally;
mod verdict;

use std::time::Duration;

use leader_core::{ElectorExt, StoreElector};
use leader_redis::RedisStore;
use leader_tests::{Server, elector_at, until};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use self::report::{json, markdown, table};
pub use self::sample::Sample;
use self::sample::Sampler;
use self::tally::Tally;
pub use self::verdict::Check;

type Candidate = StoreElector<RedisStore>;

/// How long everything may take to come to rest at the end.
const REST: Duration = Duration::from_secs(60);

/// What is to be done, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many leases are held all the time.
    pub leases: usize,
    /// How long, once they are held.
    pub time: Duration,
    /// How often everything is measured.
    pub every: Duration,
    /// What goes wrong on purpose, to see it caught.
    pub leak: Option<Leak>,
}

/// What a run of the churn leaves behind on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    /// A task that never ends.
    Task,
    /// Some memory.
    Memory,
}

/// What a soak has shown.
#[derive(Debug, Serialize)]
pub struct Soaked {
    /// How many leases were held all the time.
    pub leases: usize,
    /// How long they took to be held, in seconds.
    pub seconds_to_hold: f64,
    /// How long the soak went on from then, in seconds.
    pub seconds: f64,
    /// The release of the server.
    pub server: String,
    /// Live bytes of the heap for each lease that is held in a task of its own.
    pub heap_per_lease: u64,
    /// Processor time of this process and of the server for each second.
    pub cores: [f64; 2],
    /// What happened, by its name.
    pub counts: Vec<(String, u64)>,
    /// What was measured on the way.
    pub samples: Vec<Sample>,
    /// What had to hold.
    pub checks: Vec<Check>,
}

impl Soaked {
    /// Whether everything that had to hold did.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

/// Soaks on a server of its own. `heap` tells how many bytes the allocator has given out.
///
/// # Panics
///
/// When there is no server, or not all leases are granted.
pub async fn run(plan: &Plan, heap: fn() -> u64) -> Soaked {
    let server = Server::start().await;
    let mut sampler = Sampler::on(&server, heap).await;
    let before = sampler.take(Duration::ZERO).await;
    let elector = connect(&server).await;
    let tally = Tally::default();
    let (stop, let_go) = (CancellationToken::new(), CancellationToken::new());

    let asked = Instant::now();
    let holders = hold::all(plan.leases, &elector, &tally, &let_go).await;
    let seconds_to_hold = asked.elapsed().as_secs_f64();
    let held = sampler.take(Duration::ZERO).await;
    println!("{} leases are held", plan.leases);

    let churn = churn::begin(&elector, &tally, &stop, plan.leak);
    let begun = Instant::now();
    let mut taken = Vec::new();
    let mut ticks = interval(plan.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    println!("{}", report::header());
    while begun.elapsed() < plan.time {
        ticks.tick().await;
        let mut sample = sampler.take(begun.elapsed()).await;
        sample.note(&tally);
        println!("{}", report::line(&sample));
        taken.push(sample);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cores = sampler.cores_since(&held, begun.elapsed());

    stop.cancel();
    churn.end().await;
    let_go.cancel();
    holders.end().await;
    until("nothing is left of the leases", REST, async || {
        elector.footprint() == leader_core::testing::Footprint::default()
    })
    .await;
    elector.shutdown().await;
    let after = sampler.once_as_before(&before, REST).await;

    let mut checks = verdict::flat(&taken);
    checks.push(verdict::keys(&taken, plan.leases));
    checks.extend(verdict::nothing_lost(&tally));
    checks.extend(verdict::nothing_left(&before, &after));
    Soaked {
        leases: plan.leases,
        seconds_to_hold,
        seconds,
        server: sampler.server_version().await,
        heap_per_lease: held.heap.saturating_sub(before.heap) / plan.leases.max(1) as u64,
        cores,
        counts: tally.all(),
        samples: taken,
        checks,
    }
}

async fn connect(server: &Server) -> Candidate {
    let store = elector_at(server.url()).connect_store().await;
    match store {
        Ok(store) => StoreElector::builder(store).build(),
        Err(error) => panic!("the server was just started: {error}"),
    }
}
