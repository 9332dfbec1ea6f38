//! [`Views`]: what pages are shown, looked up once for all of them however many are open.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leader_core::{Elector, ElectorExt, Holder, LeaderError, LeaderState};
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::bench::Bench;
use crate::journal::millis;
use crate::life::code;
use crate::line::RECONNECT;
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
    pub(crate) async fn record(&self, bench: &Bench) -> Record {
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
            let quiet = last == seen && record.is_empty();
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

/// The store's record: who holds which slot, or why that is not known.
#[derive(Debug)]
pub(crate) struct Record {
    /// What was granted before this is in it.
    asked: Instant,
    holders: Result<Vec<Held>, Value>,
}

/// A holder, and how long the lease was that it was granted, as far as that is known.
#[derive(Debug)]
struct Held {
    holder: Holder,
    of: Duration,
}

impl Record {
    /// Whether it says that nobody holds `fence`, which was granted by `granted`.
    pub(crate) fn denies(&self, fence: u64, granted: Instant) -> bool {
        let Ok(holders) = &self.holders else {
            return false;
        };
        let holds = |held: &Held| held.holder.fence().get() == fence;
        granted <= self.asked && !holders.iter().any(holds)
    }

    fn is_empty(&self) -> bool {
        self.holders.as_ref().is_ok_and(Vec::is_empty)
    }

    /// How many slots there are up to the last one that is held.
    fn slots(&self) -> usize {
        let held = self.holders.as_deref().unwrap_or_default().iter();
        let slots = held.map(|held| held.holder.slot() as usize + 1);
        slots.max().unwrap_or_default()
    }

    fn shown(&self) -> Value {
        let holders = match &self.holders {
            Ok(holders) => holders,
            Err(error) => return error.clone(),
        };
        let holder = |held: &Held| {
            let mut shown = json!(held.holder);
            shown["of_ms"] = json!(millis(held.of));
            shown
        };
        let holders: Vec<Value> = holders.iter().map(holder).collect();
        json!({ "error": null, "holders": holders })
    }
}

/// What came of an attempt to connect to the store.
struct Attempt {
    site: Arc<Site>,
    elector: Result<Arc<dyn Elector>, LeaderError>,
    ended: Instant,
}

impl Attempt {
    /// Whether it still counts for that store. Another one would begin with all connections anew, the open ones among them.
    fn counts_for(&self, site: &Arc<Site>) -> bool {
        let counts = self.elector.is_ok() || self.ended.elapsed() < RECONNECT;
        counts && Arc::ptr_eq(&self.site, site)
    }
}

/// Looks at the store's record, over connections of its own.
#[derive(Default)]
struct Eye {
    link: watch::Sender<Link>,
    last: Option<Attempt>,
    /// How long each lease is that was held at the last look, by its fencing token.
    leases: BTreeMap<u64, Duration>,
}

impl fmt::Debug for Eye {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Eye").finish_non_exhaustive()
    }
}

impl Eye {
    async fn record(&mut self, bench: &Bench) -> Record {
        let asked = Instant::now();
        let holders = match self.holders(bench).await {
            Ok(state) => Ok(self.measured(bench, state.holders())),
            Err(error) => {
                Err(json!({ "error": code(&error), "message": error.to_string(), "holders": null }))
            }
        };
        Record { asked, holders }
    }

    /// Each with its lease: what its candidate was granted, or the most that was left of it at any look. Of one that was
    /// killed there is only the latter.
    fn measured(&mut self, bench: &Bench, holders: &[Holder]) -> Vec<Held> {
        let measured = |holder: &Holder| {
            let fence = holder.fence().get();
            let row = IDS.iter().find(|id| **id == holder.node_id().as_str());
            let granted = row.and_then(|id| bench.world.row(id).granted_for(fence));
            let seen = self.leases.get(&fence).copied();
            let most = granted.into_iter().chain(seen).max();
            Held {
                holder: holder.clone(),
                of: most.unwrap_or_default().max(holder.remaining()),
            }
        };
        let held: Vec<Held> = holders.iter().map(measured).collect();
        let leases = held.iter().map(|held| (held.holder.fence().get(), held.of));
        self.leases = leases.collect();
        held
    }

    async fn holders(&mut self, bench: &Bench) -> Result<LeaderState, LeaderError> {
        let elector = self.elector(bench.world.site()).await?;
        elector.state(bench.world.name.clone()).await
    }

    async fn elector(&mut self, site: Arc<Site>) -> Result<Arc<dyn Elector>, LeaderError> {
        let last = self.last.take().filter(|last| last.counts_for(&site));
        let last = match last {
            Some(last) => last,
            None => Attempt {
                elector: site.elector("workbench", &self.link).await,
                ended: Instant::now(),
                site,
            },
        };
        self.last.insert(last).elector.clone()
    }
}

/// Everything that changes.
pub(crate) fn state(bench: &Bench, stage: &Stage, record: &Record) -> Value {
    let world = &bench.world;
    let (settings, site) = (world.settings(), world.site());
    let candidates = usize::try_from(settings.candidates).unwrap_or_default();
    // A slot that is held is shown also when the settings have none of it any more.
    let slots = usize::try_from(settings.slots).unwrap_or_default();
    let slots = slots.max(record.slots());
    let rows = IDS
        .iter()
        .take(candidates)
        .map(|id| world.row(id).view(id, record));
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
        "record": record.shown(),
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
