//! How far a plan is from the best possible: the bound that covers what it moved, computed once for
//! all plans of one schedule.

use super::run::{Run, RunError};
use serde::Serialize;
use spillbench_bounds::attribution::{Attribution, When, attribute, cover_of, gap};
use spillbench_bounds::{Bound, Cover, bound};
use spillbench_core::plan::Plan;
use spillbench_core::planner::Workspace;
use spillbench_core::{Bytes, Graph, Machine, Schedule};
use spillbench_heuristics::Policy;

/// A plan beside its bound: the keys are always there, null where no bound was computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// No plan that the cover describes moves less.
    pub bound: Option<Bytes>,
    /// What the plan moves beyond that.
    pub gap: Option<Bytes>,
    /// How the bound was found.
    pub bound_kind: Option<&'static str>,
    /// Of which plans it speaks: those that move no more than this one did.
    pub bound_cover: Option<Cover>,
    /// True where the plan has another order of ops than its schedule, so that no bound of the
    /// schedule covers it.
    #[serde(skip)]
    pub uncovered: bool,
}

/// The bounds of one schedule, each computed when a plan first needs it.
#[derive(Debug)]
pub struct Bounds<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    schedule: &'a Schedule,
    applies: bool,
    known: Vec<Bound>,
}

impl<'a> Bounds<'a> {
    /// The bounds of `schedule`, none of which is known yet.
    pub fn new((graph, machine, schedule): (&'a Graph, &'a Machine, &'a Schedule), when: When) -> Self {
        Self { graph, machine, schedule, applies: when.applies(graph), known: Vec::new() }
    }

    /// The bound of a cover; `None` where no bound is to be computed, and for every order.
    ///
    /// # Errors
    /// When there is no plan at all.
    pub fn covering(&mut self, cover: Cover) -> Result<Option<&Bound>, RunError> {
        if !self.applies || cover == Cover::EveryOrder {
            return Ok(None);
        }
        if !self.known.iter().any(|b| b.cover == cover) {
            self.known.push(bound(self.graph, self.machine, self.schedule, cover)?);
        }
        Ok(self.known.iter().find(|b| b.cover == cover))
    }

    /// How far a plan of the schedule that moves `movement` is from its bound.
    ///
    /// # Errors
    /// When there is no plan at all.
    pub fn of(&mut self, plan: &Plan, movement: Bytes) -> Result<Gap, RunError> {
        let cover = cover_of(self.graph, self.schedule, plan);
        let uncovered = self.applies && cover == Cover::EveryOrder;
        Ok(self.covering(cover)?.map_or_else(
            || Gap { uncovered, ..Gap::default() },
            |b| Gap {
                bound: Some(b.value),
                gap: Some(gap(movement, b.value)),
                bound_kind: Some(b.kind.name()),
                bound_cover: Some(b.cover),
                uncovered: false,
            },
        ))
    }
}

/// How far a plan is from its bound, and what put it there.
#[derive(Debug)]
pub struct Excess {
    /// How far.
    pub gap: Gap,
    /// What put it there; `None` where no bound was computed.
    pub attribution: Option<Attribution>,
}

/// Splits what a run moves into its causes; `best` is the best schedule known, if one is.
///
/// # Errors
/// When there is no plan at all.
pub fn excess(
    (graph, machine, schedule): (&Graph, &Machine, &Schedule),
    policy: &Policy,
    run: &Run,
    (best, when): (Option<&Schedule>, When),
) -> Result<Excess, RunError> {
    let none = Excess { gap: Gap::default(), attribution: None };
    let Some(metrics) = &run.verdict.metrics else { return Ok(none) };
    let gap = Bounds::new((graph, machine, schedule), when).of(&run.plan, metrics.extra_movement)?;
    let (Some(bound), Some(cover)) = (gap.bound, gap.bound_cover) else {
        return Ok(Excess { gap, attribution: None });
    };
    let best = match best {
        Some(best) => Bounds::new((graph, machine, best), when).covering(cover)?.map(|b| b.value),
        None => None,
    };
    let in_bytes = policy.movement_in_bytes(graph, machine, schedule, &mut Workspace::default())?;
    let attribution = attribute(metrics.extra_movement, Some(in_bytes), bound, best);
    Ok(Excess { gap, attribution: Some(attribution) })
}
