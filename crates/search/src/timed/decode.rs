//! The decoder: from an order of items to eviction, addresses and times in one walk.
//!
//! Ops go in the order given. An op first brings in what it needs: a buffer not yet born is
//! allocated, and loaded where a load stands before its first use; a spilled one comes back. Space is
//! a hole that was released by the time it can be used and leaves little over; where there is no
//! hole, the residents of one window go: those that cost little, are needed late, and whose going does
//! not hold up the newcomer. A buffer is freed behind its last use. Times follow the timing model
//! `segment` exactly, so that the makespan is that of the plan that comes out.
//!
//! The state is kept at checkpoints along the order, so a change is decoded from the last one before
//! it. What was evicted before that stays as it was decided, although next uses behind it may have
//! moved: a walk of the whole order may decide otherwise, and is what plans are made of. A probe ends as soon as its cost is bound to pass the limit: what a pipe still has to do, or the
//! longest path behind an op, is a bound on the makespan.

use super::clock::{Clock, Why};
use super::goal::{Figures, Goal};
use super::program::{Buf, Program, Step, Work};
use super::rules::Rules;
use super::space::{Eviction, Space, Wish};
use crate::model::ItemIx;
use spillbench_core::index::NodeIx;

/// Checkpoints along an order.
const CHECKPOINTS: usize = 64;

/// Where a buffer is.
const UNBORN: u64 = u64::MAX;
const OUT: u64 = u64::MAX - 1;

/// Sees what the decoder does, in the order of the plan.
pub(super) trait Sink<T> {
    /// Something takes a pipe for some cycles, for the item at `pos`, once `start` has come; returns
    /// its number.
    fn event(&mut self, _pos: usize, _start: T, _cycles: u64) -> u32 {
        0
    }
    /// A node of the graph.
    fn node(&mut self, _node: NodeIx) {}
    /// A buffer is allocated.
    fn alloc(&mut self, _buf: &Buf, _offset: u64) {}
    /// A buffer moves out.
    fn out(&mut self, _buf: &Buf) {}
    /// A buffer comes back for a use at `pos`, having been used last at `since`.
    fn back(&mut self, _buf: &Buf, _offset: u64, _since: usize, _pos: usize) {}
}

/// Looks away.
impl<T> Sink<T> for () {}

/// What is known of a buffer.
#[derive(Clone, Copy, Debug)]
struct BufState<T> {
    /// Its address, [`UNBORN`] or [`OUT`].
    place: u64,
    /// End of the `ALLOC` or `SPILL_IN` of its segment.
    ready: T,
    /// End of its last user, or of its `SPILL_OUT`.
    quiet: T,
    /// Its next use among all uses.
    cursor: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pipe<T> {
    free: T,
    /// Cycles of ops that have not run.
    left: u64,
}

/// All that a walk goes on from.
#[derive(Debug, Default)]
struct State<T> {
    spaces: Vec<Space<T>>,
    bufs: Vec<BufState<T>>,
    pipes: Vec<Pipe<T>>,
    figures: Figures,
    /// No plan that goes on from here ends earlier.
    bound: u64,
}

impl<T: Clone> State<T> {
    /// Takes over all but the buffers behind the first `shared`, which live within one item.
    fn copy(&mut self, other: &Self, shared: usize) {
        self.spaces.clone_from(&other.spaces);
        self.pipes.clone_from(&other.pipes);
        if self.bufs.len() < shared {
            self.bufs.clear();
            self.bufs.extend_from_slice(&other.bufs[..shared]);
        } else {
            self.bufs[..shared].clone_from_slice(&other.bufs[..shared]);
        }
        (self.figures, self.bound) = (other.figures, other.bound);
    }
}

/// The end of a node in the current order and in the one being probed.
#[derive(Clone, Copy, Debug, Default)]
struct End<T> {
    current: T,
    probed: T,
    run: u32,
}

/// The decoder.
pub(super) struct Decoder<'a, T> {
    program: &'a Program<'a>,
    pub goal: Goal,
    pub rules: Rules,
    /// The position of every use, buffer by buffer, rising; and the place of every access there.
    uses: Vec<u32>,
    rank: Vec<u32>,
    ends: Vec<End<T>>,
    run: u32,
    state: State<T>,
    /// The step that needs a buffer now.
    pins: Vec<u64>,
    tick: u64,
    block: usize,
    current: Vec<State<T>>,
    probed: Vec<State<T>>,
    figures: Figures,
    probed_figures: Figures,
    /// Storage of windows and victims.
    scores: Vec<(f64, u64)>,
    victims: Vec<u32>,
}

impl<'a, T: Clock> Decoder<'a, T> {
    pub(super) fn new(program: &'a Program<'a>, goal: Goal, rules: Rules) -> Self {
        let items = program.model.len();
        let block = items.div_ceil(CHECKPOINTS).max(1);
        let states = || (0..items.div_ceil(block)).map(|_| State::default()).collect();
        Self {
            program,
            goal,
            rules,
            uses: vec![0; program.accesses.len()],
            rank: vec![0; program.accesses.len()],
            ends: vec![End::default(); program.model.graph().node_count()],
            run: 0,
            state: State::default(),
            pins: vec![0; program.bufs.len()],
            tick: 0,
            block,
            current: states(),
            probed: states(),
            figures: Figures::default(),
            probed_figures: Figures::default(),
            scores: Vec::new(),
            victims: Vec::new(),
        }
    }

    /// The figures of the current order.
    pub(super) fn figures(&self) -> Figures {
        self.figures
    }

    /// Makes `order` the current one.
    pub(super) fn reset(&mut self, order: &[ItemIx], sink: &mut impl Sink<T>) -> Figures {
        self.load_uses(order);
        self.begin();
        // Without a limit a walk always ends.
        self.walk(0, order, (0, &[]), u64::MAX, sink);
        self.commit(0);
        self.figures
    }

    /// The figures of `order` with `items` from position `first` on; `None` when their cost passes
    /// `limit`. They must not be committed then.
    pub(super) fn probe(&mut self, order: &[ItemIx], change: (usize, &[ItemIx]), limit: u64) -> Option<Figures> {
        let block = change.0 / self.block;
        self.lay_uses(change.0, change.1);
        if block == 0 {
            self.begin();
        } else {
            self.state.copy(&self.current[block], self.program.shared);
        }
        let done = self.walk(block * self.block, order, change, limit, &mut ());
        if done.is_none() {
            self.lay_uses(change.0, &order[change.0..change.0 + change.1.len()]);
        }
        done.map(|()| self.probed_figures)
    }

    /// Makes the order that was probed last, which changes from position `first` on, the current one.
    pub(super) fn commit(&mut self, first: usize) {
        let block = first / self.block;
        for b in block + 1..self.current.len() {
            std::mem::swap(&mut self.current[b], &mut self.probed[b]);
        }
        let run = self.run;
        for end in self.ends.iter_mut().filter(|e| e.run == run) {
            end.current = end.probed;
        }
        self.figures = self.probed_figures;
    }

    /// The state before the first item.
    fn begin(&mut self) {
        let program = self.program;
        self.state.spaces.resize_with(program.rooms.len(), Space::default);
        for (space, room) in self.state.spaces.iter_mut().zip(&program.rooms) {
            space.clear(room.capacity);
        }
        self.state.bufs.clear();
        self.state.bufs.extend(program.bufs.iter().map(unborn));
        self.state.pipes.clear();
        self.state.pipes.extend(program.work.iter().map(|&left| Pipe { free: T::default(), left }));
        self.state.figures = Figures::default();
        self.state.bound = 0;
    }

    /// Notes the positions of all uses.
    fn load_uses(&mut self, order: &[ItemIx]) {
        let mut next: Vec<u32> = self.program.bufs.iter().map(|b| b.uses.start as u32).collect();
        for (pos, &item) in order.iter().enumerate() {
            for a in self.program.accesses_of(item) {
                let slot = &mut next[self.program.accesses[a].buf as usize];
                self.uses[*slot as usize] = pos as u32;
                self.rank[a] = *slot;
                *slot += 1;
            }
        }
    }

    /// Notes the positions of the uses of `items`, which stand from `first` on and share the ranks
    /// that they had in another order.
    fn lay_uses(&mut self, first: usize, items: &[ItemIx]) {
        let program = self.program;
        // The lowest rank of each buffer first, kept in the pins for want of a better place.
        let base = self.tick + 1;
        for &item in items {
            for a in program.accesses_of(item) {
                let (rank, pin) = (u64::from(self.rank[a]), &mut self.pins[program.accesses[a].buf as usize]);
                *pin = if *pin < base { base + rank } else { (*pin).min(base + rank) };
            }
        }
        for (i, &item) in items.iter().enumerate() {
            for a in program.accesses_of(item) {
                let pin = &mut self.pins[program.accesses[a].buf as usize];
                let rank = *pin - base;
                self.uses[rank as usize] = (first + i) as u32;
                self.rank[a] = rank as u32;
                *pin += 1;
            }
        }
        self.tick = base + self.uses.len() as u64 + 1;
    }

    /// Decodes from position `from`, where the state stands, to the end.
    fn walk(
        &mut self,
        from: usize,
        order: &[ItemIx],
        (first, items): (usize, &[ItemIx]),
        limit: u64,
        sink: &mut impl Sink<T>,
    ) -> Option<()> {
        self.run += 1;
        for (pos, &stays) in order.iter().enumerate().skip(from) {
            if pos > from && pos.is_multiple_of(self.block) {
                self.probed[pos / self.block].copy(&self.state, self.program.shared);
            }
            let item = match pos.checked_sub(first) {
                Some(i) if i < items.len() => items[i],
                _ => stays,
            };
            for step in self.program.steps_of(item) {
                self.step(step, pos, sink);
            }
            let figures = Figures { makespan: self.state.bound, ..self.state.figures };
            if self.goal.cost(figures) > limit {
                return None;
            }
        }
        self.probed_figures = self.state.figures;
        Some(())
    }

    fn step(&mut self, step: usize, pos: usize, sink: &mut impl Sink<T>) {
        let program = self.program;
        let step: &Step = &program.steps[step];
        let accesses = &program.accesses[step.accesses.clone()];
        self.tick += 1;
        let mut ready = self.latest_end(step.waits.clone());
        for a in accesses.iter().filter(|a| a.after_alloc) {
            // It must have been born; it may go again before the step runs.
            if self.state.bufs[a.buf as usize].place == UNBORN {
                self.enter(a.buf, step, ready, pos, sink);
            }
        }
        accesses.iter().filter(|a| a.is_operand).for_each(|a| self.pins[a.buf as usize] = self.tick);
        for a in accesses.iter().filter(|a| a.is_operand) {
            if self.state.bufs[a.buf as usize].place >= OUT {
                self.enter(a.buf, step, ready, pos, sink);
            }
        }
        if let Some(work) = step.work {
            for a in accesses {
                if a.is_operand {
                    ready = ready.later(self.state.bufs[a.buf as usize].ready);
                } else if a.after_alloc {
                    let alloc = program.model.graph().buf(program.bufs[a.buf as usize].ix).alloc;
                    ready = ready.later(self.end_of(alloc));
                }
            }
            let end = self.run_op(step.node, work, ready, pos, sink);
            for a in accesses.iter().filter(|a| a.is_operand) {
                let quiet = &mut self.state.bufs[a.buf as usize].quiet;
                *quiet = end.later(*quiet);
            }
        }
        self.leave(step, pos, sink);
    }

    /// Counts the uses of a step as done, and frees the buffers that have no other.
    fn leave(&mut self, step: &Step, pos: usize, sink: &mut impl Sink<T>) {
        let program = self.program;
        for a in &program.accesses[step.accesses.clone()] {
            let (buf, state) = (&program.bufs[a.buf as usize], &mut self.state.bufs[a.buf as usize]);
            state.cursor += 1;
            if (state.cursor as usize) < buf.uses.end {
                continue;
            }
            if state.place >= OUT {
                // Only a resident buffer can be freed; nothing must stay for it.
                self.tick += 1;
                self.enter(a.buf, step, T::default(), pos, sink);
            }
            let state = &mut self.state.bufs[a.buf as usize];
            let (offset, quiet) = (state.place, state.quiet);
            *state = unborn(buf);
            let at = quiet.later(self.latest_end(buf.free_waits.clone()));
            let free = program.model.graph().buf(buf.ix).free;
            self.set_end(free, at);
            sink.node(free);
            self.state.spaces[buf.cache].give(offset, at.because(Why::Address));
        }
    }

    fn run_op(&mut self, node: NodeIx, work: Work, ready: T, pos: usize, sink: &mut impl Sink<T>) -> T {
        let end = self.occupy(work.pipe, work.cycles, ready, pos, sink);
        let pipe = &mut self.state.pipes[work.pipe];
        pipe.left -= work.cycles;
        let by_pipe = pipe.free.at() + pipe.left + if pipe.left > 0 { self.program.least_tail[work.pipe] } else { 0 };
        self.state.bound = self.state.bound.max(end.at() + work.tail).max(by_pipe);
        self.set_end(node, end);
        sink.node(node);
        end
    }

    /// Runs something on a pipe; returns its end.
    fn occupy(&mut self, pipe: usize, cycles: u64, ready: T, pos: usize, sink: &mut impl Sink<T>) -> T {
        let free = &mut self.state.pipes[pipe].free;
        let start = ready.later(*free);
        let event = sink.event(pos, start, cycles);
        let end = T::of(start.at() + cycles, event);
        *free = end.because(Why::Pipe);
        self.state.figures.makespan = self.state.figures.makespan.max(end.at());
        self.state.bound = self.state.bound.max(end.at());
        end
    }

    /// Makes a buffer resident.
    fn enter(&mut self, b: u32, step: &Step, ready: T, pos: usize, sink: &mut impl Sink<T>) {
        let program = self.program;
        let buf = &program.bufs[b as usize];
        let is_out = self.state.bufs[b as usize].place == OUT;
        // When the space is wanted: when the pipe that fills it is free, or when the op may run.
        let pipe = match (is_out, buf.load) {
            (true, _) => Some(program.rooms[buf.cache].pipe_in),
            (false, Some((_, work))) => Some(work.pipe),
            (false, None) => step.work.map(|w| w.pipe),
        };
        let filled = pipe.map_or(0, |p| self.state.pipes[p].free.at());
        let wanted = if is_out || buf.load.is_some() { filled } else { filled.max(ready.at()) };
        let wish = Wish { size: buf.size, ready: wanted, wait: self.rules.wait, high: self.rules.is_high(buf) };
        let hole = self.state.spaces[buf.cache].hole(wish).or_else(|| self.clear_window(buf.cache, wish, pos, sink));
        match hole {
            Some(offset) => self.begin_segment(b, offset, pos, sink),
            None => self.repack(buf.cache, step, pos, sink),
        }
    }

    /// Begins a segment of a buffer in free addresses.
    fn begin_segment(&mut self, b: u32, offset: u64, pos: usize, sink: &mut impl Sink<T>) {
        let program = self.program;
        let buf = &program.bufs[b as usize];
        let release = self.state.spaces[buf.cache].take(offset, buf.size, b);
        let state = &mut self.state.bufs[b as usize];
        let was_out = std::mem::replace(&mut state.place, offset) == OUT;
        if was_out {
            let since = (state.cursor as usize).checked_sub(1).filter(|&c| c >= buf.uses.start);
            let since = since.map_or(pos, |c| self.uses[c] as usize);
            let (ready, pipe) = (state.quiet.later(release), program.rooms[buf.cache].pipe_in);
            sink.back(buf, offset, since, pos);
            let end = self.occupy(pipe, buf.cycles_in, ready, pos, sink);
            let state = &mut self.state.bufs[b as usize];
            (state.ready, state.quiet) = (end, end);
            return;
        }
        let at = release.later(self.latest_end(buf.alloc_waits.clone()));
        let alloc = program.model.graph().buf(buf.ix).alloc;
        self.set_end(alloc, at);
        sink.alloc(buf, offset);
        sink.node(alloc);
        let state = &mut self.state.bufs[b as usize];
        (state.ready, state.quiet) = (at, at);
        if let Some((node, work)) = buf.load {
            // Every other user waits for the load.
            let end = self.run_op(node, work, at, pos, sink);
            let state = &mut self.state.bufs[b as usize];
            (state.ready, state.quiet) = (end, end);
        }
    }

    /// Evicts the residents of the cheapest window; returns where it is.
    fn clear_window(&mut self, cache: usize, wish: Wish, pos: usize, sink: &mut impl Sink<T>) -> Option<u64> {
        let (program, rules) = (self.program, self.rules);
        let (bufs, pipes, uses, pins, tick) = (&self.state.bufs, &self.state.pipes, &self.uses, &self.pins, self.tick);
        let out = pipes[program.rooms[cache].pipe_out].free.at();
        let evict = |b: u32| {
            let (buf, state) = (&program.bufs[b as usize], &bufs[b as usize]);
            let distance = f64::from(uses[state.cursor as usize] - pos as u32 + 1);
            let release = state.quiet.at().max(out) + buf.cycles_out;
            (pins[b as usize] != tick).then(|| Eviction { cost: rules.eviction(buf, distance), release })
        };
        let offset = self.state.spaces[cache].window(wish, rules.stall, &mut self.scores, evict)?;
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        self.state.spaces[cache].residents(offset, wish.size, |b| victims.push(b));
        victims.iter().for_each(|&b| self.evict(b, pos, sink));
        self.victims = victims;
        Some(offset)
    }

    fn evict(&mut self, b: u32, pos: usize, sink: &mut impl Sink<T>) {
        let program = self.program;
        let buf = &program.bufs[b as usize];
        let state = &mut self.state.bufs[b as usize];
        let offset = std::mem::replace(&mut state.place, OUT);
        let quiet = state.quiet;
        sink.out(buf);
        let pipe = program.rooms[buf.cache].pipe_out;
        let end = self.occupy(pipe, buf.cycles_out, quiet, pos, sink);
        let state = &mut self.state.bufs[b as usize];
        (state.ready, state.quiet) = (end, end);
        self.state.spaces[buf.cache].give(offset, end.because(Why::Address));
        self.state.figures.moved += buf.moved;
        self.state.figures.price += buf.price;
    }

    /// The last resort: everything goes, and the buffers of the step come back from the bottom up.
    fn repack(&mut self, cache: usize, step: &Step, pos: usize, sink: &mut impl Sink<T>) {
        let program = self.program;
        let mut residents = std::mem::take(&mut self.victims);
        residents.clear();
        self.state.spaces[cache].residents(0, u64::MAX, |b| residents.push(b));
        residents.iter().for_each(|&b| self.evict(b, pos, sink));
        self.victims = residents;
        let mut offset = 0;
        for access in program.accesses[step.accesses.clone()].iter().filter(|a| a.is_operand) {
            let buf = &program.bufs[access.buf as usize];
            if buf.cache == cache {
                self.begin_segment(access.buf, offset, pos, sink);
                offset += buf.size;
            }
        }
    }

    fn latest_end(&self, waits: std::ops::Range<usize>) -> T {
        self.program.waits[waits].iter().fold(T::default(), |latest, &n| latest.later(self.end_of(n)))
    }

    #[inline]
    fn end_of(&self, node: NodeIx) -> T {
        let end = &self.ends[node.index()];
        if end.run == self.run { end.probed } else { end.current }
    }

    fn set_end(&mut self, node: NodeIx, at: T) {
        let end = &mut self.ends[node.index()];
        (end.probed, end.run) = (at, self.run);
    }
}

/// A buffer that is not there yet.
fn unborn<T: Clock>(buf: &Buf) -> BufState<T> {
    BufState { place: UNBORN, ready: T::default(), quiet: T::default(), cursor: buf.uses.start as u32 }
}

#[cfg(test)]
mod tests {
    use super::super::evaluator::Timed;
    use super::super::testing::{machine, random_graph};
    use super::*;
    use crate::draw::Draw;
    use crate::evaluator::{Change, Evaluator};
    use crate::model::Model;
    use crate::moves::Neighbourhood;
    use crate::ties::Ties;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        /// From every checkpoint on, an order that stays as it is ends as the whole walk did; and where
        /// nothing is evicted, so does one that changes.
        #[test]
        fn a_restart_from_a_checkpoint_equals_a_full_walk(
            seed in any::<u64>(), ops in 2usize..160, slack in 0u64..24, roomy in any::<bool>(),
        ) {
            let mut draw = Draw::new(seed, 0);
            let graph = random_graph(&mut draw, ops);
            let machine = machine(&graph, if roomy { 1 << 20 } else { slack });
            let model = Model::new(&graph, &machine);
            let ties = Ties::of(&model);
            let program = Program::new(&model, &|b| b.index() as u64).expect("it has timing");
            let rules = Rules::drawn(&program, &mut draw);
            let goal = Goal::makespan(Some(20));
            let order: Vec<_> = model.items().collect();
            let mut timed = Timed::new(&program, goal, rules);
            timed.reset(&order);
            let mut hood = Neighbourhood::new(&model, &ties, order);
            let mut fresh = Decoder::<u64>::new(&program, goal, rules);
            for _ in 0..40 {
                timed.refresh(hood.order());
                if !hood.propose(&timed, &mut draw) {
                    continue;
                }
                let (first, items) = hood.proposal();
                let change = Change { first, items };
                let as_is = Change { first, items: &hood.order()[first..first + items.len()] };
                prop_assert_eq!(timed.probe(hood.order(), as_is, u64::MAX), Some(timed.cost()));
                timed.commit(hood.order(), as_is);
                let mut after = hood.order().to_vec();
                after[first..first + items.len()].copy_from_slice(items);
                let figures = fresh.reset(&after, &mut ());
                let limit = timed.cost() + draw.below(400) as u64;
                let probed = timed.probe(hood.order(), change, limit);
                if roomy {
                    prop_assert_eq!(probed, Some(goal.cost(figures)).filter(|&c| c <= limit));
                }
                if probed.is_some() {
                    timed.commit(hood.order(), change);
                    hood.accept();
                    timed.reset(hood.order());
                    prop_assert_eq!(timed.figures(), figures);
                }
            }
        }
    }
}
