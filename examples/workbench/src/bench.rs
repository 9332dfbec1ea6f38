//! [`Bench`]: what a person, or a scenario, can do: to candidates, to the store, to the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use leader_core::LockName;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, MutexGuard};

use crate::candidate::Process;
use crate::journal::Event;
use crate::reach::Link;
use crate::settings::{Refused, Settings};
use crate::site::{Place, Site};
use crate::world::{IDS, World};

/// Why something could not be done, in a sentence.
pub(crate) type Done = Result<(), String>;

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
    processes: Mutex<Processes>,
}

type Processes = BTreeMap<&'static str, Process>;

impl Bench {
    pub(crate) fn new(name: LockName, home: Place) -> Self {
        Self {
            world: Arc::new(World::new(name, home.clone())),
            home,
            processes: Mutex::default(),
        }
    }

    async fn processes(&self) -> MutexGuard<'_, Processes> {
        let mut processes = self.processes.lock().await;
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
    pub(crate) async fn candidate(&self, id: &'static str, deed: Deed) -> Done {
        let mut processes = self.processes().await;
        if deed == Deed::Start {
            if let Some(running) = processes.get(id) {
                running.stand_again();
                return Ok(());
            }
            let within = self.world.settings().candidates;
            if IDS
                .iter()
                .take(usize::try_from(within).unwrap_or_default())
                .all(|known| *known != id)
            {
                return Err(format!(
                    "the bench has {within} candidates now; `{id}` is not among them"
                ));
            }
            let process = Process::start(&self.world, id);
            let process =
                process.map_err(|error| format!("no thread could be started: {error}"))?;
            self.note(id, "starts");
            processes.insert(id, process);
            return Ok(());
        }
        let down = || format!("candidate `{id}` is not running; start it first");
        if matches!(deed, Deed::Stop | Deed::Kill) {
            let process = processes.remove(id).ok_or_else(down)?;
            if deed == Deed::Kill {
                process.kill().await;
                self.note(id, "killed");
            } else {
                process.stop().await;
                self.note(id, "stops");
            }
            return Ok(());
        }
        let process = processes.get(id).ok_or_else(down)?;
        match deed {
            Deed::Freeze => {
                process.freeze().await;
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
    pub(crate) async fn store(&self, node: Option<usize>, deed: StoreDeed) -> Done {
        let site = self.world.site();
        let count = site.nodes.len();
        let nodes = match node {
            None => &site.nodes[..],
            Some(node) => site
                .nodes
                .get(node..=node)
                .ok_or_else(|| format!("the store has {count} nodes, counted from 0"))?,
        };
        let action = match deed {
            StoreDeed::Stop => "store_stopped",
            StoreDeed::Start => "store_started",
            StoreDeed::Forget => "store_forgot",
        };
        for node in nodes {
            match deed {
                StoreDeed::Stop => node.power.send_modify(|power| power.stopped = true),
                StoreDeed::Start => node.power.send_modify(|power| power.stopped = false),
                StoreDeed::Forget => node.forget().await?,
            }
        }
        let event = Event::new(action, "ok");
        self.world.journal.note(match node {
            Some(node) if count > 1 => event.detail(&(node + 1)),
            _ => event,
        });
        Ok(())
    }

    /// Takes new settings, which count from the next stand on. Candidates for whom there is no place any more stop.
    pub(crate) async fn set(&self, changes: &Map<String, Value>) -> Result<Settings, Refused> {
        let mut processes = self.processes().await;
        let settings = self.world.settings().changed(changes)?;
        self.world.set(settings.clone());
        let within = usize::try_from(settings.candidates).unwrap_or_default();
        for id in IDS.iter().skip(within) {
            if let Some(process) = processes.remove(id) {
                process.stop().await;
                self.note(id, "stops");
            }
        }
        Ok(settings)
    }

    /// Lays the bench out anew: nobody runs, the store in memory is empty, and nothing has happened.
    pub(crate) async fn lay_out(&self, place: Option<Place>, settings: Settings) {
        let mut processes = self.processes().await;
        for (_, process) in std::mem::take(&mut *processes) {
            process.kill().await;
        }
        let place = place.unwrap_or_else(|| self.home.clone());
        let site = Site::new(place);
        // What the killed ones held on servers would be in the way until it ends.
        if site.place.kind().starts_with("redis") {
            for node in &site.nodes {
                let _ = node.forget().await;
            }
        }
        self.world.move_to(site);
        self.world.set(settings);
        self.world.resource.clear();
        self.world.journal.clear();
    }

    /// Everybody hands over and ends.
    pub(crate) async fn end(&self) {
        let processes = std::mem::take(&mut *self.processes().await);
        futures::future::join_all(processes.into_values().map(Process::stop)).await;
    }
}
