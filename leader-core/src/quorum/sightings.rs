//! Where the nodes' histories of a name stood at a claim: each node has numbers of its own, and whoever watches says one.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::name::LockName;
use crate::store::Revision;

/// What claims have seen lately. A watch follows its claim at once, so only the last few are worth keeping; one that
/// finds nothing here may be woken once in vain, or by fewer nodes.
#[derive(Default)]
pub(super) struct Sightings {
    lately: Mutex<VecDeque<Sighting>>,
}

struct Sighting {
    name: LockName,
    /// The number that stands for all of them.
    revision: Revision,
    by_node: Box<[Option<u64>]>,
}

const LATELY: usize = 256;

impl Sightings {
    pub(super) fn note(&self, name: &LockName, revision: Revision, by_node: &[Option<u64>]) {
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        lately.retain(|sighting| sighting.name != *name || sighting.revision != revision);
        if lately.len() >= LATELY {
            lately.pop_front();
        }
        lately.push_back(Sighting {
            name: name.clone(),
            revision,
            by_node: by_node.into(),
        });
    }

    /// Where each of so many `nodes` stood when `revision` was answered; `None` for one that had not said so by then.
    /// Where nothing is known, that number is the best there is.
    pub(super) fn of(
        &self,
        name: &LockName,
        revision: Revision,
        nodes: usize,
    ) -> Vec<Option<Revision>> {
        let lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = lately
            .iter()
            .rfind(|sighting| sighting.name == *name && sighting.revision == revision);
        let Some(seen) = seen else {
            return vec![Some(revision); nodes];
        };
        let each = seen.by_node.iter();
        each.map(|number| number.map(Revision::new)).collect()
    }
}
