//! `recovery`: in a lull every name is led again within its lease and an allowance.

use serde::Serialize;

use super::{Story, Violation, ms};

/// What is allowed for beyond the lease, in milliseconds: a command that is to time out first (200), the longest pause
/// before the library connects again (270), the longest between two attempts within one wait (500), a worker's own pause,
/// and the way of a request on a machine with much else to do.
pub(crate) const ALLOWANCE: u64 = 1500;

/// How much of a time counts, in microseconds, when the director's heart stood still for a part of it. A step goes through
/// a worker, a proxy and a server, one after the other, and each of them gets of the machine what the heart gets.
pub(crate) fn counted(time: u64, stalled: u64) -> u64 {
    let running = u128::from(time.saturating_sub(stalled));
    let whole = u128::from(time.max(1));
    u64::try_from(running.pow(3) / whole.pow(2)).unwrap_or(u64::MAX)
}

/// How leadership came back after faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Recovery {
    /// Times without a fault.
    pub(crate) lulls: usize,
    /// How often a name was seen to be led in a lull.
    pub(crate) seen: usize,
    /// How often a lull ended before that, and before it was due.
    pub(crate) cut_short: usize,
    /// The longest time from the end of the last fault until a name was led, in milliseconds, and the name.
    pub(crate) worst_ms: u64,
    pub(crate) worst_name: String,
    /// Half of them took no longer, in milliseconds.
    pub(crate) median_ms: u64,
}

pub(super) fn check(story: &Story) -> (Recovery, Vec<Violation>) {
    let (mut recovery, mut violations, mut times) = (Recovery::default(), Vec::new(), Vec::new());
    let lulls = lulls(story);
    recovery.lulls = lulls.len();
    for (from, to, after) in lulls {
        for job in &story.jobs {
            let led = story
                .tenures
                .iter()
                .filter(|tenure| tenure.name == job.name && tenure.end > from && tenure.begin < to)
                .map(|tenure| tenure.begin.max(from) - from)
                .min();
            let due = (job.lease_ms + ALLOWANCE) * 1000;
            let time = led.unwrap_or(to - from);
            let counts = counted(time, stalled(story, from, from + time));
            match led {
                Some(took) if counts <= due => {
                    recovery.seen += 1;
                    times.push(took);
                    if took / 1000 >= recovery.worst_ms {
                        recovery.worst_ms = took / 1000;
                        recovery.worst_name.clone_from(&job.name);
                    }
                }
                None if counts <= due => recovery.cut_short += 1,
                _ => violations.push(Violation {
                    rule: "recovery",
                    what: format!(
                        "{} was {} {} after the last fault, of which {} count, and {} are allowed",
                        job.name,
                        if led.is_some() { "led" } else { "not led" },
                        ms(time),
                        ms(counts),
                        ms(due)
                    ),
                    lines: vec![after.clone()],
                }),
            }
        }
    }
    times.sort_unstable();
    recovery.median_ms = times.get(times.len() / 2).map_or(0, |took| took / 1000);
    (recovery, violations)
}

/// The times without a fault that follow one: from, to, and the line of the fault before.
fn lulls(story: &Story) -> Vec<(u64, u64, String)> {
    let mut lulls = Vec::new();
    let mut last: Option<(u64, &str)> = None;
    for fault in &story.faults {
        if let Some((over, place)) = last.filter(|(over, _)| *over < fault.from) {
            lulls.push((over, fault.from, place.to_owned()));
        }
        if last.is_none_or(|(over, _)| over < fault.to) {
            last = Some((fault.to, &fault.place));
        }
    }
    if let Some((over, place)) = last.filter(|(over, _)| *over < story.over) {
        lulls.push((over, story.over, place.to_owned()));
    }
    lulls
}

/// For how long the director's heart stood still between the two.
fn stalled(story: &Story, from: u64, to: u64) -> u64 {
    let within = |(start, end): &(u64, u64)| (*end).min(to).saturating_sub((*start).max(from));
    story.stalls.iter().map(within).sum()
}
