//! Which gaps a state may give up at a step where its gaps do not fit.
//!
//! Sets of which no gap could stay are enough, since the others can be given up later. And a gap never
//! goes while a *better victim* stays: one that ends no earlier, is no smaller and costs no more. To
//! give that one up instead and to keep the gap costs no more and leaves more room at every step (the
//! argument for evicting what is used farthest in the future, Belady, 1966).

use super::Item;
use super::slots::Slots;

/// The gaps over one step, better victims before worse.
pub(super) struct Victims<'a, const W: usize> {
    open: Vec<&'a Item>,
    /// Better victims than each.
    better: Vec<Slots<W>>,
}

/// A state that does not fit, and what is to come of it.
pub(super) struct Need<const W: usize> {
    pub set: Slots<W>,
    /// Bytes that are too many.
    pub bytes: u64,
    /// What may be spent, at most.
    pub money: u64,
}

/// A set that is given up.
#[derive(Clone, Copy)]
pub(super) struct Out<const W: usize> {
    pub set: Slots<W>,
    pub bytes: u64,
    pub cost: u64,
}

impl<'a, const W: usize> Victims<'a, W> {
    pub fn new(mut open: Vec<&'a Item>) -> Self {
        open.sort_by_key(|i| (std::cmp::Reverse((i.end, i.size)), i.cost, i.gap));
        let is_better = |h: &Item, i: &Item| h.end >= i.end && h.size >= i.size && h.cost <= i.cost;
        let better = open.iter().enumerate().map(|(at, i)| {
            let mut set = Slots::EMPTY;
            open[..at].iter().filter(|h| is_better(h, i)).for_each(|h| set.insert(h.slot));
            set
        });
        Self { better: better.collect(), open }
    }

    /// Hands every set that is enough to `emit`; false if `tries` ran out first.
    pub fn enumerate(&self, need: &Need<W>, tries: &mut u64, emit: &mut impl FnMut(Out<W>)) -> bool {
        self.extend(need, 0, Out { set: Slots::EMPTY, bytes: 0, cost: 0 }, tries, emit)
    }

    fn extend(&self, need: &Need<W>, from: usize, out: Out<W>, tries: &mut u64, emit: &mut impl FnMut(Out<W>)) -> bool {
        if out.bytes >= need.bytes {
            let is_spare = |i: &Item| out.set.has(i.slot) && out.bytes - i.size >= need.bytes;
            if !self.open.iter().any(|i| is_spare(i)) {
                emit(out);
            }
            return true;
        }
        for at in from..self.open.len() {
            let item = self.open[at];
            let cost = out.cost + item.cost;
            let stays = need.set.has(item.slot) && self.better[at].meets_only_in(&need.set, &out.set);
            if !stays || cost > need.money {
                continue;
            }
            if *tries == 0 {
                return false;
            }
            *tries -= 1;
            let mut more = Out { bytes: out.bytes + item.size, cost, ..out };
            more.set.insert(item.slot);
            if !self.extend(need, at + 1, more, tries, emit) {
                return false;
            }
        }
        true
    }
}
