//! Random draws that are the same on every platform: a PCG generator, and integer arithmetic only.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// A stream of random numbers from a seed.
pub(crate) struct Draw(Pcg64Mcg);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A number below `n`, all equally likely (Lemire 2019); 0 when `n` is.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(n);
            if n == 0 || product as u64 >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }

    /// An index into `list`, which is not empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let at = self.below(list.len() as u64) as usize;
        list.get(at)
    }

    /// True with a chance of `percent` in a hundred.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Brings a list into random order (Fisher & Yates).
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// Ranks with a chance that falls as rank^-skew.
pub(crate) struct Zipf {
    /// Sums of weights up to and with each rank.
    cumulative: Vec<u64>,
}

impl Zipf {
    /// Over `ranks` ranks; `skew` in thousandths.
    pub(crate) fn new(ranks: u64, skew: u64) -> Self {
        let powers = PowerTable::new();
        let weight = |rank| powers.negative_power(rank, skew);
        let cumulative = (1..=ranks).scan(0u64, |sum, rank| {
            *sum = sum.saturating_add(weight(rank));
            Some(*sum)
        });
        Self { cumulative: cumulative.collect() }
    }

    /// A rank, counted from 0.
    pub(crate) fn draw(&self, draw: &mut Draw) -> u64 {
        let at = draw.below(self.cumulative.last().copied().unwrap_or(0));
        self.cumulative.partition_point(|&sum| sum <= at) as u64
    }
}

/// 2^-(2^-k) for k = 0, 1, …, in units of 2^-63: repeated square roots of one half.
struct PowerTable([u64; 33]);

impl PowerTable {
    fn new() -> Self {
        let mut table = [1 << 62; 33];
        for k in 1..table.len() {
            table[k] = (u128::from(table[k - 1]) << 63).isqrt() as u64;
        }
        Self(table)
    }

    /// `base`^-(`thousandths` / 1000) in units of 2^-40, for `base` of at least 1.
    fn negative_power(&self, base: u64, thousandths: u64) -> u64 {
        let exponent = u128::from(log2(base)) * u128::from(thousandths) / 1000;
        let (whole, fraction) = (exponent >> 32, exponent as u32);
        let bits = (1..=32).filter(|k| fraction >> (32 - k) & 1 == 1);
        let power = bits.fold(1u64 << 63, |p, k| ((u128::from(p) * u128::from(self.0[k])) >> 63) as u64);
        if whole > 40 { 0 } else { power >> 23 >> whole }
    }
}

/// The binary logarithm of `n`, at least 1, in units of 2^-32: one bit per squaring.
fn log2(n: u64) -> u64 {
    let whole = u64::from(n.ilog2());
    let mut mantissa = n << (63 - whole);
    let mut log = whole;
    for _ in 0..32 {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let bit = (square >> 64) as u64;
        mantissa = (square >> bit) as u64;
        log = log << 1 | bit;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_agree_with_floating_point() {
        let table = PowerTable::new();
        for base in [1, 2, 3, 7, 10, 100, 12_345, 4_999_999] {
            for thousandths in [0, 1, 250, 500, 800, 1000, 1333] {
                let exact = (base as f64).powf(-(thousandths as f64) / 1000.0) * 2f64.powi(40);
                let ours = table.negative_power(base, thousandths) as f64;
                assert!((ours - exact).abs() <= exact * 1e-6 + 1.0, "{base}^-{thousandths}: {ours} {exact}");
            }
        }
    }

    #[test]
    fn draws_are_the_same_on_every_platform() {
        let mut draw = Draw::new(1);
        let drawn: Vec<_> = (0..6).map(|_| draw.below(1000)).collect();
        assert_eq!(drawn, [856, 137, 470, 726, 369, 557]);
        let zipf = Zipf::new(1000, 1000);
        let drawn: Vec<_> = (0..6).map(|_| zipf.draw(&mut draw)).collect();
        assert_eq!(drawn, [10, 141, 1, 11, 0, 0]);
    }

    #[test]
    fn zipf_draws_follow_the_weights() {
        let (mut draw, zipf) = (Draw::new(3), Zipf::new(4, 1000));
        let mut counts = [0u64; 4];
        (0..25_000).for_each(|_| counts[zipf.draw(&mut draw) as usize] += 1);
        // 1 + 1/2 + 1/3 + 1/4 = 25/12: shares of 12, 6, 4 and 3 in 25.
        for (count, share) in counts.into_iter().zip([12_000u64, 6_000, 4_000, 3_000]) {
            assert!(count.abs_diff(share) < 300, "{counts:?}");
        }
    }

    #[test]
    fn flat_zipf_and_shuffles_reach_everything() {
        let (mut draw, zipf) = (Draw::new(3), Zipf::new(8, 0));
        let mut seen = [false; 8];
        (0..200).for_each(|_| seen[zipf.draw(&mut draw) as usize] = true);
        assert_eq!(seen, [true; 8]);
        let mut list = [0, 1, 2, 3, 4, 5, 6, 7];
        draw.shuffle(&mut list);
        assert_ne!(list, [0, 1, 2, 3, 4, 5, 6, 7]);
        list.sort_unstable();
        assert_eq!(list, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
