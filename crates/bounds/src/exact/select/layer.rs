//! One sweep over the steps, layer by layer.

use super::evict::{Need, Victims};
use super::slots::Slots;
use super::{Contest, Item, Reach};
use crate::pack::Budget;
use rustc_hash::FxHashSet;

/// Each state is compared with so many of the best of its layer.
const COMPARED: usize = 16;

/// Sets of victims that a layer may try, per state that it may hold.
const TRIES: u64 = 64;

/// Passing so many states over a step counts as making one.
const PASSES: u64 = 16;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct State<const W: usize> {
    /// Slots of the open items that are kept.
    set: Slots<W>,
    /// Their bytes.
    bytes: u64,
    /// What is paid for those given up.
    cost: u64,
    /// No completion costs less.
    bound: u64,
    /// The last event, [`NONE`] for none.
    event: u32,
}

/// Items given up at a step.
struct Event<const W: usize> {
    before: u32,
    step: u32,
    out: Slots<W>,
}

/// What a sweep found; the choice as the items given up.
pub(super) struct Swept {
    pub bound: u64,
    pub best: Option<(u64, Vec<usize>)>,
    pub states: u64,
}

pub(super) struct Sweep<'a, const W: usize> {
    of: &'a Contest,
    below: u64,
    reach: Reach,
    layer: Vec<State<W>>,
    events: Vec<Event<W>>,
    /// Items over the step.
    open: Vec<usize>,
    /// What each step and all behind it prove of items that start there.
    ahead: Vec<i128>,
    /// The least bound of what was dropped.
    dropped: u64,
}

impl<'a, const W: usize> Sweep<'a, W> {
    pub fn new(of: &'a Contest, below: u64, reach: Reach) -> Self {
        let mut ahead = vec![0i128; of.rooms.len() + 1];
        for t in (0..of.rooms.len()).rev() {
            let starting: i128 = of.starting[t].iter().map(|&i| of.rent(&of.items[i], t)).sum();
            ahead[t] = (ahead[t + 1] + starting).saturating_sub(of.yields(t));
        }
        let bound = u64::try_from(ahead[0].max(0)).unwrap_or(u64::MAX);
        let start = State { set: Slots::EMPTY, bytes: 0, cost: 0, bound, event: NONE };
        let (events, open) = (Vec::new(), Vec::new());
        Self { of, below, reach, layer: vec![start], events, open, ahead, dropped: u64::MAX }
    }

    pub fn run(mut self, budget: &Budget) -> Swept {
        let mut passes = 0u64;
        for t in 0..self.of.rooms.len() {
            self.pass_ends(t);
            self.fit(t);
            self.bound_all(t);
            self.merge();
            self.narrow();
            passes += self.layer.len() as u64;
            let made = self.events.len() as u64;
            let is_long = made.max(passes / PASSES) >= self.reach.states || made >= u64::from(NONE / 2);
            let spent = is_long || budget.spent();
            if spent && t + 1 < self.of.rooms.len() {
                let left = self.layer.drain(..).map(|s| s.bound).min();
                self.dropped = self.dropped.min(left.unwrap_or(u64::MAX));
            }
            if self.layer.is_empty() {
                break;
            }
        }
        let better = self.layer.iter().filter(|s| s.cost < self.below);
        let best = better.min_by_key(|s| (s.cost, s.set)).map(|s| (s.cost, self.given_up(s.event)));
        let least = best.as_ref().map_or(self.below, |b| b.0);
        Swept { bound: self.dropped.min(least), best, states: self.events.len() as u64 }
    }

    /// Takes items that have ended out of all states and those that start in.
    fn pass_ends(&mut self, t: usize) {
        let items = &self.of.items;
        let (ending, starting) = (&self.of.ending[t], &self.of.starting[t]);
        let (mut gone, mut come) = (Slots::EMPTY, Slots::EMPTY);
        ending.iter().for_each(|&i| gone.insert(items[i].slot));
        starting.iter().for_each(|&i| come.insert(items[i].slot));
        let come_bytes: u64 = starting.iter().map(|&i| items[i].size).sum();
        for s in &mut self.layer {
            let left = ending.iter().map(|&i| &items[i]).filter(|i| s.set.has(i.slot));
            s.bytes = s.bytes - left.map(|i| i.size).sum::<u64>() + come_bytes;
            s.set = s.set.without(&gone).with(&come);
        }
        self.open.retain(|&i| items[i].end > t);
        self.open.extend(starting);
    }

    /// Replaces each state that does not fit the step by what may come of it.
    fn fit(&mut self, t: usize) {
        let room = self.of.rooms[t];
        if self.layer.iter().all(|s| s.bytes <= room) {
            return;
        }
        let items: Vec<&Item> = self.open.iter().map(|&i| &self.of.items[i]).collect();
        let victims = Victims::<W>::new(items);
        let mut tries = TRIES.saturating_mul(self.reach.width as u64);
        let layer = std::mem::take(&mut self.layer);
        for s in layer {
            if s.bytes <= room {
                self.layer.push(s);
                continue;
            }
            let need =
                Need { set: s.set, bytes: s.bytes - room, money: self.below.saturating_sub(1).saturating_sub(s.cost) };
            let (events, next) = (&mut self.events, &mut self.layer);
            let all = victims.enumerate(&need, &mut tries, &mut |out| {
                let event = events.len() as u32;
                events.push(Event { before: s.event, step: t as u32, out: out.set });
                let (set, bytes) = (s.set.without(&out.set), s.bytes - out.bytes);
                next.push(State { set, bytes, cost: s.cost + out.cost, bound: s.bound, event });
            });
            if !all {
                self.dropped = self.dropped.min(s.bound);
                // The first way down is always open, so that some choice is found.
                tries = tries.max(self.open.len() as u64);
            }
        }
    }

    /// Bounds every state from behind step `t` and drops those that cannot be of use.
    fn bound_all(&mut self, t: usize) {
        let rents = self.open.iter().map(|&i| &self.of.items[i]).map(|i| (i.slot, self.of.rent(i, t)));
        let rents: Vec<(usize, i128)> = rents.filter(|r| r.1 > 0).collect();
        let ahead = self.ahead[t + 1].saturating_sub(self.of.yields(t));
        let below = self.below;
        self.layer.retain_mut(|s| {
            let kept: i128 = rents.iter().filter(|r| s.set.has(r.0)).map(|r| r.1).sum();
            let bound = (i128::from(s.cost) + kept).saturating_add(ahead);
            s.bound = s.bound.max(s.cost).max(u64::try_from(bound.max(0)).unwrap_or(u64::MAX));
            s.bound < below
        });
    }

    /// Leaves out states that another is never worse than.
    fn merge(&mut self) {
        if self.layer.len() < 2 {
            return;
        }
        self.layer.sort_unstable_by_key(|s| (s.bound, s.cost, s.set));
        let mut costs = vec![0; 64 * W];
        self.open.iter().for_each(|&i| costs[self.of.items[i].slot] = self.of.items[i].cost);
        let mut cheapest: Vec<u32> = (0..self.layer.len() as u32).collect();
        cheapest.sort_unstable_by_key(|&k| (self.layer[k as usize].cost, k));
        let mut seen: FxHashSet<Slots<W>> = FxHashSet::default();
        let mut stays = vec![false; self.layer.len()];
        cheapest.iter().for_each(|&k| stays[k as usize] = seen.insert(self.layer[k as usize].set));
        let mut kept: Vec<State<W>> = Vec::with_capacity(seen.len());
        for (s, _) in self.layer.iter().zip(&stays).filter(|(_, stays)| **stays) {
            let is_covered = |a: &State<W>| {
                let mut extra = a.set.without(&s.set).iter();
                a.cost <= s.cost && extra.try_fold(a.cost, |c, i| Some(c + costs[i]).filter(|&c| c <= s.cost)).is_some()
            };
            if !kept.iter().take(COMPARED).any(is_covered) {
                kept.push(*s);
            }
        }
        self.layer = kept;
    }

    /// Holds the layer, sorted by bound, to its width.
    fn narrow(&mut self) {
        if let Some(first) = self.layer.get(self.reach.width) {
            self.dropped = self.dropped.min(first.bound);
            self.layer.truncate(self.reach.width);
        }
    }

    fn given_up(&self, mut event: u32) -> Vec<usize> {
        let mut list = Vec::new();
        while event != NONE {
            let e = &self.events[event as usize];
            let step = e.step as usize;
            let is_out = |i: &&Item| i.first <= step && step < i.end && e.out.has(i.slot);
            list.extend(self.of.items.iter().enumerate().filter(|(_, i)| is_out(i)).map(|(n, _)| n));
            event = e.before;
        }
        list
    }
}
