//! Plays a plan on a quorum: one runtime, one thread, no time but the paused clock's.

use std::sync::Arc;
use std::time::Duration;

use leader_core::{ElectorExt, LeaderError, LeaseOptions, LockName, Quorum, StoreElector};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::ledger::Recorder;
use super::network::{NodeStore, World};
use super::plan::{Kind, Plan, Turn};
use crate::freeze::Freezer;
use crate::run::Tracing;
use crate::world::Violation;

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// What did not hold, if anything.
    pub violation: Option<Violation>,
    /// How many grants there were.
    pub grants: u64,
    /// What happened, line by line; empty unless asked for.
    pub trace: String,
}

/// Plays `plan` on a runtime of its own.
///
/// # Panics
///
/// When there is no runtime to be had.
#[must_use]
pub fn play(plan: &Plan, tracing: Tracing) -> Report {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(async {
        let world = World::new(plan, tracing == Tracing::On);
        let day = Duration::from_secs(24 * 3600);
        let stage = Stage::new(&world);
        tokio::select! {
            biased;
            () = watch_over(&world) => {}
            over = timeout(day, stage.play()) => {
                if over.is_err() {
                    world.fail("bounded", "never over".to_owned());
                }
            }
        }
        let seen = &mut *world.lock();
        Report {
            violation: seen.ledger.violation.take(),
            grants: seen.ledger.granted,
            trace: seen.trace.take().unwrap_or_default(),
        }
    })
}

/// Looks at the leases whenever something has changed, a moment later, until something is wrong. Between two changes
/// all that is compared stands still: when leases end, by their holders and by the nodes.
async fn watch_over(world: &Arc<World>) {
    while !world.is_broken() {
        world.bell.notified().await;
        if !world.lock().ledger.held.is_empty() {
            sleep(Duration::from_millis(1)).await;
            world.look();
        }
    }
}

type Elector = StoreElector<Recorder>;

struct Stage {
    world: Arc<World>,
    name: LockName,
    electors: Vec<Elector>,
    quorums: Vec<Quorum<NodeStore>>,
    freezers: Vec<Freezer>,
    alive: Arc<()>,
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Stage {
    fn new(world: &Arc<World>) -> Self {
        let name = LockName::new("n0").unwrap_or_else(|error| panic!("a legal name: {error}"));
        let mut stage = Self {
            world: world.clone(),
            name,
            electors: Vec::new(),
            quorums: Vec::new(),
            freezers: Vec::new(),
            alive: Arc::new(()),
        };
        for candidate in 0..world.plan.candidates.len() {
            let freezer = Freezer::default();
            let nodes = (0..world.plan.nodes)
                .map(|node| NodeStore::new(world, candidate, node, &stage.alive));
            let quorum = Quorum::new(nodes).unwrap_or_else(|error| panic!("a quorum: {error}"));
            let (on_quorum, of_engine) = (freezer.clone(), freezer.clone());
            let quorum = quorum.wrap_background(move |work| Box::pin(on_quorum.gate(work)));
            let seed = world.plan.seed.wrapping_mul(64) + candidate as u64;
            let recorder = Recorder {
                quorum: quorum.clone(),
                world: world.clone(),
            };
            let elector = StoreElector::builder(recorder)
                .node_id(format!("c{candidate}"))
                .seed(seed)
                .wrap_background(move |work| Box::pin(of_engine.gate(work)))
                .build();
            stage.electors.push(elector);
            stage.quorums.push(quorum);
            stage.freezers.push(freezer);
        }
        stage
    }

    async fn play(self) {
        let world = &self.world;
        let mut tasks = Vec::new();
        for (candidate, turns) in world.plan.candidates.iter().enumerate() {
            for turns in turns {
                let player = self.player(candidate);
                let turns = turns.clone();
                let playing = async move {
                    for turn in &turns {
                        player.take(turn).await;
                    }
                };
                tasks.push(tokio::spawn(self.freezers[candidate].gate(playing)));
            }
        }
        let mut faults = world.plan.faults.clone();
        faults.sort_by_key(|fault| fault.at);
        for fault in faults {
            sleep_until(world.begun + ms(fault.at)).await;
            world.say(|| format!("{fault:?}"));
            match fault.kind {
                Kind::Forget => world.forget(fault.whose),
                Kind::Delete => world.delete(fault.whose, &self.name),
                Kind::Jump(by) => world.lock().nodes[fault.whose].clock_ahead += by,
                Kind::Freeze => {
                    let freezer = self.freezers[fault.whose].clone();
                    freezer.freeze();
                    tokio::spawn(async move {
                        sleep(ms(fault.until - fault.at)).await;
                        freezer.thaw();
                    });
                }
                _ => {}
            }
        }
        sleep_until(world.begun + ms(world.plan.quiet_at())).await;
        world.say(|| "quiet".to_owned());
        for candidate in 0..self.electors.len() {
            let player = self.player(candidate);
            tasks.push(tokio::spawn(async move { player.lead_at_last().await }));
        }
        for task in tasks {
            if let Err(error) = task.await {
                world.fail("bodies", format!("a task ended oddly: {error}"));
            }
        }
        self.clear_away().await;
    }

    fn player(&self, candidate: usize) -> Player {
        Player {
            world: self.world.clone(),
            name: self.name.clone(),
            elector: self.electors[candidate].clone(),
            freezer: self.freezers[candidate].clone(),
            candidate,
        }
    }

    /// Looks at what is left.
    async fn clear_away(self) {
        let world = &self.world;
        let plan = &world.plan;
        sleep(ms(20 + 20 * plan.latency)).await;
        if plan.faults.is_empty() {
            let state = &mut *world.lock();
            let now = Instant::now();
            let slots = state.nodes.iter_mut().map(|node| {
                let slots = node.slots(&self.name, now).values();
                slots.filter(|entry| entry.token.is_some()).count()
            });
            let slots: Vec<usize> = slots.collect();
            if slots.iter().any(|slots| *slots > 0) {
                let what = format!("slots are still taken when all is over: {slots:?}");
                state.ledger.violation.get_or_insert(Violation {
                    invariant: "freed",
                    what,
                });
            }
        }
        sleep(ms(plan.longest_lease() * 2
            + 4 * plan.command_timeout
            + 62_000))
        .await;
        for (quorum, elector) in self.quorums.iter().zip(&self.electors) {
            let (left, engine) = (quorum.footprint(), elector.footprint());
            if left != (0, 0) || engine != leader_core::testing::Footprint::default() {
                world.fail("leftovers", format!("{left:?} and {engine:?} are left"));
            }
        }
        if world.watchers() > 0 {
            world.fail("leftovers", "a watch is left".to_owned());
        }
        let alive = self.alive.clone();
        world.lock().ledger.held.clear();
        drop((self.electors, self.quorums));
        sleep(ms(1)).await;
        let stores = Arc::strong_count(&alive) - 2;
        if stores > 0 {
            world.fail("leftovers", format!("{stores} stores are left"));
        }
    }
}

/// A task of a candidate.
struct Player {
    world: Arc<World>,
    name: LockName,
    elector: Elector,
    freezer: Freezer,
    candidate: usize,
}

impl Player {
    async fn take(&self, turn: &Turn) {
        sleep(ms(turn.pause)).await;
        match turn.cut {
            None => self.lead(turn).await,
            Some(cut) => {
                let _ = timeout(ms(cut), self.lead(turn)).await;
            }
        }
    }

    async fn lead(&self, turn: &Turn) {
        let options = LeaseOptions::builder()
            .wait(ms(turn.wait))
            .lease(ms(turn.lease))
            .min_lease(ms(turn.min_lease))
            .auto_extend(turn.auto_extend)
            .slots(self.world.plan.slots)
            .build();
        let Ok(options) = options else {
            return self.world.fail("plan", "the options are wrong".to_owned());
        };
        let (begun, frozen) = (Instant::now(), self.freezer.total());
        let acquired = self.elector.try_acquire(self.name.as_str(), &options).await;
        let frozen = self.freezer.total().saturating_sub(frozen);
        let steps = if frozen.is_zero() { 1 } else { 2 };
        let limit = ms(turn.wait + steps * 2 * self.world.plan.command_timeout + 3) + frozen;
        if begun.elapsed() > limit {
            let what = format!("c{} stood for {:?}", self.candidate, begun.elapsed());
            self.world.fail("bounded", what);
        }
        let lease = match acquired {
            Ok(Some(lease)) => lease,
            Ok(None) => return,
            Err(error) => {
                if self.world.plan.faults.is_empty() {
                    let what = format!("c{} got an error: {error}", self.candidate);
                    self.world.fail("honest", what);
                }
                return;
            }
        };
        self.world.hold(self.candidate, lease.handle());
        sleep(ms(turn.work)).await;
        if turn.work.is_multiple_of(2) {
            self.let_go(&lease);
            let _ = lease.release().await;
        }
    }

    /// The lease is over by its holder's own will from here on.
    fn let_go(&self, lease: &leader_core::Lease) {
        let fence = lease.fence();
        let held = &mut self.world.lock().ledger.held;
        held.retain(|held| held.lease.fence() != fence);
    }

    /// When nothing is wrong any more, everybody leads once.
    async fn lead_at_last(&self) {
        let options = LeaseOptions::builder()
            .wait(Duration::from_secs(3600))
            .lease(ms(1000))
            .slots(self.world.plan.slots)
            .build();
        let Ok(options) = options else {
            return self.world.fail("plan", "the options are wrong".to_owned());
        };
        let elected: Result<Option<()>, LeaderError> = self
            .elector
            .run_if_leader(self.name.as_str(), &options, |_| async {})
            .await;
        if !matches!(elected, Ok(Some(()))) {
            let what = format!("c{} never led: {elected:?}", self.candidate);
            self.world.fail("leads again", what);
        }
    }
}
