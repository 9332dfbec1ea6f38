//! Spreading things out in time. Nothing here has to be unpredictable, only different from one case to the next, and
//! the same again in a simulation that is run again.

use std::time::Duration;

/// A duration in `0..limit` that depends on `seed` alone.
pub(crate) fn below(limit: Duration, seed: u64) -> Duration {
    // SplitMix64's finalizer (Steele, Lea, Flood, 2014).
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(mixed.checked_rem(limit).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_stay_below_the_limit_and_differ() {
        let limit = Duration::from_millis(5);
        let some: Vec<_> = (0..100).map(|seed| below(limit, seed)).collect();
        assert!(some.iter().all(|duration| *duration < limit));
        assert!(some.iter().any(|duration| *duration != some[0]));
        assert_eq!(below(Duration::ZERO, 1), Duration::ZERO);
    }
}
