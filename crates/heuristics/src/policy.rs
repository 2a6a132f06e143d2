//! Policies: a victim heuristic with a strategy chain and a placement rule, some of them named.

use crate::registry::{HEURISTICS, Heuristic};
use spillbench_core::plan::Plan;
use spillbench_core::planner::{self, Observer, PlanError, PlannerConfig, Strategy, Workspace};
use spillbench_core::{Bytes, Graph, Machine, Schedule};

/// All that decides how a schedule is planned.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The victim heuristic.
    pub heuristic: &'static Heuristic,
    /// Strategy chain, placement, attempts, prefetch.
    pub config: PlannerConfig,
    /// Seed of heuristics that draw.
    pub seed: u64,
}

impl Default for Policy {
    /// `life-size` with the default chain and best fit.
    fn default() -> Self {
        Self { heuristic: &HEURISTICS[0], config: PlannerConfig::default(), seed: 0 }
    }
}

impl Policy {
    /// Plans `schedule`.
    ///
    /// # Errors
    /// As [`planner::plan`].
    pub fn plan(
        &self,
        graph: &Graph,
        machine: &Machine,
        schedule: &Schedule,
        workspace: &mut Workspace,
    ) -> Result<Plan, PlanError> {
        let mut victim = (self.heuristic.make)(self.seed);
        planner::plan(graph, machine, schedule, &self.config, &mut *victim, workspace)
    }

    /// What [`Policy::plan`] would move if bytes need not lie together.
    ///
    /// # Errors
    /// As [`planner::plan`].
    pub fn movement_in_bytes(
        &self,
        graph: &Graph,
        machine: &Machine,
        schedule: &Schedule,
        workspace: &mut Workspace,
    ) -> Result<Bytes, PlanError> {
        let mut victim = (self.heuristic.make)(self.seed);
        planner::movement_in_bytes(graph, machine, schedule, &self.config, &mut *victim, workspace)
    }

    /// Plans `schedule` and tells `observer` of every failed request.
    ///
    /// # Errors
    /// As [`planner::plan`].
    pub fn plan_observed(
        &self,
        graph: &Graph,
        machine: &Machine,
        schedule: &Schedule,
        workspace: &mut Workspace,
        observer: &mut dyn Observer,
    ) -> Result<Plan, PlanError> {
        let mut victim = (self.heuristic.make)(self.seed);
        planner::plan_observed(graph, machine, schedule, &self.config, &mut *victim, workspace, observer)
    }
}

/// A strategy chain by name.
#[derive(Clone, Copy, Debug)]
pub struct NamedChain {
    /// What commands and tables call it.
    pub name: &'static str,
    /// One line on it.
    pub doc: &'static str,
    /// The strategies, in order.
    pub strategies: &'static [Strategy],
}

/// All named strategy chains.
pub static CHAINS: &[NamedChain] = &[
    NamedChain { name: "default", doc: "single, multi, postpone", strategies: Strategy::DEFAULT_CHAIN },
    NamedChain { name: "postpone-first", doc: "postpone, single, multi", strategies: Strategy::POSTPONE_FIRST },
];
