//! Room that no choice of whole gaps can fill.
//!
//! The flow bound fills every byte of a step with parts of gaps. Whole gaps fill at most the largest
//! sum of their sizes that fits, so the rest of the room may as well be missing (a knapsack cut on
//! each capacity row).

use crate::model::CacheModel;
use spillbench_core::Bytes;

/// Largest number of units of room for which all sums are tried; above it, only multiples of the
/// greatest common divisor count.
const UNITS: u64 = 1 << 13;

/// Takes from each step the room that no set of whole gaps fills.
pub(super) fn tighten(model: &mut CacheModel) {
    let mut by_start: Vec<usize> = (0..model.gaps.len()).collect();
    by_start.sort_unstable_by_key(|&g| model.gaps[g].first);
    let mut coming = by_start.into_iter().peekable();
    let mut over: Vec<usize> = Vec::new();
    let mut sizes: Vec<u64> = Vec::new();
    let mut sums = Sums::default();
    for t in 0..model.steps.len() {
        over.retain(|&g| model.gaps[g].end > t);
        while let Some(g) = coming.next_if(|&g| model.gaps[g].first <= t) {
            over.push(g);
        }
        let room = model.room(t).0;
        sizes.clear();
        sizes.extend(over.iter().map(|&g| model.gaps[g].size.0).filter(|&s| s <= room));
        if sizes.iter().fold(0u64, |sum, &s| s.saturating_add(sum)) > room {
            let fillable = sums.largest(&sizes, room);
            model.steps[t].demand += Bytes(room - fillable);
        }
    }
}

/// Which sums of sizes exist, as bits; kept to be used again.
#[derive(Default)]
struct Sums(Vec<u64>);

impl Sums {
    /// The largest sum of some of `sizes` that is at most `room`, or more where that is too long to
    /// find out.
    fn largest(&mut self, sizes: &[u64], room: u64) -> u64 {
        let unit = sizes.iter().fold(0, |unit, &s| gcd(unit, s)).max(1);
        let units = room / unit;
        if units > UNITS {
            return units * unit;
        }
        let words = units as usize / 64 + 1;
        self.0.clear();
        self.0.resize(words, 0);
        self.0[0] = 1;
        for &size in sizes {
            self.add((size / unit) as usize);
        }
        (0..=units).rev().find(|&u| self.0[u as usize / 64] >> (u % 64) & 1 == 1).unwrap_or(0) * unit
    }

    /// Adds to all sums those with one more size; sums past the end are lost.
    fn add(&mut self, size: usize) {
        let (words, bits) = (size / 64, size % 64);
        for to in (words..self.0.len()).rev() {
            let low = self.0[to - words] << bits;
            let carried = if bits > 0 && to > words { self.0[to - words - 1] >> (64 - bits) } else { 0 };
            self.0[to] |= low | carried;
        }
    }
}

/// The greatest common divisor; of 0 and a number, the number.
pub(super) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_sum_is_that_of_trying_all(sizes in prop::collection::vec(1u64..300, 0..9), room in 0u64..900) {
            let sum = |set: u32| (0..sizes.len()).filter(|i| set >> i & 1 == 1).map(|i| sizes[i]).sum::<u64>();
            let by_trial = (0..1u32 << sizes.len()).map(sum).filter(|&s| s <= room).max();
            prop_assert_eq!(Some(Sums::default().largest(&sizes, room)), by_trial);
        }
    }
}
