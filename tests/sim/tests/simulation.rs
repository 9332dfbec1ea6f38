//! The simulation in the ordinary tests: some thousand seeds, the same trace for the same seed, and a trace and a
//! shrunk plan for one that fails.
#![allow(missing_docs, reason = "a test")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leader_sim::{Plan, Tracing, play, quorum, shrink};

/// How many seeds; `cargo xtask sim` plays more, optimised.
const SEEDS: u64 = 3_000;

/// A slow machine plays those that it has begun by then, and some at least.
const TIME: Duration = Duration::from_secs(40);
const AT_LEAST: u64 = 50;

/// Seeds from 0 on, for several threads.
struct Seeds {
    next: AtomicU64,
    end: u64,
    begun: Instant,
}

impl Seeds {
    fn up_to(end: u64) -> Self {
        Self {
            next: AtomicU64::new(0),
            end,
            begun: Instant::now(),
        }
    }

    fn next(&self) -> Option<u64> {
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        let is_late = seed >= AT_LEAST && self.begun.elapsed() > TIME;
        (seed < self.end && !is_late).then_some(seed)
    }
}

#[test]
fn some_thousand_seeds_end_clean() {
    let seeds = Seeds::up_to(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let play_some = || {
        while let Some(seed) = seeds.next() {
            if let Some(violation) = play(&Plan::of(seed), Tracing::Off).violation {
                panic!("seed {seed}: {violation:?}; see `cargo xtask sim --seed {seed} --trace`");
            }
        }
    };
    std::thread::scope(|scope| {
        let players: Vec<_> = (0..threads).map(|_| scope.spawn(play_some)).collect();
        for player in players {
            if let Err(panic) = player.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..150 {
        let plan = Plan::of(seed);
        assert_eq!(plan, Plan::of(seed));
        let (once, again) = (play(&plan, Tracing::On), play(&plan, Tracing::On));
        assert!(!once.trace.is_empty());
        // Not `assert_eq`: nobody wants to read two traces of a thousand lines.
        let differ = once
            .trace
            .lines()
            .zip(again.trace.lines())
            .find(|(a, b)| a != b);
        assert!(once.trace == again.trace, "seed {seed}: {differ:?}");
        assert_eq!(once.tally, again.tally);
        assert_eq!(once.tally, play(&plan, Tracing::Off).tally);
    }
}

#[test]
fn plans_differ_and_go_through_everything() {
    let mut total = leader_sim::Tally::default();
    for seed in 10_000..10_600 {
        total += play(&Plan::of(seed), Tracing::Off).tally;
    }
    let none = total
        .to_string()
        .lines()
        .find(|line| line.trim_start().starts_with("0 "))
        .map(str::to_owned);
    assert_eq!(none, None, "{total}");
}

#[test]
fn a_plan_that_does_not_fail_is_not_shrunk() {
    let plan = Plan::of(1);
    assert_eq!(shrink(&plan), plan);
}

/// How many seeds on a quorum, each of which has up to five servers to move.
const QUORUM_SEEDS: u64 = 1_000;

#[test]
fn some_hundred_seeds_on_a_quorum_end_clean() {
    let seeds = Seeds::up_to(QUORUM_SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let play_some = || {
        let mut grants = 0;
        while let Some(seed) = seeds.next() {
            let report = quorum::play(&quorum::Plan::of(seed), Tracing::Off);
            grants += report.grants;
            if let Some(violation) = report.violation {
                panic!(
                    "seed {seed}: {violation:?}; see `cargo xtask sim --topology quorum --seed {seed} --trace`"
                );
            }
        }
        grants
    };
    let grants: u64 = std::thread::scope(|scope| {
        let players: Vec<_> = (0..threads).map(|_| scope.spawn(play_some)).collect();
        let ended = players.into_iter().map(|player| match player.join() {
            Ok(grants) => grants,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.sum()
    });
    assert!(grants > AT_LEAST, "{grants} grants");
}

#[test]
fn the_same_seed_gives_the_same_trace_on_a_quorum() {
    for seed in 0..15 {
        let plan = quorum::Plan::of(seed);
        let (once, again) = (
            quorum::play(&plan, Tracing::On),
            quorum::play(&plan, Tracing::On),
        );
        assert!(!once.trace.is_empty());
        assert!(once.trace == again.trace, "seed {seed}");
    }
}
