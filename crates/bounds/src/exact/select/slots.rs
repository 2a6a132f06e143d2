//! Sets of places, small enough to be copied.

/// A set of numbers below 64·`W`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slots<const W: usize>([u64; W]);

impl<const W: usize> Slots<W> {
    pub const EMPTY: Self = Self([0; W]);

    #[inline]
    pub fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    #[inline]
    pub fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    /// What is in it and not in `other`.
    #[inline]
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|w| self.0[w] & !other.0[w]))
    }

    /// What is in either.
    #[inline]
    pub fn with(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|w| self.0[w] | other.0[w]))
    }

    /// True when all that is in both is in `third`.
    #[inline]
    pub fn meets_only_in(&self, other: &Self, third: &Self) -> bool {
        (0..W).all(|w| self.0[w] & other.0[w] & !third.0[w] == 0)
    }

    /// Its numbers, rising.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(w, word)| {
            let ones = std::iter::successors(Some(word), |&rest| Some(rest & rest.wrapping_sub(1)));
            ones.take_while(|&rest| rest != 0).map(move |rest| w * 64 + rest.trailing_zeros() as usize)
        })
    }
}
