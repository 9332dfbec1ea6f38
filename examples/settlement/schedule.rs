//! When the nights begin, by clocks that are wrong, and the time limits that follow from how wrong they are.
//!
//! ```text
//!        night 1                                                   night 2
//!           |                                                         |
//!   ---+----+----+------------------------+------------------------+--+--->
//!      |<------->|  CLOCK_SPREAD          |                        |
//!      |<----------- MIN_LEASE ---------->|                        |
//!      |<------------------- LEASE, after a crash -------------->| |
//! ```
//!
//! Two things could go wrong, and each has room for a machine that stalls for [`STALL`]:
//!
//! - A clock strikes late, after the minimum lease of that night: the night would run twice.
//! - The election of one night is late, so that its minimum lease reaches into the next: that night would not run.
//!   Where all candidates are in one process, the next night waits for that instead.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// How many stand.
pub(crate) const CANDIDATES: usize = 5;
/// How many nights they stand for.
pub(crate) const NIGHTS: usize = 3;
/// How long a settlement takes: less than the clocks disagree by, or nothing but luck would be shown.
pub(crate) const WORK: Duration = Duration::from_millis(200);
/// How long the slot is kept after the grant, however short the work: until every clock has struck.
pub(crate) const MIN_LEASE: Duration = Duration::from_secs(5);
/// How long the slot is kept when its holder crashes. Extended in the background while the work goes on.
pub(crate) const LEASE: Duration = Duration::from_secs(12);
/// How long a command to Redis may take. A service would not wait that long; but this may run on a busy machine.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(4);
/// From one night to the next, for candidates that go by the wall clock. Those of one process need not: see
/// [`Night::soon`].
pub(crate) const DAY: Duration = Duration::from_secs(15);
/// The longest stall of the machine that does no harm.
const STALL: Duration = Duration::from_secs(4);

/// How far each clock is ahead of the true time (behind it, where negative), in milliseconds.
const CLOCKS: [i16; CANDIDATES] = [-280, 130, 0, 270, -90];
/// From the first clock to the last.
pub(crate) const CLOCK_SPREAD: Duration = Duration::from_millis(550);

const _: () = {
    assert!(WORK.as_millis() < CLOCK_SPREAD.as_millis());
    assert!(CLOCK_SPREAD.as_millis() + STALL.as_millis() <= MIN_LEASE.as_millis());
    assert!(MIN_LEASE.as_millis() + STALL.as_millis() <= DAY.as_millis());
    assert!(MIN_LEASE.as_millis() <= LEASE.as_millis());
    assert!(LEASE.as_millis() + CLOCK_SPREAD.as_millis() < DAY.as_millis());
    assert!(COMMAND_TIMEOUT.as_millis() * 3 <= LEASE.as_millis());
};

/// One night.
#[derive(Clone, Copy)]
pub(crate) struct Night {
    pub(crate) number: usize,
    begins: Instant,
}

impl Night {
    /// A night that begins in a moment, once the fastest clock has had time to be early. For candidates in one
    /// process, who need no wall clock to agree: the next night can begin whenever the last one is over.
    pub(crate) fn soon(number: usize) -> Self {
        let begins = Instant::now() + CLOCK_SPREAD;
        Self { number, begins }
    }

    /// The nights of candidates in processes of their own. The first begins at a full minute of the wall clock, 15 s
    /// from now at least: so they agree, though started by hand, one after the other. Says when that is.
    pub(crate) fn from_the_next_full_minute() -> (impl Iterator<Item = Self>, String) {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let minute = (since_epoch.as_secs() + 15) / 60 + 1;
        let ahead = Duration::from_secs(minute * 60).saturating_sub(since_epoch);
        // From here on no wall clock matters: it may be set while the program runs.
        let first = Instant::now() + ahead;
        let begins = std::iter::successors(Some(first), |night| Some(*night + DAY));
        let nights = (1..=NIGHTS).zip(begins);

        let of_day = minute % (24 * 60);
        let (hours, minutes) = (of_day / 60, of_day % 60);
        let said = format!("{hours:02}:{minutes:02}:00 UTC, in {} s", ahead.as_secs());
        (nights.map(|(number, begins)| Self { number, begins }), said)
    }

    /// When this night begins by the clock of `candidate`.
    pub(crate) fn strikes(&self, candidate: usize) -> Instant {
        let ahead = self.clock_ahead(candidate);
        let off = Duration::from_millis(ahead.unsigned_abs().into());
        if ahead > 0 {
            self.begins - off
        } else {
            self.begins + off
        }
    }

    /// How far the clock of `candidate` is ahead this night, in milliseconds. Clocks are set from time to time, so
    /// each night another machine's is the fastest.
    pub(crate) fn clock_ahead(&self, candidate: usize) -> i16 {
        CLOCKS[(candidate + 2 * self.number) % CANDIDATES]
    }

    /// The true time since this night began, as text; negative before it began.
    pub(crate) fn time(&self) -> String {
        let (now, begins) = (Instant::now(), self.begins);
        if now < begins {
            format!("-{:.2} s", (begins - now).as_secs_f64())
        } else {
            format!("+{:.2} s", (now - begins).as_secs_f64())
        }
    }
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
