//! The spilling planner: walks a schedule, gives every buffer an address, and spills where space
//! runs out.
//!
//! The walk emits the new order as it goes; positions are those of the given schedule and are never
//! renumbered. When a request for space fails, the strategy chain is tried in order, and behind
//! every chain stands the last resort, so that planning fails only where the operands of one node
//! exceed their cache.

mod clock;
mod observe;
mod placement;
pub mod prefetch;
mod released;
mod rescue;
mod reserve;
pub mod retime;
mod runs;
mod strategy;
mod walk;
mod workspace;

pub use observe::{Clearing, Decision, Observer, Outcome, Victim};
pub use placement::Placement;
pub use strategy::Strategy;
pub use workspace::Workspace;

use crate::address_space::Addressing;
use crate::graph::Graph;
use crate::hardware::{FitError, Machine};
use crate::heuristic::VictimHeuristic;
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::units::{Bytes, Id};
use thiserror::Error;

/// How to plan, but for the victim heuristic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannerConfig {
    /// The strategy chain, each strategy at most once; the last resort stands behind it.
    pub strategies: Vec<Strategy>,
    /// The placement rule.
    pub placement: Placement,
    /// How often one `ALLOC` may be postponed; 0 switches postponing off.
    pub attempts: u32,
    /// How many op nodes a `SPILL_IN` may be brought forward; 0 switches prefetching off.
    pub prefetch: u32,
    /// Whether the finished plan is given a faster order ([`retime`]).
    pub retime: bool,
}

impl PlannerConfig {
    /// How often one `ALLOC` may be postponed unless said otherwise.
    pub const DEFAULT_ATTEMPTS: u32 = 5;
}

impl Default for PlannerConfig {
    fn default() -> Self {
        Self {
            strategies: Strategy::DEFAULT_CHAIN.to_vec(),
            placement: Placement::default(),
            attempts: Self::DEFAULT_ATTEMPTS,
            prefetch: 0,
            retime: false,
        }
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No plan exists: something does not fit its cache by itself. Never empty.
    #[error("{}", .0[0])]
    Misfit(Vec<FitError>),
    /// The schedule is of another graph.
    #[error("the schedule has {schedule} nodes and the graph {graph}")]
    OtherGraph {
        /// Nodes of the schedule.
        schedule: usize,
        /// Nodes of the graph.
        graph: usize,
    },
    /// The ids of spill nodes would pass 2⁶³ − 1.
    #[error("spill {spill} has no id: node ids reach {max_id}, and spill ids would pass 2^63-1")]
    NoSpillId {
        /// Number of the spill, from 1.
        spill: usize,
        /// The largest node id.
        max_id: Id,
    },
    /// The extra movement passes 2⁶⁴ − 1.
    #[error("the extra data movement passes 2^64-1 bytes at spill {spill}")]
    MovementOverflow {
        /// Number of the spill, from 1.
        spill: usize,
    },
}

/// Plans `schedule` on `machine`.
///
/// # Errors
/// [`PlanError::Misfit`] before any work when no plan exists; the other errors at the limits of the
/// file format.
pub fn plan(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    config: &PlannerConfig,
    victim: &mut dyn VictimHeuristic,
    workspace: &mut Workspace,
) -> Result<Plan, PlanError> {
    run(graph, machine, schedule, config, victim, workspace, None)
}

/// Plans as [`plan`] does and tells `observer` of every failed request.
///
/// # Errors
/// As [`plan`].
pub fn plan_observed(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    config: &PlannerConfig,
    victim: &mut dyn VictimHeuristic,
    workspace: &mut Workspace,
    observer: &mut dyn Observer,
) -> Result<Plan, PlanError> {
    run(graph, machine, schedule, config, victim, workspace, Some(observer))
}

/// What [`plan`] would move if only the number of bytes counted, not where they lie: a request fails
/// only when too few bytes are free, and whatever went is one hole. There is no such plan to write
/// down, so only its movement is told: the difference is what contiguous addresses cost this policy.
/// Placement rules and prefetch have no part in it; `window` takes its windows among residents in
/// order of arrival.
///
/// # Errors
/// As [`plan`].
pub fn movement_in_bytes(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    config: &PlannerConfig,
    victim: &mut dyn VictimHeuristic,
    workspace: &mut Workspace,
) -> Result<Bytes, PlanError> {
    begin((graph, machine, schedule), config, victim, workspace, Addressing::Bytes)?;
    walk::Walk::new(graph, machine, schedule, config, victim, workspace, None).movement()
}

fn run<'a>(
    graph: &'a Graph,
    machine: &'a Machine,
    schedule: &'a Schedule,
    config: &PlannerConfig,
    victim: &'a mut dyn VictimHeuristic,
    workspace: &'a mut Workspace,
    observer: Option<&'a mut dyn Observer>,
) -> Result<Plan, PlanError> {
    begin((graph, machine, schedule), config, victim, workspace, Addressing::Contiguous)?;
    let mut plan = walk::Walk::new(graph, machine, schedule, config, victim, workspace, observer).run()?;
    // A buffer that comes earlier may come into a reservation; then the plan stays as it was.
    let sound = |plan: Option<Plan>| plan.filter(|plan| reserve::keeps(graph, machine, plan));
    // Only cycles past 2⁶⁴ − 1 stand in the way of either pass; such a plan has no time to save.
    if config.prefetch > 0 && !plan.spills.is_empty() {
        plan = sound(prefetch::prefetch(graph, machine, &plan, config.prefetch).ok()).unwrap_or(plan);
    }
    if config.retime {
        plan = sound(retime::retime(graph, machine, &plan).ok().flatten().map(|retimed| retimed.plan)).unwrap_or(plan);
    }
    Ok(plan)
}

/// Refuses what cannot be planned, and makes everything ready for a walk.
fn begin(
    (graph, machine, schedule): (&Graph, &Machine, &Schedule),
    config: &PlannerConfig,
    victim: &mut dyn VictimHeuristic,
    workspace: &mut Workspace,
    addressing: Addressing,
) -> Result<(), PlanError> {
    if schedule.len() != graph.node_count() {
        return Err(PlanError::OtherGraph { schedule: schedule.len(), graph: graph.node_count() });
    }
    let mut misfits = machine.misfits(graph);
    if misfits.is_empty() {
        misfits = reserve::misfits(graph, machine, schedule);
    }
    if !misfits.is_empty() {
        return Err(PlanError::Misfit(misfits));
    }
    workspace.prepare(graph, machine, schedule, config, addressing);
    victim.reset(graph);
    Ok(())
}
