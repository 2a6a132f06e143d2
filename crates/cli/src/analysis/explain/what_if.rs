//! Which single change would have saved most: each is planned, checked and measured.

use crate::analysis::run::{Run, RunError};
use rayon::prelude::*;
use serde::Serialize;
use spillbench_core::index::CacheIx;
use spillbench_core::planner::{Placement, PlanError, Strategy, Workspace};
use spillbench_core::schedule::Normalize;
use spillbench_core::units::{Bytes, Cycles};
use spillbench_core::{Graph, Hardware, Machine, Schedule};
use spillbench_heuristics::{CHAINS, HEURISTICS, Heuristic, Policy};

/// One change of what a plan was made with.
#[derive(Clone, Debug)]
pub enum Change {
    /// Another capacity of one cache.
    Capacity {
        /// The cache.
        cache: String,
        /// Its capacity instead.
        to: Bytes,
    },
    /// Another victim heuristic.
    Heuristic(&'static Heuristic),
    /// Another strategy chain.
    Chain(Vec<Strategy>),
    /// Another placement rule.
    Placement(Placement),
    /// Another level of normalising.
    Normalize(Normalize, &'static str),
}

impl Change {
    /// What is changed: the name of the option.
    pub fn option(&self) -> &'static str {
        match self {
            Self::Capacity { .. } => "capacity",
            Self::Heuristic(_) => "heuristic",
            Self::Chain(_) => "strategies",
            Self::Placement(_) => "placement",
            Self::Normalize(..) => "normalize",
        }
    }

    /// The value that the option takes.
    pub fn value(&self) -> String {
        match self {
            Self::Capacity { cache, to } => format!("{cache}={to}"),
            Self::Heuristic(h) => h.name.to_owned(),
            Self::Chain(chain) => chain.iter().map(|s| s.name()).collect::<Vec<_>>().join(","),
            Self::Placement(placement) => placement.to_string(),
            Self::Normalize(_, name) => (*name).to_owned(),
        }
    }
}

/// What came of a change.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// What is changed: the name of the option.
    pub change: &'static str,
    /// The value that the option takes instead.
    pub value: String,
    /// Extra movement with the change.
    pub extra_movement: Bytes,
    /// Bytes that the change saves; negative when it moves more.
    pub saved: i128,
    /// Spills with the change.
    pub spill_count: u64,
    /// Makespan with the change.
    pub makespan: Option<Cycles>,
    /// Cycles that the change saves; negative when it takes more.
    pub cycles_saved: Option<i128>,
}

/// What a plan was made with.
pub struct Setting<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The hardware.
    pub hardware: &'a Hardware,
    /// The schedule as it was given, before normalising.
    pub given: &'a Schedule,
    /// The level of normalising.
    pub normalize: Normalize,
    /// The policy.
    pub policy: &'a Policy,
}

impl Setting<'_> {
    /// Every single change that is tried. Capacities are those of `pressed`: where no request
    /// failed, more room changes nothing.
    pub fn changes(&self, pressed: &[CacheIx]) -> Vec<Change> {
        let mut changes = Vec::new();
        for name in pressed.iter().map(|&c| self.graph.cache_name(c)) {
            let Some(from) = self.hardware.caches.get(name).map(|spec| spec.capacity) else { continue };
            // A quarter more, and twice as much, as far as addresses reach.
            let grown = [from.0.saturating_add(from.0.div_ceil(4)), from.0.saturating_mul(2)];
            let grown = grown.into_iter().filter(|&to| to > from.0 && to <= Hardware::UNBOUNDED.0);
            changes.extend(grown.map(|to| Change::Capacity { cache: name.to_owned(), to: Bytes(to) }));
        }
        let config = &self.policy.config;
        let others = HEURISTICS.iter().filter(|h| h.name != self.policy.heuristic.name);
        changes.extend(others.map(Change::Heuristic));
        changes.extend(self.chains().into_iter().map(Change::Chain));
        let others = Placement::ALL.iter().map(|p| p.0).filter(|&p| p != config.placement);
        changes.extend(others.map(Change::Placement));
        let others = Normalize::ALL.iter().filter(|l| l.0 != self.normalize);
        changes.extend(others.map(|l| Change::Normalize(l.0, l.1)));
        changes
    }

    /// The named chains, and each strategy put before the chain in use.
    fn chains(&self) -> Vec<Vec<Strategy>> {
        let own = &self.policy.config.strategies;
        let mut chains: Vec<Vec<Strategy>> = Vec::new();
        let named = CHAINS.iter().map(|c| c.strategies.to_vec());
        let led = Strategy::ALL.iter().map(|&(first, ..)| {
            let rest = own.iter().copied().filter(|&s| s != first);
            std::iter::once(first).chain(rest).collect()
        });
        for chain in named.chain(led) {
            if chain != *own && !chains.contains(&chain) {
                chains.push(chain);
            }
        }
        chains
    }

    fn run(&self, normalized: &Schedule, change: &Change, workspace: &mut Workspace) -> Result<Run, RunError> {
        let (mut policy, mut hardware) = (self.policy.clone(), None);
        let mut schedule = None;
        match change {
            Change::Capacity { cache, to } => {
                let mut grown = self.hardware.clone();
                if let Some(spec) = grown.caches.get_mut(cache) {
                    spec.capacity = *to;
                }
                hardware = Some(grown);
            }
            Change::Heuristic(heuristic) => policy.heuristic = heuristic,
            Change::Chain(chain) => policy.config.strategies.clone_from(chain),
            Change::Placement(placement) => policy.config.placement = *placement,
            Change::Normalize(level, _) => schedule = Some(self.given.clone().normalized(self.graph, *level)),
        }
        let machine =
            Machine::resolve(self.graph, hardware.as_ref().unwrap_or(self.hardware)).map_err(PlanError::Misfit)?;
        Run::new((self.graph, &machine, schedule.as_ref().unwrap_or(normalized)), &policy, workspace, None)
    }
}

/// Plans with each change; the most saved bytes first, then the most saved cycles, then in the order
/// of `changes`. `done` is called after each.
///
/// # Errors
/// When a change has no result, which only figures past 64 bits can bring about.
pub fn what_if(
    setting: &Setting<'_>,
    normalized: &Schedule,
    base: &Run,
    changes: Vec<Change>,
    done: impl Fn() + Sync,
) -> Result<Vec<Outcome>, RunError> {
    let Some(base) = &base.verdict.metrics else { return Ok(Vec::new()) };
    let outcome = |workspace: &mut Workspace, change: Change| {
        let run = setting.run(normalized, &change, workspace);
        done();
        let run = match run {
            // Reservations may leave too little where another level of normalising puts a node.
            Err(RunError::Plan(PlanError::Misfit(_))) => return Ok(None),
            other => other?,
        };
        let Some(metrics) = run.verdict.metrics else { return Ok(None) };
        let cycles = base.makespan.zip(metrics.makespan);
        Ok(Some(Outcome {
            change: change.option(),
            value: change.value(),
            extra_movement: metrics.extra_movement,
            saved: i128::from(base.extra_movement.0) - i128::from(metrics.extra_movement.0),
            spill_count: metrics.spill_count,
            makespan: metrics.makespan,
            cycles_saved: cycles.map(|(was, is)| i128::from(was.0) - i128::from(is.0)),
        }))
    };
    let outcomes: Result<Vec<_>, RunError> = changes.into_par_iter().map_init(Workspace::default, outcome).collect();
    let mut outcomes: Vec<_> = outcomes?.into_iter().flatten().collect();
    outcomes.sort_by_key(|o| std::cmp::Reverse((o.saved, o.cycles_saved)));
    Ok(outcomes)
}
