//! Branch and bound over the stretches of one cache.

use super::packing::Packable;
use super::relax::{Relaxed, State};
use super::squeeze::Squeeze;
use super::stretches::{Segment, Stretches};
use crate::pack::{Budget, Verdict};
use spillbench_core::Bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes that the first packing of a choice may take within the search; each later one may take
/// [`PATIENCE`] times as many.
const PACK_NODES: u64 = 1_000;

/// Grows the nodes of a packing that was not finished.
const PATIENCE: u64 = 4;

/// Squeezing may take so many times the nodes of the packing before it, and at least so many nodes.
const SQUEEZE_SHARE: u64 = 4;
const SQUEEZE_NODES: u64 = 10_000;

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

/// A decision and the decisions before it, as a place in the list of all.
#[derive(Clone, Copy)]
struct Decision {
    parent: u32,
    stretch: u32,
    keep: bool,
}

const ROOT: u32 = u32::MAX;

/// A node that is still to be searched; the least is searched first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    bound: u64,
    /// How often its choice was packed without an answer.
    tries: u32,
    depth: Reverse<u32>,
    /// Its last decision.
    node: u32,
}

/// What a full decision comes to.
enum Tried {
    Packs,
    /// It cannot be packed: not all of these stretches can be kept.
    NoGood(Vec<u32>),
    /// Not within its nodes.
    Unfinished,
    /// However many nodes there are.
    Unknown,
}

pub(super) struct Search<'a> {
    of: &'a Stretches,
    decisions: Vec<Decision>,
    open: BinaryHeap<Reverse<Open>>,
    no_goods: Vec<Vec<u32>>,
    /// Every cost is a multiple of it, at least 1.
    grain: u64,
    best: Solved,
    /// The least bound of a node that was given up without proof.
    doubt: u64,
    squeeze: Squeeze<'a>,
    /// How often that was run.
    squeezed: u32,
}

impl<'a> Search<'a> {
    pub fn new(of: &'a Stretches) -> Self {
        let keep = vec![false; of.list.len()];
        let cost = of.cost(&keep);
        let offsets = one_by_one(of, &keep);
        let best = Solved { keep, offsets, cost, bound: 0, flow: 0, no_goods: 0 };
        let grain = of.grain();
        let (decisions, open, squeeze) = (Vec::new(), BinaryHeap::new(), Squeeze::new(of, grain));
        let mut search =
            Self { of, decisions, open, no_goods: Vec::new(), grain, best, doubt: u64::MAX, squeeze, squeezed: 0 };
        let root = of.relax(&vec![State::Free; of.list.len()], grain);
        search.best.flow = root.as_ref().map_or(0, |r| r.dual);
        let bound = root.map_or(0, |r| r.bound);
        search.open.push(Reverse(Open { bound, tries: 0, depth: Reverse(0), node: ROOT }));
        search
    }

    /// Searches on until nothing is left to search or of the budget.
    pub fn run(&mut self, budget: &mut Budget) {
        while let Some(&Reverse(next)) = self.open.peek() {
            // Best first: the rest is no better.
            if next.bound >= self.best.cost || !budget.take() || self.decisions.len() > OPEN_LIMIT {
                break;
            }
            self.open.pop();
            self.expand(next, budget);
        }
    }

    /// True when searching on may find or prove more.
    pub fn is_open(&self) -> bool {
        self.open.peek().is_some_and(|o| o.0.bound < self.best.cost) && self.decisions.len() <= OPEN_LIMIT
    }

    /// What is known now.
    pub fn finish(mut self) -> Solved {
        let open = self.open.peek().map_or(u64::MAX, |o| o.0.bound);
        self.best.bound = self.best.cost.min(open).min(self.doubt).max(self.best.flow.min(self.best.cost));
        self.best.no_goods = self.no_goods.len();
        self.best
    }

    fn expand(&mut self, at: Open, budget: &mut Budget) {
        let mut states = self.states(at.node);
        let Some(relaxed) = self.settle(&mut states) else { return };
        let chosen = self.of.choose(&states, &relaxed, self.best.cost, false, budget);
        let at = Open { bound: at.bound.max(chosen.bound.div_ceil(self.grain).saturating_mul(self.grain)), ..at };
        if at.bound >= self.best.cost {
            return;
        }
        let (cost, keep) = chosen.best.unwrap_or_else(|| {
            let keep = self.round(&states, &relaxed);
            (self.of.cost(&keep), keep)
        });
        if let Some(k) = self.no_goods.iter().position(|set| set.iter().all(|&g| keep[g as usize])) {
            let set = self.no_goods[k].clone();
            return self.branch_on_set(&set, &states, at);
        }
        let tried = if cost < self.best.cost { self.attempt(keep, cost, at.tries, budget) } else { Tried::Packs };
        if matches!(tried, Tried::Unfinished | Tried::Unknown) {
            self.squeeze(at, budget);
        }
        match tried {
            Tried::NoGood(set) => {
                self.branch_on_set(&set, &states, at);
                self.no_goods.push(set);
            }
            // What the budget cut short is tried again with the next one.
            Tried::Unfinished if budget.spent() => self.open.push(Reverse(at)),
            Tried::Unfinished if cost <= at.bound => self.open.push(Reverse(Open { tries: at.tries + 1, ..at })),
            Tried::Unknown if cost <= at.bound => self.doubt = self.doubt.min(at.bound),
            Tried::Packs if cost <= at.bound => {}
            Tried::Packs | Tried::Unfinished | Tried::Unknown => self.branch_on_one(&states, &relaxed, at),
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
            let relaxed = self.of.relax(states, self.grain).filter(|r| r.bound < self.best.cost)?;
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
    fn attempt(&mut self, keep: Vec<bool>, cost: u64, tries: u32, budget: &mut Budget) -> Tried {
        let nodes = pack_nodes(tries);
        let packed = self.of.pack(&keep, nodes, budget);
        let tried = match (packed.verdict, packed.best.as_ref()) {
            (Verdict::Packed, Some(packing)) => {
                let offsets = packing.offsets.clone();
                self.improve(Packable { keep, offsets, cost });
                return Tried::Packs;
            }
            (Verdict::Infeasible, _) => Tried::NoGood(self.of.shrink(&keep, budget)),
            _ if packed.nodes < nodes && !budget.spent() => Tried::Unknown,
            _ => Tried::Unfinished,
        };
        if let Some(high) = packed.best.filter(|_| tries == 0) {
            let mended = self.of.mend(keep, high.offsets, self.best.cost, budget);
            mended.into_iter().for_each(|better| self.improve(better));
        }
        tried
    }

    /// Looks for a better best among choices that leave room, once a packing took longer than before.
    fn squeeze(&mut self, at: Open, budget: &mut Budget) {
        if self.squeezed <= at.tries {
            self.squeezed = at.tries + 1;
            let mut part = budget.part(pack_nodes(at.tries).saturating_mul(SQUEEZE_SHARE).max(SQUEEZE_NODES));
            let better = self.squeeze.run((at.bound, self.best.cost), &mut part);
            budget.give_back(&part);
            better.into_iter().for_each(|better| self.improve(better));
        }
    }

    fn improve(&mut self, Packable { keep, offsets, cost }: Packable) {
        if cost < self.best.cost {
            self.best = Solved { keep, offsets, cost, ..self.best };
        }
    }

    fn push(&mut self, parent: u32, stretch: u32, keep: bool) -> u32 {
        self.decisions.push(Decision { parent, stretch, keep });
        (self.decisions.len() - 1) as u32
    }

    fn push_child(&mut self, at: Open, deeper: u32, node: u32) {
        let depth = Reverse(at.depth.0.saturating_add(deeper));
        self.open.push(Reverse(Open { bound: at.bound, tries: 0, depth, node }));
    }

    /// One child per free stretch of a no-good: it is spilled, those before it are kept.
    fn branch_on_set(&mut self, set: &[u32], states: &[State], at: Open) {
        let mut parent = at.node;
        let free = set.iter().copied().filter(|&g| states[g as usize] == State::Free);
        for (k, g) in (1..).zip(free) {
            let child = self.push(parent, g, false);
            self.push_child(at, k, child);
            parent = self.push(parent, g, true);
        }
    }

    /// Two children: the free stretch that the prices are least sure of, kept or spilled.
    fn branch_on_one(&mut self, states: &[State], relaxed: &Relaxed, at: Open) {
        let free = (0..states.len()).filter(|&g| states[g] == State::Free && !self.of.list[g].is_empty());
        let unsure = free.min_by_key(|&g| (relaxed.reduced[g].abs(), Reverse(self.of.list[g].cost), g));
        let Some(g) = unsure else {
            // Nothing is left to decide, so the bound was the cost: this node has been tried.
            self.doubt = self.doubt.min(at.bound);
            return;
        };
        for keep in [true, false] {
            let child = self.push(at.node, g as u32, keep);
            self.push_child(at, 1, child);
        }
    }
}

impl crate::model::Gap {
    fn is_empty(&self) -> bool {
        self.first >= self.end
    }
}

/// Nodes for packing a choice that was packed so often without an answer.
fn pack_nodes(tries: u32) -> u64 {
    PACK_NODES.saturating_mul(PATIENCE.saturating_pow(tries))
}

/// With nothing kept, each step has just its operands: they lie one behind the other.
fn one_by_one(of: &Stretches, keep: &[bool]) -> Vec<u64> {
    let mut filled = vec![0u64; of.model.steps.len()];
    let place = |s: &Segment| {
        let offset = filled[s.first];
        filled[s.first] += s.size.0;
        offset
    };
    of.segments(keep).iter().map(place).collect()
}
