//! Whether a choice of stretches can be packed, and what to make of it if not.

use super::stretches::{Segment, Stretches};
use crate::pack::{Budget, Packed, Verdict, pack_within};
use std::cmp::Reverse;

/// Nodes that one packing may take while a no-good is made smaller: what is not proven stays in.
const SHRINK_NODES: u64 = 2_000;

/// Nodes that one packing may take while a choice is mended.
const MEND_NODES: u64 = 200;

/// A choice of stretches that packs.
pub(super) struct Packable {
    pub keep: Vec<bool>,
    pub offsets: Vec<u64>,
    pub cost: u64,
}

impl Stretches {
    /// Packs the segments of a choice within `nodes` nodes.
    pub fn pack(&self, keep: &[bool], nodes: u64, budget: &mut Budget) -> Packed {
        let mut part = budget.part(nodes);
        let packed = pack_within(&self.problem(&self.segments(keep)), &mut part);
        budget.give_back(&part);
        packed
    }

    /// Spills the cheapest stretch of every segment that ends too high, until the greedy rules of
    /// packing are satisfied; `None` if the choice then costs `below` or more.
    pub fn mend(
        &self,
        mut keep: Vec<bool>,
        mut offsets: Vec<u64>,
        below: u64,
        budget: &mut Budget,
    ) -> Option<Packable> {
        loop {
            let segments = self.segments(&keep);
            let capacity = self.model.capacity.0;
            let too_high = segments.iter().zip(&offsets).filter(|(s, o)| **o + s.size.0 > capacity);
            let spilled: Vec<usize> = too_high.filter_map(|(s, _)| self.cheapest_at(s, &keep)).collect();
            if spilled.is_empty() {
                return None;
            }
            spilled.iter().for_each(|&g| keep[g] = false);
            let cost = self.cost(&keep);
            if cost >= below || budget.spent() {
                return None;
            }
            let packed = self.pack(&keep, MEND_NODES, budget);
            let best = packed.best?.offsets;
            if packed.verdict == Verdict::Packed {
                return Some(Packable { keep, offsets: best, cost });
            }
            offsets = best;
        }
    }

    /// The cheapest kept stretch of a segment, or, where it has none, over it.
    fn cheapest_at(&self, s: &Segment, keep: &[bool]) -> Option<usize> {
        let key =
            |&g: &usize| (self.list[g].cost, Reverse(self.list[g].end - self.list[g].first.min(self.list[g].end)));
        let over = |&g: &usize| keep[g] && self.list[g].first < s.end && s.first < self.list[g].end;
        (s.kept.0..s.kept.1).min_by_key(key).or_else(|| (0..keep.len()).filter(over).min_by_key(key))
    }

    /// A set of kept stretches that cannot all be kept, made smaller by leaving out runs of it.
    pub fn shrink(&self, keep: &[bool], budget: &mut Budget) -> Vec<u32> {
        let mut set: Vec<u32> = (0..keep.len() as u32).filter(|&g| keep[g as usize]).collect();
        // What is in each other's way stands together in time.
        set.sort_by_key(|&g| (self.list[g as usize].first, self.list[g as usize].end, g));
        let mut run = set.len().div_ceil(2);
        while run > 0 {
            let mut at = 0;
            while at < set.len() && !budget.spent() {
                let without: Vec<u32> = set[..at].iter().chain(set.iter().skip(at + run)).copied().collect();
                let mut keep = vec![false; keep.len()];
                without.iter().for_each(|&g| keep[g as usize] = true);
                if self.pack(&keep, SHRINK_NODES, budget).verdict == Verdict::Infeasible {
                    set = without;
                } else {
                    at += run;
                }
            }
            run = if run == 1 { 0 } else { run.div_ceil(2) };
        }
        set
    }
}
