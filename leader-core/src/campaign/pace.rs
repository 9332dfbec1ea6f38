//! The pace at which a campaign tries again: pauses that double, up to a longest, and are spread a little.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::engine::chance;
use crate::name::LockName;
use crate::node::NodeId;

/// Gives one pause after the other.
#[derive(Debug)]
pub(crate) struct Pace {
    next: Option<Duration>,
    /// Makes the pauses of one candidate different from those of another.
    seed: u64,
}

impl Pace {
    pub(crate) fn new(node_id: &NodeId, name: &LockName) -> Self {
        let mut hasher = DefaultHasher::new();
        node_id.as_str().hash(&mut hasher);
        name.as_str().hash(&mut hasher);
        Self {
            next: None,
            seed: hasher.finish(),
        }
    }

    /// All is well: the next pause is a first one again.
    pub(crate) fn reset(&mut self) {
        self.next = None;
    }

    /// The next pause, from three quarters of what it would be up to the whole.
    pub(crate) fn pause(&mut self, first: Duration, longest: Duration) -> Duration {
        let pause = self.next.unwrap_or(first).clamp(first, longest.max(first));
        self.next = Some(pause.saturating_mul(2));
        self.seed = self.seed.wrapping_add(1);
        pause.saturating_sub(chance::below(pause / 4, self.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_differ_between_candidates() {
        let name = LockName::new("x").unwrap();
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(1));
        let pauses = |node: &str| {
            let mut pace = Pace::new(&NodeId::new(node), &name);
            let pauses: Vec<_> = (0..6).map(|_| pace.pause(first, longest)).collect();
            pace.reset();
            assert!(pace.pause(first, longest) <= first);
            pauses
        };
        let (a, b) = (pauses("a"), pauses("b"));
        assert_ne!(a, b);
        for (pause, whole) in a.iter().zip([100, 200, 400, 800, 1000, 1000]) {
            let whole = Duration::from_millis(whole);
            assert!(*pause <= whole && *pause >= whole * 3 / 4, "{pause:?}");
        }
    }
}
