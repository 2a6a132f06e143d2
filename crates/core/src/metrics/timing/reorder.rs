//! A local change of the order: the links of the changed stretch are set anew, then only the steps
//! that the change reaches are timed again.

use super::addresses::{AddressMap, Piece};
use super::evaluate::Marks;
use super::network::{Ends, Extent, NONE, TimedPlan};
use crate::graph::NodeKind;
use crate::index::{BufIx, CacheIx, PipeIx, Pos, SegIx, StepIx};
use crate::metrics::MeasureError;
use crate::units::Cycles;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use typed_index_collections::{TiVec, ti_vec};

/// Storage that changes reuse.
#[derive(Debug)]
pub(super) struct Scratch {
    pub marks: Marks,
    /// The new place of each step of the stretch; `u32::MAX` for all others.
    place: TiVec<StepIx, u32>,
    /// Where each buffer is along the stretch, valid under the current `stamp`.
    bufs: TiVec<BufIx, (u32, Where)>,
    stamp: u32,
    /// Segments of which a piece ends in the stretch, noted under the current `stamp`.
    seen: TiVec<SegIx, u32>,
}

impl Scratch {
    pub(super) fn new(steps: usize, buffers: usize, segments: usize) -> Self {
        Self {
            marks: Marks::new(steps),
            place: ti_vec![u32::MAX; steps],
            bufs: ti_vec![(0, Where::Out(NONE)); buffers],
            stamp: 0,
            seen: ti_vec![0; segments],
        }
    }
}

/// Where a buffer is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    /// In that segment.
    In(SegIx),
    /// Moved out by that step, or not yet there.
    Out(StepIx),
}

/// What a new order of a stretch changes, but for pipes and places.
#[derive(Default)]
struct Change {
    /// Places in [`TimedPlan::held`] with the op and the segment that it now uses.
    held: Vec<(usize, StepIx, SegIx)>,
    /// What each segment that opens in the stretch now lies over.
    over: Vec<(SegIx, SmallVec<[Piece; 2]>)>,
    /// The addresses of the caches after the stretch, as far as it touched them.
    maps: BTreeMap<CacheIx, AddressMap>,
}

impl TimedPlan<'_> {
    /// Puts `steps`, the steps that stand from position `at` on, into the order given, and times the
    /// plan again as far as that changes it. Returns the makespan.
    ///
    /// Costs O(s log s) for the links of the stretch and O(links) for the steps whose times change.
    ///
    /// # Errors
    /// When `steps` are not those of the stretch, or the plan would not be valid in that order;
    /// nothing has changed then.
    pub fn reorder(&mut self, at: Pos, steps: &[StepIx]) -> Result<Cycles, MeasureError> {
        let stretch = self.order.get(at..).map_or(&[][..], |rest| &rest.raw[..steps.len().min(rest.len())]);
        if stretch.len() != steps.len() {
            return Err(MeasureError::NotAPermutation { pos: at.index() });
        }
        // What stays where it is at both ends needs no work.
        let same = stretch.iter().zip(steps).take_while(|(a, b)| a == b).count();
        if same == steps.len() {
            return Ok(self.makespan());
        }
        let tail = stretch.iter().rev().zip(steps.iter().rev()).take_while(|(a, b)| a == b).count();
        let (at, steps) = (Pos::new(at.index() + same), &steps[same..steps.len() - tail]);
        let change = self.permute(at, steps).and_then(|()| self.examine(at, steps));
        steps.iter().filter(|s| s.index() < self.order.len()).for_each(|&s| self.scratch.place[s] = u32::MAX);
        self.commit(at, steps, change?);
        self.propagate(at);
        Ok(self.makespan())
    }

    /// Notes the new places, if `steps` are a permutation of the stretch.
    fn permute(&mut self, at: Pos, steps: &[StepIx]) -> Result<(), MeasureError> {
        let stretch = at.index()..at.index() + steps.len();
        for (i, &step) in steps.iter().enumerate() {
            let pos = at.index() + i;
            let stands = self.places.get(step).is_some_and(|p| stretch.contains(&p.index()));
            if !stands || self.scratch.place[step] != u32::MAX {
                return Err(MeasureError::NotAPermutation { pos });
            }
            self.scratch.place[step] = pos as u32;
        }
        Ok(())
    }

    /// Finds what the new order changes, and whether it is valid.
    fn examine(&mut self, at: Pos, steps: &[StepIx]) -> Result<Change, MeasureError> {
        for (i, &step) in steps.iter().enumerate() {
            let Ends::Node(n) = self.ends_of(step) else { continue };
            let pos = at.index() + i;
            let late = |p: &StepIx| self.scratch.place[*p] != u32::MAX && self.scratch.place[*p] as usize > pos;
            let predecessors = self.graph.predecessors(n).iter().map(|&p| self.node_step(p));
            if let Some(p) = predecessors.into_iter().find(late) {
                return Err(MeasureError::Backward { pos, id: self.id(step), predecessor: self.id(p) });
            }
        }
        let mut change = Change::default();
        self.enter(at, steps.len(), &mut change);
        for (i, &step) in steps.iter().enumerate() {
            self.follow(Pos::new(at.index() + i), step, &mut change)?;
        }
        Ok(change)
    }

    /// Sets where every buffer and address that the stretch touches is when it begins.
    fn enter(&mut self, at: Pos, len: usize, change: &mut Change) {
        self.scratch.stamp += 1;
        let stretch = at.index()..at.index() + len;
        for pos in stretch.clone().map(Pos::new) {
            let step = self.order[pos];
            match self.ends_of(step) {
                Ends::Node(n) if self.graph.kind(n) == NodeKind::Op => {
                    for i in 0..self.graph.operands(n).len() {
                        let seg = self.held(n)[i];
                        self.first_seen(self.graph.operands(n)[i], Where::In(seg));
                    }
                }
                Ends::Node(n) if matches!(self.graph.kind(n), NodeKind::Alloc(_)) => {
                    self.enter_acquire(at, step, NONE, change);
                }
                Ends::Back(k) => self.enter_acquire(at, step, self.out_step(k), change),
                Ends::Node(_) | Ends::Out(_) => {
                    let seg = self.own_segment[step];
                    self.first_seen(self.buf_of(seg), Where::In(seg));
                    let Extent { cache, low, high } = self.extents[seg];
                    if self.places[self.acquire(seg)] < at {
                        change.maps.entry(cache).or_default().hold(low, high);
                    }
                }
            }
        }
    }

    fn enter_acquire(&mut self, at: Pos, step: StepIx, out: StepIx, change: &mut Change) {
        let seg = self.own_segment[step];
        self.first_seen(self.buf_of(seg), Where::Out(out));
        let map = change.maps.entry(self.extents[seg].cache).or_default();
        self.over[seg].iter().filter(|p| self.places[p.by] < at).for_each(|&p| map.note(p));
    }

    fn first_seen(&mut self, b: BufIx, place: Where) {
        if self.scratch.bufs[b].0 != self.scratch.stamp {
            self.scratch.bufs[b] = (self.scratch.stamp, place);
        }
    }

    /// Takes one step of the new order.
    fn follow(&mut self, pos: Pos, step: StepIx, change: &mut Change) -> Result<(), MeasureError> {
        let not_resident = |this: &Self, b: BufIx| {
            Err(MeasureError::NotResident { pos: pos.index(), id: this.id(step), buf: this.graph.buf(b).id })
        };
        let came_from = match self.ends_of(step) {
            Ends::Node(n) if self.graph.kind(n) == NodeKind::Op => {
                let from = self.held_from[n] as usize;
                for (i, &b) in self.graph.operands(n).iter().enumerate() {
                    match self.scratch.bufs[b].1 {
                        Where::In(seg) if seg == self.held[from + i] => {}
                        Where::In(seg) => change.held.push((from + i, step, seg)),
                        Where::Out(_) => return not_resident(self, b),
                    }
                }
                return Ok(());
            }
            Ends::Node(n) if matches!(self.graph.kind(n), NodeKind::Alloc(_)) => NONE,
            Ends::Back(k) => self.out_step(k),
            Ends::Node(_) | Ends::Out(_) => {
                let seg = self.own_segment[step];
                let b = self.buf_of(seg);
                if self.scratch.bufs[b].1 != Where::In(seg) {
                    return not_resident(self, b);
                }
                self.scratch.bufs[b].1 = Where::Out(step);
                let Extent { cache, low, high } = self.extents[seg];
                change.maps.entry(cache).or_default().release(low, high, step);
                return Ok(());
            }
        };
        let seg = self.own_segment[step];
        let b = self.buf_of(seg);
        if self.scratch.bufs[b].1 != Where::Out(came_from) {
            return Err(MeasureError::NotOut { pos: pos.index(), id: self.id(step), buf: self.graph.buf(b).id });
        }
        self.scratch.bufs[b].1 = Where::In(seg);
        let Extent { cache, low, high } = self.extents[seg];
        let mut over = SmallVec::new();
        if !change.maps.entry(cache).or_default().acquire(low, high, |piece| over.push(piece)) {
            return Err(self.overlap(step, pos));
        }
        change.over.push((seg, over));
        Ok(())
    }

    /// Makes the change, and marks every step whose links it touches.
    fn commit(&mut self, at: Pos, steps: &[StepIx], change: Change) {
        let stretch = at.index()..at.index() + steps.len();
        let behind = self.acquires_behind(stretch.clone().map(Pos::new).collect::<Vec<_>>().as_slice());
        self.relink_pipes(at, steps);
        for (i, &step) in steps.iter().enumerate() {
            let pos = Pos::new(at.index() + i);
            self.order[pos] = step;
            self.places[step] = pos;
            self.scratch.marks.set(pos);
        }
        for (slot, op, seg) in change.held {
            let old = std::mem::replace(&mut self.held[slot], seg);
            if let Some(i) = self.users[old].iter().position(|&u| u == op) {
                self.users[old].swap_remove(i);
            }
            self.users[seg].push(op);
            for seg in [old, seg] {
                self.scratch.marks.set(self.places[self.release_of[seg]]);
            }
        }
        for (seg, over) in change.over {
            self.set_over(seg, over);
        }
        // Addresses that the stretch released last may now have been released by another of its
        // steps; which addresses those are does not change.
        for seg in behind {
            let cache = self.extents[seg].cache;
            let mut over = SmallVec::new();
            for &piece in &self.over[seg] {
                match change.maps.get(&cache) {
                    Some(map) if stretch.contains(&self.places[piece.by].index()) => {
                        map.released(piece.low, piece.high, |p| over.push(p));
                    }
                    _ => over.push(piece),
                }
            }
            self.set_over(seg, over);
            self.scratch.marks.set(self.places[self.acquire(seg)]);
        }
    }

    /// The segments that open behind a stretch and lie over one that closes in it.
    fn acquires_behind(&mut self, stretch: &[Pos]) -> Vec<SegIx> {
        let Some(&last) = stretch.last() else { return Vec::new() };
        let mut behind = Vec::new();
        for &pos in stretch {
            let step = self.order[pos];
            let is_release = match self.ends_of(step) {
                Ends::Node(n) => matches!(self.graph.kind(n), NodeKind::Free(_)),
                Ends::Out(_) => true,
                Ends::Back(_) => false,
            };
            if !is_release {
                continue;
            }
            for &seg in &self.under[self.own_segment[step]] {
                if self.places[self.acquire(seg)] > last && self.scratch.seen[seg] != self.scratch.stamp {
                    self.scratch.seen[seg] = self.scratch.stamp;
                    behind.push(seg);
                }
            }
        }
        behind
    }

    fn set_over(&mut self, seg: SegIx, over: SmallVec<[Piece; 2]>) {
        let old = std::mem::replace(&mut self.over[seg], over);
        for piece in old {
            let under = &mut self.under[self.own_segment[piece.by]];
            if let Some(i) = under.iter().position(|&s| s == seg) {
                under.swap_remove(i);
            }
        }
        for i in 0..self.over[seg].len() {
            let by = self.over[seg][i].by;
            self.under[self.own_segment[by]].push(seg);
        }
    }

    /// Sets the order of every pipe along the stretch.
    fn relink_pipes(&mut self, at: Pos, steps: &[StepIx]) {
        // Of each pipe: the last step before the stretch, then the last so far, and the first after.
        let mut tails: BTreeMap<PipeIx, (StepIx, StepIx)> = BTreeMap::new();
        for i in 0..steps.len() {
            let step = self.order[Pos::new(at.index() + i)];
            if let Some(pipe) = self.pipes[step] {
                let (before, after) = (self.pipe_before[step], self.pipe_after[step]);
                tails.entry(pipe).and_modify(|t| t.1 = after).or_insert((before, after));
            }
        }
        for &step in steps {
            let Some((tail, _)) = self.pipes[step].and_then(|pipe| tails.get_mut(&pipe)) else { continue };
            self.pipe_before[step] = *tail;
            if *tail != NONE {
                self.pipe_after[*tail] = step;
            }
            *tail = step;
        }
        for (pipe, (tail, after)) in tails {
            self.pipe_after[tail] = after;
            if after == NONE {
                self.pipe_last[pipe] = tail;
            } else {
                self.pipe_before[after] = tail;
                self.scratch.marks.set(self.places[after]);
            }
        }
    }
}
