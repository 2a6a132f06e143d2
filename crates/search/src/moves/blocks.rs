//! Moves of whole blocks.
//!
//! A block is a run of items that no generated buffer crosses the ends of: what accumulates in such
//! buffers is begun and finished inside. Blocks may stand in any order that edges allow, and they
//! share nothing but backed buffers (one may stand inside another that has nothing to do with it); so they are what to arrange next to what shares operands, and
//! single items never get far from their block at a bearable cost on the way. What these moves do:
//! - *relocate*: some blocks go beside another block that uses one of their buffers;
//! - *swap*: two blocks that have a buffer in common change places;
//! - *reverse*: the blocks from one to the other stand in the opposite order, from which serpentine
//!   orders arise;
//! - *regroup*: two generated buffers of two blocks are zipped at one place, those left over at the
//!   other.

use super::{Neighbourhood, Side};
use crate::draw::Draw;
use crate::model::ItemIx;
use spillbench_core::index::BufIx;
use std::ops::Range;

/// The longest block, in items, and the work to find it.
const LONGEST: usize = 512;
const WORK: usize = 1 << 13;
/// The longest window of one of these moves, in items.
const WINDOW: usize = 8192;
/// The most blocks that are moved as one.
const RUN: usize = 16;

impl Neighbourhood<'_> {
    /// Moves blocks; `None` where there are none or the move drawn is impossible.
    pub(super) fn blocks(&mut self, draw: &mut Draw) -> Option<()> {
        let one = self.block_at(draw.below(self.order.len()))?;
        let two = self.related(&one, draw)?;
        let apart = one.end <= two.start || two.end <= one.start;
        if !apart || one.start.abs_diff(two.start) > WINDOW {
            return None;
        }
        match draw.below(8) {
            0..3 => self.relocate(one, two, draw),
            3 => self.swap(one, two),
            4 => self.reverse(one, two),
            _ => self.regroup(one, two, draw),
        }
    }

    /// The block around a position; `None` where it is too long.
    fn block_at(&self, position: usize) -> Option<Range<usize>> {
        let mut block = position..position + 1;
        let mut seen = position..position;
        let mut work = WORK;
        while seen != block {
            let next = if seen.end < block.end {
                seen.end += 1;
                seen.end - 1
            } else {
                seen.start -= 1;
                seen.start
            };
            for &buf in self.ties.bufs(self.order[next]) {
                if !self.ties.is_generated(buf) {
                    continue;
                }
                let users = self.ties.items(buf);
                work = work.checked_sub(users.len())?;
                for &user in users {
                    let at = self.position(user);
                    block = block.start.min(at)..block.end.max(at + 1);
                }
            }
            if block.len() > LONGEST {
                return None;
            }
        }
        Some(block)
    }

    /// Another block that uses a buffer of this one.
    fn related(&self, block: &Range<usize>, draw: &mut Draw) -> Option<Range<usize>> {
        let item = self.order[block.start + draw.below(block.len())];
        let buf = draw.pick(self.ties.bufs(item)).filter(|&b| !self.ties.is_generated(b))?;
        let other = self.position(draw.pick(self.ties.items(buf))?);
        if block.contains(&other) { None } else { self.block_at(other) }
    }

    fn relocate(&mut self, one: Range<usize>, two: Range<usize>, draw: &mut Draw) -> Option<()> {
        let mut run = one;
        let behind = draw.below(2) == 0;
        // The run grows away from the other block or towards it, but not into it.
        for _ in 1..draw.length(RUN) {
            let grown = if behind && run.end < self.order.len() {
                run.start..self.block_at(run.end).filter(|b| b.start == run.end)?.end
            } else if !behind && run.start > 0 {
                self.block_at(run.start - 1).filter(|b| b.end == run.start)?.start..run.end
            } else {
                break;
            };
            if grown.start < two.end && two.start < grown.end {
                break;
            }
            run = grown;
        }
        (run.clone()).for_each(|p| self.mark(self.order[p]));
        let before = draw.below(2) == 0;
        if run.start < two.start {
            self.shift(run.start..if before { two.start } else { two.end }, Side::Right)
        } else {
            self.shift(if before { two.start } else { two.end }..run.end, Side::Left)
        }
    }

    fn swap(&mut self, one: Range<usize>, two: Range<usize>) -> Option<()> {
        let (one, two) = if one.start < two.start { (one, two) } else { (two, one) };
        let parts = [two.clone(), one.end..two.start, one.clone()];
        self.lay_parts(one.start..two.end, parts)
    }

    fn reverse(&mut self, one: Range<usize>, two: Range<usize>) -> Option<()> {
        let (mut at, end) = (one.start.min(two.start), one.end.max(two.end));
        let start = at;
        let mut parts = Vec::new();
        while at < end {
            let block = self.block_at(at).filter(|b| b.start == at && b.end <= end)?;
            at = block.end;
            parts.push(block);
        }
        parts.reverse();
        self.lay_parts(start..end, parts)
    }

    fn lay_parts(&mut self, window: Range<usize>, parts: impl IntoIterator<Item = Range<usize>>) -> Option<()> {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        parts.into_iter().for_each(|part| wanted.extend_from_slice(&self.order[part]));
        let laid = self.lay(window, &wanted);
        self.wanted = wanted;
        laid
    }

    fn regroup(&mut self, one: Range<usize>, two: Range<usize>, draw: &mut Draw) -> Option<()> {
        let (first, second) = if one.start < two.start { (one, two) } else { (two, one) };
        let a = self.accumulated(&first);
        let b = self.accumulated(&second);
        let (x, y) = (draw.pick(&a)?, draw.pick(&b)?);
        let left = |list: &[BufIx], taken: BufIx, draw: &mut Draw| {
            let rest: Vec<BufIx> = list.iter().copied().filter(|&b| b != taken).collect();
            draw.pick(&rest)
        };
        let (p, q) = (left(&a, x, draw), left(&b, y, draw));
        let mut here: Vec<ItemIx> = Vec::new();
        self.zipped(x, Some(y), &first, &second, &mut here);
        let mut there = Vec::new();
        if let Some(one) = p.or(q) {
            self.zipped(one, p.and(q), &first, &second, &mut there);
        }
        let between: Vec<ItemIx> = self.order[first.end..second.start].to_vec();
        let (here, there) = if draw.below(2) == 0 { (here, there) } else { (there, here) };
        // All else of the blocks follows behind, pulled forward where something waits for it.
        let wanted: Vec<ItemIx> = match draw.below(4) {
            0 => [here, there, between].concat(),
            1 => [between, here, there].concat(),
            _ => [here, between, there].concat(),
        };
        self.lay(first.start..second.end, &wanted)
    }

    /// The generated buffers that more than two items of a block use.
    fn accumulated(&self, block: &Range<usize>) -> Vec<BufIx> {
        let items = self.order[block.clone()].iter();
        let bufs = items.flat_map(|&i| self.ties.bufs(i)).copied();
        let mut bufs: Vec<BufIx> = bufs.filter(|&b| self.ties.is_generated(b)).collect();
        bufs.sort_unstable();
        let mut found: Vec<BufIx> = bufs.chunk_by(|a, b| a == b).filter(|c| c.len() > 2).map(|c| c[0]).collect();
        found.truncate(64);
        found
    }

    /// The users of `one`, each followed by the user of `two` with which it shares an operand, if
    /// any; then the other users of `two`.
    fn zipped(&self, one: BufIx, two: Option<BufIx>, a: &Range<usize>, b: &Range<usize>, out: &mut Vec<ItemIx>) {
        let users = |buf: BufIx| {
            let within = |&i: &ItemIx| a.contains(&self.position(i)) || b.contains(&self.position(i));
            let mut users: Vec<ItemIx> = self.ties.items(buf).iter().copied().filter(within).collect();
            users.sort_unstable_by_key(|&i| self.position(i));
            users
        };
        let Some(two) = two else {
            out.extend(users(one));
            return;
        };
        let mut others = users(two);
        for item in users(one) {
            out.push(item);
            let shares = |o: &ItemIx| self.ties.bufs(*o).iter().any(|&b| b != two && self.ties.bufs(item).contains(&b));
            if let Some(at) = others.iter().position(shares) {
                out.push(others.remove(at));
            }
        }
        out.extend(others);
    }
}
