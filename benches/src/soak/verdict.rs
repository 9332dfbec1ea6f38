//! Whether what was measured has grown: the middle of the last third against the middle of the first, after a while in
//! which everything finds its size.

use serde::Serialize;

use super::sample::Sample;
use super::tally::Tally;

/// Something that had to hold.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was looked at.
    pub what: &'static str,
    /// What it was in the beginning.
    pub first: u64,
    /// What it was in the end.
    pub last: u64,
    /// What it might be in the end.
    pub bound: u64,
    /// Whether it was.
    pub holds: bool,
}

impl Check {
    fn new(what: &'static str, first: u64, last: u64, bound: u64) -> Self {
        Self {
            what,
            first,
            last,
            bound,
            holds: last <= bound,
        }
    }
}

/// The first seconds do not count.
const WARM_UP: f64 = 60.0;

/// One kind of thing that may grow: what it is, how much of it there is, and by how many hundredths, and how many
/// besides, it may be more in the end.
type Kind = (&'static str, fn(&Sample) -> u64, u64, u64);

const KINDS: &[Kind] = &[
    ("heap, bytes", |s| s.heap, 2, 256 << 10),
    ("resident, bytes", |s| s.resident, 5, 2 << 20),
    ("tasks", |s| s.tasks, 0, 16),
    ("connections", |s| s.connections, 0, 0),
    ("subscriptions", |s| s.subscriptions, 0, 4),
    (
        "server, bytes per key",
        |s| s.server_memory / s.keys.max(1),
        10,
        0,
    ),
];

/// Whether each kind of thing has stayed as it was.
pub(super) fn flat(samples: &[Sample]) -> Vec<Check> {
    let time = samples.last().map_or(0.0, |sample| sample.seconds);
    let warm_up = WARM_UP.min(time / 6.0);
    let warm = samples.iter().filter(|sample| sample.seconds >= warm_up);
    let warm: Vec<&Sample> = warm.collect();
    let third = warm.len() / 3;
    let (first, last) = (&warm[..third], &warm[warm.len() - third..]);
    let check = |(what, read, hundredths, besides): &Kind| {
        let (first, last) = (middle(first, *read), middle(last, *read));
        let bound = first + first * hundredths / 100 + besides;
        Check::new(what, first, last, bound)
    };
    KINDS.iter().map(check).collect()
}

/// How long a mark of an attempt that was given up lives, and a little.
const MARK: f64 = 65.0;
/// Names that come and go again and again, and what is under way.
const OTHERS: u64 = 64;

/// Whether there are no more keys in the server than names and marks: one for each lease that is held, for each name
/// that came once, as it remembers its last fencing token for a day, and for each attempt that was given up of late.
pub(super) fn keys(samples: &[Sample], leases: usize) -> Check {
    let Some(last) = samples.last() else {
        return Check::new("keys", 0, 0, 0);
    };
    let old = |sample: &&Sample| sample.seconds < last.seconds - MARK;
    let old = samples
        .iter()
        .rev()
        .find(old)
        .map_or(0, |sample| sample.given_up);
    let known = leases as u64 + last.once + (last.given_up - old) + OTHERS;
    Check::new("keys", samples[0].keys, last.keys, known)
}

fn middle(samples: &[&Sample], read: fn(&Sample) -> u64) -> u64 {
    let mut values: Vec<u64> = samples.iter().map(|sample| read(sample)).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Nobody took a lease from its holder, and the server was there all the time: each lost lease is one too many.
pub(super) fn nothing_lost(tally: &Tally) -> [Check; 2] {
    let panics = tally.of("panics that were lost");
    [
        Check::new("lost leases", 0, tally.lost(), 0),
        Check::new("panics that were lost", 0, panics, 0),
    ]
}

/// What was there before the elector is there after it, and nothing more.
pub(super) fn nothing_left(before: &Sample, after: &Sample) -> [Check; 3] {
    let each = |what, read: fn(&Sample) -> u64| {
        let first = read(before);
        Check::new(what, first, read(after), first)
    };
    [
        each("tasks, after all", |s| s.tasks),
        each("connections, after all", |s| s.connections),
        each("subscriptions, after all", |s| s.subscriptions),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(of: impl Fn(f64, &mut Sample)) -> Vec<Sample> {
        let sample = |number: u32| {
            let mut sample = Sample::default();
            sample.seconds = f64::from(number) * 5.0;
            of(sample.seconds, &mut sample);
            sample
        };
        (0..120).map(sample).collect()
    }

    fn broken(samples: &[Sample]) -> Vec<&'static str> {
        let checks = flat(samples).into_iter();
        checks
            .filter(|check| !check.holds)
            .map(|check| check.what)
            .collect()
    }

    #[test]
    fn what_goes_up_and_down_is_flat() {
        let samples = samples(|seconds, sample| {
            sample.tasks = if seconds % 2.0 < 1.0 { 5_000 } else { 5_030 };
            sample.heap = 10 << 20;
            sample.connections = 2;
        });
        assert_eq!(broken(&samples), [""; 0]);
    }

    #[test]
    fn keys_are_names_and_marks_of_the_last_minute() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small numbers"
        )]
        let of = |seconds: f64, sample: &mut Sample, lives: f64| {
            sample.once = seconds as u64 * 7;
            sample.given_up = seconds as u64 * 20;
            sample.keys = 1_000 + sample.once + seconds.min(lives) as u64 * 20;
        };
        assert!(keys(&samples(|seconds, sample| of(seconds, sample, 60.0)), 1_000).holds);
        assert!(
            !keys(
                &samples(|seconds, sample| of(seconds, sample, 600.0)),
                1_000
            )
            .holds
        );
        assert!(!keys(&samples(|seconds, sample| of(seconds, sample, 60.0)), 500).holds);
    }

    #[test]
    fn one_lost_lease_is_one_too_many() {
        let tally = Tally::default();
        tally.count("runs");
        assert!(nothing_lost(&tally).iter().all(|check| check.holds));
        tally.count_loss(leader_core::LossReason::Expired);
        assert!(!nothing_lost(&tally).iter().all(|check| check.holds));
    }

    #[test]
    fn what_keeps_rising_is_not_flat() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small numbers"
        )]
        let samples = samples(|seconds, sample| {
            sample.tasks = 5_000 + seconds as u64;
            sample.heap = (10 << 20) + seconds as u64 * 2_000;
        });
        let expected = ["heap, bytes", "tasks"];
        assert_eq!(broken(&samples), expected);
    }
}
