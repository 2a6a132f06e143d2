//! Finding sets of buffers: windows of a schedule around the steps that its flow bound prices.
//!
//! Where the flow bound of one order puts a price on room, room is scarce, and mostly not for that
//! order alone. A window of steps stands for the buffers that its ops use. The search starts with a
//! small window around every priced step, takes the one that proves most, and grows it, to
//! whichever side proves more, while its restriction can still be solved: growing matters, since
//! buffers of neighbouring windows that compete prove more together than apart. What is left of the
//! priced steps then starts over with the buffers that no set has taken.
//!
//! When all priced steps are used up, every set gives back what it does not need of the cost of its
//! buffers (see [`super::split`]), and windows around the same steps are searched for sets that prove
//! something with that. These add to what the first sets prove, so that sharing never proves less.

use super::restrict::{Order, Restriction};
use super::search::{Found, least_movement};
use super::split::Saturation;
use super::{Limits, SetBound, Task};
use crate::flow::flow_bound;
use crate::model::CacheModel;
use spillbench_core::Bytes;
use spillbench_core::index::{BufIx, NodeIx};
use std::cmp::Reverse;
use std::ops::Range;
use typed_index_collections::TiVec;

/// Half the width of the first windows, and the least by which a window grows.
const NARROW: usize = 16;
/// How often a window may grow without proving more.
const PATIENCE: u32 = 2;
/// States for a first look at a window.
const GLANCE: u64 = 20_000;
/// A window of more buffers than this is not searched.
const MOST_BUFFERS: usize = 1024;
/// Where all steps use no more buffers than this, all of them are searched as one set too.
const FEW_BUFFERS: usize = 64;
/// States for that search.
const WHOLE_STATES: u64 = 200_000;
/// Buffers of less than this part of the cache are left out: alone they cost little, and there are
/// very many ways to choose among them.
const SMALLEST_PART: u64 = 64;

/// This part of the states of all searches is there once more for sharing.
const SHARING_PART: u64 = 4;
/// Finding out what a set does not need takes no more than this many times its own states, and is left
/// where there are fewer than so many times.
const REDUCING: u64 = 12;
const REDUCING_FEWEST: u64 = 4;
/// States of reducing a set that took next to none.
const REDUCING_LEAST: u64 = 20_000;

/// The sets of one cache.
pub(super) struct Grown {
    pub sets: Vec<SetBound>,
    /// States of looking for sets without a common buffer.
    pub states: u64,
    /// States of sharing.
    pub sharing: u64,
}

/// Finds sets of the buffers of one cache. `left` is what a spill of each buffer may be charged in all
/// sets together; a buffer with nothing left is in none. `model` is made of the schedule of `task`.
pub(super) fn sets(task: &Task<'_>, model: &CacheModel, limits: &Limits, left: TiVec<BufIx, u64>) -> Grown {
    let prices = flow_bound(model).prices;
    let priced: Vec<usize> = (0..prices.len()).filter(|&t| prices[t] > 0).collect();
    let spills = |node: NodeIx| task.graph.operands(node).iter().any(|b| task.spilled[*b]);
    let other = |&t: &usize| prices[t] == 0 && spills(model.steps[t].node);
    let spilling: Vec<usize> = (0..prices.len()).filter(other).collect();
    let order = Order::new(task.schedule);
    let mut grower = Grower { task, order, model, limits, left, budget: limits.states, spent: 0 };
    let mut sets = grower.disjoint(&priced, &spilling);
    let states = grower.spent;
    grower.share(&mut sets, &[priced, spilling].concat());
    let sharing = grower.spent - states;
    Grown { sets: sets.iter().map(|set| grower.bound_of(set)).collect(), states, sharing }
}

/// Buffers with what their spills cost in the set, and what they prove.
#[derive(Clone)]
struct Set {
    shares: Vec<(BufIx, u64)>,
    found: Found,
}

struct Grower<'a> {
    task: &'a Task<'a>,
    order: Order,
    model: &'a CacheModel,
    limits: &'a Limits,
    /// What sets may yet be given of the cost of each buffer.
    left: TiVec<BufIx, u64>,
    /// States that may be spent, and that are.
    budget: u64,
    spent: u64,
}

impl Grower<'_> {
    fn is_spent(&self) -> bool {
        self.spent >= self.budget
    }

    /// Sets without a common buffer, around the priced steps and then around those of spills.
    fn disjoint(&mut self, priced: &[usize], spilling: &[usize]) -> Vec<Set> {
        let mut sets = self.around_seeds(&mut priced.to_vec());
        sets.extend(self.around_seeds(&mut spilling.to_vec()));
        match self.whole(&sets) {
            Some(whole) => vec![whole],
            None => sets,
        }
    }

    /// Grows windows around the seeds that prove something with what is left, one after another, and
    /// takes their buffers.
    fn around_seeds(&mut self, seeds: &mut Vec<usize>) -> Vec<Set> {
        let mut sets = Vec::new();
        while let Some(seed) = self.best_seed(seeds) {
            let (window, set) = self.grow(seed);
            seeds.retain(|t| !window.contains(t));
            if set.found.bound > 0 {
                self.take(&set);
                sets.push(set);
            }
        }
        sets
    }

    /// Adds sets that prove something with what the others do not need. Leaves them as they are where
    /// there are no such sets.
    fn share(&mut self, sets: &mut Vec<Set>, seeds: &[usize]) {
        self.budget = self.spent.saturating_add(self.limits.states / SHARING_PART);
        let mut all = sets.clone();
        let mut reduced = 0;
        while reduced < all.len() && !self.is_spent() {
            let mut freed: TiVec<BufIx, bool> = self.left.iter().map(|_| false).collect();
            for set in &mut all[reduced..] {
                self.give_back(set, &mut freed);
            }
            reduced = all.len();
            // Windows without such buffers prove no more than they did.
            let mut seeds: Vec<usize> =
                seeds.iter().copied().filter(|&t| self.buffers(&self.around(t)).iter().any(|b| freed[b.0])).collect();
            all.extend(self.around_seeds(&mut seeds));
        }
        if all.len() > sets.len() {
            *sets = all;
        }
    }

    /// Reduces the shares of a set, those of buffers that are used furthest apart first, as most other
    /// windows can use them.
    fn give_back(&mut self, set: &mut Set, freed: &mut TiVec<BufIx, bool>) {
        let spare = self.budget.saturating_sub(self.spent);
        if !set.found.optimal || set.found.states.saturating_mul(REDUCING_FEWEST) > spare {
            return;
        }
        let task = self.task;
        let span = |b: BufIx| {
            let places = task.graph.users(b).iter().map(|&n| self.order.positions[n].index());
            places.clone().max().unwrap_or(0) - places.min().unwrap_or(0)
        };
        let mut shares = set.shares.clone();
        shares.sort_by_key(|s| (Reverse(span(s.0)), s.0));
        let before: Vec<(BufIx, u64)> = shares.clone();
        let per_trial = set.found.states.saturating_mul(2).max(REDUCING_LEAST);
        let budget = set.found.states.saturating_mul(REDUCING).max(REDUCING_LEAST).min(spare);
        let problem = (task.graph, task.machine, &self.order);
        let mut saturation = Saturation::new(problem, set.found.bound, per_trial, budget);
        saturation.reduce(&mut shares);
        self.spent += saturation.spent;
        for ((b, share), (_, before)) in shares.iter().zip(before).filter(|(now, before)| now.1 < before.1) {
            self.left[*b] += before - share;
            freed[*b] = true;
        }
        shares.retain(|s| s.1 > 0);
        shares.sort_unstable();
        set.shares = shares;
    }

    /// The buffers that the ops of a window use, with what is left of their cost.
    fn buffers(&self, window: &Range<usize>) -> Vec<(BufIx, u64)> {
        let graph = self.task.graph;
        let nodes = self.model.steps[window.clone()].iter().map(|s| s.node);
        let mut buffers: Vec<BufIx> = nodes.flat_map(|n| graph.operands(n)).copied().collect();
        let (cache, capacity) = (self.model.cache, self.model.capacity.0);
        buffers.retain(|&b| {
            let buf = graph.buf(b);
            buf.cache == cache && buf.size.0 >= capacity / SMALLEST_PART && self.left[b] > 0
        });
        buffers.sort_unstable();
        buffers.dedup();
        buffers.into_iter().map(|b| (b, self.left[b])).collect()
    }

    /// Searches a window; `None` when it has too many buffers.
    fn solve(&mut self, window: &Range<usize>, limit: u64) -> Option<Set> {
        let shares = self.buffers(window);
        if shares.len() > MOST_BUFFERS {
            return None;
        }
        let limit = limit.min(self.limits.states_per_set).min(self.budget.saturating_sub(self.spent));
        let problem = Restriction::new(self.task.graph, self.task.machine, &self.order, &shares);
        let found = least_movement(&problem, limit);
        // Even a window without a state to search takes time to restrict the graph to.
        self.spent += found.states + window.len() as u64;
        Some(Set { shares, found })
    }

    fn around(&self, step: usize) -> Range<usize> {
        step.saturating_sub(NARROW)..(step + NARROW).min(self.model.steps.len())
    }

    /// The first window that proves most, the earliest of several; `None` when no seed or no budget is
    /// left.
    fn best_seed(&mut self, seeds: &[usize]) -> Option<Range<usize>> {
        let mut best: Option<(u64, Range<usize>)> = None;
        for &step in seeds {
            if self.is_spent() {
                break;
            }
            let window = self.around(step);
            let bound = self.solve(&window, GLANCE).map_or(0, |set| set.found.bound);
            if best.as_ref().is_none_or(|(most, _)| bound > *most) {
                best = Some((bound, window));
            }
        }
        best.map(|(_, window)| window)
    }

    /// Grows a window until its search does not end within the limits or it proves no more. Returns
    /// the smallest window on the way that proves most, and its set.
    fn grow(&mut self, seed: Range<usize>) -> (Range<usize>, Set) {
        let nothing = Set { shares: Vec::new(), found: Found { bound: 0, optimal: false, states: 0 } };
        let first = self.solve(&seed, u64::MAX).unwrap_or(nothing);
        let mut best = (seed.clone(), first);
        let (mut window, mut step) = (seed.clone(), seed.len());
        let (mut solved, mut patience) = (best.1.found.optimal, PATIENCE);
        while solved && patience > 0 && !self.is_spent() {
            let left = window.start.saturating_sub(step)..window.end;
            let right = window.start..(window.end + step).min(self.model.steps.len());
            let mut grown: Option<(Range<usize>, Found)> = None;
            for wider in [left, right].into_iter().filter(|w| w.len() > window.len()) {
                let Some(set) = self.solve(&wider, u64::MAX) else { continue };
                let found = set.found;
                if found.bound > best.1.found.bound {
                    best = (wider.clone(), set);
                    patience = PATIENCE + 1;
                }
                // Of two that prove the same, the one that was easier to search grows on.
                let rank = |f: &Found| (f.bound, Reverse(f.states));
                if found.optimal && grown.as_ref().is_none_or(|(_, other)| rank(&found) > rank(other)) {
                    grown = Some((wider, found));
                }
            }
            patience -= 1;
            match grown {
                Some((wider, _)) => {
                    window = wider;
                    step = (window.len() / 2).max(NARROW);
                }
                None if step > NARROW => step = (step / 4).max(NARROW),
                None => solved = false,
            }
        }
        best
    }

    /// All buffers as one set, if they are few and prove more than `sets` do, whose place it takes then.
    fn whole(&mut self, sets: &[Set]) -> Option<Set> {
        let taken = self.left.clone();
        sets.iter().flat_map(|s| &s.shares).for_each(|&(b, share)| self.left[b] += share);
        let all = 0..self.model.steps.len();
        let count = self.buffers(&all).len();
        let is_known = matches!(sets, [set] if set.shares.len() == count);
        if !is_known && count <= FEW_BUFFERS {
            let bound: u64 = sets.iter().map(|s| s.found.bound).sum();
            if let Some(set) = self.solve(&all, WHOLE_STATES).filter(|set| set.found.bound > bound) {
                self.take(&set);
                return Some(set);
            }
        }
        self.left = taken;
        None
    }

    fn take(&mut self, set: &Set) {
        set.shares.iter().for_each(|&(b, share)| self.left[b] -= share);
    }

    fn bound_of(&self, set: &Set) -> SetBound {
        let graph = self.task.graph;
        let is_whole = set.shares.iter().all(|&(b, share)| share == graph.buf(b).movement().0);
        SetBound {
            cache: graph.cache_name(self.model.cache).to_owned(),
            buffers: set.shares.iter().map(|s| graph.buf(s.0).id).collect(),
            shares: (!is_whole).then(|| set.shares.iter().map(|s| Bytes(s.1)).collect()),
            bound: Bytes(set.found.bound),
            optimal: set.found.optimal,
            states: set.found.states,
        }
    }
}
