//! When the free addresses of one cache were released, for placements that ask for it.
//!
//! Free blocks coalesce, what is known of their addresses does not: a free block is tiled by pieces,
//! each with the moment at which it was last released. Pieces are opened from the oldest on until
//! those that touch hold enough bytes; the last one opened is the youngest that the place needs, and
//! no other place has an older youngest. So a request costs O(k log n) for the k pieces that are older
//! than what it takes.

use crate::units::{Bytes, Offset};
use std::collections::{BTreeMap, BTreeSet};

/// The free addresses of one cache as pieces, each with when it was released: a number that rises from
/// event to event or a time in cycles, 0 for addresses never held.
#[derive(Clone, Debug, Default)]
pub(super) struct Released {
    /// Start to end, half-open, and moment.
    pieces: BTreeMap<u64, (u64, u64)>,
    /// Moment and start.
    oldest: BTreeSet<(u64, u64)>,
}

impl Released {
    /// All of `capacity` bytes, never held.
    pub(super) fn reset(&mut self, capacity: Bytes) {
        self.pieces.clear();
        self.oldest.clear();
        self.insert(0, capacity.0, 0);
    }

    fn insert(&mut self, low: u64, high: u64, moment: u64) {
        if low < high {
            self.pieces.insert(low, (high, moment));
            self.oldest.insert((moment, low));
        }
    }

    /// Notes that the free addresses `offset..offset + size` are taken, and tells when the last of them
    /// was released.
    pub(super) fn take(&mut self, offset: Offset, size: Bytes) -> u64 {
        let mut last = 0;
        let (low, high) = (offset.0, offset.end(size).0);
        let reaches = |piece: &(&u64, &(u64, u64))| piece.1.0 > low;
        while let Some((&start, &(end, moment))) = self.pieces.range(..high).next_back().filter(reaches) {
            self.pieces.remove(&start);
            self.oldest.remove(&(moment, start));
            self.insert(start, low.min(end), moment);
            self.insert(high.max(start), end, moment);
            last = last.max(moment);
        }
        last
    }

    /// Notes that `offset..offset + size` are released at `moment`.
    pub(super) fn release(&mut self, offset: Offset, size: Bytes, moment: u64) {
        self.insert(offset.0, offset.end(size).0, moment);
    }

    /// Where `size` bytes, at least 1, wait for the oldest release; among places that wait for the same
    /// piece, at an end of the free block rather than inside, the lower end first.
    pub(super) fn place(&self, size: Bytes) -> Option<Offset> {
        // Opened pieces by start, those that touch joined.
        let mut runs: BTreeMap<u64, u64> = BTreeMap::new();
        for &(_, start) in &self.oldest {
            let (mut low, mut high) = (start, self.pieces.get(&start)?.0);
            if let Some(end) = runs.remove(&high) {
                high = end;
            }
            if let Some((&before, _)) = runs.range(..low).next_back().filter(|run| *run.1 == low) {
                low = before;
            }
            if high - low >= size.0 {
                return Some(Offset(self.within(low, high, size)));
            }
            runs.insert(low, high);
        }
        None
    }

    /// Where `size` bytes, at least 1, were all released by `moment`: in the smallest free block that has
    /// such a place, ties to the lowest address; where no block has, as [`Released::place`] says. O(n) for
    /// n pieces.
    pub(super) fn place_by(&self, size: Bytes, moment: u64) -> Option<Offset> {
        let mut best: Option<(u64, u64)> = None;
        let (mut block, mut block_end, mut run) = (0, 0, 0);
        let mut found: Option<u64> = None;
        let mut close = |block: u64, end: u64, found: Option<u64>| {
            let candidate = found.map(|at| (end - block, at));
            best = best.into_iter().chain(candidate).min();
        };
        for (&low, &(high, released)) in &self.pieces {
            if low != block_end {
                close(block, block_end, found.take());
                (block, run) = (low, low);
            }
            block_end = high;
            if released > moment {
                run = high;
            } else if found.is_none() && high - run >= size.0 {
                found = Some(run);
            }
        }
        close(block, block_end, found);
        match best {
            Some((_, at)) => {
                // The run goes on to the last piece that was released in time.
                let mut end = at;
                while let Some(&(high, _)) = self.pieces.get(&end).filter(|piece| piece.1 <= moment) {
                    end = high;
                }
                Some(Offset(self.within(at, end, size)))
            }
            None => self.place(size),
        }
    }

    /// Where in the free addresses `low..high`, which hold `size` bytes.
    fn within(&self, low: u64, high: u64, size: Bytes) -> u64 {
        let goes_on_below = self.pieces.range(..low).next_back().is_some_and(|piece| piece.1.0 == low);
        let goes_on_above = self.pieces.contains_key(&high);
        if goes_on_below && !goes_on_above { high - size.0 } else { low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_oldest_release_is_taken_first() {
        let mut released = Released::default();
        released.reset(Bytes(12));
        released.take(Offset(0), Bytes(12));
        for (offset, moment) in [(4, 1), (0, 2), (8, 3)] {
            released.release(Offset(offset), Bytes(4), moment);
        }
        let at = |size| released.place(Bytes(size)).map(|o| o.0);
        assert_eq!(at(4), Some(4), "all of it is free, and the middle is oldest");
        assert_eq!(at(2), Some(4));
        assert_eq!(at(6), Some(0), "the middle and the second oldest");
        assert_eq!(at(9), Some(0));
        assert_eq!(at(13), None);
    }

    #[test]
    fn a_place_keeps_to_the_end_of_its_block() {
        let mut released = Released::default();
        released.reset(Bytes(10));
        released.take(Offset(0), Bytes(4));
        released.release(Offset(0), Bytes(4), 1);
        // 4..10 was never held; the block goes on below it and ends with it.
        assert_eq!(released.place(Bytes(4)), Some(Offset(6)));
    }

    #[test]
    fn a_place_released_in_time_is_a_best_fit() {
        // Free: 0..4 released at 9, 5..8 at 2, 9..14 at 1 up to 12 and at 7 from there.
        let mut released = Released::default();
        released.reset(Bytes(14));
        released.take(Offset(0), Bytes(14));
        for (offset, size, moment) in [(0, 4, 9), (5, 3, 2), (9, 3, 1), (12, 2, 7)] {
            released.release(Offset(offset), Bytes(size), moment);
        }
        let by = |size, moment| released.place_by(Bytes(size), moment).map(|o| o.0);
        assert_eq!(by(2, 9), Some(5), "the smallest block");
        assert_eq!(by(2, 1), Some(9), "the only one in time");
        assert_eq!(by(4, 9), Some(0));
        assert_eq!(by(4, 7), Some(9), "by then only the upper block");
        assert_eq!(by(4, 0), Some(9), "none is in time, and this one is soonest");
        assert_eq!(by(6, 9), None);
    }

    proptest! {
        /// The youngest address of the chosen place is as old as can be, by trying every place.
        #[test]
        fn no_place_was_released_longer_ago(
            steps in prop::collection::vec((any::<bool>(), 0u64..24, 1u64..9), 1..60),
            size in 1u64..9,
        ) {
            let mut released = Released::default();
            released.reset(Bytes(24));
            let mut bytes = [Some(0u64); 24];
            for (moment, (takes, low, len)) in steps.into_iter().enumerate() {
                let range = low as usize..((low + len).min(24)) as usize;
                let (offset, len) = (Offset(low), Bytes((range.end - range.start) as u64));
                if takes && bytes[range.clone()].iter().all(Option::is_some) {
                    released.take(offset, len);
                    bytes[range].fill(None);
                } else if !takes && bytes[range.clone()].iter().all(Option::is_none) {
                    released.release(offset, len, moment as u64 + 1);
                    bytes[range].fill(Some(moment as u64 + 1));
                }
                let youngest = |at: usize| bytes[at..at + size as usize].iter().copied().collect::<Option<Vec<_>>>()?.into_iter().max();
                let best = (0..=24 - size as usize).filter_map(youngest).min();
                prop_assert_eq!(released.place(Bytes(size)).and_then(|o| youngest(o.0 as usize)), best);
            }
        }
    }
}
