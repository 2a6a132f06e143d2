//! Small bit sets of a length fixed by their owner.

/// A set of numbers, one bit each.
pub(super) type Bits = Box<[u64]>;

/// The words that sets of numbers below `count` take.
pub(super) fn words(count: usize) -> usize {
    count.div_ceil(64)
}

pub(super) fn empty(words: usize) -> Bits {
    vec![0; words].into()
}

#[inline]
pub(super) fn insert(set: &mut [u64], i: usize) {
    set[i / 64] |= 1 << (i % 64);
}

#[inline]
pub(super) fn remove(set: &mut [u64], i: usize) {
    set[i / 64] &= !(1 << (i % 64));
}

#[inline]
pub(super) fn contains(set: &[u64], i: usize) -> bool {
    set[i / 64] >> (i % 64) & 1 == 1
}

/// True when every member of `small` is in `large`.
#[inline]
pub(super) fn is_subset(small: &[u64], large: &[u64]) -> bool {
    small.iter().zip(large).all(|(s, l)| s & !l == 0)
}

#[inline]
pub(super) fn is_disjoint(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a & b == 0)
}

/// The members of `a` that are not in `b`.
#[inline]
pub(super) fn difference<'a>(a: &'a [u64], b: &'a [u64]) -> impl Iterator<Item = usize> + 'a {
    a.iter().zip(b).enumerate().flat_map(|(w, (a, b))| Ones(a & !b).map(move |i| w * 64 + i))
}

/// The places of the ones of a word, rising.
struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let i = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (i < 64).then_some(i)
    }
}
