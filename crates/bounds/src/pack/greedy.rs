//! Greedy packings: each item at the lowest place that what lies there leaves, in several orders,
//! the best of them improved by bringing forward what ended too high.

use super::boxes::taken_by;
use super::model::{Item, Model};

/// Beyond this many sections over all items only the order of time is tried: the others remember
/// what lies in each section.
const WORK_LIMIT: u64 = 5_000_000;

/// Steps that improving may take, counted as sections over all items.
const IMPROVE_LIMIT: u64 = 500_000;

/// Larger comes first.
type Key = fn(&Item) -> (u64, u64);

/// How often the order of the best packing is improved.
const ROUNDS: u64 = 60;

/// The lowest packing found, whatever the capacity; `None` where items fixed or crowded by fixed
/// ones find no place.
pub(super) fn lowest(model: &Model) -> Option<Vec<u64>> {
    let n = model.items.len();
    let mut by_time: Vec<u32> = (0..n as u32).collect();
    by_time.sort_by_key(|&i| (model.items[i as usize].from, u64::MAX - model.items[i as usize].size));
    if model.work() > WORK_LIMIT {
        return pack_in_time(model, &by_time);
    }
    let keys: [Key; 4] = [
        |i| (i.crowd, i.size),
        |i| (i.size, i.width),
        |i| (i.width, i.size),
        |i| (u64::from(i.to - i.from).saturating_mul(i.size), i.size),
    ];
    let orders = keys.into_iter().map(|key| {
        let mut order = by_time.clone();
        order.sort_by_key(|&i| std::cmp::Reverse(key(&model.items[i as usize])));
        order
    });
    let orders: Vec<Vec<u32>> = std::iter::once(by_time.clone()).chain(orders).collect();
    let packed = orders.into_iter().filter_map(|o| pack_in_order(model, &o).map(|p| (height(model, &p), p, o)));
    let (mut least, mut best, mut order) = packed.min_by_key(|p| p.0)?;
    let mut current = best.clone();
    for _ in 0..ROUNDS.min(IMPROVE_LIMIT / model.work().max(1)) {
        if least <= model.capacity.max(model.lower_bound()) {
            break;
        }
        let limit = model.capacity.max(least - 1);
        let (late, early): (Vec<u32>, Vec<u32>) =
            order.iter().partition(|&&i| current[i as usize] + model.items[i as usize].size > limit);
        let too_high: Vec<u32> = if late.is_empty() { highest(model, &current) } else { late };
        order = too_high.iter().copied().chain(early.into_iter().filter(|i| !too_high.contains(i))).collect();
        let Some(next) = pack_in_order(model, &order) else { break };
        current = next;
        let high = height(model, &current);
        if high < least {
            (least, best) = (high, current.clone());
        }
    }
    Some(best)
}

fn highest(model: &Model, offsets: &[u64]) -> Vec<u32> {
    let high = height(model, offsets);
    (0..offsets.len() as u32).filter(|&i| offsets[i as usize] + model.items[i as usize].size == high).collect()
}

/// The largest offset + size.
pub(super) fn height(model: &Model, offsets: &[u64]) -> u64 {
    model.items.iter().zip(offsets).map(|(i, o)| o + i.size).max().unwrap_or(0)
}

/// Fixed items first, then the rest in `order`.
fn pack_in_order(model: &Model, order: &[u32]) -> Option<Vec<u64>> {
    let mut offsets = vec![0; model.items.len()];
    let mut placed = Placed::new(model);
    let is_fixed = |i: &&u32| model.items[**i as usize].fixed.is_some();
    for &i in order.iter().filter(is_fixed).chain(order.iter().filter(|i| !is_fixed(i))) {
        let beside = placed.beside(&model.items[i as usize]);
        offsets[i as usize] = first_place(model, i, beside, &offsets)?;
        placed.push(&model.items[i as usize], i);
    }
    Some(offsets)
}

/// Items as they start; only what is still live is looked at. Fixed items count from the start.
fn pack_in_time(model: &Model, order: &[u32]) -> Option<Vec<u64>> {
    let mut offsets = vec![0; model.items.len()];
    let (fixed, free): (Vec<u32>, Vec<u32>) = order.iter().partition(|&&i| model.items[i as usize].fixed.is_some());
    let mut live: Vec<u32> = Vec::new();
    for &i in &fixed {
        live.retain(|&k| model.items[k as usize].to > model.items[i as usize].from);
        offsets[i as usize] = first_place(model, i, live.iter().copied(), &offsets)?;
        live.push(i);
    }
    live = fixed;
    for &i in &free {
        live.retain(|&k| model.items[k as usize].to > model.items[i as usize].from);
        offsets[i as usize] = first_place(model, i, live.iter().copied(), &offsets)?;
        live.push(i);
    }
    Some(offsets)
}

/// What is placed, by section.
struct Placed {
    /// Items whose life holds the section.
    over: Vec<Vec<u32>>,
    /// Items whose life begins in the section.
    starting: Vec<Vec<u32>>,
}

impl Placed {
    fn new(model: &Model) -> Self {
        let lists = vec![Vec::new(); model.totals.len()];
        Self { over: lists.clone(), starting: lists }
    }

    fn push(&mut self, item: &Item, i: u32) {
        if let Some(starting) = self.starting.get_mut(item.from as usize).filter(|_| item.from < item.to) {
            starting.push(i);
        }
        self.over[item.from as usize..item.to as usize].iter_mut().for_each(|over| over.push(i));
    }

    /// Each item whose life meets that of `item`, once.
    fn beside(&self, item: &Item) -> impl Iterator<Item = u32> + '_ {
        let sections = item.from as usize..item.to as usize;
        let at_start = self.over[sections.clone()].iter().take(1);
        at_start.chain(self.starting[sections].iter().skip(1)).flatten().copied()
    }
}

/// The lowest place of item `i` beside those `placed`; a fixed item's place, if it is free.
fn first_place(model: &Model, i: u32, placed: impl Iterator<Item = u32>, offsets: &[u64]) -> Option<u64> {
    let item = &model.items[i as usize];
    // Offsets of `i` in `low..high` would meet another: all within reach of its piece.
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for k in placed {
        taken.extend(taken_by(item, &model.items[k as usize], offsets[k as usize]));
    }
    taken.sort_unstable();
    if let Some(fixed) = item.fixed {
        let free = fixed % item.alignment == 0 && !taken.iter().any(|t| t.0 <= fixed && fixed < t.1);
        return free.then_some(fixed);
    }
    let mut place = 0;
    for (low, high) in taken {
        if place < low {
            break;
        }
        place = place.max(high.next_multiple_of(item.alignment));
    }
    Some(place)
}
