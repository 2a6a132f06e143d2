//! What a search makes small.

use crate::evaluator::Evaluator;
use crate::median::median;
use crate::model::{ItemIx, Model};
use crate::peak::Peak;
use crate::realize;
use crate::residency::Residency;
use spillbench_core::metrics::measure;
use spillbench_core::planner::{PlanError, Workspace};
use spillbench_core::{Graph, Machine, Plan};

/// An objective: how an order is judged while searching, and a plan in the end.
pub trait Objective: Sync {
    /// What commands and tables call it.
    fn name(&self) -> &'static str;

    /// The cost of orders, as the local search sees it.
    fn evaluator<'a>(&self, model: &'a Model<'a>) -> Box<dyn Evaluator + 'a>;

    /// A typical change of that cost by one move: the unit of temperature.
    fn unit(&self, model: &Model<'_>) -> f64;

    /// The value of a valid plan; `None` when it breaks what the objective demands of a schedule.
    fn value(&self, graph: &Graph, machine: &Machine, plan: &Plan) -> Option<u64>;

    /// The least value that a plan of an order of this cost is expected to have, if the cost tells.
    /// The search makes no plan of an order that promises nothing better than what it has, and of
    /// several that do, in case addresses are not found for the best.
    fn promise(&self, _model: &Model<'_>, _cost: u64) -> Option<u64> {
        None
    }

    /// A valid plan of an order of items; `hits` are those of the evaluator. What may take long tries
    /// nothing more once `stop` says so.
    ///
    /// # Errors
    /// When no plan exists.
    fn realize(
        &self,
        model: &Model<'_>,
        order: &[ItemIx],
        hits: &[bool],
        workspace: &mut Workspace,
        stop: &dyn Fn() -> bool,
    ) -> Result<Plan, PlanError> {
        realize::realize(model, order, hits, workspace, stop)
    }
}

/// Least extra data movement of a valid plan, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastMovement;

impl Objective for LeastMovement {
    fn name(&self) -> &'static str {
        "movement"
    }

    fn evaluator<'a>(&self, model: &'a Model<'a>) -> Box<dyn Evaluator + 'a> {
        Box::new(Residency::new(model))
    }

    fn unit(&self, model: &Model<'_>) -> f64 {
        let residency = Residency::new(model);
        let shift = residency.shift();
        typical(residency.contested().map(|b| model.graph().buf(b).movement().0 >> shift))
    }

    fn value(&self, graph: &Graph, _machine: &Machine, plan: &Plan) -> Option<u64> {
        Some(realize::movement(graph, plan))
    }

    fn promise(&self, model: &Model<'_>, cost: u64) -> Option<u64> {
        Some(cost.saturating_mul(1 << model.cost_shift()))
    }
}

/// Least peak demand, capacities ignored, with at most one live buffer in each exclusive cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastPeak;

impl Objective for LeastPeak {
    fn name(&self) -> &'static str {
        "peak"
    }

    fn evaluator<'a>(&self, model: &'a Model<'a>) -> Box<dyn Evaluator + 'a> {
        Box::new(Peak::new(model))
    }

    fn unit(&self, model: &Model<'_>) -> f64 {
        typical(model.graph().bufs().map(|b| model.graph().buf(b).size.0))
    }

    fn value(&self, graph: &Graph, machine: &Machine, plan: &Plan) -> Option<u64> {
        let exclusive = crate::peak::keeps_exclusive(graph, machine, plan);
        exclusive.then(|| measure(graph, machine, plan).ok().map(|m| m.peak_demand.0))?
    }
}

fn typical(values: impl Iterator<Item = u64>) -> f64 {
    median(values).unwrap_or(0).max(1) as f64
}

/// All objectives by name, with one line each.
pub static OBJECTIVES: &[(&str, &str, &dyn Objective)] = &[
    ("movement", "least extra data movement of a valid plan, in bytes", &LeastMovement),
    ("peak", "least peak demand, with at most one live buffer in each exclusive cache", &LeastPeak),
];

/// The objective of that name.
pub fn objective(name: &str) -> Option<&'static dyn Objective> {
    OBJECTIVES.iter().find(|o| o.0 == name).map(|o| o.2)
}
