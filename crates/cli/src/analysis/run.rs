//! One run of the planner: planned, checked by the independent checker, measured, timed.

use serde::Serialize;
use spillbench_bounds::ModelError;
use spillbench_bounds::exact::ExactError;
use spillbench_core::checker::{self, Report, Violation};
use spillbench_core::metrics::{MeasureError, Metrics, Movement, measure};
use spillbench_core::plan::Plan;
use spillbench_core::planner::{Observer, PlanError, Workspace};
use spillbench_core::units::{Bytes, Cycles};
use spillbench_core::{Graph, Machine, Schedule};
use spillbench_heuristics::Policy;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use thiserror::Error;

/// A plan with what the checker and the metrics say of it.
#[derive(Debug)]
pub struct Run {
    /// The plan.
    pub plan: Plan,
    /// What the checker and the metrics say.
    pub verdict: Verdict,
    /// How long planning took.
    pub planning: Duration,
    /// How long checking and measuring took.
    pub checking: Duration,
}

/// What the checker says of a plan, and its figures when it is valid.
#[derive(Debug)]
pub struct Verdict {
    /// What the checker says.
    pub report: Report,
    /// The figures; `None` when the plan is not valid.
    pub metrics: Option<Metrics>,
    /// The movement of a plan that is not valid, as far as its spills are of buffers of the graph;
    /// that of a valid plan is in its figures.
    invalid_movement: Option<Movement>,
}

/// Why a run has no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan is valid, and its figures pass 64 bits.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// There is no bound.
    #[error(transparent)]
    Bound(#[from] ModelError),
    /// There is no exact solution.
    #[error(transparent)]
    Exact(#[from] ExactError),
}

impl Run {
    /// Plans, checks and measures.
    ///
    /// # Errors
    /// When there is no plan, or a figure passes 64 bits.
    pub fn new(
        (graph, machine, schedule): (&Graph, &Machine, &Schedule),
        policy: &Policy,
        workspace: &mut Workspace,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Self, RunError> {
        let started = Instant::now();
        let plan = match observer {
            None => policy.plan(graph, machine, schedule, workspace)?,
            Some(observer) => policy.plan_observed(graph, machine, schedule, workspace, observer)?,
        };
        let planned = Instant::now();
        let verdict = Verdict::of(graph, machine, &plan)?;
        Ok(Self { plan, verdict, planning: planned - started, checking: planned.elapsed() })
    }
}

impl Verdict {
    /// Checks a plan and measures it when it is valid.
    ///
    /// # Errors
    /// When a figure of a valid plan passes 64 bits.
    pub fn of(graph: &Graph, machine: &Machine, plan: &Plan) -> Result<Self, MeasureError> {
        let report = checker::check(graph, machine, plan);
        let valid = report.is_valid();
        let metrics = if valid { Some(measure(graph, machine, plan)?) } else { None };
        let invalid_movement = if valid { None } else { Movement::of(graph, plan).ok() };
        Ok(Self { report, metrics, invalid_movement })
    }

    /// What the spills move, valid or not; `None` when some spill is of no buffer of the graph.
    pub fn movement(&self) -> Option<&Movement> {
        self.metrics.as_ref().map(|m| &m.movement).or(self.invalid_movement.as_ref())
    }

    /// The figures under the keys of `--json`.
    pub fn figures(&self) -> Figures<'_> {
        let (metrics, movement) = (self.metrics.as_ref(), self.movement());
        Figures {
            valid: self.report.is_valid(),
            extra_movement: movement.map(Movement::bytes),
            spill_count: movement.map(Movement::spills),
            makespan: metrics.and_then(|m| m.makespan),
            makespan_literal: metrics.and_then(|m| m.makespan_literal),
            makespan_lower_bound: metrics.and_then(|m| m.makespan_lower_bound),
            energy: metrics.and_then(|m| m.energy),
            peak_demand: metrics.map(|m| m.peak_demand),
            peak_residency: metrics.map(|m| m.peak_residency.iter().map(|(c, &b)| (c.as_str(), b)).collect()),
            fragmentation: metrics.map(|m| m.fragmentation.iter().map(|(c, &f)| (c.as_str(), f)).collect()),
            pipe_busy: metrics
                .and_then(|m| m.pipe_busy.as_ref())
                .map(|busy| busy.iter().map(|(p, &c)| (p.as_str(), c)).collect()),
            movement,
            violation_count: self.report.total(),
            violations: self.report.violations(),
        }
    }
}

/// The figures of a plan as `--json` shows them: the keys are always there, null when the plan is
/// not valid or the graph has no timing. Movement and spills are told of plans that are not valid,
/// too.
#[derive(Debug, Serialize)]
pub struct Figures<'a> {
    /// True when the checker finds no fault.
    pub valid: bool,
    /// Bytes moved by spills.
    pub extra_movement: Option<Bytes>,
    /// The number of spills.
    pub spill_count: Option<u64>,
    /// Cycles by the timing model `segment`.
    pub makespan: Option<Cycles>,
    /// Cycles by the timing model `literal`.
    pub makespan_literal: Option<Cycles>,
    /// No schedule of pipes and dependencies takes fewer cycles.
    pub makespan_lower_bound: Option<Cycles>,
    /// Picojoules, where the hardware states an energy model.
    pub energy: Option<u64>,
    /// Most bytes live at once in the caches that count in it.
    pub peak_demand: Option<Bytes>,
    /// Most bytes resident at once, per cache.
    pub peak_residency: Option<BTreeMap<&'a str, Bytes>>,
    /// Mean fragmentation, per cache.
    pub fragmentation: Option<BTreeMap<&'a str, f64>>,
    /// Cycles that each pipe works.
    pub pipe_busy: Option<BTreeMap<&'a str, Cycles>>,
    /// The movement, split.
    pub movement: Option<&'a Movement>,
    /// How many violations there are, listed or not.
    pub violation_count: u64,
    /// The first thousand violations of each rule.
    pub violations: &'a [Violation],
}

/// Milliseconds with three decimals.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}
