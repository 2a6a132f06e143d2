//! Moves: parts of an order laid anew, topological by construction.
//!
//! Most moves mark items in a window and pull them left, taking along their ancestors inside the
//! window, or push them right with their descendants; order within both sets is kept. What they
//! mark:
//! - *gap*: the later user of a buffer that misses is pulled to its earlier user, or the earlier
//!   user pushed to the later;
//! - *segment*: a run of items;
//! - *users*: all users of one buffer in the window;
//! - *beside*: one item, moved to another user of one of its buffers.
//!
//! *Zip* advances the users of two generated buffers in lockstep, paired by shared operands. Moves of
//! whole blocks are those of [`blocks`].

mod blocks;
#[cfg(test)]
mod tests;

use crate::draw::Draw;
use crate::evaluator::{Evaluator, Gap};
use crate::model::{ItemIx, Model};
use crate::ties::Ties;
use std::ops::Range;

/// The longest window, in items: where gaps are longer, moves go part of the way.
const LONGEST: usize = 1024;

/// An order and the last move proposed for it.
pub(crate) struct Neighbourhood<'a> {
    model: &'a Model<'a>,
    ties: &'a Ties,
    order: Vec<ItemIx>,
    place: Vec<u32>,
    /// The window as the move lays it, from `first` on.
    first: usize,
    proposal: Vec<ItemIx>,
    rest: Vec<ItemIx>,
    marked: Vec<u64>,
    done: Vec<u64>,
    stamp: u64,
    stack: Vec<ItemIx>,
    wanted: Vec<ItemIx>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl<'a> Neighbourhood<'a> {
    pub(crate) fn new(model: &'a Model<'a>, ties: &'a Ties, order: Vec<ItemIx>) -> Self {
        let mut new = Self {
            model,
            ties,
            order: Vec::new(),
            place: vec![0; model.len()],
            first: 0,
            proposal: Vec::new(),
            rest: Vec::new(),
            marked: vec![0; model.len()],
            done: vec![0; model.len()],
            stamp: 0,
            stack: Vec::new(),
            wanted: Vec::new(),
        };
        new.set_order(order);
        new
    }

    /// The order as it stands.
    pub(crate) fn order(&self) -> &[ItemIx] {
        &self.order
    }

    /// Takes up another order, which is topological.
    pub(crate) fn set_order(&mut self, order: Vec<ItemIx>) {
        order.iter().enumerate().for_each(|(pos, item)| self.place[item.index()] = pos as u32);
        self.order = order;
    }

    /// Where the proposed move begins, and the items from there on.
    pub(crate) fn proposal(&self) -> (usize, &[ItemIx]) {
        (self.first, &self.proposal)
    }

    /// Makes the proposed move.
    pub(crate) fn accept(&mut self) {
        for (i, &item) in self.proposal.iter().enumerate() {
            self.order[self.first + i] = item;
            self.place[item.index()] = (self.first + i) as u32;
        }
    }

    /// Proposes a move; false when the one drawn changes nothing.
    pub(crate) fn propose(&mut self, evaluator: &dyn Evaluator, draw: &mut Draw) -> bool {
        if self.order.len() < 2 {
            return false;
        }
        self.stamp += 1;
        let proposed = match draw.below(32) {
            0..10 => match evaluator.fault(draw.bits()) {
                Some(gap) => self.close_gap(gap, draw),
                None => self.segment(draw),
            },
            10..18 => self.segment(draw),
            18..21 => self.users(draw),
            21..25 => self.beside(draw),
            25..29 => self.zip(draw),
            _ => self.blocks(draw).or_else(|| self.segment(draw)),
        };
        proposed.is_some() && self.trim()
    }

    /// Proposes to bring the items at `run` before or behind position `to`, which is not inside, with
    /// those that must go along; false when that changes nothing.
    pub(crate) fn propose_run(&mut self, run: Range<usize>, to: usize) -> bool {
        let n = self.order.len();
        self.stamp += 1;
        let run = run.start.min(n)..run.end.min(n);
        let (window, side) =
            if to <= run.start { (to..run.end, Side::Left) } else { (run.start..(to + 1).min(n), Side::Right) };
        run.for_each(|p| self.mark(self.order[p]));
        self.shift(window, side).is_some() && self.trim()
    }

    fn position(&self, item: ItemIx) -> usize {
        self.place[item.index()] as usize
    }

    fn mark(&mut self, item: ItemIx) {
        self.marked[item.index()] = self.stamp;
    }

    fn is_marked(&self, item: ItemIx) -> bool {
        self.marked[item.index()] == self.stamp
    }

    /// Brings the two ends of a gap together, as far as the longest window goes.
    fn close_gap(&mut self, gap: Gap, draw: &mut Draw) -> Option<()> {
        let reach = draw.length(LONGEST).max(8);
        let run = draw.length(8) - 1;
        if draw.below(2) == 0 {
            let end = (gap.to + 1 + run).min(self.order.len());
            let start = (gap.from + 1).max(gap.to.saturating_sub(reach));
            (gap.to..end).for_each(|p| self.mark(self.order[p]));
            self.shift(start..end, Side::Left)
        } else {
            let start = gap.from.saturating_sub(run);
            let end = gap.to.min(gap.from + reach);
            (start..=gap.from).for_each(|p| self.mark(self.order[p]));
            self.shift(start..end, Side::Right)
        }
    }

    fn segment(&mut self, draw: &mut Draw) -> Option<()> {
        let n = self.order.len();
        let (length, way) = (draw.length(64), draw.length(LONGEST / 4));
        let window = (length + way).min(n);
        let start = draw.below(n - window + 1);
        let length = length.min(window - 1);
        let side = if draw.below(2) == 0 { Side::Left } else { Side::Right };
        let run = if side == Side::Left { start + window - length..start + window } else { start..start + length };
        run.for_each(|p| self.mark(self.order[p]));
        self.shift(start..start + window, side)
    }

    fn users(&mut self, draw: &mut Draw) -> Option<()> {
        let buf = draw.pick(self.ties.shared())?;
        let centre = self.position(draw.pick(self.ties.items(buf))?);
        let reach = draw.length(LONGEST / 4);
        let window = centre.saturating_sub(reach)..(centre + reach + 1).min(self.order.len());
        let ties = self.ties;
        for &item in ties.items(buf) {
            if window.contains(&self.position(item)) {
                self.mark(item);
            }
        }
        self.shift(window, if draw.below(2) == 0 { Side::Left } else { Side::Right })
    }

    fn beside(&mut self, draw: &mut Draw) -> Option<()> {
        let item = self.order[draw.below(self.order.len())];
        let buf = draw.pick(self.ties.bufs(item))?;
        let other = draw.pick(self.ties.items(buf)).filter(|&o| o != item)?;
        let (from, to) = (self.position(item), self.position(other));
        if from.abs_diff(to) > LONGEST {
            return None;
        }
        self.mark(item);
        if from > to {
            self.shift(to + draw.below(2)..from + 1, Side::Left)
        } else {
            self.shift(from..to + draw.below(2), Side::Right)
        }
    }

    /// Lays the marked items of a window to one side of it, with those that must go along.
    fn shift(&mut self, window: Range<usize>, side: Side) -> Option<()> {
        if window.len() < 2 {
            return None;
        }
        self.first = window.start;
        self.proposal.clear();
        self.rest.clear();
        match side {
            Side::Left => {
                for p in window.clone().rev() {
                    if self.is_marked(self.order[p]) {
                        let model = self.model;
                        model.predecessors(self.order[p]).iter().for_each(|&i| self.mark(i));
                    }
                }
            }
            Side::Right => {
                for p in window.clone() {
                    if self.is_marked(self.order[p]) {
                        let model = self.model;
                        model.successors(self.order[p]).iter().for_each(|&i| self.mark(i));
                    }
                }
            }
        }
        for p in window {
            let item = self.order[p];
            if self.is_marked(item) == (side == Side::Left) {
                self.proposal.push(item);
            } else {
                self.rest.push(item);
            }
        }
        self.proposal.append(&mut self.rest);
        Some(())
    }

    /// Advances the users of two generated buffers in lockstep.
    fn zip(&mut self, draw: &mut Draw) -> Option<()> {
        let user = self.order[draw.below(self.order.len())];
        let ties = self.ties;
        let generated = |item: ItemIx, draw: &mut Draw| {
            let buf = draw.pick(ties.bufs(item))?;
            (ties.is_generated(buf) && ties.items(buf).len() > 2).then_some(buf)
        };
        let one = generated(user, draw)?;
        let operand = draw.pick(ties.bufs(user)).filter(|&b| b != one)?;
        let partner = draw.pick(ties.items(operand)).filter(|&p| p != user)?;
        let two = generated(partner, draw).filter(|&b| b != one)?;
        let reach = draw.length(LONGEST).max(32);
        let centre = self.position(user);
        let near = |hood: &Self, item: ItemIx| hood.position(item).abs_diff(centre) <= reach;
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        wanted.extend(ties.items(one).iter().copied().filter(|&i| near(self, i)));
        wanted.sort_unstable_by_key(|&i| self.position(i));
        let of_two = |item: &&ItemIx| ties.items(two).contains(item) && near(self, **item);
        let paired = wanted.iter().flat_map(|&item| {
            let shared = ties.bufs(item).iter().filter(|&&b| b != one);
            let partner = shared.flat_map(|&b| ties.items(b)).filter(|&&p| p != item).find(of_two);
            [Some(item), partner.copied()]
        });
        let wanted_now: Vec<_> = paired.flatten().collect();
        let span = wanted_now.iter().map(|&i| self.position(i));
        let window = span.clone().min()?..span.max()? + 1;
        self.wanted = wanted;
        self.lay(window, &wanted_now)
    }

    /// Lays `wanted` in its order at the start of a window, each item after its ancestors there,
    /// and the others behind.
    fn lay(&mut self, window: Range<usize>, wanted: &[ItemIx]) -> Option<()> {
        if window.len() < 3 {
            return None;
        }
        self.first = window.start;
        self.proposal.clear();
        for &item in wanted {
            self.stack.push(item);
            while let Some(&top) = self.stack.last() {
                let outstanding = self.model.predecessors(top).iter().copied().find(|&p| {
                    self.done[p.index()] != self.stamp && window.contains(&(self.place[p.index()] as usize))
                });
                if let Some(before) = outstanding {
                    self.stack.push(before);
                    continue;
                }
                self.stack.pop();
                if self.done[top.index()] != self.stamp {
                    self.done[top.index()] = self.stamp;
                    self.proposal.push(top);
                }
            }
        }
        for p in window {
            if self.done[self.order[p].index()] != self.stamp {
                self.proposal.push(self.order[p]);
            }
        }
        Some(())
    }

    /// Cuts what the move leaves alone off both ends; false when nothing is left.
    fn trim(&mut self) -> bool {
        let old = &self.order[self.first..self.first + self.proposal.len()];
        let same = old.iter().zip(&self.proposal).take_while(|(a, b)| a == b).count();
        if same == old.len() {
            return false;
        }
        let tail = old.iter().rev().zip(self.proposal.iter().rev()).take_while(|(a, b)| a == b).count();
        self.proposal.truncate(self.proposal.len() - tail);
        self.proposal.drain(..same);
        self.first += same;
        true
    }
}
