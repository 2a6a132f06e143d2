//! The address space of one cache: free blocks and residents in address order.
//!
//! Blocks form a doubly linked list by address in which two free blocks never touch, so free blocks
//! always coalesce. Beside the list stands the set of free blocks by size, which finds the best and
//! the worst fit in O(log n).
//!
//! A space may also be without addresses: whatever is free is one block, as if residents moved
//! together at no cost. That is what a cache would be if bytes need not lie together.

use crate::index::BufIx;
use crate::units::{Bytes, Offset};
use std::collections::BTreeSet;

/// A block of an [`AddressSpace`]: a handle that is good until the block is released or merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockIx(u32);

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Block {
    start: u64,
    size: u64,
    before: u32,
    after: u32,
    occupant: Option<BufIx>,
}

/// A stretch of the cache as [`AddressSpace::blocks`] shows it, half-open: `[start, start + size)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockView {
    /// Its handle.
    pub block: BlockIx,
    /// Its first address.
    pub start: Offset,
    /// Its size.
    pub size: Bytes,
    /// The resident, `None` for a free block.
    pub occupant: Option<BufIx>,
}

/// A free block chosen for a buffer, and the address the buffer takes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    block: BlockIx,
    /// Where the buffer will begin.
    pub offset: Offset,
}

/// Whether the bytes of a buffer must lie together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// They must, and a resident stays where it is.
    #[default]
    Contiguous,
    /// Only their number counts. What is free is the first block; residents follow, the last taken
    /// first, and their offsets mean nothing. Holes come from [`AddressSpace::last_fit`] alone.
    Bytes,
}

/// Free blocks and residents of one cache.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    addressing: Addressing,
    capacity: u64,
    free: u64,
    first: u32,
    blocks: Vec<Block>,
    spare: Vec<u32>,
    by_size: BTreeSet<(u64, u64, u32)>,
}

impl AddressSpace {
    /// An empty space of `capacity` contiguous bytes.
    pub fn new(capacity: Bytes) -> Self {
        let mut space = Self::default();
        space.reset(capacity, Addressing::Contiguous);
        space
    }

    /// Makes the space empty again, keeping its storage.
    pub fn reset(&mut self, capacity: Bytes, addressing: Addressing) {
        self.addressing = addressing;
        self.capacity = capacity.0;
        self.free = capacity.0;
        self.first = 0;
        self.blocks.clear();
        self.spare.clear();
        self.by_size.clear();
        self.blocks.push(Block { start: 0, size: capacity.0, before: NIL, after: NIL, occupant: None });
        self.by_size.insert((capacity.0, 0, 0));
    }

    /// Bytes the cache holds.
    pub fn capacity(&self) -> Bytes {
        Bytes(self.capacity)
    }

    /// Whether the bytes of a buffer must lie together here.
    pub fn addressing(&self) -> Addressing {
        self.addressing
    }

    /// Bytes of all free blocks.
    pub fn free_bytes(&self) -> Bytes {
        Bytes(self.free)
    }

    /// Size of the largest free block, 0 when full.
    pub fn largest_free(&self) -> Bytes {
        Bytes(self.by_size.last().map_or(0, |b| b.0))
    }

    /// Where the largest free block begins, and its size; ties to the lowest address. `None` when
    /// full.
    pub fn largest_hole(&self) -> Option<(Offset, Bytes)> {
        let size = self.largest_free();
        self.worst_fit(Bytes(size.0.max(1))).map(|hole| (hole.offset, size))
    }

    /// All blocks by rising address.
    pub fn blocks(&self) -> impl Iterator<Item = BlockView> + '_ {
        self.blocks_from(self.first)
    }

    /// The smallest free block of at least `size` bytes; ties to the lowest address.
    pub fn best_fit(&self, size: Bytes) -> Option<Hole> {
        self.by_size.range((size.0, 0, 0)..).next().map(|&(_, start, block)| low_end(block, start))
    }

    /// As the best fit, in turn: of both ends of the smallest free blocks of at least `size` bytes,
    /// the first at or after `cursor`, wrapping around to the lowest.
    pub fn best_fit_in_turn(&self, size: Bytes, cursor: Offset) -> Option<Hole> {
        let &(whole, lowest, lowest_block) = self.by_size.range((size.0, 0, 0)..).next()?;
        let class = |from: u64, to: u64| self.by_size.range((whole, from, 0)..(whole, to, 0));
        // Blocks of one size are apart, so of those that begin before the cursor only the last can end
        // far enough behind it.
        let before = class(0, cursor.0).next_back().map(|&(_, start, block)| (start + whole - size.0, block));
        let ahead = before.filter(|&(high, _)| high >= cursor.0);
        let ahead = ahead.or_else(|| class(cursor.0, u64::MAX).next().map(|&(_, start, block)| (start, block)));
        let (start, block) = ahead.unwrap_or((lowest, lowest_block));
        Some(low_end(block, start))
    }

    /// The place of `size` free bytes that begins at `offset`; `None` where some of them are taken.
    pub fn hole_at(&self, offset: Offset, size: Bytes) -> Option<Hole> {
        let covers = |b: &BlockView| b.start <= offset && offset.end(size) <= b.start.end(b.size);
        self.holes(size).find(covers).map(|b| Hole { block: b.block, offset })
    }

    /// The largest free block, if it has `size` bytes; ties to the lowest address.
    pub fn worst_fit(&self, size: Bytes) -> Option<Hole> {
        let largest = self.largest_free().0;
        if largest < size.0 {
            return None;
        }
        self.by_size.range((largest, 0, 0)..).next().map(|&(_, start, block)| low_end(block, start))
    }

    /// The lowest free block of at least `size` bytes.
    pub fn first_fit(&self, size: Bytes) -> Option<Hole> {
        self.holes(size).next().map(|b| low_end(b.block.0, b.start.0))
    }

    /// The first stretch of `size` free bytes at or after `cursor`, wrapping around to the lowest.
    pub fn next_fit(&self, size: Bytes, cursor: Offset) -> Option<Hole> {
        let ahead = self.holes(size).find_map(|b| {
            let start = b.start.max(cursor);
            let fits = start.0.checked_add(size.0).is_some_and(|end| end <= b.start.0 + b.size.0);
            fits.then_some(Hole { block: b.block, offset: start })
        });
        ahead.or_else(|| self.first_fit(size))
    }

    /// The upper end of the highest free block of at least `size` bytes.
    pub fn last_fit(&self, size: Bytes) -> Option<Hole> {
        self.holes(size).last().map(|b| Hole { block: b.block, offset: Offset(b.start.0 + b.size.0 - size.0) })
    }

    fn holes(&self, size: Bytes) -> impl Iterator<Item = BlockView> + '_ {
        let any = self.largest_free() >= size;
        self.blocks_from(if any { self.first } else { NIL }).filter(move |b| b.occupant.is_none() && b.size >= size)
    }

    fn blocks_from(&self, first: u32) -> impl Iterator<Item = BlockView> + '_ {
        let mut at = first;
        std::iter::from_fn(move || {
            let block = self.blocks.get(at as usize)?;
            let view = BlockView {
                block: BlockIx(at),
                start: Offset(block.start),
                size: Bytes(block.size),
                occupant: block.occupant,
            };
            at = block.after;
            Some(view)
        })
    }

    /// Gives `size` bytes at `hole` to `buf`. The hole comes from this space as it is now.
    pub fn take(&mut self, hole: Hole, size: Bytes, buf: BufIx) -> BlockIx {
        let ix = hole.block.0;
        let whole = self.blocks[ix as usize];
        debug_assert!(whole.occupant.is_none() && hole.offset.0 >= whole.start);
        debug_assert!(hole.offset.0 + size.0 <= whole.start + whole.size);
        self.by_size.remove(&(whole.size, whole.start, ix));
        self.free -= size.0;
        let (low, high) = (hole.offset.0 - whole.start, whole.start + whole.size - hole.offset.0 - size.0);
        if low > 0 {
            self.insert_free(whole.before, ix, whole.start, low);
        }
        if high > 0 {
            self.insert_free(ix, whole.after, hole.offset.0 + size.0, high);
        }
        let block = &mut self.blocks[ix as usize];
        (block.start, block.size, block.occupant) = (hole.offset.0, size.0, Some(buf));
        hole.block
    }

    /// Ends the residency of `block` and merges it with the free blocks beside it; without addresses,
    /// with whatever is free.
    pub fn release(&mut self, block: BlockIx) {
        let ix = block.0;
        let Block { size, before, after, .. } = self.blocks[ix as usize];
        self.free += size;
        if self.addressing == Addressing::Bytes {
            return self.release_bytes(ix);
        }
        self.blocks[ix as usize].occupant = None;
        for beside in [before, after] {
            if beside != NIL && self.blocks[beside as usize].occupant.is_none() {
                self.absorb(ix, beside);
            }
        }
        let Block { start, size, .. } = self.blocks[ix as usize];
        self.by_size.insert((size, start, ix));
    }

    /// Adds a block to the free one, which stands first, or makes it that.
    fn release_bytes(&mut self, ix: u32) {
        let Block { size, before, after, .. } = self.blocks[ix as usize];
        self.link(before, after);
        let first = self.first;
        match self.blocks.get_mut(first as usize) {
            Some(free) if free.occupant.is_none() => {
                self.by_size.remove(&(free.size, free.start, first));
                free.size += size;
                self.by_size.insert((free.size, free.start, first));
                self.spare.push(ix);
            }
            _ => {
                self.blocks[ix as usize] = Block { start: 0, size, before: NIL, after: NIL, occupant: None };
                self.link(ix, first);
                self.first = ix;
                self.by_size.insert((size, 0, ix));
            }
        }
    }

    /// Moves the upper end of the space to `capacity`; no resident lies beyond it. Without addresses, at
    /// least so many bytes are free as go.
    pub fn resize(&mut self, capacity: Bytes) {
        let (old, new) = (self.capacity, capacity.0);
        debug_assert!(self.free + new >= old, "the residents need more");
        self.capacity = new;
        self.free = self.free - old.saturating_sub(new) + new.saturating_sub(old);
        if self.addressing == Addressing::Bytes {
            return self.resize_bytes();
        }
        let last = self.blocks().last().map(|b| b.block.0);
        let top = last.filter(|&ix| self.blocks[ix as usize].occupant.is_none());
        let Some(ix) = top else {
            debug_assert!(new >= old, "the space is full to its end");
            if new > old {
                self.insert_free(last.unwrap_or(NIL), NIL, old, new - old);
            }
            return;
        };
        let Block { start, size, before, .. } = self.blocks[ix as usize];
        debug_assert!(new >= start, "a resident lies beyond the new end");
        self.by_size.remove(&(size, start, ix));
        if new > start {
            self.blocks[ix as usize].size = new - start;
            self.by_size.insert((new - start, start, ix));
        } else {
            self.link(before, NIL);
            self.spare.push(ix);
        }
    }

    /// Makes the first block hold what is free.
    fn resize_bytes(&mut self) {
        let first = self.first;
        match self.blocks.get(first as usize).copied() {
            Some(free) if free.occupant.is_none() => {
                self.by_size.remove(&(free.size, free.start, first));
                if self.free > 0 {
                    self.blocks[first as usize].size = self.free;
                    self.by_size.insert((self.free, free.start, first));
                } else {
                    self.link(NIL, free.after);
                    self.spare.push(first);
                }
            }
            _ if self.free > 0 => self.insert_free(NIL, first, 0, self.free),
            _ => {}
        }
    }

    /// Where a resident begins.
    pub fn start(&self, block: BlockIx) -> Offset {
        Offset(self.blocks[block.0 as usize].start)
    }

    /// How many bytes a resident holds.
    pub fn size(&self, block: BlockIx) -> Bytes {
        Bytes(self.blocks[block.0 as usize].size)
    }

    fn insert_free(&mut self, before: u32, after: u32, start: u64, size: u64) {
        let block = Block { start, size, before, after, occupant: None };
        let ix = match self.spare.pop() {
            Some(ix) => {
                self.blocks[ix as usize] = block;
                ix
            }
            None => {
                self.blocks.push(block);
                (self.blocks.len() - 1) as u32
            }
        };
        self.link(before, ix);
        self.link(ix, after);
        self.by_size.insert((size, start, ix));
    }

    fn link(&mut self, before: u32, after: u32) {
        match self.blocks.get_mut(before as usize) {
            Some(b) => b.after = after,
            None => self.first = after,
        }
        if let Some(b) = self.blocks.get_mut(after as usize) {
            b.before = before;
        }
    }

    /// Merges the free block `beside` into its neighbour `ix`.
    fn absorb(&mut self, ix: u32, beside: u32) {
        let gone = self.blocks[beside as usize];
        self.by_size.remove(&(gone.size, gone.start, beside));
        let kept = &mut self.blocks[ix as usize];
        kept.size += gone.size;
        kept.start = kept.start.min(gone.start);
        if kept.before == beside {
            self.link(gone.before, ix);
        } else {
            self.link(ix, gone.after);
        }
        self.spare.push(beside);
    }
}

fn low_end(block: u32, start: u64) -> Hole {
    Hole { block: BlockIx(block), offset: Offset(start) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(space: &mut AddressSpace, size: u64, buf: usize) -> BlockIx {
        let hole = space.best_fit(Bytes(size)).unwrap();
        space.take(hole, Bytes(size), BufIx::new(buf))
    }

    #[test]
    fn contiguous_bytes_count_not_the_total() {
        // Capacity 10: a 3 at 0, b 4 at 3, c 3 at 7; a and c go: 3 + 3 are free, but no 6.
        let mut space = AddressSpace::new(Bytes(10));
        let [a, b, c] = [take(&mut space, 3, 0), take(&mut space, 4, 1), take(&mut space, 3, 2)];
        assert_eq!([a, b, c].map(|x| space.start(x).0), [0, 3, 7]);
        space.release(a);
        space.release(c);
        assert_eq!((space.free_bytes(), space.largest_free()), (Bytes(6), Bytes(3)));
        assert_eq!(space.best_fit(Bytes(6)), None);
        space.release(b);
        assert_eq!(space.largest_free(), Bytes(10));
        assert_eq!(space.blocks().count(), 1);
    }

    #[test]
    fn each_rule_takes_its_hole() {
        // Residents leave holes of 4 at 0, 2 at 5, 4 at 8, with 1 byte taken between.
        let mut space = AddressSpace::new(Bytes(12));
        for (buf, size) in [4, 1, 2, 1, 4].into_iter().enumerate() {
            let hole = space.first_fit(Bytes(size)).unwrap();
            space.take(hole, Bytes(size), BufIx::new(buf));
        }
        let views: Vec<_> = space.blocks().collect();
        [0, 2, 4].iter().for_each(|&i| space.release(views[i].block));
        let at = |hole: Option<Hole>| hole.map(|h| h.offset.0);
        assert_eq!(at(space.best_fit(Bytes(2))), Some(5));
        assert_eq!(at(space.best_fit(Bytes(3))), Some(0), "ties go to the lowest address");
        assert_eq!(at(space.worst_fit(Bytes(1))), Some(0));
        assert_eq!(at(space.first_fit(Bytes(2))), Some(0));
        assert_eq!(at(space.next_fit(Bytes(2), Offset(6))), Some(8));
        assert_eq!(at(space.next_fit(Bytes(3), Offset(10))), Some(0), "wraps around");
        assert_eq!(at(space.next_fit(Bytes(2), Offset(9))), Some(9), "inside a hole");
        assert_eq!(at(space.last_fit(Bytes(3))), Some(9), "the upper end of the highest hole");
        assert_eq!(at(space.best_fit(Bytes(5))), None);
        let in_turn = |size, cursor| at(space.best_fit_in_turn(Bytes(size), Offset(cursor)));
        assert_eq!(in_turn(3, 0), Some(0));
        assert_eq!(in_turn(3, 1), Some(1), "the upper end of the first hole");
        assert_eq!([in_turn(3, 2), in_turn(3, 8), in_turn(3, 9)], [Some(8), Some(8), Some(9)]);
        assert_eq!(in_turn(3, 10), Some(0), "wraps around");
        assert_eq!([in_turn(2, 0), in_turn(2, 9)], [Some(5); 2], "a smaller hole goes first");
        assert_eq!(in_turn(5, 0), None);
        assert_eq!(at(space.hole_at(Offset(9), Bytes(3))), Some(9));
        assert_eq!([at(space.hole_at(Offset(3), Bytes(2))), at(space.hole_at(Offset(4), Bytes(1)))], [None; 2]);
    }

    #[test]
    fn the_end_moves() {
        let mut space = AddressSpace::new(Bytes(10));
        let a = take(&mut space, 4, 0);
        let shape = |s: &AddressSpace| {
            (s.capacity().0, s.free_bytes().0, s.largest_free().0, s.blocks().map(|b| b.size.0).collect::<Vec<_>>())
        };
        space.resize(Bytes(6));
        assert_eq!(shape(&space), (6, 2, 2, vec![4, 2]));
        space.resize(Bytes(4));
        assert_eq!(shape(&space), (4, 0, 0, vec![4]));
        space.resize(Bytes(4));
        space.resize(Bytes(9));
        assert_eq!(shape(&space), (9, 5, 5, vec![4, 5]));
        space.release(a);
        space.resize(Bytes(0));
        assert_eq!(shape(&space), (0, 0, 0, vec![]));
        assert_eq!(space.best_fit(Bytes(1)), None);
        space.resize(Bytes(3));
        assert_eq!(shape(&space), (3, 3, 3, vec![3]));
    }

    proptest! {
        /// Takes and releases by every rule, against a plain map of bytes.
        #[test]
        fn agrees_with_a_byte_map(steps in prop::collection::vec((0u8..7, 1u64..9, any::<prop::sample::Index>()), 1..120)) {
            let mut space = AddressSpace::new(Bytes(40));
            let mut bytes = [None; 40];
            let mut live: Vec<(BlockIx, usize)> = Vec::new();
            for (step, (action, size, pick)) in steps.into_iter().enumerate() {
                let size = Bytes(size);
                let hole = match action {
                    0 => space.best_fit(size),
                    1 => space.worst_fit(size),
                    2 => space.first_fit(size),
                    3 => space.next_fit(size, Offset(pick.index(40) as u64)),
                    4 => space.last_fit(size),
                    5 => space.best_fit_in_turn(size, Offset(pick.index(40) as u64)),
                    _ => {
                        if !live.is_empty() {
                            let (block, buf) = live.swap_remove(pick.index(live.len()));
                            space.release(block);
                            bytes.iter_mut().filter(|b| **b == Some(buf)).for_each(|b| *b = None);
                        }
                        continue;
                    }
                };
                let runs: Vec<_> = bytes.chunk_by(|a, b| a.is_none() == b.is_none()).collect();
                let largest = runs.iter().filter(|r| r[0].is_none()).map(|r| r.len()).max().unwrap_or(0);
                prop_assert_eq!(space.largest_free().0, largest as u64);
                prop_assert_eq!(hole.is_some(), largest as u64 >= size.0);
                let Some(hole) = hole else { continue };
                let range = hole.offset.0 as usize..(hole.offset.0 + size.0) as usize;
                prop_assert!(bytes[range.clone()].iter().all(Option::is_none));
                bytes[range].iter_mut().for_each(|b| *b = Some(step));
                live.push((space.take(hole, size, BufIx::new(step)), step));
                let free = bytes.iter().filter(|b| b.is_none()).count();
                prop_assert_eq!(space.free_bytes().0, free as u64);
            }
        }
    }

    proptest! {
        #[test]
        fn without_addresses_only_bytes_count(steps in prop::collection::vec((any::<bool>(), 1u64..9, any::<prop::sample::Index>()), 1..120)) {
            let mut space = AddressSpace::default();
            space.reset(Bytes(40), Addressing::Bytes);
            let mut live: Vec<(BlockIx, usize, u64)> = Vec::new();
            for (step, (goes, size, pick)) in steps.into_iter().enumerate() {
                if goes && !live.is_empty() {
                    space.release(live.remove(pick.index(live.len())).0);
                } else if let Some(hole) = space.last_fit(Bytes(size)) {
                    live.push((space.take(hole, Bytes(size), BufIx::new(step)), step, size));
                }
                let free = 40 - live.iter().map(|l| l.2).sum::<u64>();
                prop_assert_eq!((space.free_bytes().0, space.largest_free().0), (free, free));
                prop_assert_eq!(space.last_fit(Bytes(free + 1)), None);
                let blocks: Vec<_> = space.blocks().collect();
                let residents: Vec<_> = blocks.iter().filter_map(|b| Some((b.block, b.occupant?, b.size))).collect();
                let expected: Vec<_> = live.iter().rev().map(|&(b, buf, s)| (b, BufIx::new(buf), Bytes(s))).collect();
                prop_assert_eq!(residents, expected);
                prop_assert_eq!(blocks.len() - live.len(), usize::from(free > 0));
                prop_assert!(free == 0 || blocks[0].occupant.is_none());
            }
        }
    }
}
