//! When the nights begin, by clocks that are wrong, and the time limits that follow from how wrong they are.
//!
//! ```text
//!   night 1                                     night 2
//!      |                                           |
//!   ---+-------------------------------------------+-------------
//!    ^  ^                                        ^  ^
//!    |<>| CLOCK_SPREAD: first clock to last      |  |
//!    |---- MIN_LEASE ------>|                    |
//!    |--------- LEASE, after a crash --->|       |
//! ```
//!
//! Two things can go wrong, and each has room for a machine that stalls for two seconds:
//!
//! - A clock strikes late, after the minimum lease of that night: the night would run twice.
//!   Room: `MIN_LEASE - CLOCK_SPREAD`.
//! - The election of one night is late, so that its minimum lease reaches into the next: that night would not run.
//!   Room: `NIGHT - MIN_LEASE`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// How many stand.
pub(crate) const CANDIDATES: usize = 5;
/// How many nights they stand for.
pub(crate) const NIGHTS: usize = 3;
/// From the beginning of one night to that of the next.
pub(crate) const NIGHT: Duration = Duration::from_secs(5);
/// How long a settlement takes: less than the clocks disagree by, or nothing but luck would be shown.
pub(crate) const WORK: Duration = Duration::from_millis(200);
/// How long the slot is kept after the grant, however short the work: until every clock has struck.
pub(crate) const MIN_LEASE: Duration = Duration::from_millis(2_750);
/// How long the slot is kept when its holder crashes. Extended in the background while the work goes on.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
/// The longest stall of the machine that does no harm.
const STALL: Duration = Duration::from_secs(2);

/// How far each clock is ahead of the true time (behind it, where negative), in milliseconds.
const CLOCKS: [i16; CANDIDATES] = [-280, 130, 0, 270, -90];
/// From the first clock to the last.
pub(crate) const CLOCK_SPREAD: Duration = Duration::from_millis(550);

const _: () = {
    assert!(WORK.as_millis() < CLOCK_SPREAD.as_millis());
    assert!(CLOCK_SPREAD.as_millis() + STALL.as_millis() <= MIN_LEASE.as_millis());
    assert!(MIN_LEASE.as_millis() + STALL.as_millis() <= NIGHT.as_millis());
    assert!(MIN_LEASE.as_millis() <= LEASE.as_millis());
    assert!(LEASE.as_millis() + CLOCK_SPREAD.as_millis() < NIGHT.as_millis());
};

/// When the nights begin.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    first_night: Instant,
}

impl Schedule {
    /// The first night begins in a moment, once the fastest clock has had time to be early.
    pub(crate) fn from_now() -> Self {
        Self {
            first_night: Instant::now() + CLOCK_SPREAD,
        }
    }

    /// The first night begins at a full minute of the wall clock, 15 s from now at least: how processes that were
    /// started by hand agree without a word. Says when that is.
    pub(crate) fn from_the_next_full_minute() -> (Self, String) {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let minute = (since_epoch.as_secs() + 15) / 60 + 1;
        let ahead = Duration::from_secs(minute * 60).saturating_sub(since_epoch);
        let schedule = Self {
            // From here on no wall clock matters: it may be set while the program runs.
            first_night: Instant::now() + ahead,
        };
        let of_day = minute % (24 * 60);
        let (hours, minutes) = (of_day / 60, of_day % 60);
        let said = format!(
            "at {hours:02}:{minutes:02}:00 UTC, in {} s",
            ahead.as_secs()
        );
        (schedule, said)
    }

    /// When `night` begins by the clock of `candidate`.
    pub(crate) fn strikes(&self, night: usize, candidate: usize) -> Instant {
        let ahead = clock_ahead(night, candidate);
        let off = Duration::from_millis(ahead.unsigned_abs().into());
        if ahead > 0 {
            self.begins(night) - off
        } else {
            self.begins(night) + off
        }
    }

    /// The time since `night` began, as text; negative before it began.
    pub(crate) fn time_of(&self, night: usize) -> String {
        let (now, begins) = (Instant::now(), self.begins(night));
        if now < begins {
            format!("-{:.2} s", (begins - now).as_secs_f64())
        } else {
            format!("+{:.2} s", (now - begins).as_secs_f64())
        }
    }

    fn begins(&self, night: usize) -> Instant {
        let before = u32::try_from(night - 1).unwrap_or(u32::MAX);
        self.first_night + NIGHT * before
    }
}

/// How far the clock of `candidate` is ahead on that night, in milliseconds. Clocks are set from time to time, so it is
/// another machine's that is the fastest each night.
pub(crate) fn clock_ahead(night: usize, candidate: usize) -> i16 {
    CLOCKS[(candidate + 2 * night) % CANDIDATES]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_clocks() {
        let spread = CLOCKS.iter().max().unwrap() - CLOCKS.iter().min().unwrap();
        assert_eq!(
            CLOCK_SPREAD,
            Duration::from_millis(spread.unsigned_abs().into())
        );
    }
}
