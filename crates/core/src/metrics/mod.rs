//! The figures of a plan: movement, occupancy and time, as section 4 of the problem model has them.
//!
//! [`measure`] gives all of them at once. The parts stand alone for figures and reports:
//! [`residency::segments`] says what lies where, [`timing::segment`] when each step runs,
//! [`occupancy::observe`] how full and how fragmented each cache is along the plan.

mod error;
pub(crate) mod last_release;
pub mod movement;
pub mod occupancy;
pub mod residency;
pub mod steps;
pub mod timing;

pub use error::MeasureError;
pub use movement::{Movement, SpillCounts, Split};
pub use residency::Segment;
pub use steps::{Step, Steps};
pub use timing::{Span, Timeline};

use crate::graph::Graph;
use crate::hardware::Machine;
use crate::plan::Plan;
use crate::units::{Bytes, Cycles};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The figures of one plan. Maps by cache stand in the graph's order of caches, maps by pipe in the
/// machine's order of pipes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Bytes moved by spills: `size` for each of a backed buffer, `2·size` of a generated one.
    pub extra_movement: Bytes,
    /// The number of spills.
    pub spill_count: u64,
    /// Cycles by the timing model `segment`; `None` when some op has no pipe or cycles.
    pub makespan: Option<Cycles>,
    /// Cycles by the timing model `literal`.
    pub makespan_literal: Option<Cycles>,
    /// The larger of the busiest pipe and the longest path over graph, implied and spill edges.
    pub makespan_lower_bound: Option<Cycles>,
    /// The most bytes live at once in the caches that count in it, by the `ALLOC`s and `FREE`s of
    /// the plan's schedule, spills and capacities ignored.
    pub peak_demand: Bytes,
    /// The most bytes resident at once, per cache.
    pub peak_residency: IndexMap<String, Bytes>,
    /// 1 − largest free block / free bytes (0 when full), the mean over the positions of the plan's
    /// schedule, each seen just after its step; per cache.
    pub fragmentation: IndexMap<String, f64>,
    /// Cycles that each pipe works, spills included.
    pub pipe_busy: Option<IndexMap<String, Cycles>>,
    /// Picojoules of all ops, spills and the cycles that the plan lasts; `None` when the hardware
    /// states no energy, some op has no pipe or cycles, or the sum passes 2⁶⁴ − 1.
    #[serde(default)]
    pub energy: Option<u64>,
    /// The extra data movement, split by cache, by backed / generated and by cause.
    pub movement: Movement,
}

/// Measures a plan of `graph` on `machine`.
///
/// # Errors
/// The first thing that makes the plan invalid, without a claim to tell all of them (the checker
/// does); or a sum that passes 2⁶⁴ − 1.
pub fn measure(graph: &Graph, machine: &Machine, plan: &Plan) -> Result<Metrics, MeasureError> {
    let movement = Movement::of(graph, plan)?;
    let steps = Steps::resolve(graph, plan)?;
    let segments = residency::of_steps(graph, machine, &steps)?;
    let caches = occupancy::of_segments(graph, machine, &steps, &segments)?;
    let times = timing::of_segments(graph, machine, &steps, &segments)?;
    let by_cache = || caches.iter_enumerated().map(|(c, o)| (graph.cache_name(c).to_owned(), o));
    let by_pipe = |busy: &typed_index_collections::TiVec<_, Cycles>| {
        machine.pipe_names().iter().cloned().zip(busy.iter().copied()).collect()
    };
    Ok(Metrics {
        extra_movement: movement.bytes(),
        spill_count: movement.spills(),
        makespan: times.as_ref().map(|t| t.makespan),
        makespan_literal: times.as_ref().map(|t| t.makespan_literal),
        makespan_lower_bound: times.as_ref().map(|t| t.lower_bound),
        peak_demand: occupancy::peak_demand(graph, machine, &steps),
        peak_residency: by_cache().map(|(name, o)| (name, o.peak)).collect(),
        fragmentation: by_cache().map(|(name, o)| (name, o.fragmentation)).collect(),
        pipe_busy: times.as_ref().map(|t| by_pipe(&t.busy)),
        energy: times.as_ref().and_then(|t| energy(graph, machine, plan, t.makespan)),
        movement,
    })
}

/// The energy of a plan of that makespan, in picojoules.
fn energy(graph: &Graph, machine: &Machine, plan: &Plan, makespan: Cycles) -> Option<u64> {
    let model = machine.energy()?;
    let ops = graph.nodes().map(|n| model.op(graph, n));
    let spills = plan.spills.iter().filter_map(|s| graph.buf_by_id(s.buf)).map(|b| model.spill(graph, machine, b));
    let lasting = model.per_cycle().checked_mul(makespan.0)?;
    ops.chain(spills).try_fold(lasting, u64::checked_add)
}
