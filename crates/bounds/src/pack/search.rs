//! Depth-first search for a packing within the capacity, by floors.
//!
//! **Canonical packings.** Of all packings take one with the least sum of offsets: every item sits at
//! the lowest place that the items below it leave (its *floor*, rounded up to its alignment), so
//! placing items in order of (offset, rank), each at its floor, reaches it.
//!
//! **Branching.** Take a *star*: an unplaced item with the lowest top if placed now. If everything
//! that meets it started at or above that top, the star could sink to its floor. So among the star
//! and what meets it, the one that comes first in (offset, rank) starts below the star's top, and
//! nothing unplaced lies under it: it sits at its floor. Each such item is a branch. Those with a
//! smaller key that were not taken may not start there any more: they are *blocked* until something
//! is placed under them. It is enough that no unplaced item under a branch could end below the
//! star's top, so a star near any item will do ([`Branching`]).
//!
//! **Pruning.** Each unplaced item has a lower bound on its offset: its floor; for a blocked item, the
//! lowest top of what could still come under it, and if nothing can come under it below its own top,
//! it could sink, and the branch is dropped. In each section the least bound and all bytes to come
//! must fit below the capacity; what must be first, or cannot be, raises the bounds of others.
//!
//! **Decomposition.** When no unplaced item connects two stretches of time, each is searched by itself,
//! and a failure of one goes back past the whole search of the other.

use super::Budget;
use super::boxes::Boxes;
use super::model::Model;

/// How the star is chosen, and what is a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branching {
    /// Every unplaced item below the lowest top is a branch: all go in order of (offset, rank).
    Lowest,
    /// The star is found from the item of the smallest key, going down to lower tops near it.
    Near,
    /// The star is the item of the lowest top of all.
    Smallest,
}

/// How a search ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Packing(Vec<u64>),
    /// There is no packing (of a raised model: none by floors).
    Nothing,
    Limit,
}

/// (offset, rank): the order in which items are placed.
type Key = (u64, u32);

const NONE: u32 = u32::MAX;

/// A stretch of `members` that is searched by itself.
#[derive(Clone, Copy)]
struct Goal {
    start: u32,
    end: u32,
    /// The frame whose placement made it, [`NONE`] for the first.
    parent: u32,
    /// The goal to search after it.
    next: u32,
}

/// A choice of which item of a goal is placed next.
struct Frame {
    goal: Goal,
    /// How many goals stand before those that its placements make.
    goals: usize,
    star: Option<u32>,
    tried: Option<Key>,
    /// The item placed now and where in `members` it stood.
    placed: Option<(u32, u32)>,
    floors: usize,
    blocks: usize,
}

/// What the unplaced items of a section say together.
#[derive(Clone, Copy)]
struct Section {
    /// The two least bounds, and whose the first is.
    least: u64,
    second: u64,
    first: u32,
    /// The two least tops, and whose the first is.
    top: u64,
    second_top: u64,
    first_top: u32,
}

const EMPTY: Section =
    Section { least: u64::MAX, second: u64::MAX, first: NONE, top: u64::MAX, second_top: u64::MAX, first_top: NONE };

/// One search. `weights` gains where branches fail, for the ranks of later searches.
pub(super) struct Search<'a> {
    model: &'a Model,
    boxes: Boxes,
    rank: &'a [u32],
    branching: Branching,
    weights: &'a mut [f64],
    /// Unplaced items, each goal's in order of time; placed ones stand behind their goal.
    members: Vec<u32>,
    /// The lowest place of each item over what is placed.
    floors: Vec<u64>,
    /// An item may only be placed at a key of at least its block.
    blocks: Vec<Key>,
    /// Bytes of unplaced items per section.
    totals: Vec<u64>,
    bounds: Vec<u64>,
    sections: Vec<Section>,
    old_floors: Vec<(u32, u64)>,
    old_blocks: Vec<(u32, Key)>,
    goals: Vec<Goal>,
    frames: Vec<Frame>,
}

impl<'a> Search<'a> {
    pub fn new(model: &'a Model, rank: &'a [u32], branching: Branching, weights: &'a mut [f64]) -> Self {
        let n = model.items.len();
        // What is never live meets nothing and stays at its lowest place.
        let moves = |i: &u32| !model.items[*i as usize].pieces.is_empty() && model.items[*i as usize].fixed.is_none();
        let mut members: Vec<u32> = (0..n as u32).filter(moves).collect();
        members.sort_by_key(|&i| (model.items[i as usize].from, model.items[i as usize].to));
        // The arguments for the other two hold only where a top is the same for all that lies above.
        let branching = if model.windows { Branching::Lowest } else { branching };
        // Searching by floors takes raised pieces for what reaches down to their offset.
        let mut totals = vec![0; model.totals.len()];
        let free = members.iter().flat_map(|&i| model.items[i as usize].sections());
        free.for_each(|(q, high)| totals[q] += high);
        let boxes = Boxes::new(model);
        Self {
            model,
            rank,
            branching,
            weights,
            members,
            floors: (0..n).map(|i| model.items[i].fixed.unwrap_or_else(|| boxes.place_from(model, i, 0))).collect(),
            boxes,
            blocks: vec![(0, 0); n],
            totals,
            bounds: vec![0; n],
            sections: vec![EMPTY; model.totals.len()],
            old_floors: Vec::new(),
            old_blocks: Vec::new(),
            goals: Vec::new(),
            frames: Vec::new(),
        }
    }

    pub fn run(mut self, budget: &mut Budget) -> Found {
        if !self.boxes.hold {
            return Found::Nothing;
        }
        let mut goal = self.split(0, self.members.len(), NONE, NONE);
        loop {
            if goal == NONE {
                return Found::Packing(self.floors);
            }
            self.open(self.goals[goal as usize]);
            goal = loop {
                self.take_back();
                let Some(at) = self.next_branch() else {
                    if !self.fail() {
                        return Found::Nothing;
                    }
                    continue;
                };
                if !budget.take() {
                    return Found::Limit;
                }
                if let Some(goal) = self.place(at) {
                    break goal;
                }
            };
        }
    }

    #[inline]
    fn key(&self, i: u32) -> Key {
        (self.floors[i as usize], self.rank[i as usize])
    }

    #[inline]
    fn top(&self, i: u32) -> u64 {
        self.floors[i as usize] + self.model.items[i as usize].size
    }

    #[inline]
    fn meet(&self, a: u32, b: u32) -> bool {
        self.model.meet(a as usize, b as usize)
    }

    fn open(&mut self, goal: Goal) {
        self.frames.push(Frame {
            goal,
            goals: self.goals.len(),
            star: None,
            tried: None,
            placed: None,
            floors: self.old_floors.len(),
            blocks: self.old_blocks.len(),
        });
    }

    /// Undoes the placement of the last frame, if it has one.
    fn take_back(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        let Some((item, at)) = frame.placed.take() else { return };
        let (floors, blocks, goals, end) = (frame.floors, frame.blocks, frame.goals, frame.goal.end);
        for (i, floor) in self.old_floors.drain(floors..).rev() {
            self.floors[i as usize] = floor;
        }
        for (i, block) in self.old_blocks.drain(blocks..).rev() {
            self.blocks[i as usize] = block;
        }
        self.goals.truncate(goals);
        for (q, high) in self.model.items[item as usize].sections() {
            self.totals[q] += high;
        }
        self.members[at as usize..end as usize].rotate_right(1);
    }

    /// Leaves the last frame, whose branches are used up, for the frame that made its goal; false
    /// when there is none.
    fn fail(&mut self) -> bool {
        let parent = self.frames.last().map_or(NONE, |f| f.goal.parent);
        if parent == NONE {
            return false;
        }
        while self.frames.len() > parent as usize + 1 {
            self.take_back();
            self.frames.pop();
        }
        true
    }

    /// Where in `members` the next branch of the last frame stands.
    fn next_branch(&mut self) -> Option<usize> {
        let last = self.frames.len().checked_sub(1)?;
        let Goal { start, end, .. } = self.frames[last].goal;
        let members = start as usize..end as usize;
        let star = match self.frames[last].star {
            Some(star) => star,
            None => self.choose_star(&self.members[members.clone()])?,
        };
        self.frames[last].star = Some(star);
        let untried = self.frames[last].tried.map_or((0, 0), |(offset, rank)| (offset, rank + 1));
        let (limit, all) = (self.top(star), self.branching == Branching::Lowest);
        let mut best: Option<(Key, usize)> = None;
        for at in members {
            let i = self.members[at];
            let key = self.key(i);
            if key.0 >= limit || key < untried || key < self.blocks[i as usize] || !(all || self.meet(i, star)) {
                continue;
            }
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, at));
            }
        }
        let (key, at) = best?;
        self.frames[last].tried = Some(key);
        Some(at)
    }

    fn choose_star(&self, members: &[u32]) -> Option<u32> {
        if self.branching != Branching::Near {
            return members.iter().copied().min_by_key(|&i| (self.top(i), self.rank[i as usize]));
        }
        let open = members.iter().copied().filter(|&i| self.key(i) >= self.blocks[i as usize]);
        let mut star = open.min_by_key(|&i| self.key(i))?;
        loop {
            // An item under a branch that could end below the star's top makes a better star.
            let limit = self.top(star);
            let mut better = (limit, star);
            for &k in members.iter().filter(|&&k| self.floors[k as usize] < limit && self.meet(k, star)) {
                let under = members.iter().filter(|&&m| self.top(m) < better.0 && self.meet(m, k));
                better = under.map(|&m| (self.top(m), m)).fold(better, Ord::min);
            }
            if better.1 == star {
                return Some(star);
            }
            star = better.1;
        }
    }

    /// Places the item that stands at `at`; the goal to search next, or `None` if that fails.
    fn place(&mut self, at: usize) -> Option<u32> {
        let last = self.frames.len() - 1;
        let (goal, star) = (self.frames[last].goal, self.frames[last].star);
        let item = self.members[at];
        let (start, end) = (goal.start as usize, goal.end as usize);
        self.frames[last].placed = Some((item, at as u32));
        self.members[at..end].rotate_left(1);
        for (q, high) in self.model.items[item as usize].sections() {
            self.totals[q] -= high;
        }
        if self.top(item) > self.model.capacity {
            self.weights[item as usize] += 1.0;
            return None;
        }
        let members = std::mem::take(&mut self.members);
        let rest = &members[start..end - 1];
        let alive = self.raise(rest, item, star.unwrap_or(item)) && self.support(rest) && self.sections_fit(rest);
        self.members = members;
        alive.then(|| self.split(start, end - 1, last as u32, goal.next))
    }

    /// Raises the floors over `item` and blocks what was passed over for it; false if some item no
    /// longer fits.
    fn raise(&mut self, rest: &[u32], item: u32, star: u32) -> bool {
        let (offset, rank) = self.key(item);
        let block = (offset, rank + 1);
        for &i in rest {
            let n = i as usize;
            if let Some(reach) = self.model.reach(item as usize, n) {
                let place = self.boxes.place_from(self.model, n, offset + reach);
                if place > self.floors[n] {
                    self.old_floors.push((i, self.floors[n]));
                    self.floors[n] = place;
                }
            }
            let passed_over = self.key(i) < block && self.blocks[n] < block;
            if passed_over && (self.branching == Branching::Lowest || self.meet(i, star)) {
                self.old_blocks.push((i, self.blocks[n]));
                self.blocks[n] = block;
            }
            self.bounds[n] = self.floors[n].max(self.blocks[n].0);
            if self.top(i) > self.model.capacity {
                self.weights[n] += 1.0;
                return false;
            }
        }
        true
    }

    /// Raises the bounds of blocked items to what could still come under them; false if nothing can.
    fn support(&mut self, rest: &[u32]) -> bool {
        for &i in rest {
            let n = i as usize;
            if self.key(i) >= self.blocks[n] {
                continue;
            }
            let top = self.top(i);
            let (mut lowest, mut under) = (u64::MAX, false);
            for &k in rest.iter().filter(|&&k| k != i && self.meet(k, i)) {
                let bound = self.bounds[k as usize];
                lowest = lowest.min(bound + self.model.items[k as usize].least_high);
                under |= bound < top;
            }
            if !under {
                self.weights[n] += 1.0;
                return false;
            }
            self.bounds[n] = self.bounds[n].max(lowest);
        }
        true
    }

    /// Tries every section against the capacity; what that says of single items is said once.
    fn sections_fit(&mut self, rest: &[u32]) -> bool {
        let Some(&earliest) = rest.first() else { return true };
        let from = self.model.items[earliest as usize].from as usize;
        let to = rest.iter().map(|&i| self.model.items[i as usize].to).max().unwrap_or(0) as usize;
        self.read_sections(rest, from, to);
        if let Some(q) = (from..to).find(|&q| self.overfull(q)) {
            self.blame(rest, q);
            return false;
        }
        let Some(changed) = self.sharpen(rest) else { return false };
        if changed {
            self.read_sections(rest, from, to);
            if let Some(q) = (from..to).find(|&q| self.overfull(q)) {
                self.blame(rest, q);
                return false;
            }
        }
        true
    }

    fn overfull(&self, q: usize) -> bool {
        self.sections[q].first != NONE && self.totals[q] > self.boxes.room(q, self.sections[q].least)
    }

    /// Shares the weight of a failure among the unplaced items of an overfull section.
    fn blame(&mut self, rest: &[u32], q: usize) {
        let in_q = |i: &&u32| self.model.items[**i as usize].sections().any(|(s, _)| s == q);
        let culprits: Vec<u32> = rest.iter().filter(in_q).copied().collect();
        for &i in &culprits {
            self.weights[i as usize] += 1.0 / culprits.len() as f64;
        }
    }

    fn read_sections(&mut self, rest: &[u32], from: usize, to: usize) {
        self.sections[from..to].fill(EMPTY);
        for &i in rest {
            let bound = self.bounds[i as usize];
            for p in &self.model.items[i as usize].pieces {
                let top = bound + p.high;
                for s in &mut self.sections[p.from as usize..p.to as usize] {
                    if bound < s.least {
                        (s.second, s.least, s.first) = (s.least, bound, i);
                    } else if bound < s.second {
                        s.second = bound;
                    }
                    if top < s.top {
                        (s.second_top, s.top, s.first_top) = (s.top, top, i);
                    } else if top < s.second_top {
                        s.second_top = top;
                    }
                }
            }
        }
    }

    /// Raises bounds by what must be, or cannot be, first in a section; whether any changed, or
    /// `None` if an item no longer fits.
    fn sharpen(&mut self, rest: &[u32]) -> Option<bool> {
        let mut changed = false;
        for &i in rest {
            let n = i as usize;
            let old = self.bounds[n];
            let mut bound = old;
            for (q, _) in self.model.items[n].sections() {
                let (s, total) = (&self.sections[q], self.totals[q]);
                // All but one would come too late to be first, so that one is.
                if s.first != i && s.second != u64::MAX && total > self.boxes.room(q, s.second) {
                    bound = bound.max(s.least + self.model.items[s.first as usize].least_high);
                }
                if total > self.boxes.room(q, old) {
                    bound = bound.max(if s.first_top == i { s.second_top } else { s.top });
                }
            }
            if bound > old {
                bound = self.boxes.place_from(self.model, n, bound);
                if bound > self.model.capacity - self.model.items[n].size {
                    self.weights[n] += 1.0;
                    return None;
                }
                self.bounds[n] = bound;
                changed = true;
            }
        }
        Some(changed)
    }

    /// Makes a goal of each stretch of `members[start..end]` that time separates, before `next`; the
    /// first of them, or `next` if there is none.
    fn split(&mut self, start: usize, end: usize, parent: u32, next: u32) -> u32 {
        let first_goal = self.goals.len();
        let mut reached = 0;
        for at in start..end {
            let item = &self.model.items[self.members[at] as usize];
            if at == start || item.from >= reached {
                self.goals.push(Goal { start: at as u32, end: end as u32, parent, next });
                if let [.., before, _] = &mut self.goals[first_goal..] {
                    before.end = at as u32;
                }
            }
            reached = reached.max(item.to);
        }
        let made = self.goals.len() - first_goal;
        for k in 1..made {
            self.goals[first_goal + k - 1].next = (first_goal + k) as u32;
        }
        if made == 0 { next } else { first_goal as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Interval, Limits, Problem, pairs, verify};
    use super::*;
    use proptest::prelude::*;

    fn interval() -> impl Strategy<Value = Interval> {
        let alignment = prop_oneof![5 => Just(1u64), 1 => Just(2)];
        let fixed = proptest::option::weighted(0.2, 0u64..6);
        (0i64..10, 1i64..6, 1u64..6, alignment, fixed).prop_map(|(lower, width, size, alignment, offset)| Interval {
            alignment,
            offset: offset.map(|o| o * alignment),
            ..Interval::new(lower, lower + width, size)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// The greedy rules left out, all ways to branch and the search by pairs agree.
        #[test]
        fn every_way_to_branch_agrees(intervals in proptest::collection::vec(interval(), 1..9), slack in 0u64..2) {
            let mut problem = Problem { intervals, capacity: 1 << 40 };
            problem.capacity = Model::new(&problem).lower_bound() + slack;
            let model = Model::new(&problem);
            let by_index: Vec<u32> = (0..model.items.len() as u32).collect();
            let reversed: Vec<u32> = by_index.iter().rev().copied().collect();
            let mut packs = Vec::new();
            let mut note = |found: Found, name: String| match found {
                Found::Packing(offsets) => {
                    assert_eq!(verify(&problem, &offsets), Ok(()), "{name}");
                    packs.push((true, name));
                }
                Found::Nothing => packs.push((false, name)),
                Found::Limit => {}
            };
            for branching in [Branching::Lowest, Branching::Near, Branching::Smallest] {
                for rank in [&by_index, &reversed] {
                    let mut weights = vec![0.0; rank.len()];
                    let mut budget = Budget::new(Limits::nodes(100_000));
                    let found = Search::new(&model, rank, branching, &mut weights).run(&mut budget);
                    note(found, format!("{branching:?} {rank:?}"));
                }
            }
            let mut budget = Budget::new(Limits::nodes(20_000));
            note(pairs::search(&model, &mut budget), "pairs".to_owned());
            prop_assert!(packs.windows(2).all(|w| w[0].0 == w[1].0), "{:?}", packs);
        }
    }
}
