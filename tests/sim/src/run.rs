//! Plays a plan: one runtime, one thread, no time but the paused clock's.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use leader_core::{ElectorExt, StoreElector};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::candidate::{Candidate, ms};
use crate::event::{Event, Left, Turn};
use crate::network::SimStore;
use crate::plan::{FaultKind, Plan, Stand};
use crate::server::Server;
use crate::tally::Tally;
use crate::world::{Violation, World};

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// The invariant that did not hold, if there is one.
    pub violation: Option<Violation>,
    /// What the run went through.
    pub tally: Tally,
    /// What happened, line by line; empty unless asked for.
    pub trace: String,
}

/// Whether to write the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// No.
    Off,
    /// Yes.
    On,
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
        let broken = world.broken.notified();
        tokio::select! {
            biased;
            () = broken => {}
            over = timeout(Duration::from_secs(24 * 3600), Stage::new(&world).play()) => {
                if over.is_err() {
                    world.fail("bounded", format!("never over: {}", unfinished(&world)));
                }
            }
        }
        let violation = world.violation();
        let tally = world.lock().tally;
        Report {
            violation,
            tally,
            trace: world.trace(),
        }
    })
}

fn unfinished(world: &World) -> String {
    let runs: Vec<_> = world
        .lock()
        .facts
        .runs
        .iter()
        .enumerate()
        .filter(|(_, run)| run.over.is_none())
        .map(|(number, run)| format!("run {number} of c{}", run.node))
        .collect();
    runs.join(", ")
}

struct Stage {
    world: Arc<World>,
    candidates: Vec<Candidate>,
    /// How many of the engines' stores there are still.
    alive: Arc<()>,
}

impl Stage {
    fn new(world: &Arc<World>) -> Self {
        let alive = Arc::new(());
        let candidate = |node: usize| {
            let freezer = world.freezers[node].clone();
            let elector = StoreElector::builder(SimStore::new(world.clone(), node, alive.clone()))
                .node_id(format!("c{node}"))
                .seed(world.plan.seed.wrapping_mul(64).wrapping_add(node as u64))
                .wrap_background(move |work| Box::pin(freezer.gate(work)))
                .build();
            Candidate {
                world: world.clone(),
                elector,
                node,
                task: 0,
            }
        };
        let candidates = (0..world.plan.candidates.len()).map(candidate).collect();
        Self {
            world: world.clone(),
            candidates,
            alive,
        }
    }

    async fn play(mut self) {
        let world = self.world.clone();
        for candidate in &self.candidates {
            let (world, node) = (world.clone(), candidate.node);
            let mut events = candidate.elector.events();
            tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    world.tell(&Event::Told { node, event });
                }
            });
        }
        let troubles = tokio::spawn(troubles(world.clone()));
        let mut tasks = Vec::new();
        for candidate in &self.candidates {
            let plans = &world.plan.candidates[candidate.node].tasks;
            for (task, steps) in plans.iter().enumerate() {
                let playing = Candidate {
                    task,
                    ..candidate.clone()
                }
                .play(steps.clone());
                tasks.push(tokio::spawn(world.freezers[candidate.node].gate(playing)));
            }
        }
        self.join([troubles]).await;
        world.tell(&Event::Turn(Turn::Quiet));
        let longest = world.plan.longest_lease();
        for name in 0..world.names.len() {
            let slots = world
                .plan
                .stands()
                .filter(|stand| stand.name == name)
                .map(|stand| stand.slots);
            let slots = slots.max().unwrap_or(1);
            for candidate in &self.candidates {
                let stand = Stand {
                    name,
                    wait: 3_600_000,
                    lease: world.plan.last_lease(),
                    min_lease: 0,
                    auto_extend: false,
                    notify: false,
                    slots,
                    max_tenure: None,
                };
                let at_last = Candidate {
                    task: 9,
                    ..candidate.clone()
                }
                .stand_at_last(stand);
                tasks.push(tokio::spawn(world.freezers[candidate.node].gate(at_last)));
            }
        }
        self.join(tasks).await;
        if world.plan.seed.is_multiple_of(2) {
            for candidate in &self.candidates {
                candidate.shut_down().await;
            }
        }
        // Time for what goes on behind, and for what a lease or its minimum keeps.
        sleep(ms(longest
            + longest / 50
            + 2 * world.plan.command_timeout
            + 2000))
        .await;
        self.clear_away().await;
    }

    /// Looks at what is left.
    async fn clear_away(&mut self) {
        let mut left = Left {
            footprints: self
                .candidates
                .iter()
                .map(|candidate| candidate.elector.footprint())
                .collect(),
            ..Left::default()
        };
        self.candidates.clear();
        let leases: Vec<_>;
        {
            let state = &mut *self.world.lock();
            left.watchers = state.watchers.len();
            leases = state
                .facts
                .runs
                .iter_mut()
                .filter_map(|run| run.lease.take())
                .collect();
            let now = Instant::now();
            left.slots = self
                .world
                .names
                .iter()
                .map(|name| state.server.slots(name, now).len())
                .sum();
        }
        // Not under the lock: with the last of them an engine may go, and end its watches.
        drop(leases);
        // The events end with their elector.
        sleep(ms(1)).await;
        left.stores = Arc::strong_count(&self.alive) - 1;
        left.tasks = Handle::current().metrics().num_alive_tasks();
        self.world.tell(&Event::Finished { left });
    }

    async fn join(&self, tasks: impl IntoIterator<Item = JoinHandle<()>>) {
        for task in tasks {
            if let Err(error) = task.await {
                self.world.fail("no panic", error.to_string());
            }
        }
    }
}

/// What is done about a fault at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Copy,
    Begin,
    End,
}

/// Lets the faults begin and end.
async fn troubles(world: Arc<World>) {
    let mut edges = Vec::new();
    for (index, fault) in world.plan.faults.iter().enumerate() {
        edges.push((fault.at, index, Edge::Begin));
        edges.push((fault.until, index, Edge::End));
        if let FaultKind::Failover(behind) = fault.kind {
            edges.push((fault.at.saturating_sub(behind), index, Edge::Copy));
        }
    }
    edges.sort_by_key(|(at, index, edge)| (*at, *edge != Edge::Copy, *edge == Edge::End, *index));
    for (at, index, edge) in edges {
        sleep_until(world.begun + ms(at)).await;
        world.turn(index, edge);
    }
    sleep_until(world.begun + ms(world.plan.quiet_at())).await;
}

impl World {
    fn turn(self: &Arc<Self>, index: usize, edge: Edge) {
        let fault = &self.plan.faults[index];
        let turn = match (fault.kind, edge) {
            (FaultKind::Stop | FaultKind::Failover(_), Edge::Begin) => {
                self.lock().down += 1;
                Turn::Stopped
            }
            (FaultKind::Stop, Edge::End) => {
                self.lock().down -= 1;
                self.reconnect();
                Turn::Started
            }
            (FaultKind::Failover(_), Edge::Copy) => {
                let state = &mut *self.lock();
                if let Server::Model(model) = &state.server {
                    state.copies.insert(index, model.clone());
                }
                return;
            }
            (FaultKind::Failover(_), Edge::End) => {
                self.fail_over(index);
                self.reconnect();
                Turn::FailedOver
            }
            (FaultKind::Hang, Edge::Begin) => {
                self.lock().hanging += 1;
                Turn::Hangs
            }
            (FaultKind::Hang, Edge::End) => {
                self.lock().hanging -= 1;
                self.resumed.notify_waiters();
                Turn::GoesOn
            }
            (FaultKind::Forget, Edge::Begin) => {
                let state = &mut *self.lock();
                let micros = state.moment().micros;
                let clock_ahead = match &state.server {
                    Server::Model(model) => model.clock_ahead,
                    Server::Local(_) => 0,
                };
                self.replace(state, Server::new(self.plan.server, micros));
                if let Server::Model(model) = &mut state.server {
                    model.clock_ahead = clock_ahead;
                }
                Turn::Forgot
            }
            (FaultKind::Evict(name), Edge::Begin) => {
                let Some(lock) = self.names.get(name) else {
                    return;
                };
                self.evict(&mut self.lock(), lock);
                Turn::Evicted(name)
            }
            (FaultKind::ClockBack(by), Edge::Begin) => {
                if let Server::Model(model) = &mut self.lock().server {
                    model.clock_ahead -= i64::try_from(by * 1000).unwrap_or_default();
                }
                Turn::ClockStepped
            }
            (FaultKind::Freeze(node), Edge::Begin) => {
                let Some(freezer) = self.freezers.get(node) else {
                    return;
                };
                freezer.freeze();
                Turn::Frozen(node)
            }
            (FaultKind::Freeze(node), Edge::End) => {
                let Some(freezer) = self.freezers.get(node) else {
                    return;
                };
                freezer.thaw();
                Turn::Thawed(node)
            }
            _ => return,
        };
        self.tell(&Event::Turn(turn));
    }

    /// The replica takes over. Its clock is behind the old one's by the time that the failover took, at most.
    fn fail_over(&self, index: usize) {
        let state = &mut *self.lock();
        state.down -= 1;
        let Some(mut copy) = state.copies.remove(&index) else {
            return;
        };
        if let Server::Model(old) = &state.server {
            let fault = &self.plan.faults[index];
            // Of several failovers at a time, the last one's clock counts.
            let took = if state.down == 0 {
                (fault.until - fault.at) * 1000
            } else {
                0
            };
            let took = i64::try_from(took).unwrap_or_default();
            copy.clock_ahead = old.clock_ahead - took;
        }
        self.replace(state, Server::Model(copy));
    }

    fn replace(&self, state: &mut crate::world::State, server: Server) {
        let now = Instant::now();
        state.server = server;
        for (number, name) in self.names.iter().enumerate() {
            let after = state.server.slots(name, now);
            state.facts.turn_slots(number, after, now);
        }
    }
}
