//! What a node of the search is worth when bytes need not be contiguous.
//!
//! First the flow bound, in the room that kept stretches leave and whole ones can fill: its reduced
//! costs decide stretches. Then the cheapest choice of whole stretches ([`super::select`]), which is
//! optimal mostly, and a bound in any case.

use super::select::{Reach, select};
use super::stretches::Stretches;
use super::tighten::{gcd, tighten};
use crate::flow::flow_bound;
use crate::model::CacheModel;
use crate::pack::Budget;

/// Sweeps over the steps: each is wider than the one before and must beat it.
const WIDTHS: [usize; 3] = [64, 1024, 16_384];

/// States that a sweep makes at most.
const STATES: u64 = 1 << 20;

/// So many states count as one node: they are that much quicker than those of packing.
const STATES_PER_NODE: u64 = 32;

/// What is decided of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Keep,
    Spill,
}

/// The relaxation of one node.
pub(super) struct Relaxed {
    /// No way to complete the node costs less: the dual value, rounded up to what costs can be.
    pub bound: u64,
    pub dual: u64,
    /// Reduced costs: what keeping a free stretch saves beyond the room it takes, at the prices.
    pub reduced: Vec<i128>,
    /// The free stretches in the room that is left, and which they are.
    rest: CacheModel,
    free: Vec<usize>,
    prices: Vec<u64>,
    /// What is decided costs.
    decided: u64,
}

/// A choice of stretches that fits in bytes.
pub(super) struct Chosen {
    /// No choice costs less.
    pub bound: u64,
    /// Which stretches it keeps, and its cost; `None` where nothing better than asked was seen.
    pub best: Option<(u64, Vec<bool>)>,
}

impl Stretches {
    /// The number that all costs are multiples of, at least 1.
    pub fn grain(&self) -> u64 {
        self.list.iter().fold(0, |grain, g| gcd(grain, g.cost.0)).max(1)
    }

    /// The flow bound in the room that kept stretches leave; `None` if they leave less than none.
    pub fn relax(&self, states: &[State], grain: u64) -> Option<Relaxed> {
        self.relax_in(&self.model, states, grain)
    }

    /// As [`Stretches::relax`] in the rooms of another model.
    pub fn relax_in(&self, model: &CacheModel, states: &[State], grain: u64) -> Option<Relaxed> {
        let list = &self.list;
        let mut rest = CacheModel { gaps: Vec::new(), ..model.clone() };
        let mut free = Vec::new();
        let mut decided = 0u64;
        for (g, (gap, state)) in list.iter().zip(states).enumerate() {
            match state {
                State::Keep => rest.steps[gap.first..gap.end].iter_mut().for_each(|s| s.demand += gap.size),
                State::Spill => decided = decided.saturating_add(gap.cost.0),
                State::Free if gap.first < gap.end => {
                    rest.gaps.push(*gap);
                    free.push(g);
                }
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
        let reduced = reduced.collect();
        let dual = decided.saturating_add(flow.value.0);
        let bound = dual.div_ceil(grain).saturating_mul(grain);
        Some(Relaxed { bound, dual, reduced, rest, free, prices: flow.prices, decided })
    }

    /// The cheapest choice of whole stretches that costs less than `below`, as far as it is found; a
    /// `quick` one may miss it.
    pub fn choose(&self, states: &[State], relaxed: &Relaxed, below: u64, quick: bool, budget: &mut Budget) -> Chosen {
        let mut chosen = Chosen { bound: relaxed.bound, best: None };
        let mut below = below.saturating_sub(relaxed.decided);
        for &width in &WIDTHS[..if quick { 1 } else { WIDTHS.len() }] {
            let reach = Reach { width, states: STATES };
            let Some(found) = select(&relaxed.rest, &relaxed.prices, below, reach, budget) else { break };
            charge(budget, found.states / STATES_PER_NODE);
            chosen.bound = chosen.bound.max(found.bound.saturating_add(relaxed.decided));
            if let Some((cost, kept)) = found.best {
                let mut keep: Vec<bool> = states.iter().map(|s| *s != State::Spill).collect();
                relaxed.free.iter().zip(kept).for_each(|(&g, kept)| keep[g] = kept);
                chosen.best = Some((relaxed.decided + cost, keep));
                below = cost;
            }
            // Nothing was dropped that could be cheaper.
            if found.bound >= below {
                break;
            }
        }
        chosen
    }
}

fn charge(budget: &mut Budget, nodes: u64) {
    let mut part = budget.part(0);
    part.used = nodes;
    budget.give_back(&part);
}
