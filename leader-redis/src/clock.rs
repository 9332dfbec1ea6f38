//! [`Clock`]: what the server's clock shows by now at least, by its last answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time that the last answer told, carried on by this process's own clock.
#[derive(Debug)]
pub(crate) struct Clock {
    begun: Instant,
    /// What the server's clock showed at `begun`, in microseconds since the epoch; or 0.
    at_begun: AtomicU64,
}

/// This process's clock runs faster than a server's by no more than one part in so many.
const SLOWER: u64 = 2000;

impl Default for Clock {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            at_begun: AtomicU64::new(0),
        }
    }
}

impl Clock {
    /// An answer has just come that told this time.
    pub(crate) fn note(&self, micros: u64) {
        self.note_at(Instant::now(), micros);
    }

    /// The server's time by now at least, unless its clock was set back since it answered.
    pub(crate) fn by_now(&self) -> Option<Duration> {
        self.at(Instant::now())
    }

    fn note_at(&self, now: Instant, micros: u64) {
        // As if it had answered in this moment: it did before.
        let at_begun = micros.saturating_sub(self.since_begun(now));
        self.at_begun.store(at_begun, Ordering::Relaxed);
    }

    fn at(&self, now: Instant) -> Option<Duration> {
        match self.at_begun.load(Ordering::Relaxed) {
            0 => None,
            at_begun => {
                let micros = at_begun.saturating_add(self.since_begun(now));
                Some(Duration::from_micros(micros))
            }
        }
    }

    fn since_begun(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.begun).as_micros();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        elapsed - elapsed / SLOWER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_from_the_last_answer_and_never_too_fast() {
        let clock = Clock::default();
        let at = |millis| clock.begun + Duration::from_millis(millis);
        let known = |millis| clock.at(at(millis)).map(|time| time.as_millis());
        assert_eq!(known(5), None);
        clock.note_at(at(10_000), 1_000_000_000);
        assert_eq!(known(10_000), Some(1_000_000));
        assert_eq!(known(20_000), Some(1_009_995));
        // Set back meanwhile: the last answer counts.
        clock.note_at(at(30_000), 3_000_000);
        assert_eq!(known(30_000), Some(3_000));
    }
}
