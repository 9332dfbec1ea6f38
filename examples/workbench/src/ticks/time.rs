//! Ticks and moments: how the one becomes the other.

use std::time::Duration;

use tokio::time::Instant;

const TICK: Duration = Duration::from_secs(1);

/// The clock of a play: a moment as time since its begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begun: Instant,
}

impl Clock {
    pub(super) fn begin() -> Self {
        Self {
            begun: Instant::now(),
        }
    }

    /// The tick that a moment belongs to.
    pub(super) fn tick_at(&self, at: Instant) -> u32 {
        let middle = at.saturating_duration_since(self.begun) + TICK / 2;
        u32::try_from(middle.as_secs()).unwrap_or(u32::MAX)
    }

    /// How many ticks it is from now until `after` now.
    pub(super) fn ticks_until(&self, after: Duration) -> u32 {
        let now = Instant::now();
        self.tick_at(now + after).saturating_sub(self.tick_at(now))
    }

    /// The moment of `tick` at which candidates stand.
    pub(super) fn middle_of(&self, tick: u32) -> Instant {
        self.begun + TICK * tick
    }

    /// The moment at which `tick` is over and the next begins.
    pub(super) fn end_of(&self, tick: u32) -> Instant {
        self.middle_of(tick) + TICK / 2
    }
}

/// So many ticks, exactly: a lease, a minimum lease.
pub(super) fn ticks(count: u32) -> Duration {
    TICK * count
}

/// How long a candidate waits: into its last tick, so that a slot which is freed in that tick is taken. Waiting for
/// no tick is exactly one attempt, as the engine has it.
pub(super) fn wait(count: u32) -> Duration {
    if count == 0 {
        Duration::ZERO
    } else {
        ticks(count) + TICK / 4
    }
}

/// For how much longer a work goes on that has lost its lease: its late release comes when the next leads already.
pub(super) const LATE: Duration = Duration::from_millis(125);

/// How long a work takes: a little less than its ticks, so that it ends before others stand in its last tick. The margin
/// differs by candidate, which gives the ends within a tick their order. It is below the 12 ms by which the shortest
/// lease is lost before its end, so that a work as long as its lease loses it, as it does in real time.
pub(super) fn work(count: u32, candidates_after: u32) -> Duration {
    ticks(count).saturating_sub(Duration::from_millis(1 + u64::from(candidates_after)))
}
