//! The command: seeds in, figures out.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::plan::Plan;
use crate::quorum;
use crate::run::{Tracing, play};
use crate::shrink::shrink;
use crate::tally::Tally;
use crate::world::Violation;

const USAGE: &str = "usage: sim [--seeds N] [--from S] [--threads T]   play N seeds from S on
       sim --seed X [--trace]                      play one seed
       --topology quorum: candidates on five servers, of which a majority decides
       --quick: say only which seed failed, unshrunk";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    trace: bool,
    threads: usize,
    quick: bool,
    topology: Topology,
}

/// What the candidates stand before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topology {
    Single,
    Quorum,
}

impl Topology {
    /// What does not hold of `seed`, and what it went through.
    fn play(self, seed: u64, tracing: Tracing) -> (Option<Violation>, Tally, String) {
        match self {
            Self::Single => {
                let plan = Plan::of(seed);
                let report = play(&plan, tracing);
                let trace = format!("{plan}\n{}", report.trace);
                (report.violation, report.tally, trace)
            }
            Self::Quorum => {
                let plan = quorum::Plan::of(seed);
                let report = quorum::play(&plan, tracing);
                let tally = Tally {
                    grants: report.grants,
                    ..Tally::default()
                };
                let trace = format!("{plan:#?}\n{}", report.trace);
                (report.violation, tally, trace)
            }
        }
    }
}

impl Order {
    fn read(args: &[String]) -> Result<Self, String> {
        let mut order = Self {
            seeds: 10_000,
            from: 0,
            seed: None,
            trace: false,
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            quick: false,
            topology: Topology::Single,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--topology" {
                order.topology = match args.next().map(String::as_str) {
                    Some("quorum") => Topology::Quorum,
                    Some("single") => Topology::Single,
                    _ => return Err("--topology needs `single` or `quorum`".to_owned()),
                };
                continue;
            }
            let mut number = || {
                let value = args.next().ok_or_else(|| format!("{arg} needs a number"))?;
                value
                    .replace('_', "")
                    .parse::<u64>()
                    .map_err(|_| format!("{arg}: `{value}` is no number"))
            };
            match arg.as_str() {
                "--seeds" => order.seeds = number()?,
                "--from" => order.from = number()?,
                "--seed" => order.seed = Some(number()?),
                "--threads" => order.threads = usize::try_from(number()?.max(1)).unwrap_or(1),
                "--trace" => order.trace = true,
                "--quick" => order.quick = true,
                other => return Err(format!("`{other}` is not understood")),
            }
        }
        Ok(order)
    }
}

/// Does what `args` ask for. Fails when a seed does.
#[must_use]
pub fn main(args: &[String]) -> ExitCode {
    let order = match Order::read(args) {
        Ok(order) => order,
        Err(mistake) => {
            say(&format!("{mistake}\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    match order.seed {
        Some(seed) => one(seed, order.trace, order.topology),
        None => many(&order),
    }
}

/// One line of output; nobody listening is no reason to stop.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn one(seed: u64, trace: bool, topology: Topology) -> ExitCode {
    let tracing = if trace { Tracing::On } else { Tracing::Off };
    let (violation, _, text) = topology.play(seed, tracing);
    if trace {
        say(&text);
    }
    match violation {
        None => {
            say(&format!("sim: seed {seed} ended clean"));
            ExitCode::SUCCESS
        }
        Some(violation) if topology == Topology::Quorum => {
            say(&format!(
                "sim: seed {seed} failed: {}: {}",
                violation.invariant, violation.what
            ));
            ExitCode::FAILURE
        }
        Some(_) => fail(seed),
    }
}

/// Tells all about a failing seed.
fn fail(seed: u64) -> ExitCode {
    let whole = play(&Plan::of(seed), Tracing::Off);
    let least = shrink(&Plan::of(seed));
    let report = play(&least, Tracing::On);
    let mut text = format!("sim: seed {seed} failed\n");
    for (what, violation) in [("as it is", whole.violation), ("shrunk", report.violation)] {
        if let Some(violation) = violation {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{what}: {}: {}", violation.invariant, violation.what);
        }
    }
    say(&format!(
        "{text}\nthe shrunk plan:\n{least}\nwhat happened:\n{}",
        report.trace
    ));
    say(&format!(
        "sim: seed {seed} failed; `cargo xtask sim --seed {seed} --trace` shows it whole"
    ));
    ExitCode::FAILURE
}

fn many(order: &Order) -> ExitCode {
    let begun = Instant::now();
    let end = order.from.saturating_add(order.seeds);
    let next = AtomicU64::new(order.from);
    let done = AtomicU64::new(0);
    let worst = AtomicU64::new(u64::MAX);
    let total = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..order.threads {
            scope.spawn(|| {
                let mut tally = Tally::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    // The least failing seed is the answer, whichever thread was faster.
                    if seed >= end || seed > worst.load(Ordering::Relaxed) {
                        break;
                    }
                    let (violation, of_seed, _) = order.topology.play(seed, Tracing::Off);
                    tally += of_seed;
                    if violation.is_some() {
                        worst.fetch_min(seed, Ordering::Relaxed);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
                *total.lock().unwrap_or_else(PoisonError::into_inner) += tally;
            });
        }
        let mut shown = Instant::now();
        while done.load(Ordering::Relaxed) < order.seeds
            && worst.load(Ordering::Relaxed) == u64::MAX
        {
            std::thread::sleep(Duration::from_millis(50));
            if shown.elapsed() >= Duration::from_secs(5) {
                shown = Instant::now();
                let done = done.load(Ordering::Relaxed);
                say(&format!(
                    "sim: {done} of {} seeds, {}",
                    order.seeds,
                    speed(done, begun)
                ));
            }
        }
    });
    let done = done.load(Ordering::Relaxed);
    let worst = worst.load(Ordering::Relaxed);
    if worst < u64::MAX {
        return if order.topology == Topology::Quorum && !order.quick {
            one(worst, true, order.topology)
        } else if order.quick {
            let (what, ..) = order.topology.play(worst, Tracing::Off);
            let what = what.map(|violation| format!("{}: {}", violation.invariant, violation.what));
            say(&format!(
                "sim: seed {worst} failed: {}",
                what.unwrap_or_default()
            ));
            ExitCode::FAILURE
        } else {
            fail(worst)
        };
    }
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    say(&format!("sim: went through\n{total}"));
    say(&format!(
        "sim: {done} seeds from {} ended clean in {:.1} s, {}",
        order.from,
        begun.elapsed().as_secs_f64(),
        speed(done, begun)
    ));
    ExitCode::SUCCESS
}

fn speed(done: u64, begun: Instant) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let speed = done as f64 / begun.elapsed().as_secs_f64().max(0.001);
    format!("{speed:.0} seeds per second")
}
