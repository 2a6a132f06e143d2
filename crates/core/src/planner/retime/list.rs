//! List scheduling: time goes on, and whenever a pipe is free it takes the most urgent of the steps
//! that are ready for it.

use super::network::Network;
use crate::index::{Lists, PipeIx, StepIx, indices};
use crate::metrics::timing::TimedPlan;
use crate::units::Cycles;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use typed_index_collections::{TiSlice, TiVec, ti_vec};

/// Which way time runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the start of the plan.
    Forward,
    /// From its end.
    Backward,
}

/// Urgency of a step; ties go to what stood first, or last when time runs backward.
type Urgency = (Cycles, Reverse<u32>, StepIx);

/// What one pipe has to choose from.
#[derive(Default)]
struct Desk {
    free_at: Cycles,
    ready: BinaryHeap<Urgency>,
    /// Steps that are known to become ready later, by when. All that such a step waits for runs, so
    /// there are no more times than pipes.
    coming: BTreeMap<Cycles, BinaryHeap<Urgency>>,
}

/// The storage of list schedules of one network.
pub(super) struct List<'a> {
    timed: &'a TimedPlan<'a>,
    network: &'a Network,
    desks: TiVec<PipeIx, Desk>,
    waiting: TiVec<StepIx, u32>,
    ready_at: TiVec<StepIx, Cycles>,
    starts: TiVec<StepIx, Cycles>,
    order: Vec<StepIx>,
    events: BinaryHeap<Reverse<(Cycles, PipeIx)>>,
    makespan: Cycles,
}

impl<'a> List<'a> {
    pub(super) fn new(timed: &'a TimedPlan<'a>, network: &'a Network) -> Self {
        let steps = timed.order().len();
        Self {
            timed,
            network,
            desks: timed.machine().pipe_names().iter().map(|_| Desk::default()).collect(),
            waiting: ti_vec![0; steps],
            ready_at: ti_vec![Cycles(0); steps],
            starts: ti_vec![Cycles(0); steps],
            order: Vec::with_capacity(steps),
            events: BinaryHeap::new(),
            makespan: Cycles(0),
        }
    }

    /// Schedules all steps and returns how long they take. A pipe waits for a more urgent step that
    /// comes within `patience` quarters of what it would run instead.
    pub(super) fn run(&mut self, direction: Direction, patience: u64, urgency: &dyn Fn(StepIx) -> Cycles) -> Cycles {
        let (before, after) = match direction {
            Direction::Forward => (&self.network.before, &self.network.after),
            Direction::Backward => (&self.network.after, &self.network.before),
        };
        self.order.clear();
        self.makespan = Cycles(0);
        self.ready_at.fill(Cycles(0));
        self.desks.iter_mut().for_each(|d| d.free_at = Cycles(0));
        indices(&self.waiting).for_each(|s| self.waiting[s] = before.get(s).len() as u32);
        let rank = |s: StepIx| {
            let place = self.timed.place(s).index() as u32;
            let rank = if direction == Direction::Forward { place } else { u32::MAX - place };
            (urgency(s), Reverse(rank), s)
        };
        let free: Vec<_> = indices(&self.waiting).filter(|&s| self.waiting[s] == 0).collect();
        free.into_iter().for_each(|s| self.arrive(s, after, &rank));
        while let Some(Reverse((now, pipe))) = self.events.pop() {
            self.serve(now, pipe, patience, after, &rank);
        }
        self.makespan
    }

    /// The steps that run on pipes, in the order in which they started.
    pub(super) fn order(&self) -> &[StepIx] {
        &self.order
    }

    /// When each step started.
    pub(super) fn starts(&self) -> &TiSlice<StepIx, Cycles> {
        &self.starts
    }

    /// Sends a step to its pipe, or past it when it needs none.
    fn arrive(&mut self, step: StepIx, after: &Lists<StepIx, StepIx>, rank: &dyn Fn(StepIx) -> Urgency) {
        let mut arrived = vec![step];
        while let Some(step) = arrived.pop() {
            let at = self.ready_at[step];
            match self.timed.pipe(step) {
                Some(pipe) => {
                    self.desks[pipe].coming.entry(at).or_default().push(rank(step));
                    self.events.push(Reverse((at, pipe)));
                }
                None => {
                    self.starts[step] = at;
                    self.finish(step, at, after, &mut arrived);
                }
            }
        }
    }

    /// Notes that a step ends at `end`; what waited for it last is added to `arrived`.
    fn finish(&mut self, step: StepIx, end: Cycles, after: &Lists<StepIx, StepIx>, arrived: &mut Vec<StepIx>) {
        for &next in after.get(step) {
            self.ready_at[next] = self.ready_at[next].max(end);
            self.waiting[next] -= 1;
            if self.waiting[next] == 0 {
                arrived.push(next);
            }
        }
    }

    /// Lets a pipe that is free take a step, if it has one.
    fn serve(
        &mut self,
        now: Cycles,
        pipe: PipeIx,
        patience: u64,
        after: &Lists<StepIx, StepIx>,
        rank: &dyn Fn(StepIx) -> Urgency,
    ) {
        let desk = &mut self.desks[pipe];
        while let Some(first) = desk.coming.first_entry().filter(|e| *e.key() <= now) {
            let mut arrived = first.remove();
            // The smaller heap into the larger.
            if arrived.len() > desk.ready.len() {
                std::mem::swap(&mut arrived, &mut desk.ready);
            }
            desk.ready.extend(arrived);
        }
        if desk.free_at > now {
            return;
        }
        let Some(&best) = desk.ready.peek() else { return };
        let until = now + Cycles(self.timed.cycles(best.2).0 / 4 * patience);
        let worth_waiting = desk.coming.iter().take_while(|(at, _)| **at < until);
        if worth_waiting.into_iter().any(|(_, steps)| steps.peek().is_some_and(|s| s.0 > best.0)) {
            // It comes with an event of its own.
            return;
        }
        desk.ready.pop();
        let step = best.2;
        let end = now + self.timed.cycles(step);
        desk.free_at = end;
        self.events.push(Reverse((end, pipe)));
        self.starts[step] = now;
        self.order.push(step);
        self.makespan = self.makespan.max(end);
        let mut arrived = Vec::new();
        self.finish(step, end, after, &mut arrived);
        arrived.into_iter().for_each(|s| self.arrive(s, after, rank));
    }
}
