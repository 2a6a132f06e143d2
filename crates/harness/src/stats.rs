//! Statistics of paired comparisons: geometric means with bootstrap intervals, and ranks.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Resamples of a bootstrap.
pub const RESAMPLES: usize = 2000;

/// The confidence of an interval.
pub const CONFIDENCE: f64 = 0.95;

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Lower and upper end; `None` for fewer than two values.
    pub ends: Option<(f64, f64)>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The geometric mean of positive ratios with its percentile bootstrap interval (Efron 1979);
/// `None` for no ratio. The same seed gives the same interval on every machine.
pub fn geometric_mean(ratios: &[f64], seed: u64) -> Option<Interval> {
    if ratios.is_empty() {
        return None;
    }
    let logs: Vec<f64> = ratios.iter().map(|r| r.ln()).collect();
    let centre = mean(&logs).exp();
    if logs.len() < 2 {
        return Some(Interval { mean: centre, ends: None });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resampled_mean(&logs, &mut rng)).collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let ends = (quantile(&means, tail).exp(), quantile(&means, 1.0 - tail).exp());
    Some(Interval { mean: centre, ends: Some(ends) })
}

fn resampled_mean(values: &[f64], rng: &mut ChaCha8Rng) -> f64 {
    // The high bits of a product draw an index without the bias of a remainder.
    let draw = |rng: &mut ChaCha8Rng| ((u128::from(rng.next_u64()) * values.len() as u128) >> 64) as usize;
    (0..values.len()).map(|_| values[draw(rng)]).sum::<f64>() / values.len() as f64
}

/// The quantile of sorted values, interpolated linearly between the two around it (type 7 of
/// Hyndman & Fan 1996). Values must not be empty.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64)
}

/// The rank of each value, the smallest 1; equal values share the mean of their ranks, and missing
/// ones come last, all equal.
pub fn ranks(values: &[Option<f64>]) -> Vec<f64> {
    let key = |i: usize| values[i].unwrap_or(f64::INFINITY);
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
    let mut ranks = vec![0.0; values.len()];
    for group in order.chunk_by(|&a, &b| key(a) == key(b)) {
        let first = order.iter().position(|i| *i == group[0]).unwrap_or(0);
        let shared = first as f64 + (group.len() as f64 + 1.0) / 2.0;
        group.iter().for_each(|&i| ranks[i] = shared);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometric_mean_of_known_ratios() {
        let one = geometric_mean(&[2.0, 8.0], 1).unwrap();
        assert!((one.mean - 4.0).abs() < 1e-12);
        let (low, high) = one.ends.unwrap();
        assert!((low - 2.0).abs() < 1e-9 && (high - 8.0).abs() < 1e-9, "two values resample to their ends");
        assert_eq!(geometric_mean(&[], 1), None);
        assert_eq!(geometric_mean(&[3.0], 1).unwrap().ends, None);
        let same = geometric_mean(&[0.5; 9], 7).unwrap();
        assert_eq!(same.ends.map(|(l, h)| ((l * 1e9).round(), (h * 1e9).round())), Some((5e8, 5e8)));
    }

    #[test]
    fn an_interval_covers_and_is_reproducible() {
        // Log-normal data with a known mean: the 95 % interval covers it about as often.
        let mut covered = 0;
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
            let uniform = |rng: &mut ChaCha8Rng| (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            // Twelve uniforms less six: near enough a standard normal.
            let ratios: Vec<f64> =
                (0..40).map(|_| ((0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0).exp()).collect();
            let interval = geometric_mean(&ratios, seed).unwrap();
            let (low, high) = interval.ends.unwrap();
            assert!(low <= interval.mean && interval.mean <= high);
            assert_eq!(geometric_mean(&ratios, seed), Some(interval));
            covered += u32::from(low <= 1.0 && 1.0 <= high);
        }
        assert!((180..=199).contains(&covered), "covered {covered} of 200");
    }

    #[test]
    fn ranks_share_ties_and_put_missing_last() {
        assert_eq!(ranks(&[Some(3.0), Some(1.0), Some(3.0), None, Some(7.0)]), [2.5, 1.0, 2.5, 5.0, 4.0]);
        assert_eq!(ranks(&[None, Some(1.0), None]), [2.5, 1.0, 2.5]);
        assert_eq!(ranks(&[]), [0.0; 0]);
    }
}
