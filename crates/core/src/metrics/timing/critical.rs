//! The critical path: the chain of steps and waits that is as long as the plan.

use super::links::LinkKind;
use super::network::TimedPlan;
use crate::index::StepIx;
use crate::units::Cycles;
use serde::Serialize;

/// One step of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalStep {
    /// The step.
    pub step: StepIx,
    /// The link to the step before it on the path; `None` for the first.
    pub link: Option<LinkKind>,
}

/// What the path waits for by links of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindTotal {
    /// The kind.
    pub kind: LinkKind,
    /// How often one piece of work waits for the one before it by this kind.
    pub waits: usize,
    /// Cycles of the work that is waited for.
    pub cycles: Cycles,
}

/// A chain of steps, each of which starts when the one before it ends, from the start of the plan to
/// its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// The steps in order, cache nodes included.
    pub steps: Vec<CriticalStep>,
    /// The waits of the path by kind. `ALLOC` and `FREE` take no time, so that they do not count as
    /// work: from an op through them to the next it is one wait, by address when it crosses an
    /// address, otherwise by the last link. A kind that does not occur is there with zeros.
    pub by_kind: Vec<KindTotal>,
    /// Cycles of the last work of the path, for which nothing waits. With those of `by_kind` they
    /// are the makespan.
    pub last: Cycles,
}

impl TimedPlan<'_> {
    /// The critical path. Of several steps that end last, the first in the schedule is its end; of
    /// several links that hold a step, it takes the one that [`TimedPlan::binding`] names.
    pub fn critical_path(&self) -> CriticalPath {
        let makespan = self.makespan();
        let last = self.order().iter().copied().find(|&s| self.end(s) == makespan);
        let mut steps = Vec::new();
        let mut at = last;
        while let Some(step) = at {
            let binding = self.binding(step);
            steps.push(CriticalStep { step, link: binding.map(|l| l.kind) });
            at = binding.map(|l| l.from);
        }
        steps.reverse();
        self.summed(steps)
    }

    fn summed(&self, steps: Vec<CriticalStep>) -> CriticalPath {
        let mut by_kind = LinkKind::ALL.map(|kind| KindTotal { kind, waits: 0, cycles: Cycles(0) });
        let mut work: Option<StepIx> = None;
        let mut crossed_address = false;
        for CriticalStep { step, link } in &steps {
            crossed_address |= *link == Some(LinkKind::Address);
            if self.is_cache_node(*step) {
                continue;
            }
            if let (Some(before), Some(link)) = (work, *link) {
                let kind = if crossed_address { LinkKind::Address } else { link };
                let total = by_kind.iter_mut().find(|t| t.kind == kind);
                if let Some(total) = total {
                    total.waits += 1;
                    total.cycles += self.cycles(before);
                }
            }
            work = Some(*step);
            crossed_address = false;
        }
        let last = work.map(|s| self.cycles(s)).unwrap_or_default();
        CriticalPath { steps, by_kind: by_kind.to_vec(), last }
    }
}
