//! Branch and bound over the stretches of one cache.

use super::stretches::Stretches;
use super::tighten::{gcd, tighten};
use crate::flow::flow_bound;
use crate::model::CacheModel;
use crate::pack::{Budget, Packed, Verdict, pack_within};
use spillbench_core::Bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes that one packing may take within the search. What it leaves open weakens the bound.
const PACK_NODES: u64 = 20_000;

/// Nodes that one packing may take while a no-good is made smaller: what is not proven stays in.
const SHRINK_NODES: u64 = 2_000;

/// Open nodes at most; beyond it the search ends as at a limit.
const OPEN_LIMIT: usize = 2_000_000;

/// What is known of one cache in the end.
pub(super) struct Solved {
    /// Which stretches the best decision keeps.
    pub keep: Vec<bool>,
    /// Where its segments lie.
    pub offsets: Vec<u64>,
    pub cost: u64,
    pub bound: u64,
    pub flow: u64,
    pub no_goods: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Keep,
    Spill,
}

/// A decision and the decisions before it, as a place in the list of all.
#[derive(Clone, Copy)]
struct Decision {
    parent: u32,
    stretch: u32,
    keep: bool,
}

const ROOT: u32 = u32::MAX;

/// The relaxation of one node.
struct Relaxed {
    /// No way to complete the node costs less: the dual value, rounded up to what costs can be.
    bound: u64,
    dual: u64,
    /// Reduced costs: what keeping a free stretch saves beyond the room it takes, at the prices.
    reduced: Vec<i128>,
}

/// What a full decision comes to.
enum Tried {
    Packs,
    /// It cannot be packed: not all of these stretches can be kept.
    NoGood(Vec<u32>),
    Unknown,
}

pub(super) struct Search<'a> {
    of: &'a Stretches,
    decisions: Vec<Decision>,
    /// By bound, then the deepest, then the latest.
    open: BinaryHeap<Reverse<(u64, Reverse<u32>, u32)>>,
    no_goods: Vec<Vec<u32>>,
    /// Every cost is a multiple of it, at least 1.
    grain: u64,
    best: Solved,
    /// The least bound of a node that was given up without proof.
    doubt: u64,
}

impl<'a> Search<'a> {
    pub fn new(of: &'a Stretches) -> Self {
        let keep = vec![false; of.list.len()];
        let cost = of.cost(&keep);
        let offsets = one_by_one(of, &keep);
        let best = Solved { keep, offsets, cost, bound: 0, flow: 0, no_goods: 0 };
        let grain = of.list.iter().fold(0, |grain, g| gcd(grain, g.cost.0)).max(1);
        let (decisions, open) = (Vec::new(), BinaryHeap::new());
        let mut search = Self { of, decisions, open, no_goods: Vec::new(), grain, best, doubt: u64::MAX };
        let root = search.relax(&vec![State::Free; of.list.len()]);
        search.best.flow = root.as_ref().map_or(0, |r| r.dual);
        search.push_open(root.map_or(0, |r| r.bound), 0, ROOT);
        search
    }

    /// Searches on until nothing is left to search or of the budget.
    pub fn run(&mut self, budget: &mut Budget) {
        while let Some(&Reverse((bound, Reverse(depth), node))) = self.open.peek() {
            // Best first: the rest is no better.
            if bound >= self.best.cost || !budget.take() || self.decisions.len() > OPEN_LIMIT {
                break;
            }
            self.open.pop();
            self.expand(bound, depth, node, budget);
        }
    }

    /// True when searching on may find or prove more.
    pub fn is_open(&self) -> bool {
        self.open.peek().is_some_and(|o| o.0.0 < self.best.cost) && self.decisions.len() <= OPEN_LIMIT
    }

    /// What is known now.
    pub fn finish(mut self) -> Solved {
        let open = self.open.peek().map_or(u64::MAX, |o| o.0.0);
        self.best.bound = self.best.cost.min(open).min(self.doubt).max(self.best.flow.min(self.best.cost));
        self.best.no_goods = self.no_goods.len();
        self.best
    }

    fn expand(&mut self, bound: u64, depth: u32, node: u32, budget: &mut Budget) {
        let mut states = self.states(node);
        let Some(relaxed) = self.settle(&mut states) else { return };
        let bound = bound.max(relaxed.bound);
        let keep = self.round(&states, &relaxed);
        let cost = self.of.cost(&keep);
        let tried = if cost < self.best.cost { self.attempt(keep, cost, budget) } else { Tried::Packs };
        match tried {
            Tried::NoGood(set) => {
                self.branch_on_set(&set, &states, bound, depth, node);
                self.no_goods.push(set);
            }
            // What the budget cut short is tried again with the next one.
            Tried::Unknown if budget.spent() => self.push_open(bound, depth, node),
            Tried::Unknown if cost <= bound => self.doubt = self.doubt.min(bound),
            Tried::Packs if cost <= bound => {}
            Tried::Packs | Tried::Unknown => self.branch_on_one(&states, &relaxed, bound, depth, node),
        }
    }

    fn states(&self, node: u32) -> Vec<State> {
        let mut states = vec![State::Free; self.of.list.len()];
        let mut at = node;
        while at != ROOT {
            let d = self.decisions[at as usize];
            states[d.stretch as usize] = if d.keep { State::Keep } else { State::Spill };
            at = d.parent;
        }
        states
    }

    /// Decides what the no-goods, the room and the reduced costs leave no choice about; `None` when
    /// nothing better than the best is left.
    fn settle(&self, states: &mut [State]) -> Option<Relaxed> {
        loop {
            self.apply_no_goods(states)?;
            let relaxed = self.relax(states).filter(|r| r.bound < self.best.cost)?;
            // Better means better by a grain.
            let left = i128::from(self.best.cost) - i128::from(self.grain) - i128::from(relaxed.dual);
            let mut changed = false;
            for (g, state) in states.iter_mut().enumerate().filter(|(_, s)| **s == State::Free) {
                let reduced = relaxed.reduced[g];
                if reduced.abs() > left {
                    *state = if reduced > 0 { State::Keep } else { State::Spill };
                    changed = true;
                }
            }
            if !changed {
                return Some(relaxed);
            }
        }
    }

    fn apply_no_goods(&self, states: &mut [State]) -> Option<()> {
        let mut changed = true;
        while changed {
            changed = false;
            for set in &self.no_goods {
                let mut not_kept = set.iter().filter(|&&g| states[g as usize] != State::Keep);
                let only = match (not_kept.next(), not_kept.next()) {
                    (None, _) => return None,
                    (Some(&only), None) => only as usize,
                    _ => continue,
                };
                if states[only] == State::Free {
                    states[only] = State::Spill;
                    changed = true;
                }
            }
        }
        Some(())
    }

    /// The flow bound in the room that kept stretches leave; `None` if they leave less than none.
    fn relax(&self, states: &[State]) -> Option<Relaxed> {
        let (list, model) = (&self.of.list, &self.of.model);
        let mut rest = CacheModel { gaps: Vec::new(), ..model.clone() };
        let mut decided = 0u64;
        for (gap, state) in list.iter().zip(states) {
            match state {
                State::Keep => rest.steps[gap.first..gap.end].iter_mut().for_each(|s| s.demand += gap.size),
                State::Spill => decided = decided.saturating_add(gap.cost.0),
                State::Free if gap.first < gap.end => rest.gaps.push(*gap),
                State::Free => {}
            }
        }
        if rest.steps.iter().any(|s| s.demand > model.capacity) {
            return None;
        }
        tighten(&mut rest);
        let flow = flow_bound(&rest);
        let mut risen = vec![0u128];
        for &price in &flow.prices {
            risen.push(risen[risen.len() - 1] + u128::from(price));
        }
        let reduced = list.iter().map(|g| {
            let rent = u128::from(g.size.0).saturating_mul(risen[g.end.max(g.first)] - risen[g.first]);
            i128::from(g.cost.0) - i128::try_from(rent).unwrap_or(i128::MAX / 2)
        });
        let dual = decided.saturating_add(flow.value.0);
        let bound = dual.div_ceil(self.grain).saturating_mul(self.grain);
        Some(Relaxed { bound, dual, reduced: reduced.collect() })
    }

    /// Keeps free stretches while their bytes fit, those of the highest reduced cost first.
    fn round(&self, states: &[State], relaxed: &Relaxed) -> Vec<bool> {
        let (list, model) = (&self.of.list, &self.of.model);
        let mut room: Vec<Bytes> = (0..model.steps.len()).map(|t| model.room(t)).collect();
        let mut keep = vec![false; list.len()];
        let mut order: Vec<usize> = (0..list.len()).filter(|&g| states[g] != State::Spill).collect();
        let length = |g: usize| list[g].end - list[g].first.min(list[g].end);
        order.sort_by_key(|&g| (states[g] != State::Keep, Reverse(relaxed.reduced[g]), length(g), g));
        for g in order {
            let span = &mut room[list[g].first..list[g].end.max(list[g].first)];
            if span.iter().all(|r| *r >= list[g].size) {
                span.iter_mut().for_each(|r| *r = r.saturating_sub(list[g].size));
                keep[g] = true;
            }
        }
        keep
    }

    /// Packs a decision, which becomes the best if that works; else mends it for a better best.
    fn attempt(&mut self, keep: Vec<bool>, cost: u64, budget: &mut Budget) -> Tried {
        let packed = self.pack(&keep, PACK_NODES, budget);
        match (packed.verdict, packed.best) {
            (Verdict::Packed, Some(packing)) => {
                self.improve(keep, packing.offsets, cost);
                Tried::Packs
            }
            (Verdict::Infeasible, best) => {
                let set = self.shrink(&keep, budget);
                self.mend(keep, best.map(|b| b.offsets), budget);
                Tried::NoGood(set)
            }
            (_, best) => {
                self.mend(keep, best.map(|b| b.offsets), budget);
                Tried::Unknown
            }
        }
    }

    fn improve(&mut self, keep: Vec<bool>, offsets: Vec<u64>, cost: u64) {
        if cost < self.best.cost {
            self.best = Solved { keep, offsets, cost, ..self.best };
        }
    }

    fn pack(&self, keep: &[bool], nodes: u64, budget: &mut Budget) -> Packed {
        let mut part = budget.part(nodes);
        let packed = pack_within(&self.of.problem(&self.of.segments(keep)), &mut part);
        budget.give_back(&part);
        packed
    }

    /// Spills the cheapest stretch of every segment that ends too high, until the greedy rules of
    /// packing are satisfied.
    fn mend(&mut self, mut keep: Vec<bool>, mut offsets: Option<Vec<u64>>, budget: &mut Budget) {
        while let Some(high) = offsets.take() {
            let segments = self.of.segments(&keep);
            let capacity = self.of.model.capacity.0;
            for (s, _) in segments.iter().zip(&high).filter(|(s, o)| **o + s.size.0 > capacity) {
                let cheapest = (s.kept.0..s.kept.1).min_by_key(|&g| {
                    let gap = &self.of.list[g];
                    (gap.cost, Reverse(gap.end - gap.first.min(gap.end)))
                });
                cheapest.iter().for_each(|&g| keep[g] = false);
            }
            let cost = self.of.cost(&keep);
            if cost >= self.best.cost || budget.spent() {
                return;
            }
            let packed = self.pack(&keep, 200, budget);
            match (packed.verdict, packed.best) {
                (Verdict::Packed, Some(packing)) => return self.improve(keep, packing.offsets, cost),
                (_, best) => offsets = best.map(|b| b.offsets),
            }
        }
    }

    /// A set of kept stretches that cannot all be kept, made smaller by leaving out runs of it.
    fn shrink(&self, keep: &[bool], budget: &mut Budget) -> Vec<u32> {
        let mut set: Vec<u32> = (0..keep.len() as u32).filter(|&g| keep[g as usize]).collect();
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

    fn push(&mut self, parent: u32, stretch: u32, keep: bool) -> u32 {
        self.decisions.push(Decision { parent, stretch, keep });
        (self.decisions.len() - 1) as u32
    }

    fn push_open(&mut self, bound: u64, depth: u32, node: u32) {
        self.open.push(Reverse((bound, Reverse(depth), node)));
    }

    /// One child per free stretch of a no-good: it is spilled, those before it are kept.
    fn branch_on_set(&mut self, set: &[u32], states: &[State], bound: u64, depth: u32, node: u32) {
        let mut parent = node;
        let free = set.iter().copied().filter(|&g| states[g as usize] == State::Free);
        for (k, g) in free.enumerate() {
            let child = self.push(parent, g, false);
            self.push_open(bound, depth + 1 + k as u32, child);
            parent = self.push(parent, g, true);
        }
    }

    /// Two children: the free stretch that the prices are least sure of, kept or spilled.
    fn branch_on_one(&mut self, states: &[State], relaxed: &Relaxed, bound: u64, depth: u32, node: u32) {
        let free = (0..states.len()).filter(|&g| states[g] == State::Free && !self.of.list[g].is_empty());
        let unsure = free.min_by_key(|&g| (relaxed.reduced[g].abs(), Reverse(self.of.list[g].cost), g));
        let Some(g) = unsure else {
            // Nothing is left to decide, so the bound was the cost: this node has been tried.
            self.doubt = self.doubt.min(bound);
            return;
        };
        for keep in [true, false] {
            let child = self.push(node, g as u32, keep);
            self.push_open(bound, depth + 1, child);
        }
    }
}

impl crate::model::Gap {
    fn is_empty(&self) -> bool {
        self.first >= self.end
    }
}

/// With nothing kept, each step has just its operands: they lie one behind the other.
fn one_by_one(of: &Stretches, keep: &[bool]) -> Vec<u64> {
    let mut filled = vec![0u64; of.model.steps.len()];
    let place = |s: &super::stretches::Segment| {
        let offset = filled[s.first];
        filled[s.first] += s.size.0;
        offset
    };
    of.segments(keep).iter().map(place).collect()
}
