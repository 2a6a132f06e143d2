//! Which searches run, in which order, and for how long.
//!
//! Greedy rules first, for a packing and for the height to report. Then searches that differ in
//! branching and ranks, in turn, with node limits that grow: the plainest branching by three preset
//! orders, which get the most nodes, then all ways to branch by preset orders and by the weights of
//! the items at which earlier searches failed (the idea of "squeaky wheel" optimisation, Joslin and
//! Clements, 1999). Later a packing is also sought stretch by stretch. Whichever finishes first has the
//! answer.

use super::model::{Item, Model};
use super::roll::Roll;
use super::search::{Branching, Found, Search};
use super::{Budget, Packed, Packing, Problem, Verdict, greedy, pairs, verify, verify_fixed};

/// Beyond this many steps to look at all sections of all items, only greedy rules run: one node
/// would take seconds.
const WORK_LIMIT: u64 = 100_000_000;

/// Halves the weight of a failure each time another search ends.
const DECAY: f64 = 0.5;

/// Each of the first three orders gets this many times the nodes of other searches in a round, with the
/// branching whose nodes are the cheapest: where one of them leads to a packing, it mostly does so soon.
const PRESET_SHARE: u64 = 8;

/// From this round on, packing stretch by stretch takes its turn, with so many times the nodes of the
/// round's tree searches: what they do not find by then, they mostly find no more.
const ROLL_FROM: u32 = 4;
const ROLL_SHARE: u64 = 3;

/// Larger comes first.
type Order = fn(&Item) -> [u64; 3];

pub(super) const ORDERS: [Order; 4] = [
    |i| [i.crowd, i.area(), i.width],
    |i| [i.crowd, i.width, i.area()],
    |i| [i.width, i.area(), i.crowd],
    |i| [u64::from(i.to - i.from), i.size, i.crowd],
];

impl Item {
    fn area(&self) -> u64 {
        self.width.saturating_mul(self.size)
    }
}

pub(super) fn run(problem: &Problem, budget: &mut Budget) -> Packed {
    let model = Model::new(problem);
    let (used, lower_bound) = (budget.used, model.lower_bound());
    if let Err(conflict) = verify_fixed(problem) {
        let (verdict, conflict) = (Verdict::Infeasible, Some(conflict));
        return Packed { verdict, best: None, lower_bound, conflict, nodes: 0 };
    }
    let (verdict, best) = solve(problem, &model, budget);
    Packed { verdict, best, lower_bound, conflict: None, nodes: budget.used - used }
}

fn solve(problem: &Problem, model: &Model, budget: &mut Budget) -> (Verdict, Option<Packing>) {
    if let Some(offsets) = hints(problem) {
        return (Verdict::Packed, Some(Packing::new(problem, offsets)));
    }
    let best = greedy::lowest(model).map(|offsets| Packing::new(problem, offsets));
    if best.as_ref().is_some_and(|b| b.height <= problem.capacity) {
        return (Verdict::Packed, best);
    }
    if model.lower_bound() > problem.capacity {
        return (Verdict::Infeasible, best);
    }
    if model.work() > WORK_LIMIT {
        return (Verdict::NotProven, best);
    }
    match search(model, budget) {
        Found::Packing(offsets) => (Verdict::Packed, Some(Packing::new(problem, offsets))),
        Found::Nothing => (Verdict::Infeasible, best),
        Found::Limit => (Verdict::NotProven, best),
    }
}

fn hints(problem: &Problem) -> Option<Vec<u64>> {
    let offsets: Vec<u64> = problem.intervals.iter().map(|i| i.offset.or(i.hint)).collect::<Option<_>>()?;
    (!offsets.is_empty() && verify(problem, &offsets).is_ok()).then_some(offsets)
}

fn search(model: &Model, budget: &mut Budget) -> Found {
    let mut weights = vec![0.0; model.items.len()];
    let mut nodes = 4 * model.items.len() as u64;
    let mut roll = Roll::new(model, 0);
    for round in 0u32.. {
        let used = budget.used;
        for order in [ORDERS[1], ORDERS[0], ORDERS[2]] {
            // Long searches would drown what short ones say of where it is hard.
            let mut unused = vec![0.0; model.items.len()];
            let rank = ranks(model, order, None);
            let limit = nodes.saturating_mul(PRESET_SHARE);
            if let Some(found) = attempt(model, &rank, Branching::Lowest, &mut unused, limit, budget) {
                return found;
            }
        }
        for branching in [Branching::Near, Branching::Lowest, Branching::Smallest] {
            for by_weight in [false, true] {
                for order in ORDERS {
                    let rank = ranks(model, order, by_weight.then_some(&weights));
                    if let Some(found) = attempt(model, &rank, branching, &mut weights, nodes, budget) {
                        return found;
                    }
                    weights.iter_mut().for_each(|w| *w *= DECAY);
                }
            }
        }
        if round >= ROLL_FROM {
            let mut part = budget.part((budget.used - used).saturating_mul(ROLL_SHARE));
            let found = roll.run(&mut part);
            budget.give_back(&part);
            if let Some(offsets) = found {
                return Found::Packing(offsets);
            }
        }
        if model.raised {
            let mut part = budget.part(nodes);
            let found = pairs::search(model, &mut part);
            budget.give_back(&part);
            if found != Found::Limit || budget.spent() || part.used < nodes {
                return found;
            }
        }
        nodes = nodes.saturating_add(nodes / 2);
    }
    Found::Limit
}

/// One search of at most `nodes` nodes; its answer, or that the budget is spent.
fn attempt(
    model: &Model,
    rank: &[u32],
    branching: Branching,
    weights: &mut [f64],
    nodes: u64,
    budget: &mut Budget,
) -> Option<Found> {
    let mut part = budget.part(nodes);
    let found = Search::new(model, rank, branching, weights).run(&mut part);
    budget.give_back(&part);
    match found {
        Found::Limit | Found::Nothing if budget.spent() => Some(Found::Limit),
        // Floors are not all that matters where pieces are raised.
        Found::Nothing if model.raised => None,
        Found::Limit => None,
        Found::Packing(_) | Found::Nothing => Some(found),
    }
}

pub(super) fn ranks(model: &Model, order: Order, weights: Option<&Vec<f64>>) -> Vec<u32> {
    let weight = |i: u32| weights.map_or(0.0, |w| w[i as usize]);
    let mut items: Vec<u32> = (0..model.items.len() as u32).collect();
    items.sort_by(|&a, &b| {
        let key = |i: u32| order(&model.items[i as usize]);
        weight(b).total_cmp(&weight(a)).then_with(|| key(b).cmp(&key(a)))
    });
    let mut rank = vec![0; items.len()];
    for (place, i) in items.into_iter().enumerate() {
        rank[i as usize] = place as u32;
    }
    rank
}
