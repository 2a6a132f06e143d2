//! Packing stretch by stretch: a packing of what lives in some span of time, widened until it holds
//! everything.
//!
//! A large neighbourhood search (Shaw, "Using Constraint Programming and Local Search Methods to
//! Solve Vehicle Routing Problems", CP 1998) with a horizon that rolls on. Each step adds sections at
//! one end: what lives there is placed by greedy rules and short tree searches, while the rest stands
//! still. Where that fails, ever more before it is taken out and placed again; then some stretches of
//! the span are placed in another way, and at last the span is shortened.
//!
//! It proves nothing, and finds packings that fall into many tasks in time, each of them easy, of
//! which one tree search does all at once.

use super::Budget;
use super::greedy;
use super::model::{Item, Model};
use super::portfolio::{ORDERS, ranks};
use super::search::{Branching, Found, Search};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::ops::Range;

/// Tree searches of one stretch.
const TRIES: usize = 3;

/// Nodes of one tree search per item that may move: most that succeed take three.
const NODES: u64 = 8;

/// Items are tried in order within so many groups, which are drawn.
const GROUPS: usize = 4;

/// Stretches placed anew when a span cannot be widened.
const SHUFFLES: usize = 3;

/// So many times in a row that it cannot be widened shorten the span.
const PATIENCE: u32 = 3;

/// Parts of all sections that one step adds, and that are taken off where it fails for long.
const STEP: u32 = 40;
const RETREAT: u32 = 20;

/// A packing of all that lives before some section.
pub(super) struct Roll<'a> {
    model: &'a Model,
    /// All that lives before this section has a place.
    end: u32,
    places: Vec<Option<u64>>,
    failures: u32,
    random: Pcg64Mcg,
}

impl<'a> Roll<'a> {
    pub fn new(model: &'a Model, seed: u64) -> Self {
        let places = model.items.iter().map(|i| i.fixed).collect();
        Self { model, end: 0, places, failures: 0, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// Goes on until everything has a place: all offsets then.
    pub fn run(&mut self, budget: &mut Budget) -> Option<Vec<u64>> {
        while self.end < self.sections() {
            if budget.spent() {
                return None;
            }
            if self.widen(budget) {
                self.failures = 0;
            } else {
                self.give_way(budget);
            }
        }
        // What never lives anywhere meets nothing.
        let place = |(i, place): (&Item, &Option<u64>)| place.unwrap_or_else(|| i.place_from(0));
        Some(self.model.items.iter().zip(&self.places).map(place).collect())
    }

    fn sections(&self) -> u32 {
        self.model.totals.len() as u32
    }

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.random.next_u64()) * n as u128) >> 64) as usize
    }

    /// A length of at most `most`, each doubling as likely as the next.
    fn length(&mut self, most: u32) -> u32 {
        let top = 1u64 << self.below((u32::BITS - most.leading_zeros()) as usize + 1);
        ((top / 2) as u32 + self.below((top - top / 2) as usize) as u32).min(most)
    }

    /// Adds sections, taking out nothing before them at first, then ever more.
    fn widen(&mut self, budget: &mut Budget) -> bool {
        let step = 1 + self.sections() / STEP;
        let end = self.end.saturating_add(step).min(self.sections());
        let most = self.end.min(self.sections() / 5 * 2);
        let mut back = 0;
        loop {
            if self.place(&(self.end - back..end), budget) {
                self.end = end;
                return true;
            }
            if back >= most || budget.spent() {
                return false;
            }
            back = (back + back / 2 + step).min(self.end);
        }
    }

    /// Places some stretches in another way; goes back when that has not helped for long.
    fn give_way(&mut self, budget: &mut Budget) {
        self.failures += 1;
        for _ in 0..SHUFFLES {
            let at = self.below(self.end as usize) as u32;
            let reach = self.length(self.end / 4);
            self.place(&(at.saturating_sub(reach)..(at + reach + 1).min(self.end)), budget);
        }
        if self.failures >= PATIENCE {
            self.failures = 0;
            self.end = self.end.saturating_sub(1 + self.sections() / RETREAT);
            for (place, item) in self.places.iter_mut().zip(&self.model.items) {
                if item.from >= self.end {
                    *place = item.fixed;
                }
            }
        }
    }

    /// Places what lives in a stretch, beside what else has a place; changes nothing if that fails.
    fn place(&mut self, stretch: &Range<u32>, budget: &mut Budget) -> bool {
        let items = &self.model.items;
        let moves = |i: &u32| items[*i as usize].fixed.is_none() && meets(&items[*i as usize], stretch);
        let free: Vec<u32> = (0..items.len() as u32).filter(moves).collect();
        let reach = free.iter().fold(stretch.clone(), |r, &i| {
            let item = &items[i as usize];
            r.start.min(item.from)..r.end.max(item.to)
        });
        let beside = |i: &u32| self.places[*i as usize].is_some() && meets(&items[*i as usize], &reach) && !moves(i);
        let stand = (0..items.len() as u32).filter(beside).map(|i| (i, self.places[i as usize]));
        let part = self.model.part(free.iter().map(|&i| (i, None)).chain(stand), &reach);
        let Some(offsets) = self.search(&part, free.len(), budget) else { return false };
        for (&i, offset) in free.iter().zip(offsets) {
            self.places[i as usize] = Some(offset);
        }
        true
    }

    /// A packing of a part of which `free` items may move: by greedy rules, or by short tree searches
    /// in orders that chance disturbs.
    fn search(&mut self, part: &Model, free: usize, budget: &mut Budget) -> Option<Vec<u64>> {
        let fits = |offsets: &Vec<u64>| greedy::height(part, offsets) <= part.capacity;
        // Greedy rules are not free.
        budget.take();
        if let Some(offsets) = greedy::lowest(part).filter(fits) {
            return Some(offsets);
        }
        for _ in 0..TRIES {
            let groups: Vec<f64> = part.items.iter().map(|_| self.below(GROUPS) as f64).collect();
            let rank = ranks(part, ORDERS[self.below(ORDERS.len())], Some(&groups));
            let mut nodes = budget.part(NODES.saturating_mul(free as u64));
            let mut unused = vec![0.0; part.items.len()];
            let found = Search::new(part, &rank, Branching::Lowest, &mut unused).run(&mut nodes);
            budget.give_back(&nodes);
            match found {
                Found::Packing(offsets) => return Some(offsets),
                Found::Nothing => return None,
                Found::Limit => {}
            }
        }
        None
    }
}

fn meets(item: &Item, stretch: &Range<u32>) -> bool {
    item.from < stretch.end && stretch.start < item.to
}

#[cfg(test)]
mod tests {
    use super::super::{Interval, Limits, Problem, verify};
    use super::*;
    use proptest::prelude::*;

    fn interval() -> impl Strategy<Value = Interval> {
        let fixed = proptest::option::weighted(0.1, 0u64..20);
        (0i64..60, 1i64..20, 1u64..9, 1u64..3, fixed).prop_map(|(lower, width, size, alignment, offset)| Interval {
            alignment,
            offset: offset.map(|o| o * alignment),
            ..Interval::new(lower, lower + width, size)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// What is found holds, whether it took one step or many that went back.
        #[test]
        fn what_is_found_is_a_packing(intervals in proptest::collection::vec(interval(), 1..60), slack in 0u64..4) {
            let mut problem = Problem { intervals, capacity: 1 << 40 };
            problem.capacity = Model::new(&problem).lower_bound() + slack;
            let model = Model::new(&problem);
            let mut budget = Budget::new(Limits::nodes(3_000));
            if let Some(offsets) = Roll::new(&model, slack).run(&mut budget) {
                prop_assert_eq!(verify(&problem, &offsets), Ok(()));
            }
        }
    }

    /// 200 stretches of ten moments without a byte to spare, tied together by one that lives all along.
    #[test]
    fn many_small_tasks_in_a_row_are_done_one_by_one() {
        let mut intervals = vec![Interval::new(0, 2_000, 1)];
        for k in 0..200 {
            let at = k * 10;
            intervals.extend([3, 5, 7].map(|size| Interval::new(at, at + 5, size)));
            intervals.extend([7, 5, 3].map(|size| Interval::new(at + 5, at + 10, size)));
            intervals.push(Interval::new(at, at + 10, 4));
        }
        let problem = Problem { intervals, capacity: 20 };
        let model = Model::new(&problem);
        let mut budget = Budget::new(Limits::nodes(20_000));
        let offsets = Roll::new(&model, 0).run(&mut budget).expect("a packing");
        assert_eq!(verify(&problem, &offsets), Ok(()));
    }
}
