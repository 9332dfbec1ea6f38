//! [`Stage`]: the candidates of a plan, on real electors, and the log of what they tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leader_core::fencing::FenceGate;
use leader_core::{LeaderError, LeaseOptions, LocalStore, StoreElector};
use tokio::time::{Instant, sleep_until};

use super::actor::{Actor, Progress};
use super::freeze::Freezer;
use super::log::Log;
use super::plan::{Candidate, OnLost, Plan};
use super::row::{Action, Row};
use super::time;

/// The candidates of a plan.
pub(super) struct Stage {
    plan: Plan,
    options: LeaseOptions,
    log: Log,
    actors: BTreeMap<Candidate, Actor>,
    next: u32,
    runs: Vec<Run>,
}

/// One run of a candidate that has not ended.
struct Run {
    candidate: Candidate,
    stood: Instant,
    progress: Arc<Progress>,
}

impl Stage {
    /// To be made at the begin of paused time.
    pub(super) fn new(plan: Plan) -> Result<Self, LeaderError> {
        let options = LeaseOptions::builder()
            .lease(time::ticks(plan.lease))
            .wait(time::wait(plan.wait))
            .min_lease(time::ticks(plan.min_lease))
            .slots(plan.slots)
            .auto_extend(plan.auto_extend)
            .on_lost(match plan.on_lost {
                OnLost::Stop => leader_core::OnLost::Cancel,
                OnLost::Continue => leader_core::OnLost::Notify,
            })
            .build()?;
        // Fencing tokens are the store's time in microseconds: from 0, they are the same in each play.
        let store = LocalStore::starting_at(Duration::ZERO);
        let log = Log::begin(store.clone());
        let resource: Arc<FenceGate> = Arc::default();
        let actor = |(number, candidate): (usize, Candidate)| {
            let freezer = Freezer::default();
            let background = freezer.clone();
            let elector = StoreElector::builder(store.clone())
                .node_id(candidate.to_string())
                .seed(number as u64)
                .wrap_background(move |work| Box::pin(background.clone().gate(work)))
                .build();
            let actor = Actor {
                candidate,
                elector,
                freezer,
                resource: resource.clone(),
                log: log.clone(),
            };
            tokio::spawn(actor.events());
            (candidate, actor)
        };
        let actors = plan.candidates().into_iter().enumerate().map(actor);
        Ok(Self {
            actors: actors.collect(),
            plan,
            options,
            log,
            next: 0,
            runs: Vec::new(),
        })
    }

    /// Plays one tick: what happened in it.
    pub(super) async fn step(&mut self) -> Vec<Row> {
        let tick = self.next;
        self.next += 1;
        self.freeze_and_thaw(tick);
        sleep_until(self.log.clock().middle_of(tick)).await;
        for stand in &self.plan.stands {
            if stand.tick == tick
                && let Some(actor) = self.actors.get(&stand.candidate)
            {
                let progress = Arc::new(Progress::default());
                self.runs.push(Run {
                    candidate: stand.candidate,
                    stood: Instant::now(),
                    progress: progress.clone(),
                });
                let run = actor
                    .clone()
                    .run(self.options.clone(), self.plan.clone(), progress);
                tokio::spawn(actor.freezer.clone().gate(run));
            }
        }
        sleep_until(self.log.clock().end_of(tick)).await;
        self.tell_who_waits(tick).await;
        self.runs.retain(|run| !run.progress.is_over());
        self.log.take_until(tick)
    }

    /// Whether nothing is under way, and nothing to come.
    pub(super) fn is_over(&self) -> bool {
        let stands = self.plan.stands.iter().map(|stand| stand.tick);
        let thaws = self.plan.pauses.iter().map(|pause| pause.until);
        self.runs.is_empty() && stands.chain(thaws).all(|tick| tick < self.next)
    }

    fn freeze_and_thaw(&self, tick: u32) {
        for pause in &self.plan.pauses {
            let Some(actor) = self.actors.get(&pause.candidate) else {
                continue;
            };
            if tick == pause.from {
                actor.freeze();
            } else if tick == pause.until {
                actor.thaw();
            }
        }
    }

    /// The engine tells of the end of a stand only: who still stands at the end of the tick waits.
    async fn tell_who_waits(&self, tick: u32) {
        for run in &self.runs {
            if self.log.clock().tick_at(run.stood) == tick && run.progress.stands() {
                let mut row = Row::new(tick, run.candidate, Action::Waits);
                if let Some((holder, ends)) = self.log.first_to_end().await {
                    row.holder = holder;
                    row.remaining = Some(ends.saturating_sub(tick));
                }
                self.log.push(run.stood, row);
            }
        }
    }
}
