//! What running one cell came to: the payload of the journal and the right half of a row.

use crate::study::{Cell, Made, Searched, in_short};
use serde::{Deserialize, Serialize};
use spillbench_bounds::{BoundKind, Cover, cover_of};
use spillbench_core::checker;
use spillbench_core::metrics::{self, Metrics};
use spillbench_core::plan::{Counters, Plan};
use spillbench_core::planner::{PlanError, Workspace};
use spillbench_core::{Bytes, Graph, Machine};
use spillbench_search::TimedError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A valid plan.
    Ok,
    /// No plan exists: something exceeds its cache by itself.
    Infeasible,
    /// A search found no plan that keeps to its limit of movement.
    Unmet,
    /// A plan that the checker refuses: a defect of the planner or a heuristic.
    Invalid,
    /// No plan though one may exist: a limit of the formats, or a defect.
    Failed,
}

impl Status {
    /// Its text in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Infeasible => "infeasible",
            Self::Invalid => "invalid",
            Self::Unmet => "unmet",
            Self::Failed => "failed",
        }
    }

    /// True for ends that point to a defect.
    pub fn is_defect(self) -> bool {
        matches!(self, Self::Invalid | Self::Failed)
    }
}

/// Wall times of one cell, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Planning.
    pub plan: u64,
    /// Checking.
    pub check: u64,
    /// Measuring.
    pub measure: u64,
}

impl Times {
    /// All of it.
    pub fn total(self) -> u64 {
        self.plan + self.check + self.measure
    }
}

/// What running one cell came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// How it ended.
    pub status: Status,
    /// Why it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Violations that the checker counted, where there is a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violations: Option<u64>,
    /// What the planner counted, where there is a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// What the plan measures, where it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// What the search says that found the plan, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched: Option<Searched>,
    /// The lower bound that covers the plan, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bounded>,
    /// How long it took; bounds, which many cells share, are left out.
    pub times: Times,
}

/// The lower bound of a plan, and what its movement is attributed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounded {
    /// No plan that the cover describes moves less.
    pub value: Bytes,
    /// How it was found.
    pub kind: BoundKind,
    /// Of which plans it speaks: those that move no more nodes than this plan.
    pub cover: Cover,
    /// The bound of the best schedule known, of the same cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Bytes>,
    /// What the same policy moves where bytes need not lie together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_bytes: Option<Bytes>,
}

impl Record {
    fn without_plan(status: Status, reason: String) -> Self {
        // A reason stands in one line of the journal and of the table.
        let reason = reason.replace(['\r', '\n'], " ");
        Self {
            status,
            reason: Some(reason),
            violations: None,
            counters: None,
            metrics: None,
            searched: None,
            bound: None,
            times: Times::default(),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs a cell: plans, checks, measures. A panic of a heuristic ends this cell only.
pub fn run(cell: &Cell<'_>, workspace: &mut Workspace) -> Record {
    let run = catch_unwind(AssertUnwindSafe(|| attempt(cell, workspace)));
    run.unwrap_or_else(|panic| {
        *workspace = Workspace::default();
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Record::without_plan(Status::Failed, format!("panic: {}", text.unwrap_or("of unknown kind")))
    })
}

fn attempt(cell: &Cell<'_>, workspace: &mut Workspace) -> Record {
    let graph = &cell.graph.graph;
    let machine = match cell.machine() {
        Ok(machine) => machine,
        Err(why) => return Record::without_plan(Status::Failed, why),
    };
    cell.prepare();
    let begin = Instant::now();
    let plan = cell.plan(&machine, workspace);
    let plan_time = nanos(begin.elapsed());
    let mut record = match plan {
        Ok(Made { plan, searched }) => {
            let mut record = examine(graph, &machine, &plan);
            record.searched = searched;
            if record.status == Status::Ok && cell.is_bounded() {
                match bounded(cell, &machine, &plan, workspace) {
                    Ok(bound) => record.bound = bound,
                    Err(reason) => (record.status, record.reason) = (Status::Failed, Some(reason)),
                }
            }
            record
        }
        Err(TimedError::Plan(PlanError::Misfit(errors))) => Record::without_plan(Status::Infeasible, in_short(&errors)),
        Err(error @ TimedError::Limit { .. }) => Record::without_plan(Status::Unmet, error.to_string()),
        Err(error) => Record::without_plan(Status::Failed, error.to_string()),
    };
    record.times.plan = plan_time;
    record
}

/// The bound of a plan, and what it is attributed by where that was asked for.
fn bounded(
    cell: &Cell<'_>,
    machine: &Machine,
    plan: &Plan,
    workspace: &mut Workspace,
) -> Result<Option<Bounded>, String> {
    let graph = &cell.graph.graph;
    // A search chooses its order, whatever it starts from.
    let cover = cell.planning().map_or(Cover::EveryOrder, |_| cover_of(graph, &cell.normalized(), plan));
    let Some((value, kind)) = cell.bound(machine, cover)? else { return Ok(None) };
    let (mut best, mut in_bytes) = (None, None);
    // What an order costs beyond another means nothing of plans that left it.
    let attributed = cell.is_attributed() && cover != Cover::EveryOrder;
    if let Some(planning) = cell.planning().filter(|_| attributed) {
        best = cell.best_bound(machine, cover)?;
        let policy = planning.policy(cell.seed);
        let moved = policy.movement_in_bytes(graph, machine, &cell.normalized(), workspace);
        in_bytes = Some(moved.map_err(|e| e.to_string())?);
    }
    Ok(Some(Bounded { value, kind, cover, best, in_bytes }))
}

/// Checks and measures a plan.
fn examine(graph: &Graph, machine: &Machine, plan: &Plan) -> Record {
    let begin = Instant::now();
    let report = checker::check(graph, machine, plan);
    let check = nanos(begin.elapsed());
    let mut record = Record::without_plan(Status::Ok, String::new());
    record.reason = None;
    record.violations = Some(report.total());
    record.counters = plan.counters;
    if report.is_valid() {
        let begin = Instant::now();
        match metrics::measure(graph, machine, plan) {
            Ok(metrics) => record.metrics = Some(metrics),
            Err(error) => {
                record.status = Status::Failed;
                record.reason = Some(error.to_string());
            }
        }
        record.times.measure = nanos(begin.elapsed());
    } else {
        record.status = Status::Invalid;
        record.reason = report.violations().first().map(|v| v.to_string().replace(['\r', '\n'], " "));
    }
    record.times.check = check;
    record
}
