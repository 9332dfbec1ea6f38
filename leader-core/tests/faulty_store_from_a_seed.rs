//! A faulty store that draws from a seed takes the same course for the same seed, and the engine bears with it.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use leader_core::testing::{Fault, FaultyStore, Footprint};
use leader_core::{
    BackendKind, ElectorExt, LeaseHandle, LeaseOptions, LocalStore, LockName, Step, StoreElector,
    store::LeaseStore,
};
use tokio::time::sleep;

const NAME: &str = "invoice-close";

/// `SplitMix64` (Steele, Lea, Flood, 2014).
struct Draw(u64);

impl Draw {
    /// One of several independent sequences of a seed.
    fn of(seed: u64, sequence: u64) -> Self {
        let mut draw = Self(seed << 8 | sequence);
        Self(draw.below(u64::MAX))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn millis(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }

    /// What befalls a call: most often nothing.
    fn faults(&mut self, step: Step) -> Vec<Fault> {
        let delay = self.millis(900);
        match self.below(16) {
            0 => vec![Fault::DelayRequest(delay)],
            1 => vec![Fault::DelayReply(delay)],
            2 => vec![Fault::DelayRequest(delay), Fault::DelayReply(delay / 2)],
            3 => vec![Fault::LoseRequest(BackendKind::Unreachable)],
            4 => vec![
                Fault::LoseReply(BackendKind::TimedOut),
                Fault::DelayReply(delay),
            ],
            5 => vec![Fault::Refuse(BackendKind::ReadOnly)],
            // A copy of a claim that was answered may arrive after its release, which left no mark.
            6 if step != Step::Claim => vec![Fault::Repeat(delay)],
            7 if step == Step::Watch => vec![Fault::LoseHints],
            8 if step == Step::Watch => vec![Fault::DelayHints(delay)],
            _ => Vec::new(),
        }
    }
}

/// Runs a few candidates for a while, and tells what went through their stores.
async fn course(seed: u64) -> String {
    let store = LocalStore::starting_at(Duration::from_secs(1_000_000_000));
    let leading: Rc<RefCell<Vec<LeaseHandle>>> = Rc::default();
    let mut candidates = Vec::new();
    for number in 0..4 {
        let way = FaultyStore::new(store.clone());
        let faults = way.faults();
        let mut draw = Draw::of(seed, number);
        faults.decide(move |call| draw.faults(call.request.step()));
        let elector = StoreElector::builder(way).node_id(format!("node-{number}"));
        candidates.push((elector.build(), faults));
    }
    let standing = candidates.iter().zip(4..).map(|((elector, _), number)| {
        let (mut draw, leading) = (Draw::of(seed, number), leading.clone());
        async move {
            for _ in 0..6 {
                sleep(draw.millis(1500)).await;
                let options = LeaseOptions::builder()
                    .wait(draw.millis(3000))
                    .lease(Duration::from_secs(1))
                    .auto_extend(draw.below(2) == 0)
                    .build()
                    .unwrap();
                let (works_for, patience) = (draw.millis(2000), draw.millis(6000));
                let run = elector.run_if_leader(NAME, &options, |lease| {
                    let leading = &leading;
                    async move {
                        leading.borrow_mut().push(lease.clone());
                        for _ in 0..works_for.as_millis() / 50 {
                            let valid =
                                leading.borrow().iter().filter(|one| one.is_valid()).count();
                            assert_eq!(valid, 1, "seed {seed}: one leads at a time");
                            sleep(Duration::from_millis(50)).await;
                        }
                    }
                });
                // Whatever comes of it: the store is faulty, and some runs are dropped half-way.
                let _ = tokio::time::timeout(patience, run).await;
            }
        }
    });
    futures::future::join_all(standing).await;

    let mut fences: Vec<_> = leading.borrow().iter().map(LeaseHandle::fence).collect();
    assert!(fences.is_sorted(), "seed {seed}: fencing tokens grow");
    fences.dedup();
    assert_eq!(
        fences.len(),
        leading.borrow().len(),
        "seed {seed}: each grant has its own"
    );
    leading.borrow_mut().clear();

    for (_, faults) in &candidates {
        faults.heal();
    }
    sleep(Duration::from_secs(5)).await;
    let mut told = String::new();
    for (elector, faults) in &candidates {
        assert_eq!(elector.footprint(), Footprint::default(), "seed {seed}");
        for entry in faults.take_log() {
            let _ = writeln!(told, "{entry}");
        }
    }
    let name = LockName::new(NAME).unwrap();
    assert!(
        store.inspect(&name).await.unwrap().is_empty(),
        "seed {seed}"
    );
    told
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_takes_the_same_course() {
    let (first, again, other) = (course(1).await, course(1).await, course(2).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!(first.lines().count() > 100, "{first}");
}

#[tokio::test(start_paused = true)]
async fn one_leads_at_a_time_and_nothing_is_left() {
    for seed in 0..100 {
        course(seed).await;
    }
}
