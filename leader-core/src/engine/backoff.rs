//! Pauses between tries at a store that has failed: each is twice as long as the one before, up to a bound.

use std::time::Duration;

pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// For a claim or a release: short, since every try in time counts.
    pub(super) fn of_a_step() -> Self {
        Self::new(Duration::from_millis(20), Duration::from_millis(500))
    }

    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            next: first,
            longest,
        }
    }

    /// How long the next pause is to be.
    pub(super) fn pause(&self) -> Duration {
        self.next
    }

    /// The next pause, after which the one that follows is longer.
    pub(super) fn take(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::of_a_step();
        let pauses: Vec<_> = (0..7).map(|_| backoff.take().as_millis()).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 500, 500]);
    }
}
