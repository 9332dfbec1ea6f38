//! The number that is proposed to all nodes with a claim, so that those of a majority grant the same, and none has to be
//! written back.
//!
//! It stands for the nodes' own times, which differ by the moment in which each of them is asked. It is what the fastest
//! clock shows by now, as far as is known, so that it is greater than what releases took before, and is ahead of none of
//! them. It is only a proposal: each node still issues a number that is greater than all it has issued, and what counts
//! is still the number that a majority has.

use std::time::Duration;

use super::Shared;
use crate::store::{LeaseStore, REACH, Revision};

/// How far apart the clocks of a majority that is to take one number may be. The rest of what a node allows is for what
/// is not known of its clock.
const APART: Duration = Duration::from_millis(500);
const _: () = assert!(APART.as_millis() < REACH.as_millis());

/// Zero when too few of the nodes' clocks are known, or too few of them are alike.
pub(super) fn proposal<S: LeaseStore>(shared: &Shared<S>) -> Revision {
    let nodes = shared.nodes.iter();
    let times = nodes.filter_map(|node| node.store.time_by_now());
    let fastest = fastest(times.collect(), shared.size.majority());
    let micros = fastest.and_then(|time| u64::try_from(time.as_micros()).ok());
    // After what was issued in that very moment.
    Revision::new(micros.map_or(0, |micros| micros.saturating_add(1)))
}

/// The fastest of the clocks that a majority is not far behind.
fn fastest(mut times: Vec<Duration>, majority: usize) -> Option<Duration> {
    times.sort_unstable();
    let runs = times.windows(majority).rev();
    let mut alike = runs.filter_map(|run| Some((*run.first()?, *run.last()?)));
    let (_, fastest) =
        alike.find(|(slowest, fastest)| fastest.saturating_sub(*slowest) <= APART)?;
    Some(fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_fastest_of_a_majority_whose_clocks_are_alike() {
        let fastest_of = |seconds: &[f64]| {
            let times = seconds.iter().map(|at| Duration::from_secs_f64(*at));
            fastest(times.collect(), 3).map(|time| time.as_secs_f64())
        };
        assert_eq!(fastest_of(&[10.0, 10.5, 10.25, 10.125, 10.0]), Some(10.5));
        assert_eq!(fastest_of(&[10.0, 10.5, 10.25, 3600.0, 10.0]), Some(10.5));
        assert_eq!(fastest_of(&[10.0, 10.0, 10.0, 0.0, 0.0]), Some(10.0));
        assert_eq!(fastest_of(&[10.0, 12.0, 14.0, 16.0, 18.0]), None);
        assert_eq!(fastest_of(&[10.0, 10.0]), None);
        assert_eq!(fastest(vec![Duration::ZERO], 1), Some(Duration::ZERO));
    }
}
