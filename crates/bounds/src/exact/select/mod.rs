//! The least cost of a choice of gaps when bytes need not be contiguous: dynamic programming over the
//! steps.
//!
//! All gaps start out kept. Only where those over a step do not fit, some are given up, and only sets
//! of which none could stay ([`evict`]); giving a gap up costs its spill, wherever it happens. So a
//! state is the set of gaps over a step that are still kept, and few differ. Of two states `A` is
//! never worse than `B` where `cost(A) + cost of giving up A \ B ≤ cost(B)`: it may become what `B` is.
//! The prices of the flow bound say what each state costs at least to the end.
//!
//! A layer of states is held to a width, those of the least bound first. The least bound of what is
//! dropped is a bound still (as in a truncated decision diagram: Bergman, Cire, van Hoeve, Hooker,
//! "Decision Diagrams for Optimization", 2016), and what is left gives a choice of gaps; nothing
//! dropped means that this is optimal.

mod evict;
mod layer;
mod slots;

use crate::flow::contended_steps;
use crate::model::CacheModel;
use crate::pack::Budget;
use layer::Sweep;

/// How far a sweep over the steps may go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// States of a layer.
    pub width: usize,
    /// States made in all.
    pub states: u64,
}

/// What a sweep found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// No choice costs less, or less than what was asked to be beaten.
    pub bound: u64,
    /// The cheapest choice seen with its cost, if it beats what was asked: which gaps of the model it
    /// keeps.
    pub best: Option<(u64, Vec<bool>)>,
    /// States made.
    pub states: u64,
}

/// A gap as the sweep sees it: its steps count only those where the gaps compete.
#[derive(Clone, Copy)]
struct Item {
    /// Its number in the model.
    gap: usize,
    first: usize,
    end: usize,
    size: u64,
    cost: u64,
    /// Its place in the sets of states; another may have it after its end.
    slot: usize,
}

/// The steps of one cache where gaps compete, with the gaps over them.
struct Contest {
    rooms: Vec<u64>,
    items: Vec<Item>,
    /// Items by first step and by end.
    starting: Vec<Vec<usize>>,
    ending: Vec<Vec<usize>>,
    /// What prices rise to before each step.
    risen: Vec<u128>,
    /// Places in use at most.
    slots: usize,
}

/// Finds the cheapest choice that costs less than `below`, at the `prices` of the steps of `model`.
/// Ends early where `budget` is spent. `None` where numbers pass 2⁶² or more gaps compete at a step than states hold.
pub(super) fn select(
    model: &CacheModel,
    prices: &[u64],
    below: u64,
    reach: Reach,
    budget: &Budget,
) -> Option<Selection> {
    let contest = Contest::new(model, prices)?;
    let found = match contest.slots {
        0..=128 => Sweep::<2>::new(&contest, below, reach).run(budget),
        129..=512 => Sweep::<8>::new(&contest, below, reach).run(budget),
        513..=2048 => Sweep::<32>::new(&contest, below, reach).run(budget),
        _ => return None,
    };
    let best = found.best.map(|(cost, given_up)| {
        let mut keep = vec![true; model.gaps.len()];
        given_up.into_iter().for_each(|i| keep[contest.items[i].gap] = false);
        (cost, keep)
    });
    Some(Selection { bound: found.bound, best, states: found.states })
}

impl Contest {
    fn new(model: &CacheModel, prices: &[u64]) -> Option<Self> {
        let total = |of: fn(&crate::model::Gap) -> u64| {
            model.gaps.iter().try_fold(0u64, |sum, g| sum.checked_add(of(g)).filter(|&s| s < 1 << 62))
        };
        total(|g| g.size.0).and(total(|g| g.cost.0))?;
        let contended = contended_steps(model);
        let place = |step: usize| contended.partition_point(|&t| t < step);
        let mut items = Vec::new();
        for (gap, g) in model.gaps.iter().enumerate().filter(|(_, g)| g.size.0 > 0) {
            let (first, end) = (place(g.first), place(g.end));
            if first < end {
                items.push(Item { gap, first, end, size: g.size.0, cost: g.cost.0, slot: 0 });
            }
        }
        let mut risen = vec![0u128];
        for &t in &contended {
            risen.push(risen[risen.len() - 1] + u128::from(prices[t]));
        }
        let lists = vec![Vec::new(); contended.len() + 1];
        let rooms = contended.iter().map(|&t| model.room(t).0).collect();
        let mut contest = Self { rooms, items, starting: lists.clone(), ending: lists, risen, slots: 0 };
        contest.give_slots();
        Some(contest)
    }

    fn give_slots(&mut self) {
        for (i, item) in self.items.iter().enumerate() {
            self.starting[item.first].push(i);
            self.ending[item.end].push(i);
        }
        let mut free: Vec<usize> = Vec::new();
        for t in 0..self.rooms.len() {
            free.extend(self.ending[t].iter().map(|&i| self.items[i].slot));
            for &i in &self.starting[t] {
                self.items[i].slot = free.pop().unwrap_or_else(|| {
                    self.slots += 1;
                    self.slots - 1
                });
            }
        }
    }

    /// What an item costs at least from `step` on: its room at the prices, or its spill.
    fn rent(&self, item: &Item, step: usize) -> i128 {
        let room = u128::from(item.size).saturating_mul(self.risen[item.end] - self.risen[step]);
        i128::try_from(room.min(u128::from(item.cost))).unwrap_or(i128::MAX)
    }

    /// What the room of a step brings at its price.
    fn yields(&self, step: usize) -> i128 {
        let price = self.risen[step + 1] - self.risen[step];
        i128::try_from(price.saturating_mul(u128::from(self.rooms[step]))).unwrap_or(i128::MAX / 4).min(1 << 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::flow_bound;
    use crate::model::{Gap, Step};
    use crate::pack::Limits;
    use proptest::prelude::*;
    use spillbench_core::Bytes;
    use spillbench_core::index::{BufIx, CacheIx, NodeIx, Pos};

    fn model(gaps: &[(usize, usize, u64, u64)], demands: &[u64]) -> CacheModel {
        let node = NodeIx::new(0);
        let step = |(t, &demand): (usize, &u64)| Step { node, pos: Pos::new(t), demand: Bytes(demand) };
        let gap = |&(first, width, size, rate): &(usize, usize, u64, u64)| Gap {
            buf: BufIx::new(0),
            first,
            end: (first + width).min(demands.len()),
            size: Bytes(size),
            cost: Bytes(size * rate),
            after: node,
            before: node,
        };
        CacheModel {
            cache: CacheIx::new(0),
            capacity: Bytes(12),
            steps: demands.iter().enumerate().map(step).collect(),
            gaps: gaps.iter().map(gap).collect(),
        }
    }

    fn cost_if_it_fits(model: &CacheModel, keep: impl Fn(usize) -> bool) -> Option<u64> {
        let over = |t: usize| model.gaps.iter().enumerate().filter(move |(_, g)| g.first <= t && t < g.end);
        let fits = |t: usize| over(t).filter(|(g, _)| keep(*g)).map(|(_, g)| g.size).sum::<Bytes>() <= model.room(t);
        let cost = model.gaps.iter().enumerate().filter(|(g, _)| !keep(*g)).map(|(_, g)| g.cost.0).sum();
        (0..model.steps.len()).all(fits).then_some(cost)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_choice_is_that_of_trying_all(
            gaps in prop::collection::vec((0usize..8, 1usize..7, 0u64..7, 1u64..3), 0..11),
            demands in prop::collection::vec(0u64..9, 8),
            width in 1usize..40,
            priced in any::<bool>(),
        ) {
            let model = model(&gaps, &demands);
            let least = (0..1u32 << gaps.len()).filter_map(|set| cost_if_it_fits(&model, |g| set >> g & 1 == 1)).min();
            let least = least.unwrap();
            let prices = if priced { flow_bound(&model).prices } else { vec![0; demands.len()] };
            let budget = Budget::new(Limits::default());
            let wide = Reach { width: usize::MAX, states: u64::MAX };
            let found = select(&model, &prices, u64::MAX, wide, &budget).unwrap();
            prop_assert_eq!(found.bound, least);
            let (cost, keep) = found.best.unwrap();
            prop_assert_eq!((cost, cost_if_it_fits(&model, |g| keep[g])), (least, Some(least)));
            // None is cheaper than the cheapest.
            let none = select(&model, &prices, least, wide, &budget).unwrap();
            prop_assert_eq!((none.bound, none.best), (least, None));
            // Whatever is dropped, both sides hold.
            for states in [0, 3, u64::MAX] {
                let narrow = select(&model, &prices, u64::MAX, Reach { width, states }, &budget).unwrap();
                prop_assert!(narrow.bound <= least);
                if let Some((cost, keep)) = narrow.best {
                    prop_assert_eq!(cost_if_it_fits(&model, |g| keep[g]), Some(cost));
                }
            }
        }
    }

    /// Room 10 and gaps of 6, 5 and 5 over one step: the flow gives up 6 of 16 bytes and none the
    /// largest alone; whole gaps cost 6. With 7 for the largest both fives stay and the 7 goes.
    #[test]
    fn whole_gaps_cost_more_than_parts_of_them() {
        let of = |sizes: [u64; 3]| {
            let model = model(&sizes.map(|s| (0, 1, s, 1)), &[2]);
            let flow = flow_bound(&model);
            let reach = Reach { width: 10, states: 1000 };
            (flow.value.0, select(&model, &flow.prices, u64::MAX, reach, &Budget::new(Limits::default())).unwrap())
        };
        let (flow, found) = of([6, 5, 5]);
        assert_eq!((flow, found.bound), (6, 6));
        assert_eq!(found.best, Some((6, vec![false, true, true])));
        let (flow, found) = of([7, 5, 4]);
        assert_eq!((flow, found.bound), (6, 7));
        assert_eq!(found.best, Some((7, vec![false, true, true])));
    }
}
