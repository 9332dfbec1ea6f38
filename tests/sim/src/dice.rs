//! The only source of chance: numbers that follow from a seed.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// `SplitMix64`'s finalizer (Steele, Lea, Flood, 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Dice {
    /// The stream that follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(STEP)))
    }

    /// A stream of its own for one thing among many, so that taking another thing away does not change it.
    #[must_use]
    pub fn of(seed: u64, kind: u64, index: u64) -> Self {
        Self(mix(mix(
            mix(seed.wrapping_add(STEP)) ^ kind.wrapping_mul(STEP)
        ) ^ index.wrapping_mul(STEP)))
    }

    /// The next number.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, so it is no iterator to be used up"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high.saturating_sub(low) + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// One of the choices.
    ///
    /// # Panics
    ///
    /// When there is nothing to pick from.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        let index = usize::try_from(self.next() % choices.len() as u64).unwrap_or_default();
        choices[index].clone()
    }
}
