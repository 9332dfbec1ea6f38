//! [`World`]: what all candidates, scenarios and pages of one bench share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leader_core::LockName;

use crate::candidate::Row;
use crate::journal::Journal;
use crate::resource::Resource;
use crate::settings::Settings;
use crate::site::{Place, Site};

/// The rows of the bench, as far as the settings let them be.
pub(crate) const IDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) name: LockName,
    pub(crate) journal: Journal,
    pub(crate) resource: Resource,
    rows: [Row; IDS.len()],
    /// For a moment only, by whoever wants a copy.
    settings: Mutex<Settings>,
    site: Mutex<Arc<Site>>,
}

impl World {
    pub(crate) fn new(name: LockName, place: Place) -> Self {
        Self {
            name,
            journal: Journal::new(),
            resource: Resource::new(),
            rows: Default::default(),
            settings: Mutex::default(),
            site: Mutex::new(Arc::new(Site::new(place))),
        }
    }

    /// The row of `id`, one of [`IDS`].
    pub(crate) fn row(&self, id: &str) -> &Row {
        let place = IDS.iter().position(|known| *known == id);
        &self.rows[place.unwrap_or_default()]
    }

    pub(crate) fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    pub(crate) fn set(&self, settings: Settings) {
        *lock(&self.settings) = settings;
    }

    pub(crate) fn site(&self) -> Arc<Site> {
        lock(&self.site).clone()
    }

    pub(crate) fn move_to(&self, site: Site) {
        *lock(&self.site) = Arc::new(site);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
