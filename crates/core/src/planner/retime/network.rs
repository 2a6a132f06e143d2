//! What must come before what, whatever the order of the pipes.

use crate::graph::NodeKind;
use crate::index::{Lists, StepIx, indices};
use crate::metrics::steps::Step;
use crate::metrics::timing::TimedPlan;
use crate::units::Cycles;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use typed_index_collections::{TiVec, ti_vec};

/// The links between the steps of a plan, those of the pipes left out.
pub(super) struct Network {
    pub(super) before: Lists<StepIx, StepIx>,
    pub(super) after: Lists<StepIx, StepIx>,
}

impl Network {
    pub(super) fn of(timed: &TimedPlan<'_>) -> Self {
        let steps = timed.order().len();
        let mut links = Vec::new();
        for step in (0..steps).map(StepIx::new) {
            timed.for_each_precedence(step, |link| links.push((link.from, step)));
        }
        let after = Lists::grouped(steps, steps, &links);
        links.iter_mut().for_each(|l| *l = (l.1, l.0));
        let before = Lists::grouped(steps, steps, &links);
        Self { before, after }
    }

    /// Of every step, the longest path from its end to the end of the plan.
    pub(super) fn tails(&self, timed: &TimedPlan<'_>) -> TiVec<StepIx, Cycles> {
        let mut tails = ti_vec![Cycles(0); timed.order().len()];
        for &step in timed.order().iter().rev() {
            let behind = self.after.get(step).iter().map(|&s| tails[s] + timed.cycles(s));
            tails[step] = behind.max().unwrap_or_default();
        }
        tails
    }

    /// The whole order in which the steps that run on pipes stand as given: each `ALLOC` just before
    /// the first that needs it, each `FREE` just after the last that it waits for.
    pub(super) fn interleave(&self, timed: &TimedPlan<'_>, run: &[StepIx]) -> Vec<StepIx> {
        let keys = self.keys(timed, run);
        let entry = |s: StepIx| {
            // Of one key: ALLOCs, then the step that runs, then FREEs.
            let phase = match timed.step(s) {
                Step::Node(n) => match timed.graph().kind(n) {
                    NodeKind::Alloc(_) => 0u8,
                    NodeKind::Op => 1,
                    NodeKind::Free(_) => 2,
                },
                Step::SpillOut { .. } | Step::SpillIn { .. } => 1,
            };
            Reverse((keys[s], phase, timed.place(s), s))
        };
        let mut waiting: TiVec<StepIx, u32> = indices(&keys).map(|s| self.before.get(s).len() as u32).collect();
        let mut ready: BinaryHeap<_> = indices(&keys).filter(|&s| waiting[s] == 0).map(entry).collect();
        let mut order = Vec::with_capacity(keys.len());
        while let Some(Reverse((_, _, _, step))) = ready.pop() {
            order.push(step);
            for &next in self.after.get(step) {
                waiting[next] -= 1;
                if waiting[next] == 0 {
                    ready.push(entry(next));
                }
            }
        }
        order
    }

    /// When each step should come: a step that runs, by its place among them; a `FREE`, with the last
    /// that it waits for; an `ALLOC`, with the first that waits for it.
    fn keys(&self, timed: &TimedPlan<'_>, run: &[StepIx]) -> TiVec<StepIx, u32> {
        let mut keys: TiVec<StepIx, u32> = ti_vec![0; timed.order().len()];
        run.iter().enumerate().for_each(|(i, &s)| keys[s] = i as u32);
        for &step in timed.order().iter().filter(|&&s| timed.is_cache_node(s)) {
            keys[step] = self.before.get(step).iter().map(|&p| keys[p]).max().unwrap_or(0);
        }
        let is_alloc = |s: StepIx| {
            matches!(timed.step(s), Step::Node(n)
                if matches!(timed.graph().kind(n), NodeKind::Alloc(_)))
        };
        for &step in timed.order().iter().rev().filter(|&&s| is_alloc(s)) {
            keys[step] = self.after.get(step).iter().map(|&n| keys[n]).min().unwrap_or(keys[step]);
        }
        keys
    }
}
