//! What the replicas share, and how often each job really ran.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Job {
    Close,
    Report,
    CallPartner,
    Refresh,
    ReadOrders,
}

#[derive(Default)]
pub(crate) struct Database {
    runs: Mutex<BTreeMap<Job, usize>>,
    rate: AtomicU32,
    calling: AtomicUsize,
    most_calling: AtomicUsize,
}

impl Database {
    /// Written by the job itself, so that a run counts whoever began it.
    pub(crate) fn runs(&self, job: Job) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        *runs.entry(job).or_default() += 1;
    }

    pub(crate) fn ran(&self, job: Job) -> usize {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(&job).copied().unwrap_or_default()
    }

    pub(crate) fn rate(&self) -> u32 {
        self.rate.load(Ordering::Acquire)
    }

    pub(crate) fn refresh_rate(&self) -> u32 {
        self.rate.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Calls the partner until the answer is dropped.
    pub(crate) fn call_partner(&self) -> Calling<'_> {
        self.runs(Job::CallPartner);
        let calling = self.calling.fetch_add(1, Ordering::AcqRel) + 1;
        self.most_calling.fetch_max(calling, Ordering::AcqRel);
        Calling(self)
    }

    pub(crate) fn partner_calls_at_once(&self) -> usize {
        self.most_calling.load(Ordering::Acquire)
    }
}

pub(crate) struct Calling<'a>(&'a Database);

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.calling.fetch_sub(1, Ordering::AcqRel);
    }
}
