//! Runs of open blocks: what would be one hole if some residents went.
//!
//! Strategies ask "if these went, how large a hole would open?" many times before anything moves.
//! [`Runs`] answers for one cache in constant time per resident: blocks stand in address order, and
//! each maximal run of open blocks knows its ends. In a space without addresses all that is open is
//! one hole, wherever it stands.

use crate::address_space::{AddressSpace, Addressing, BlockView};
use crate::index::BufIx;
use crate::units::{Bytes, Offset};
use std::collections::BTreeSet;

/// The blocks of one cache by rising address, some of them open: free, or to be freed.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    blocks: Vec<BlockView>,
    open: Vec<bool>,
    /// At the last block of a run, its first; at the first, its last. Elsewhere stale.
    other_end: Vec<u32>,
    addressing: Addressing,
    /// Bytes of all open blocks.
    open_bytes: u64,
}

/// A run of open blocks, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Runs {
    /// Takes the blocks of `space`; the free ones are open.
    pub(super) fn load(&mut self, space: &AddressSpace) {
        self.blocks.clear();
        self.blocks.extend(space.blocks());
        self.open.clear();
        self.open.extend(self.blocks.iter().map(|b| b.occupant.is_none()));
        self.other_end.clear();
        self.other_end.extend(0..self.blocks.len() as u32);
        self.addressing = space.addressing();
        self.open_bytes = space.free_bytes().0;
    }

    /// The residents with their place among the blocks.
    pub(super) fn residents(&self) -> impl Iterator<Item = (usize, BlockView, BufIx)> + '_ {
        self.blocks.iter().enumerate().filter_map(|(place, &b)| b.occupant.map(|buf| (place, b, buf)))
    }

    /// Opens the closed block at `place` and returns the run it is now part of, with the bytes of the
    /// hole.
    pub(super) fn open(&mut self, place: usize) -> (Run, Bytes) {
        debug_assert!(!self.open[place]);
        self.open[place] = true;
        self.open_bytes += self.blocks[place].size.0;
        if self.addressing == Addressing::Bytes {
            return (Run { first: 0, last: self.blocks.len() - 1 }, Bytes(self.open_bytes));
        }
        let run = Run {
            first: match place.checked_sub(1) {
                Some(before) if self.open[before] => self.other_end[before] as usize,
                _ => place,
            },
            last: match self.open.get(place + 1) {
                Some(true) => self.other_end[place + 1] as usize,
                _ => place,
            },
        };
        self.other_end[run.first] = run.last as u32;
        self.other_end[run.last] = run.first as u32;
        (run, self.bytes(run.first, run.last))
    }

    /// The bytes of blocks `first` to `last`, both included; 0 when `last` precedes `first`.
    fn bytes(&self, first: usize, last: usize) -> Bytes {
        if last < first {
            return Bytes(0);
        }
        let end = self.blocks[last].start.end(self.blocks[last].size);
        Bytes(end.0 - self.blocks[first].start.0)
    }

    /// The hole that opens when the resident at `first` and all up to the one at `last` go: from the
    /// end of the occupied block before to the start of the one after. Without addresses, these and
    /// what is open.
    pub(super) fn hole(&self, first: usize, last: usize) -> (Offset, Bytes) {
        if self.addressing == Addressing::Bytes {
            let closed = (first..=last).filter(|&at| !self.open[at]).map(|at| self.blocks[at].size.0);
            return (Offset(0), Bytes(self.open_bytes + closed.sum::<u64>()));
        }
        let first = first.checked_sub(1).filter(|&f| self.blocks[f].occupant.is_none()).unwrap_or(first);
        let last = if self.blocks.get(last + 1).is_some_and(|b| b.occupant.is_none()) { last + 1 } else { last };
        (self.blocks[first].start, self.bytes(first, last))
    }

    /// True when an occupied block strictly between two places keeps them apart.
    pub(super) fn occupied_between(&self, a: usize, b: usize) -> bool {
        let occupied = self.blocks[a + 1..b].iter().any(|block| block.occupant.is_some());
        occupied && self.addressing == Addressing::Contiguous
    }

    /// Drops from `victims`, which stand at the given places of `run` or outside it, every one
    /// without which a hole of `needed` bytes stays open, trying the last first.
    pub(super) fn give_back<T>(&self, run: Run, needed: Bytes, victims: &mut Vec<T>, place: impl Fn(&T) -> usize) {
        if self.addressing == Addressing::Bytes {
            return self.give_back_bytes(needed, victims, place);
        }
        // Closed places bound the holes inside the run; places are shifted by one so that the
        // border before the first block has a number too.
        let mut closed: BTreeSet<usize> = [run.first, run.last + 2].into();
        let mut holes = 1usize;
        let mut keep = vec![true; victims.len()];
        for (i, victim) in victims.iter().enumerate().rev() {
            let at = place(victim);
            if at < run.first || at > run.last {
                keep[i] = false;
                continue;
            }
            let at = at + 1;
            let (Some(&low), Some(&high)) = (closed.range(..at).next_back(), closed.range(at + 1..).next()) else {
                continue;
            };
            // Blocks low..=high-2 are open, in unshifted numbers; `at` splits them.
            let large = |first: usize, end: usize| end > first && self.bytes(first, end - 1) >= needed;
            let before = usize::from(large(low, high - 1));
            let after = usize::from(large(low, at - 1)) + usize::from(large(at, high - 1));
            if holes - before + after > 0 {
                holes = holes - before + after;
                closed.insert(at);
                keep[i] = false;
            }
        }
        retain(victims, &keep);
    }

    fn give_back_bytes<T>(&self, needed: Bytes, victims: &mut Vec<T>, place: impl Fn(&T) -> usize) {
        let mut open = self.open_bytes;
        let mut keep = vec![true; victims.len()];
        for (victim, keep) in victims.iter().zip(&mut keep).rev() {
            let size = self.blocks[place(victim)].size.0;
            if open - size >= needed.0 {
                open -= size;
                *keep = false;
            }
        }
        retain(victims, &keep);
    }
}

fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    items.retain(|_| *keep.next().unwrap_or(&true));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residents of the given sizes side by side, then those named in `free` released.
    fn runs(sizes: &[u64], free: &[usize]) -> Runs {
        let mut space = AddressSpace::new(Bytes(sizes.iter().sum()));
        let blocks: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(i, &s)| {
                let hole = space.first_fit(Bytes(s)).unwrap();
                space.take(hole, Bytes(s), BufIx::new(i))
            })
            .collect();
        free.iter().for_each(|&f| space.release(blocks[f]));
        let mut runs = Runs::default();
        runs.load(&space);
        runs
    }

    #[test]
    fn opening_joins_both_sides() {
        let mut runs = runs(&[1, 2, 3, 4, 5], &[1]);
        assert_eq!(runs.open(3), (Run { first: 3, last: 3 }, Bytes(4)));
        assert_eq!(runs.open(2), (Run { first: 1, last: 3 }, Bytes(9)));
        assert_eq!(runs.open(0), (Run { first: 0, last: 3 }, Bytes(10)));
    }

    #[test]
    fn a_hole_takes_in_the_free_blocks_beside() {
        let runs = runs(&[1, 2, 3, 4, 5], &[1, 3]);
        assert_eq!(runs.hole(2, 2), (Offset(1), Bytes(9)));
        assert_eq!(runs.hole(0, 0), (Offset(0), Bytes(3)));
        assert_eq!(runs.hole(0, 4), (Offset(0), Bytes(15)));
    }

    #[test]
    fn superfluous_victims_come_back_from_the_end() {
        // Five blocks of 2; 0, 1, 2 and 4 were opened in the order 4, 2, 0, 1; 4 bytes are needed.
        let mut runs = runs(&[2; 5], &[]);
        let mut run = Run { first: 0, last: 0 };
        for place in [4, 2, 0, 1] {
            run = runs.open(place).0;
        }
        assert_eq!(run, Run { first: 0, last: 2 });
        // From the last: without 1 no two touch, so it stays; without 0, 1 and 2 touch; then 2 must
        // stay; 4 is outside.
        let mut victims = vec![4, 2, 0, 1];
        runs.give_back(run, Bytes(4), &mut victims, |&v| v);
        assert_eq!(victims, [2, 1]);
    }

    #[test]
    fn without_addresses_all_that_is_open_is_one_hole() {
        let mut space = AddressSpace::default();
        space.reset(Bytes(11), Addressing::Bytes);
        for (i, size) in [1, 2, 3, 4].into_iter().enumerate() {
            let hole = space.last_fit(Bytes(size)).unwrap();
            space.take(hole, Bytes(size), BufIx::new(i));
        }
        let mut runs = Runs::default();
        runs.load(&space);
        // The free byte, then 4, 3, 2 and 1.
        assert_eq!(runs.hole(1, 1).1, Bytes(5));
        assert_eq!(runs.hole(2, 3).1, Bytes(6));
        assert!(!runs.occupied_between(1, 4));
        let run = Run { first: 0, last: 4 };
        assert_eq!(runs.open(1), (run, Bytes(5)));
        assert_eq!(runs.open(4), (run, Bytes(6)));
        assert_eq!(runs.open(3), (run, Bytes(8)));
        let mut victims = vec![1, 4, 3];
        runs.give_back(run, Bytes(6), &mut victims, |&v| v);
        assert_eq!(victims, [1, 4], "without 3 six bytes stay open, without 4 only five would");
    }
}
