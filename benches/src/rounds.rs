//! [`Rounds`]: what is compared is measured in turn, so that whatever else the machine does meets all of it.

use std::time::Duration;

/// How many rounds a figure has unless a single one takes long.
pub(crate) const ROUNDS: usize = 11;

/// What each of `N` candidates showed in each round.
pub(crate) struct Rounds<const N: usize>([Vec<f64>; N]);

impl<const N: usize> Rounds<N> {
    /// Measures each candidate once in a round, in turn: `sample` is told which.
    pub(crate) async fn of<E>(
        rounds: usize,
        mut sample: impl AsyncFnMut(usize) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let mut seen = Self([const { Vec::new() }; N]);
        for _ in 0..rounds {
            for (which, values) in seen.0.iter_mut().enumerate() {
                values.push(sample(which).await?);
            }
        }
        Ok(seen)
    }

    /// The median of one candidate.
    pub(crate) fn median(&self, which: usize) -> f64 {
        median(self.0[which].clone())
    }

    /// The median of the ratios of two candidates, each from one round: a round in which the machine was busy was so for both.
    pub(crate) fn ratio(&self, of: usize, to: usize) -> f64 {
        let pairs = self.0[of].iter().zip(&self.0[to]);
        median(pairs.map(|(of, to)| of / to).collect())
    }
}

/// The middle one, or the mean of the middle two.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        None => f64::NAN,
        Some(upper) if values.len() % 2 == 1 => *upper,
        Some(upper) => f64::midpoint(values[middle - 1], *upper),
    }
}

/// The value below which this share of them is.
pub(crate) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a vector that fits in memory"
    )]
    let at = ((values.len() as f64 * share).ceil() as usize).max(1) - 1;
    values.get(at).copied().unwrap_or(f64::NAN)
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_round_is_slow_for_both() {
        let mut turn = 0_u32;
        let rounds = Rounds::<2>::of(5, async |which| {
            turn += 1;
            // One round of five on a machine that is ten times as slow.
            let load = if turn > 8 { 10.0 } else { 1.0 };
            Ok::<_, ()>([3.0, 2.0][which] * load)
        });
        let rounds = rounds.await.unwrap();
        assert!((rounds.ratio(0, 1) - 1.5).abs() < 1e-9);
        assert!((rounds.median(1) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert!((quantile(values.clone(), 0.99) - 99.0).abs() < 1e-9);
        assert!((quantile(values.clone(), 1.0) - 100.0).abs() < 1e-9);
        assert!((median(values) - 50.5).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
    }
}
