//! Watching: one watch on every node, and a waiter that is woken when a majority may be free.
//!
//! A release is told by each node, one after the other. The waiter is woken once for all of them: as soon as a majority
//! has told. What fewer nodes tell wakes it too, after a moment in which the others may follow, and after a longer one
//! each time: the nodes of a minority tell also of those who were granted a few of them and gave these back.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::nodes::NodeSet;
use super::opening::{Opened, Opening, Report, begin};
use crate::hints::{HintSender, Hints, News, hints};
use crate::name::LockName;
use crate::store::{Hint, LeaseStore, Revision, StoreError, Watching};

/// How long what a minority tells is kept back, at first and at most.
const FIRST_WORD: Duration = Duration::from_millis(5);
const LONGEST_WORD: Duration = Duration::from_millis(500);
/// How long nodes may be late with what the others have told.
const LATE: Duration = Duration::from_secs(1);

pub(super) async fn watch<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    name: &LockName,
    since: Revision,
    hints: HintSender,
) -> Result<Watching, StoreError> {
    let seen = shared.sightings.of(name, since, shared.nodes.len());
    let silent = seen.iter().enumerate();
    let silent = silent.filter_map(|(node, seen)| seen.is_none().then_some(node));
    let lookout = Lookout {
        shared: shared.clone(),
        name: name.clone(),
        silent: silent.collect(),
        since: seen.iter().map(|seen| seen.unwrap_or(since)).collect(),
        told: Told::new(shared.size.nodes(), shared.size.majority()),
        hints,
    };
    begin(shared, |report| lookout.run(report)).await
}

/// Listens to the nodes for one waiter.
struct Lookout<S> {
    shared: Arc<Shared<S>>,
    name: LockName,
    since: Vec<Revision>,
    /// Those that had not answered the claim. Where they stood is a guess, and that they stand elsewhere says nothing; a
    /// majority has answered.
    silent: NodeSet,
    told: Told,
    hints: HintSender,
}

impl<S: LeaseStore> Lookout<S> {
    /// Says how the watch began as soon as that is known, and goes on for as long as it is not dropped.
    async fn run(mut self, report: Report) {
        let (shared, name, since) = (self.shared.clone(), self.name.clone(), self.since.clone());
        let (posts, ears): (Vec<_>, Vec<_>) = since.iter().map(|_| hints()).unzip();
        let ears = ears.into_iter().enumerate();
        let mut listening: FuturesUnordered<_> =
            ears.map(|(node, ear)| listen(node, ear)).collect();
        let mut opening = Opening::new(self.shared.clone(), report, |node| {
            let (shared, name) = (shared.clone(), name.clone());
            let (since, post) = (since[node], posts[node].clone());
            async move { shared.nodes[node].store.watch(&name, since, post).await }
        });
        loop {
            let word = self.told.word();
            tokio::select! {
                biased;
                opened = opening.next() => if matches!(opened, Opened::TooFew) {
                    return;
                },
                Some((node, news, ear)) = listening.next() => {
                    listening.push(listen(node, ear));
                    let free_at = match news {
                        News::Missed if self.silent.contains(node) => {
                            self.silent.remove(node);
                            continue;
                        }
                        News::Changed | News::Missed => Instant::now(),
                        News::Released { free_at, .. } => free_at,
                    };
                    if let Some(free_at) = self.told.note(node, free_at) {
                        self.wake(free_at);
                    }
                }
                () = sleep_until(word.unwrap_or_else(Instant::now)), if word.is_some() => {
                    if let Some(free_at) = self.told.few() {
                        self.wake(free_at);
                    }
                }
            }
        }
    }

    fn wake(&self, free_at: Instant) {
        let free_in = free_at.saturating_duration_since(Instant::now());
        self.hints.push(if free_in.is_zero() {
            Hint::Missed
        } else {
            // Nodes' numbers do not compare with one another; this one is never old.
            let revision = Revision::new(u64::MAX);
            Hint::Released { revision, free_in }
        });
    }
}

async fn listen(node: usize, mut ear: Hints) -> (usize, News, Hints) {
    let news = ear.news().await;
    (node, news, ear)
}

/// What the nodes have told, and what the waiter was woken for.
struct Told {
    /// How many releases each node has told.
    releases: Vec<u64>,
    /// When the slot of the last one is free there.
    free_at: Vec<Option<Instant>>,
    majority: usize,
    /// For how many the waiter was woken.
    woken: u64,
    last: Option<Instant>,
    /// When to say what a minority has told.
    word: Option<Instant>,
    patience: Duration,
}

impl Told {
    fn new(nodes: usize, majority: usize) -> Self {
        Self {
            releases: vec![0; nodes],
            free_at: vec![None; nodes],
            majority,
            woken: 0,
            last: None,
            word: None,
            patience: FIRST_WORD,
        }
    }

    fn word(&self) -> Option<Instant> {
        self.word
    }

    /// Nobody is late any more.
    fn level(&mut self) {
        let woken = self.woken;
        for told in &mut self.releases {
            *told = woken;
        }
        self.free_at.fill(None);
        self.word = None;
    }

    /// A node tells of a release: when the slot is free on a majority, if that is known now.
    fn note(&mut self, node: usize, free_at: Instant) -> Option<Instant> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now > last + LATE) && self.word.is_none() {
            self.level();
        }
        let told = self.releases.get_mut(node)?;
        *told += 1;
        if *told <= self.woken {
            return None;
        }
        *self.free_at.get_mut(node)? = Some(free_at);
        let news = || self.releases.iter().filter(|told| **told > self.woken);
        if news().count() >= self.majority {
            let mut free: Vec<Instant> = self.free_at.iter().flatten().copied().collect();
            free.sort_unstable();
            let free_at = free.get(self.majority - 1).copied().unwrap_or(now);
            self.woken += 1;
            self.last = Some(now);
            self.patience = FIRST_WORD;
            self.word = None;
            self.free_at.fill(None);
            // Whoever tells faster than the others is not ahead of them by more than one.
            let woken = self.woken;
            for told in &mut self.releases {
                *told = (*told).min(woken);
            }
            return Some(free_at);
        }
        self.word.get_or_insert(now + self.patience);
        None
    }

    /// The others have had their time: when the slot is free on the nodes that have told.
    fn few(&mut self) -> Option<Instant> {
        let free_at = self.free_at.iter().flatten().max().copied();
        self.woken += 1;
        self.last = Some(Instant::now());
        self.patience = (self.patience * 2).min(LONGEST_WORD);
        self.level();
        free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Told {
        Told::new(5, 3)
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_that_all_tell_wakes_once() {
        let mut told = told();
        let now = Instant::now();
        for _ in 0..3 {
            let woken: Vec<bool> = (0..5).map(|node| told.note(node, now).is_some()).collect();
            assert_eq!(woken, [false, false, true, false, false]);
            assert_eq!(told.word(), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_few_tell_wakes_later_each_time_until_a_majority_does() {
        let mut told = told();
        let mut pauses = Vec::new();
        for _ in 0..3 {
            let now = Instant::now();
            assert_eq!(told.note(0, now), None);
            assert_eq!(told.note(1, now), None);
            pauses.push(told.word().unwrap() - now);
            assert!(told.few().is_some());
        }
        assert_eq!(pauses, [FIRST_WORD, FIRST_WORD * 2, FIRST_WORD * 4]);
        let now = Instant::now();
        assert!((0..3).any(|node| told.note(node, now).is_some()));
        assert_eq!(told.note(3, now), None, "late, and known already");
        tokio::time::advance(LATE * 2).await;
        assert_eq!(told.note(4, Instant::now()), None);
        assert!(told.word().is_some(), "too late for the one before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_slot_is_free_when_it_is_on_a_majority() {
        let mut told = told();
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        assert_eq!(told.note(0, at(30)), None);
        assert_eq!(told.note(1, at(10)), None);
        assert_eq!(told.note(2, at(20)), Some(at(30)));
    }
}
