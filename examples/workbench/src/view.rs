//! [`Views`]: what pages are shown, looked up once for all of them however many are open.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leader_core::{Elector, ElectorExt, LeaderError};
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::bench::Bench;
use crate::reach::Link;
use crate::scenario::Stage;
use crate::settings::RANGES;
use crate::site::Site;
use crate::world::IDS;

/// From one look to the next.
const FRAME: Duration = Duration::from_millis(100);
/// While nothing changes, only each of so many looks is shown.
const STILL: u32 = 10;

/// The state of the bench, as JSON text, as the last look found it.
#[derive(Debug)]
pub(crate) struct Views {
    latest: watch::Sender<Arc<str>>,
    eye: Mutex<Eye>,
}

impl Views {
    pub(crate) fn new() -> Self {
        Self {
            latest: watch::Sender::new(Arc::from("null")),
            eye: Mutex::default(),
        }
    }

    /// Each state from now on; who is slow sees the latest only.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<str>> {
        self.latest.subscribe()
    }

    /// The store's record, as it is now.
    pub(crate) async fn record(&self, bench: &Bench) -> Value {
        self.eye.lock().await.record(bench).await
    }

    /// Looks at the bench again and again, while any page is open.
    pub(crate) async fn look(&self, bench: &Bench, stage: &Stage) {
        let mut ticks = interval(FRAME);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut seen, mut still, mut pages) = (0, 0, 0);
        loop {
            ticks.tick().await;
            let before = std::mem::replace(&mut pages, self.latest.receiver_count());
            if pages == 0 {
                continue;
            }
            let record = self.record(bench).await;
            let last = bench.world.journal.last();
            let quiet = last == seen && record["holders"].as_array().is_some_and(Vec::is_empty);
            // A new page is shown something at once.
            still = if quiet && pages <= before {
                still + 1
            } else {
                0
            };
            if still % STILL == 0 {
                seen = last;
                let shown = state(bench, stage, &record).to_string();
                self.latest.send_replace(Arc::from(shown));
            }
        }
    }
}

/// Looks at the store's record, over connections of its own.
#[derive(Default)]
struct Eye {
    link: watch::Sender<Link>,
    elector: Option<(Arc<Site>, Arc<dyn Elector>)>,
}

impl fmt::Debug for Eye {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Eye").finish_non_exhaustive()
    }
}

impl Eye {
    async fn record(&mut self, bench: &Bench) -> Value {
        match self.holders(bench).await {
            Ok(holders) => holders,
            Err(LeaderError::Backend { kind, .. }) => {
                json!({ "error": kind.as_str(), "holders": null })
            }
            Err(error) => json!({ "error": error.to_string(), "holders": null }),
        }
    }

    async fn holders(&mut self, bench: &Bench) -> Result<Value, LeaderError> {
        let site = bench.world.site();
        let elector = match &self.elector {
            Some((of, elector)) if Arc::ptr_eq(of, &site) => elector.clone(),
            _ => {
                let elector = site.elector("workbench", &self.link).await?;
                self.elector = Some((site, elector.clone()));
                elector
            }
        };
        let state = elector.state(bench.world.name.clone()).await?;
        Ok(json!({ "error": null, "holders": state.holders() }))
    }
}

/// Everything that changes.
pub(crate) fn state(bench: &Bench, stage: &Stage, record: &Value) -> Value {
    let world = &bench.world;
    let (settings, site) = (world.settings(), world.site());
    let candidates = usize::try_from(settings.candidates).unwrap_or_default();
    let slots = usize::try_from(settings.slots).unwrap_or_default();
    let rows = IDS.iter().take(candidates).map(|id| world.row(id).view(id));
    let nodes = site
        .nodes
        .iter()
        .map(|node| json!({ "stopped": node.power.borrow().stopped }));
    json!({
        "now_ms": world.journal.now_ms(),
        "last": world.journal.last(),
        "counts": world.journal.counts(),
        "candidates": rows.collect::<Vec<_>>(),
        "store": { "kind": site.place.kind(), "nodes": nodes.collect::<Vec<_>>() },
        "record": record,
        "settings": settings.shown(),
        "resource": world.resource.view(slots),
        "scenario": stage.view(),
    })
}

/// What stays as it is while the workbench runs.
pub(crate) fn about(bench: &Bench) -> Value {
    let range = |(field, range): &(&str, std::ops::RangeInclusive<u64>)| {
        ((*field).to_owned(), json!([range.start(), range.end()]))
    };
    json!({
        "name": bench.world.name,
        "ranges": RANGES.iter().map(range).collect::<serde_json::Map<_, _>>(),
        "scenarios": Stage::programme(),
    })
}
