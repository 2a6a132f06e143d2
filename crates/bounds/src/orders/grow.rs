//! Finding sets of buffers: windows of a schedule around the steps that its flow bound prices.
//!
//! Where the flow bound of one order puts a price on room, room is scarce, and mostly not for that
//! order alone. A window of steps stands for the buffers that its ops use. The search starts with a
//! small window around every priced step, takes the one that proves most, and grows it, to
//! whichever side proves more, while its restriction can still be solved: growing matters, since
//! buffers of neighbouring windows that compete prove more together than apart. What is left of the
//! priced steps then starts over with the buffers that no set has taken.

use super::restrict::Order;
use super::search::Found;
use super::{Limits, SetBound, solve};
use crate::flow::flow_bound;
use crate::model::CacheModel;
use rustc_hash::FxHashSet;
use spillbench_core::index::BufIx;
use spillbench_core::{BufId, Bytes, Graph, Machine, Schedule};
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

/// The sets of one cache.
pub(super) struct Grown {
    pub sets: Vec<SetBound>,
    pub states: u64,
}

/// Finds disjoint sets of the buffers of one cache that are not `taken`; `schedule` is what `model` was
/// made of.
pub(super) fn sets(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    model: &CacheModel,
    limits: &Limits,
    taken: TiVec<BufIx, bool>,
) -> Grown {
    let prices = flow_bound(model).prices;
    let mut priced: Vec<usize> = (0..prices.len()).filter(|&t| prices[t] > 0).collect();
    let order = Order::new(schedule);
    let mut grower = Grower { graph, machine, order, model, limits, taken, spent: 0 };
    let mut sets = Vec::new();
    while let Some(seed) = grower.best_seed(&priced) {
        let (window, set) = grower.grow(seed);
        priced.retain(|t| !window.contains(t));
        if set.found.bound > 0 {
            sets.push(grower.take(set));
        }
    }
    if let Some(whole) = grower.whole(&sets) {
        sets = vec![whole];
    }
    Grown { sets, states: grower.spent }
}

/// A window's buffers and what they prove.
#[derive(Clone)]
struct Set {
    buffers: Vec<BufIx>,
    found: Found,
}

struct Grower<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    order: Order,
    model: &'a CacheModel,
    limits: &'a Limits,
    taken: TiVec<BufIx, bool>,
    spent: u64,
}

impl Grower<'_> {
    fn is_spent(&self) -> bool {
        self.spent >= self.limits.states
    }

    /// The buffers that the ops of a window use and no set has taken.
    fn buffers(&self, window: &Range<usize>) -> Vec<BufIx> {
        let nodes = self.model.steps[window.clone()].iter().map(|s| s.node);
        let mut buffers: Vec<BufIx> = nodes.flat_map(|n| self.graph.operands(n)).copied().collect();
        let (cache, capacity) = (self.model.cache, self.model.capacity.0);
        buffers.retain(|&b| {
            let buf = self.graph.buf(b);
            buf.cache == cache && buf.size.0 >= capacity / SMALLEST_PART && !self.taken[b]
        });
        buffers.sort_unstable();
        buffers.dedup();
        buffers
    }

    /// Searches a window; `None` when it has too many buffers.
    fn solve(&mut self, window: &Range<usize>, limit: u64) -> Option<Set> {
        let buffers = self.buffers(window);
        if buffers.len() > MOST_BUFFERS {
            return None;
        }
        let limit = limit.min(self.limits.states_per_set).min(self.limits.states.saturating_sub(self.spent));
        let found = solve(self.graph, self.machine, &self.order, &buffers, limit);
        // Even a window without a state to search takes time to restrict the graph to.
        self.spent += found.states + window.len() as u64;
        Some(Set { buffers, found })
    }

    fn around(&self, step: usize) -> Range<usize> {
        step.saturating_sub(NARROW)..(step + NARROW).min(self.model.steps.len())
    }

    /// The first window that proves most, the earliest of several; `None` when no priced step or no
    /// budget is left.
    fn best_seed(&mut self, priced: &[usize]) -> Option<Range<usize>> {
        let mut best: Option<(u64, Range<usize>)> = None;
        for &step in priced {
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
        let nothing = Set { buffers: Vec::new(), found: Found { bound: 0, optimal: false, states: 0 } };
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
                let rank = |f: &Found| (f.bound, std::cmp::Reverse(f.states));
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

    /// All buffers as one set, if they are few and prove more than `sets` do.
    fn whole(&mut self, sets: &[SetBound]) -> Option<SetBound> {
        let ids: FxHashSet<BufId> = sets.iter().flat_map(|s| &s.buffers).copied().collect();
        for b in self.graph.bufs().filter(|&b| ids.contains(&self.graph.buf(b).id)) {
            self.taken[b] = false;
        }
        let all = 0..self.model.steps.len();
        let count = self.buffers(&all).len();
        let is_known = matches!(sets, [set] if set.buffers.len() == count);
        if is_known || count > FEW_BUFFERS {
            return None;
        }
        let set = self.solve(&all, WHOLE_STATES)?;
        let bound: u64 = sets.iter().map(|s| s.bound.0).sum();
        (set.found.bound > bound).then(|| self.bound_of(&set))
    }

    fn take(&mut self, set: Set) -> SetBound {
        set.buffers.iter().for_each(|&b| self.taken[b] = true);
        self.bound_of(&set)
    }

    fn bound_of(&self, set: &Set) -> SetBound {
        SetBound {
            cache: self.graph.cache_name(self.model.cache).to_owned(),
            buffers: set.buffers.iter().map(|&b| self.graph.buf(b).id).collect(),
            bound: Bytes(set.found.bound),
            optimal: set.found.optimal,
            states: set.found.states,
        }
    }
}
