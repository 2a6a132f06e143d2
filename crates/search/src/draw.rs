//! Random draws that are the same on every platform: a PCG generator, and integer arithmetic but
//! for the logarithm of [`Draw::exponential`].

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// A stream of random numbers from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Draw(Pcg64Mcg);

impl Draw {
    /// The `stream`-th stream of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A number below `n`, to a bias of n / 2⁶⁴; 0 when `n` is.
    #[inline]
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// All 64 bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// An item of a list; `None` when it is empty.
    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let at = self.below(list.len());
        list.get(at).copied()
    }

    /// A number that exceeds x with the chance e^−x.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        // 53 bits, and never 0.
        let unit = ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -unit.ln()
    }

    /// A length from 1 to `most`, each doubling as likely as the next.
    #[inline]
    pub(crate) fn length(&mut self, most: usize) -> usize {
        let doublings = usize::BITS - most.max(1).leading_zeros();
        let top = 1usize << self.below(doublings as usize + 1).min(doublings as usize);
        (top / 2 + self.below(top - top / 2) + 1).min(most.max(1))
    }
}
