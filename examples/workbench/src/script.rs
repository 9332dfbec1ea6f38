//! [`Script`]: the scenarios, each of which does what a person could do by hand and waits for what comes of it.

use std::sync::Arc;
use std::time::Duration;

use leader_tests::{Pair, Server};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::bench::{Bench, Deed, Done, Undone};
use crate::candidate::Phase;
use crate::scenario::Stage;
use crate::settings::Settings;
use crate::site::Place;

/// How long a scenario waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
/// For the eye, after something has happened.
const MOMENT: Duration = Duration::from_secs(2);

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Contention,
    StaleOwner,
    Extension,
    Slots,
    PausedLeader,
    Failover,
    FailoverAcknowledged,
}

impl Script {
    pub(crate) const ALL: [Self; 7] = [
        Self::Contention,
        Self::StaleOwner,
        Self::Extension,
        Self::Slots,
        Self::PausedLeader,
        Self::Failover,
        Self::FailoverAcknowledged,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Contention => "contention",
            Self::StaleOwner => "stale-owner",
            Self::Extension => "extension",
            Self::Slots => "slots",
            Self::PausedLeader => "paused-leader",
            Self::Failover => "failover",
            Self::FailoverAcknowledged => "failover-replica-ack",
        }
    }

    /// How many steps it has, each with a sentence on the page.
    pub(crate) fn steps(self) -> u32 {
        match self {
            Self::Contention | Self::Extension | Self::FailoverAcknowledged => 3,
            Self::StaleOwner | Self::Slots | Self::PausedLeader | Self::Failover => 4,
        }
    }

    pub(crate) fn needs_servers(self) -> bool {
        matches!(self, Self::Failover | Self::FailoverAcknowledged)
    }

    pub(crate) async fn play(self, act: Act) -> Done {
        match self {
            Self::Contention => contention(&act).await,
            Self::StaleOwner => stale_owner(&act).await,
            Self::Extension => extension(&act).await,
            Self::Slots => slots(&act).await,
            Self::PausedLeader => paused_leader(&act).await,
            Self::Failover => failover(&act).await,
            Self::FailoverAcknowledged => failover_acknowledged(&act).await,
        }
    }
}

/// What a scenario can do.
pub(crate) struct Act {
    bench: Arc<Bench>,
    stage: Arc<Stage>,
    /// Its number on the stage.
    play: u64,
    began: Instant,
}

impl Act {
    pub(crate) fn new(bench: Arc<Bench>, stage: Arc<Stage>, play: u64) -> Self {
        Self {
            bench,
            stage,
            play,
            began: Instant::now(),
        }
    }

    fn step(&self, step: u32) {
        self.stage.step(self.play, step);
    }

    /// Until so many seconds of the scenario have passed.
    async fn second(&self, second: u64) {
        tokio::time::sleep_until(self.began + Duration::from_secs(second)).await;
    }

    async fn set(&self, changes: Value) -> Done {
        let none = Map::new();
        let changes = changes.as_object().unwrap_or(&none);
        let set = self.bench.set(changes).await;
        set.map(drop)
            .map_err(|refused| Undone::new("refused", refused.error))
    }

    async fn stand(&self, id: &'static str) -> Done {
        self.bench.candidate(id, Deed::Start).await
    }

    /// Waits until `id` leads, and has told so.
    async fn leads(&self, id: &'static str) -> Done {
        let row = self.bench.world.row(id);
        self.until(&format!("{id} leads"), || {
            row.state().phase == Phase::Leading
        })
        .await?;
        self.told(id, "elected", None).await
    }

    /// Waits until something is told of `id`.
    async fn told(&self, id: &'static str, action: &str, result: Option<&str>) -> Done {
        let journal = &self.bench.world.journal;
        self.until(&format!("{id}: {action}"), || {
            let events = journal.since(0, usize::MAX).events;
            events.iter().any(|event| {
                event.candidate == Some(id)
                    && event.action == action
                    && result.is_none_or(|result| event.result == result)
            })
        })
        .await
    }

    async fn until(&self, what: &str, come: impl Fn() -> bool) -> Done {
        let limit = Instant::now() + PATIENCE;
        while !come() {
            if Instant::now() > limit {
                let error = format!("waited in vain: {what}");
                return Err(Undone::new("waited_in_vain", error));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }
}

/// What stands for each of the first three: one run, without extension.
fn once(lease_ms: u64, work_ms: u64, wait_ms: u64) -> Value {
    json!({
        "lease_ms": lease_ms, "work_ms": work_ms, "wait_ms": wait_ms, "min_lease_ms": 1_000,
        "auto_extend": false, "repeat": false, "slots": 1, "candidates": 3, "on_lost": "cancel",
    })
}

async fn contention(act: &Act) -> Done {
    act.set(once(10_000, 8_000, 2_000)).await?;
    act.step(1);
    act.stand("a").await?;
    act.leads("a").await?;
    act.second(1).await;
    act.stand("b").await?;
    act.told("b", "skipped", None).await?;
    act.step(2);
    act.second(9).await;
    act.stand("c").await?;
    act.leads("c").await?;
    act.step(3);
    Ok(())
}

async fn stale_owner(act: &Act) -> Done {
    act.set(once(6_000, 12_000, 4_000)).await?;
    act.set(json!({ "on_lost": "notify" })).await?;
    act.step(1);
    act.stand("a").await?;
    act.second(5).await;
    act.stand("b").await?;
    act.leads("b").await?;
    act.step(2);
    act.second(10).await;
    act.step(3);
    act.stand("c").await?;
    act.told("a", "release", None).await?;
    act.leads("c").await?;
    act.step(4);
    Ok(())
}

async fn extension(act: &Act) -> Done {
    act.set(once(6_000, 12_000, 2_000)).await?;
    act.set(json!({ "auto_extend": true })).await?;
    act.step(1);
    act.stand("a").await?;
    act.second(1).await;
    act.stand("b").await?;
    act.told("b", "skipped", None).await?;
    act.step(2);
    act.second(7).await;
    act.stand("c").await?;
    act.told("c", "skipped", None).await?;
    act.told("a", "released", None).await?;
    act.step(3);
    Ok(())
}

async fn slots(act: &Act) -> Done {
    act.set(once(6_000, 6_000, 8_000)).await?;
    let two = json!({ "slots": 2, "candidates": 4, "auto_extend": true, "min_lease_ms": 0 });
    act.set(two).await?;
    act.step(1);
    act.stand("a").await?;
    act.second(2).await;
    act.stand("b").await?;
    act.leads("b").await?;
    act.second(3).await;
    act.step(2);
    act.stand("c").await?;
    act.second(4).await;
    act.set(json!({ "wait_ms": 1_000 })).await?;
    act.stand("d").await?;
    act.told("d", "skipped", None).await?;
    act.step(3);
    act.leads("c").await?;
    act.step(4);
    Ok(())
}

async fn paused_leader(act: &Act) -> Done {
    act.set(once(4_000, 14_000, 20_000)).await?;
    let changes = json!({ "auto_extend": true, "on_lost": "notify", "candidates": 2 });
    act.set(changes).await?;
    act.step(1);
    act.stand("a").await?;
    act.leads("a").await?;
    act.second(1).await;
    act.stand("b").await?;
    act.second(3).await;
    act.bench.candidate("a", Deed::Freeze).await?;
    act.step(2);
    act.leads("b").await?;
    act.told("b", "write", Some("accepted")).await?;
    sleep(MOMENT).await;
    act.step(3);
    act.bench.candidate("a", Deed::Thaw).await?;
    act.told("a", "write", Some("refused")).await?;
    act.told("a", "lost", None).await?;
    sleep(MOMENT).await;
    act.step(4);
    Ok(())
}

/// Its first extension, after a third of it, comes after the accident, also on a busy machine.
const LONG_LEASE_MS: u64 = 30_000;

async fn failover(act: &Act) -> Done {
    act.step(1);
    let pair = Pair::start().await;
    let place = Place::Redis(vec![pair.url()]);
    act.bench.lay_out(Some(place), Settings::default()).await?;
    act.set(once(LONG_LEASE_MS, 40_000, 10_000)).await?;
    act.set(json!({ "auto_extend": true, "candidates": 2 }))
        .await?;
    pair.lag();
    act.stand("a").await?;
    act.leads("a").await?;
    sleep(MOMENT).await;
    pair.fail_over().await;
    act.step(2);
    sleep(MOMENT).await;
    act.stand("b").await?;
    act.leads("b").await?;
    act.step(3);
    act.told("a", "write", Some("refused")).await?;
    act.told("a", "lost", None).await?;
    act.step(4);
    linger(act, pair).await
}

async fn failover_acknowledged(act: &Act) -> Done {
    act.step(1);
    let pair = Pair::start().await;
    let place = Place::Acknowledged(pair.url());
    act.bench.lay_out(Some(place), Settings::default()).await?;
    act.set(once(LONG_LEASE_MS, 20_000, 2_000)).await?;
    act.set(json!({ "auto_extend": true, "candidates": 2 }))
        .await?;
    pair.lag();
    act.stand("a").await?;
    act.told("a", "gave_up", Some("too_few_replicas")).await?;
    act.step(2);
    let new_primary = pair.fail_over().await;
    let its_replica = Server::replica_of(new_primary).await;
    act.set(json!({ "wait_ms": 10_000 })).await?;
    act.stand("b").await?;
    act.leads("b").await?;
    act.step(3);
    linger(act, (its_replica, pair)).await
}

/// The scenario is over, and its servers stay until something else plays: who leads there leads on.
async fn linger<T>(act: &Act, _servers: T) -> Done {
    act.stage.end(act.play, Ok(()));
    std::future::pending().await
}
