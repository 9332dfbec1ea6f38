//! [`Bench`]: what a person, or a scenario, can do: to candidates, to the store, to the settings.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use leader_core::LockName;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::candidate::Process;
use crate::journal::Event;
use crate::reach::Link;
use crate::settings::{Refused, Settings};
use crate::site::{Place, Site};
use crate::world::{IDS, World};

/// Does a deed in a task of its own, and waits for it: whoever asked for it may give up, since a page was closed or a story
/// ended, and what has begun must not be left half done.
pub(crate) async fn through<T: Send + 'static>(
    deed: impl Future<Output = T> + Send + 'static,
) -> T {
    match tokio::spawn(deed).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and whoever waits here ends with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Why something could not be done: by a code for whoever has words of their own, and in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Undone {
    pub(crate) code: &'static str,
    pub(crate) error: String,
}

impl Undone {
    pub(crate) fn new(code: &'static str, error: impl Into<String>) -> Self {
        Self {
            code,
            error: error.into(),
        }
    }
}

pub(crate) type Done = Result<(), Undone>;

/// What can be done to a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Start,
    Stop,
    Freeze,
    Thaw,
    Kill,
    Cut,
    Mend,
}

/// What can be done to a node of the store, or to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreDeed {
    Stop,
    Start,
    Forget,
}

#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) world: Arc<World>,
    /// Where leases are kept unless a scenario brings servers of its own.
    home: Place,
    /// The processes that were started. One thing is done at a time.
    processes: Arc<Mutex<Processes>>,
}

type Processes = BTreeMap<&'static str, Process>;

impl Bench {
    pub(crate) fn new(name: LockName, home: Place) -> Self {
        Self {
            world: Arc::new(World::new(name, home.clone())),
            home,
            processes: Arc::default(),
        }
    }

    /// Whoever has them is the only one who does anything. A deed begins once it has them: given up before, it was not
    /// done, and given up afterwards, it is done in full, and before what is asked for next.
    async fn processes(&self) -> OwnedMutexGuard<Processes> {
        let mut processes = self.processes.clone().lock_owned().await;
        processes.retain(|_, process| !process.has_ended());
        processes
    }

    fn note(&self, candidate: &'static str, action: &'static str) {
        self.world.journal.note(Event {
            candidate: Some(candidate),
            ..Event::new(action, "ok")
        });
    }

    /// Does something to the candidate `id`, one of [`IDS`].
    pub(crate) async fn candidate(self: &Arc<Self>, id: &'static str, deed: Deed) -> Done {
        let mut processes = self.processes().await;
        let this = self.clone();
        through(async move {
            match deed {
                Deed::Start => this.start(&mut processes, id),
                Deed::Stop | Deed::Kill => this.end_one(&mut processes, id, deed).await,
                _ => this.disturb(&processes, id, deed).await,
            }
        })
        .await
    }

    fn start(&self, processes: &mut Processes, id: &'static str) -> Done {
        if let Some(running) = processes.get(id) {
            running.stand_again();
            return Ok(());
        }
        let within = self.world.settings().candidates;
        let mut places = IDS.iter().take(usize::try_from(within).unwrap_or_default());
        if places.all(|known| *known != id) {
            let error = format!("the bench has {within} candidates now; `{id}` is not among them");
            return Err(Undone::new("no_place", error));
        }
        let process = Process::start(&self.world, id);
        let process = process.map_err(|error| {
            Undone::new("no_thread", format!("no thread could be started: {error}"))
        })?;
        self.note(id, "starts");
        processes.insert(id, process);
        Ok(())
    }

    async fn end_one(&self, processes: &mut Processes, id: &'static str, deed: Deed) -> Done {
        let process = processes.remove(id).ok_or_else(|| down(id))?;
        if deed == Deed::Kill {
            process.kill().await;
            self.note(id, "killed");
        } else {
            process.stop().await;
            self.note(id, "stops");
        }
        Ok(())
    }

    async fn disturb(&self, processes: &Processes, id: &'static str, deed: Deed) -> Done {
        let process = processes.get(id).ok_or_else(|| down(id))?;
        match deed {
            // Nothing happens to one that is so already, so nothing is told; and one that stands still cannot be made to.
            Deed::Freeze if process.is_frozen() => {}
            Deed::Thaw if !process.is_frozen() => {}
            Deed::Freeze => {
                if !process.freeze().await {
                    let error = format!("candidate `{id}` did not stand still; try again");
                    return Err(Undone::new("not_frozen", error));
                }
                self.note(id, "frozen");
            }
            Deed::Thaw => {
                self.note(id, "thawed");
                process.thaw();
            }
            Deed::Cut => {
                process.set_link(Link::Cut);
                self.note(id, "cut");
            }
            _ => {
                process.set_link(Link::Up);
                self.note(id, "mended");
            }
        }
        Ok(())
    }

    /// Does something to one node of the store, or to all.
    pub(crate) async fn store(self: &Arc<Self>, node: Option<usize>, deed: StoreDeed) -> Done {
        let this = self.clone();
        through(async move { this.store_through(node, deed).await }).await
    }

    async fn store_through(&self, node: Option<usize>, deed: StoreDeed) -> Done {
        let site = self.world.site();
        let count = site.nodes.len();
        let nodes = node.map_or(0..count, |node| node..node + 1);
        if nodes.end > count {
            let error = format!("the store has {count} nodes, counted from 0");
            return Err(Undone::new("no_node", error));
        }
        let (stopped, action) = match deed {
            StoreDeed::Forget => return self.forget(&site, nodes).await,
            StoreDeed::Stop => (true, "store_stopped"),
            StoreDeed::Start => (false, "store_started"),
        };
        for node in &site.nodes[nodes] {
            node.power.send_modify(|power| power.stopped = stopped);
        }
        self.note_of_store(&site, action, node);
        Ok(())
    }

    /// Each node that can forgets, and is told of; the others are named.
    async fn forget(&self, site: &Arc<Site>, nodes: Range<usize>) -> Done {
        let forgot = site.forget(nodes, &self.world.name).await;
        for (node, forgot) in &forgot {
            if forgot.is_ok() {
                self.note_of_store(site, "store_forgot", Some(*node));
            }
        }
        match remembering(site, &forgot) {
            None => Ok(()),
            Some(error) => Err(Undone::new("not_forgotten", error)),
        }
    }

    /// What happened to one node, or to all; unless the bench was laid out anew in the meantime, with another store: what is
    /// done to the store waits for nobody.
    fn note_of_store(&self, site: &Arc<Site>, action: &'static str, node: Option<usize>) {
        if !Arc::ptr_eq(site, &self.world.site()) {
            return;
        }
        let event = Event::new(action, "ok");
        self.world.journal.note(match node {
            Some(node) if site.nodes.len() > 1 => event.detail(&(node + 1)),
            _ => event,
        });
    }

    /// Takes new settings, which count from the next stand on. Candidates for whom there is no place any more stop.
    pub(crate) async fn set(
        self: &Arc<Self>,
        changes: &Map<String, Value>,
    ) -> Result<Settings, Refused> {
        let mut processes = self.processes().await;
        let settings = self.world.settings().changed(changes)?;
        self.world.set(settings.clone());
        let this = self.clone();
        through(async move {
            let within = usize::try_from(settings.candidates).unwrap_or_default();
            for id in IDS.iter().skip(within) {
                if let Some(process) = processes.remove(id) {
                    process.stop().await;
                    this.note(id, "stops");
                }
            }
            Ok(settings)
        })
        .await
    }

    /// Lays the bench out anew: nobody runs, the store is empty, and nothing has happened. A server that cannot be emptied
    /// is an error, and all the rest is done.
    pub(crate) async fn lay_out(
        self: &Arc<Self>,
        place: Option<Place>,
        settings: Settings,
    ) -> Done {
        let mut processes = self.processes().await;
        let this = self.clone();
        through(async move {
            for (_, process) in std::mem::take(&mut *processes) {
                process.kill().await;
            }
            let site = Site::new(place.unwrap_or_else(|| this.home.clone()));
            // What the killed ones held on servers would be in the way until it ends. Memory is new.
            let on_servers = site.place.kind().starts_with("redis");
            let nodes = if on_servers { site.nodes.len() } else { 0 };
            let forgot = site.forget(0..nodes, &this.world.name).await;
            let failed = remembering(&site, &forgot);
            this.world.move_to(site);
            this.world.set(settings);
            this.world.resource.clear();
            this.world.journal.clear();
            match failed {
                None => Ok(()),
                Some(error) => Err(Undone::new("not_emptied", error)),
            }
        })
        .await
    }

    /// Everybody hands over and ends.
    pub(crate) async fn end(&self) {
        let processes = std::mem::take(&mut *self.processes().await);
        futures::future::join_all(processes.into_values().map(Process::stop)).await;
    }
}

fn down(id: &str) -> Undone {
    let error = format!("candidate `{id}` is not running; start it first");
    Undone::new("not_running", error)
}

/// Those that have not forgotten, and why, in a sentence.
fn remembering(site: &Site, forgot: &[(usize, Result<(), String>)]) -> Option<String> {
    let failed = forgot
        .iter()
        .filter_map(|(node, forgot)| Some((node, forgot.as_ref().err()?)));
    let said: Vec<String> = failed
        .map(|(node, why)| format!("{} has not lost its memory: {why}", site.called(*node)))
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::poll;
    use serde_json::json;

    use super::*;

    fn changes(changes: &Value) -> Map<String, Value> {
        changes.as_object().cloned().unwrap()
    }

    fn bench() -> Arc<Bench> {
        let name = LockName::new("invoice-close").unwrap();
        Arc::new(Bench::new(name, Place::Memory(1)))
    }

    async fn six_run(bench: &Arc<Bench>) {
        let six = changes(&json!({ "candidates": 6, "slots": 4, "work_ms": 600_000 }));
        bench.set(&six).await.unwrap();
        for id in IDS {
            bench.candidate(id, Deed::Start).await.unwrap();
        }
    }

    /// Whether nobody tells anything any more, for longer than a leader is silent.
    async fn are_silent(bench: &Bench) -> bool {
        let last = bench.world.journal.last();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        bench.world.journal.last() == last
    }

    #[tokio::test]
    async fn a_layout_that_is_given_up_half_way_leaves_nobody_behind() {
        let bench = bench();
        six_run(&bench).await;
        {
            let laid_out = std::pin::pin!(bench.lay_out(None, Settings::default()));
            assert!(poll!(laid_out).is_pending());
        }
        // Everything else waits until it is done.
        bench.candidate("a", Deed::Kill).await.unwrap_err();
        assert_eq!(bench.world.settings(), Settings::default());
        assert!(are_silent(&bench).await);
    }

    #[tokio::test]
    async fn one_that_is_frozen_again_as_soon_as_it_is_thawed_stands_still() {
        let bench = bench();
        bench.candidate("a", Deed::Start).await.unwrap();
        bench.candidate("a", Deed::Freeze).await.unwrap();
        for _ in 0..200 {
            bench.candidate("a", Deed::Thaw).await.unwrap();
            // Waited for in vain, it would be an error.
            bench.candidate("a", Deed::Freeze).await.unwrap();
            assert!(bench.world.row("a").state().frozen);
        }
    }

    #[tokio::test]
    async fn what_happens_to_a_store_that_was_left_is_not_told() {
        let bench = bench();
        let left = bench.world.site();
        bench.forget(&left, 0..1).await.unwrap();
        assert_eq!(bench.world.journal.last(), 1);
        bench.lay_out(None, Settings::default()).await.unwrap();
        bench.forget(&left, 0..1).await.unwrap();
        assert_eq!(bench.world.journal.last(), 1);
    }

    #[tokio::test]
    async fn a_bench_that_is_dropped_ends_its_candidates() {
        let bench = bench();
        six_run(&bench).await;
        let world = bench.world.clone();
        drop(bench);
        let others = Bench {
            world,
            home: Place::Memory(1),
            processes: Arc::default(),
        };
        assert!(are_silent(&others).await);
    }
}
