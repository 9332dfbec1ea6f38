//! One clock for all processes of the host.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Two looks at clocks that are further apart than this are made again.
const CLOSE: Duration = Duration::from_micros(2);
/// The closest of so many is good enough on a machine with much else to do.
const LOOKS: usize = 1000;

/// `CLOCK_MONOTONIC`, in microseconds. [`Instant`] reads the same clock but does not give its number, so where one
/// stands on it is found out once, to within some microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    instant: Instant,
    nanos: u128,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let look = || {
            let before = Instant::now();
            let nanos = monotonic();
            (before.elapsed(), before, nanos)
        };
        let mut closest = look();
        for _ in 0..LOOKS {
            if closest.0 <= CLOSE {
                break;
            }
            let next = look();
            if next.0 < closest.0 {
                closest = next;
            }
        }
        let (_, instant, nanos) = closest;
        Self { instant, nanos }
    }

    /// Now, in microseconds.
    pub(crate) fn now(self) -> u64 {
        self.at(Instant::now())
    }

    /// That moment, in microseconds.
    pub(crate) fn at(self, instant: Instant) -> u64 {
        let nanos = match instant.checked_duration_since(self.instant) {
            Some(since) => self.nanos + since.as_nanos(),
            None => self
                .nanos
                .saturating_sub(self.instant.duration_since(instant).as_nanos()),
        };
        u64::try_from(nanos / 1000).unwrap_or(u64::MAX)
    }
}

fn monotonic() -> u128 {
    let time = clock_gettime(ClockId::Monotonic);
    let part = |number: i64| u128::try_from(number).unwrap_or_default();
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_them_agree() {
        let (one, other) = (Clock::new(), Clock::new());
        let moment = Instant::now() + Duration::from_secs(5);
        assert!(one.at(moment).abs_diff(other.at(moment)) < 100);
        assert!(one.now() <= other.now() + 100);
    }
}
