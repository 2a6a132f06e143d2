//! The columns of `runs.csv`: one registry gives names, units, descriptions and values.
//!
//! Names are stable: a study of other caches or pipes has other columns of the form `NAME.CACHE`
//! or `NAME.PIPE`, and all else stays. The columns of attribution stand behind the fixed results of
//! studies that ask for it.

use crate::experiment::{Budget, chain_text};
use crate::record::{Bounded, Record, Status};
use crate::study::{Cell, GraphEntry, HardwareBase, HardwareEntry, Searched};
use spillbench_bounds::Cover;
use spillbench_bounds::attribution::{Attribution, attribute, gap, over_bound};
use spillbench_core::Bytes;
use spillbench_core::metrics::{Metrics, Split};
use spillbench_core::plan::Counters;
use std::fmt::Write;
use std::sync::Arc;

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It names the cell or describes what belongs to it.
    Info,
    /// A varied thing: cells differ in these.
    Axis,
    /// A result.
    Result,
}

impl Role {
    /// Its text in the data dictionary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Axis => "axis",
            Self::Result => "result",
        }
    }
}

/// A value of a row.
enum Value<'a> {
    Empty,
    Int(u64),
    Signed(i128),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Owned(String),
}

impl From<Option<u64>> for Value<'_> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Empty, Self::Int)
    }
}

type Get = for<'a> fn(&'a Cell<'a>, Option<&'a Record>, &str) -> Value<'a>;

/// A column of `runs.csv`.
#[derive(Clone)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The unit of its values; empty for texts and truth values.
    pub unit: &'static str,
    /// What it holds.
    pub doc: &'static str,
    /// What it is for.
    pub role: Role,
    /// True when its values are numbers.
    pub numeric: bool,
    /// The cache or pipe it is of; empty for columns that every study has.
    of: String,
    get: Get,
}

impl std::fmt::Debug for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Column({})", self.name)
    }
}

impl Column {
    /// The value of a row, as text; results are empty without a record.
    pub fn text(&self, cell: &Cell<'_>, record: Option<&Record>) -> String {
        let mut text = String::new();
        self.write(cell, record, &mut text);
        text
    }

    /// Writes the value of a row behind `text`.
    pub fn write(&self, cell: &Cell<'_>, record: Option<&Record>, text: &mut String) {
        match (self.get)(cell, record, &self.of) {
            Value::Empty => {}
            // Most of a row is integers, and formatting them is most of the cost of a row.
            Value::Int(n) => text.push_str(itoa::Buffer::new().format(n)),
            Value::Signed(n) => text.push_str(itoa::Buffer::new().format(n)),
            Value::Float(x) => drop(write!(text, "{x}")),
            Value::Bool(b) => text.push_str(if b { "true" } else { "false" }),
            Value::Text(t) => text.push_str(t),
            Value::Owned(t) => text.push_str(&t),
        }
    }
}

/// Name, unit, description, value.
type Entry = (&'static str, &'static str, &'static str, Get);

const TEXT: &str = "";
const COUNT: &str = "count";
const BYTES: &str = "bytes";
const CYCLES: &str = "cycles";

const INFO: &[Entry] = &[
    ("cell", TEXT, "hash of all that decides the result", |c, _, _| Value::Owned(c.key.to_string())),
    ("graph_hash", TEXT, "hash of what the graph says", |c, _, _| Value::Owned(c.graph.hash.to_string())),
    ("nodes", COUNT, "nodes of the graph", |c, _, _| Value::Int(c.graph.graph.node_count() as u64)),
    ("buffers", COUNT, "buffers of the graph", |c, _, _| Value::Int(c.graph.graph.buffer_count() as u64)),
];

const SEED: Entry =
    ("seed", COUNT, "seed of the heuristic or the search; --seed makes the same plan", |c, _, _| Value::Int(c.seed));

const AXES: &[Entry] = &[
    ("graph", TEXT, "the graph: stem of its file, or its specification", |c, _, _| Value::Text(&c.graph.name)),
    ("schedule", TEXT, "the schedule before it is normalised; what a search starts from", |c, _, _| {
        Value::Text(&c.schedule.name)
    }),
    ("hardware", TEXT, "the hardware: preset, or stem of its file", |c, _, _| Value::Text(&c.hardware.base.name)),
    ("reserve", TEXT, "bytes kept from buffers, as --reserve takes them; empty for none", |c, _, _| {
        c.hardware.base.reserved.as_deref().map_or(Value::Empty, Value::Text)
    }),
    ("cost_model", TEXT, "what a spill costs in cycles, with its parameters", |c, _, _| {
        Value::Text(&c.hardware.base.cost)
    }),
    ("normalize", TEXT, "how far the schedule is normalised", |c, _, _| {
        c.normalize_name().map_or(Value::Empty, Value::Text)
    }),
    ("heuristic", TEXT, "the victim heuristic, or `search`", |c, _, _| Value::Text(c.maker())),
    ("strategies", TEXT, "the strategy chain", |c, _, _| {
        c.planning().map_or(Value::Empty, |p| Value::Owned(chain_text(p.chain)))
    }),
    ("placement", TEXT, "the placement rule", |c, _, _| {
        c.planning().map_or(Value::Empty, |p| Value::Text(p.placement.name()))
    }),
    ("attempts", COUNT, "how often one ALLOC may be postponed", |c, _, _| {
        c.planning().map(|p| u64::from(p.attempts)).into()
    }),
    ("prefetch", "op nodes", "how far a SPILL_IN may be brought forward", |c, _, _| {
        c.planning().map(|p| u64::from(p.prefetch)).into()
    }),
    ("retime", TEXT, "whether the finished plan was given a faster order", |c, _, _| {
        c.planning().map_or(Value::Empty, |p| Value::Bool(p.retime))
    }),
    ("repetition", COUNT, "number of the repetition, from 0", |c, _, _| Value::Int(u64::from(c.repetition))),
];

/// What the names of the columns of budgets begin with.
pub const BUDGET: &str = "budget_";

/// Axes of studies that search.
const SEARCH_AXES: &[Entry] = &[
    ("objective", TEXT, "what a search makes small; empty without one", |c, _, _| {
        c.searching().map_or(Value::Empty, |s| Value::Text(&s.goal.objective))
    }),
    (
        "max_movement",
        TEXT,
        "what a search for makespan may move: bytes, +percent of the least found, or none",
        |c, _, _| {
            let limit = c.searching().and_then(|s| s.goal.max_movement());
            limit.map_or(Value::Empty, |limit| Value::Owned(limit.to_string()))
        },
    ),
    ("budget_evaluations", COUNT, "orders that a search may evaluate", |c, _, _| {
        match c.searching().map(|s| s.budget) {
            Some(Budget::Evaluations(n)) => Value::Int(n),
            _ => Value::Empty,
        }
    }),
    ("budget_seconds", "s", "wall time that a search may take", |c, _, _| match c.searching().map(|s| s.budget) {
        Some(Budget::Seconds(s)) => Value::Float(s),
        _ => Value::Empty,
    }),
];

fn searched<'a>(record: Option<&'a Record>, get: impl Fn(&Searched) -> Option<u64>) -> Value<'a> {
    record.and_then(|r| r.searched.as_ref()).and_then(get).into()
}

/// Results of studies that search.
const SEARCH_RESULTS: &[Entry] = &[
    (
        "search_value",
        "units",
        "value of the plan by the objective of its search (bytes, cycles, their weighted sum, or pJ)",
        |_, r, _| searched(r, |s| s.value),
    ),
    (
        "search_start",
        "units",
        "value of what the search started from; empty where that breaks the objective",
        |_, r, _| searched(r, |s| s.start),
    ),
    ("search_evaluations", COUNT, "orders that the search evaluated", |_, r, _| searched(r, |s| Some(s.evaluations))),
    ("least_movement", BYTES, "least movement that a search for time came across", |_, r, _| {
        searched(r, |s| s.least.map(|b| b.0))
    }),
    ("movement_limit", BYTES, "what max_movement came to; empty for no limit", |_, r, _| {
        searched(r, |s| s.limit.map(|b| b.0))
    }),
    (
        "makespan_floor",
        CYCLES,
        "cycles that no plan of the graph takes less than, spills left out; empty without timing",
        |c, _, _| Some(c.graph.least_makespan.0).filter(|&floor| floor > 0).into(),
    ),
];

const FACTOR: Entry =
    ("capacity_factor", "times", "capacity of the caches swept together, over that of the hardware", |c, _, _| {
        Value::Owned(c.hardware.factor.to_string())
    });

const CAPACITY: Entry = ("capacity", BYTES, "capacity of the cache", |c, _, cache| {
    c.hardware.capacity(cache).map(|capacity| capacity.0).into()
});

fn metric<'a>(record: Option<&'a Record>, get: impl Fn(&'a Metrics) -> Option<u64>) -> Value<'a> {
    record.and_then(|r| r.metrics.as_ref()).and_then(get).into()
}

fn counter(record: Option<&Record>, get: impl Fn(&Counters) -> u64) -> Value<'_> {
    record.and_then(|r| r.counters.as_ref()).map(get).into()
}

fn bounded<'a>(record: Option<&'a Record>, get: impl Fn(&'a Bounded, Bytes) -> Value<'a>) -> Value<'a> {
    let record = record.and_then(|r| Some((r.bound.as_ref()?, r.metrics.as_ref()?)));
    record.map_or(Value::Empty, |(bound, metrics)| get(bound, metrics.extra_movement))
}

/// A part of what a plan moves; none of a plan that left its schedule's order, which no order is to blame
/// for.
fn part<'a>(record: Option<&'a Record>, get: impl Fn(&Attribution) -> Option<i128>) -> Value<'a> {
    bounded(record, |b, moved| match b.cover {
        Cover::EveryOrder => Value::Empty,
        _ => get(&attribute(moved, b.in_bytes, b.value, b.best)).map_or(Value::Empty, Value::Signed),
    })
}

/// Results of studies that split movement into its causes.
const ATTRIBUTION: &[Entry] = &[
    ("movement_in_bytes", BYTES, "movement of the same policy where bytes need not lie together", |_, r, _| {
        bounded(r, |b, _| b.in_bytes.map(|bytes| bytes.0).into())
    }),
    (
        "excess_capacity",
        BYTES,
        "movement that capacity forces: bound of the best order known, or of this",
        |_, r, _| part(r, |a| Some(a.capacity)),
    ),
    (
        "excess_order",
        BYTES,
        "movement that this order forces: its bound less that of the best order known",
        |_, r, _| part(r, |a| a.order),
    ),
    ("excess_victims", BYTES, "movement by choice of victims: movement_in_bytes less the bound", |_, r, _| {
        part(r, |a| Some(a.victims))
    }),
    ("excess_fragmentation", BYTES, "movement by contiguous addresses: movement less movement_in_bytes", |_, r, _| {
        part(r, |a| a.fragmentation)
    }),
];

/// Results that every study has.
const RESULTS: &[Entry] = &[
    ("feasible", TEXT, "false when something exceeds its cache by itself", |_, r, _| {
        r.map_or(Value::Empty, |r| Value::Bool(r.status != Status::Infeasible))
    }),
    (
        "status",
        TEXT,
        "ok, infeasible, unmet (a search kept to no limit), invalid (the checker refuses the plan) or failed",
        |_, r, _| r.map_or(Value::Empty, |r| Value::Text(r.status.name())),
    ),
    ("reason", TEXT, "why the status is not ok", |_, r, _| {
        r.and_then(|r| r.reason.as_deref()).map_or(Value::Empty, Value::Text)
    }),
    ("valid", TEXT, "true when the checker finds no violation; empty without a plan", |_, r, _| {
        r.and_then(|r| r.violations).map_or(Value::Empty, |v| Value::Bool(v == 0))
    }),
    ("violations", COUNT, "violations that the checker counts", |_, r, _| r.and_then(|r| r.violations).into()),
    ("extra_movement", BYTES, "extra data movement", |_, r, _| metric(r, |m| Some(m.extra_movement.0))),
    ("movement_backed", BYTES, "movement of backed buffers", |_, r, _| metric(r, |m| Some(m.movement.backed.0))),
    ("movement_generated", BYTES, "movement of generated buffers", |_, r, _| {
        metric(r, |m| Some(m.movement.generated.0))
    }),
    ("movement_capacity", BYTES, "movement of spills for want of free bytes", |_, r, _| {
        metric(r, |m| Some(m.movement.capacity.0))
    }),
    ("movement_fragmentation", BYTES, "movement of spills for want of free bytes in one piece", |_, r, _| {
        metric(r, |m| Some(m.movement.fragmentation.0))
    }),
    ("movement_unknown_cause", BYTES, "movement of spills of unknown cause", |_, r, _| {
        metric(r, |m| Some(m.movement.unknown_cause.0))
    }),
    ("spill_count", COUNT, "spills", |_, r, _| metric(r, |m| Some(m.spill_count))),
    ("spills_backed", COUNT, "spills of backed buffers", |_, r, _| metric(r, |m| Some(m.movement.counts.backed))),
    ("spills_generated", COUNT, "spills of generated buffers", |_, r, _| {
        metric(r, |m| Some(m.movement.counts.generated))
    }),
    ("spills_capacity", COUNT, "spills for want of free bytes", |_, r, _| {
        metric(r, |m| Some(m.movement.counts.capacity))
    }),
    ("spills_fragmentation", COUNT, "spills for want of free bytes in one piece", |_, r, _| {
        metric(r, |m| Some(m.movement.counts.fragmentation))
    }),
    ("spills_unknown_cause", COUNT, "spills of unknown cause", |_, r, _| {
        metric(r, |m| Some(m.movement.counts.unknown_cause))
    }),
    ("makespan", CYCLES, "makespan, timing model segment; empty without timing", |_, r, _| {
        metric(r, |m| m.makespan.map(|c| c.0))
    }),
    ("makespan_literal", CYCLES, "makespan, timing model literal; empty without timing", |_, r, _| {
        metric(r, |m| m.makespan_literal.map(|c| c.0))
    }),
    ("makespan_lower_bound", CYCLES, "max(pipe busy, critical path) of the plan; empty without timing", |_, r, _| {
        metric(r, |m| m.makespan_lower_bound.map(|c| c.0))
    }),
    ("cycles_saved", CYCLES, "makespan that prefetch and retiming saved", |_, r, _| counter(r, |c| c.cycles_saved)),
    ("energy", "pJ", "energy of the plan; empty where the hardware states none", |_, r, _| metric(r, |m| m.energy)),
    ("peak_demand", BYTES, "peak demand of the schedule, ignoring capacity and spills", |_, r, _| {
        metric(r, |m| Some(m.peak_demand.0))
    }),
    ("requests", COUNT, "requests for space", |_, r, _| counter(r, |c| c.requests)),
    ("failed_requests", COUNT, "requests that found no hole at once", |_, r, _| counter(r, |c| c.failed_requests)),
    ("single", COUNT, "failed requests met by strategy single", |_, r, _| counter(r, |c| c.single)),
    ("multi", COUNT, "failed requests met by strategy multi", |_, r, _| counter(r, |c| c.multi)),
    ("window", COUNT, "failed requests met by strategy window", |_, r, _| counter(r, |c| c.window)),
    ("postponed", COUNT, "ALLOCs moved behind a later FREE", |_, r, _| counter(r, |c| c.postponed)),
    ("last_resort", COUNT, "failed requests met by the last resort", |_, r, _| counter(r, |c| c.last_resort)),
    ("repacks", COUNT, "last resorts that moved the operands themselves", |_, r, _| counter(r, |c| c.repacks)),
    ("scores", COUNT, "victim scores computed", |_, r, _| counter(r, |c| c.scores)),
    ("prefetched", COUNT, "SPILL_INs that the prefetch pass brought forward", |_, r, _| counter(r, |c| c.prefetched)),
    (
        "bound",
        BYTES,
        "lower bound on the movement of plans that bound_cover describes; empty if not computed",
        |_, r, _| bounded(r, |b, _| Value::Int(b.value.0)),
    ),
    ("gap", BYTES, "movement beyond the lower bound", |_, r, _| bounded(r, |b, m| Value::Int(gap(m, b.value).0))),
    ("over_bound", "times", "movement over lower bound; 1 if both are 0, empty if only the bound is", |_, r, _| {
        bounded(r, |b, moved| over_bound(moved, b.value).map_or(Value::Empty, Value::Float))
    }),
    ("bound_kind", TEXT, "how the lower bound was found", |_, r, _| bounded(r, |b, _| Value::Text(b.kind.name()))),
    (
        "bound_cover",
        TEXT,
        "what the plan kept and the bound speaks of: schedule, op-order or every-order",
        |_, r, _| bounded(r, |b, _| Value::Text(b.cover.name())),
    ),
];

fn split<'a>(record: Option<&'a Record>, cache: &str, get: impl Fn(&'a Split) -> Bytes) -> Value<'a> {
    metric(record, |m| m.movement.by_cache.get(cache).map(|s| get(s).0))
}

/// Results of each cache.
const BY_CACHE: &[Entry] = &[
    ("movement", BYTES, "extra data movement of the cache", |_, r, c| split(r, c, Split::bytes)),
    ("movement_backed", BYTES, "movement of backed buffers of the cache", |_, r, c| split(r, c, |s| s.backed)),
    ("movement_generated", BYTES, "movement of generated buffers of the cache", |_, r, c| split(r, c, |s| s.generated)),
    ("movement_capacity", BYTES, "movement of the cache for want of free bytes", |_, r, c| split(r, c, |s| s.capacity)),
    ("movement_fragmentation", BYTES, "movement of the cache for want of free bytes in one piece", |_, r, c| {
        split(r, c, |s| s.fragmentation)
    }),
    ("movement_unknown_cause", BYTES, "movement of the cache of unknown cause", |_, r, c| {
        split(r, c, |s| s.unknown_cause)
    }),
    ("spills", COUNT, "spills of the cache", |_, r, c| metric(r, |m| m.movement.by_cache.get(c).map(|s| s.spills))),
    ("peak_residency", BYTES, "most bytes of the cache resident at once", |_, r, c| {
        metric(r, |m| m.peak_residency.get(c).map(|b| b.0))
    }),
    ("fragmentation", "share", "1 - largest free block / free bytes, mean over positions", |_, r, c| {
        let metrics = r.and_then(|r| r.metrics.as_ref());
        metrics.and_then(|m| m.fragmentation.get(c)).map_or(Value::Empty, |&x| Value::Float(x))
    }),
];

/// Results of each pipe.
const BY_PIPE: &[Entry] =
    &[("pipe_busy", CYCLES, "cycles in which the pipe runs something; empty without timing", |_, r, p| {
        metric(r, |m| m.pipe_busy.as_ref().and_then(|busy| busy.get(p)).map(|c| c.0))
    })];

fn column(&(name, unit, doc, get): &Entry, role: Role, of: &str) -> Column {
    let full = if of.is_empty() { name.to_owned() } else { format!("{name}.{of}") };
    Column { name: full, unit, doc, role, numeric: !unit.is_empty(), of: of.to_owned(), get }
}

/// The bases of some hardware, of which many entries share each.
pub(crate) fn bases(hardware: &[HardwareEntry]) -> impl Iterator<Item = &HardwareBase> {
    hardware.chunk_by(|a, b| Arc::ptr_eq(&a.base, &b.base)).map(|entries| &*entries[0].base)
}

/// All caches of some hardware, in order of first mention.
pub fn caches(hardware: &[HardwareEntry]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in bases(hardware).flat_map(|base| base.hardware.caches.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// All pipes: those that the hardware orders, then its spill pipes and those of the graphs by name.
fn pipes<'a>(graphs: &'a [GraphEntry], hardware: &'a [HardwareEntry]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in bases(hardware).flat_map(|base| &base.hardware.pipes) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let spill = bases(hardware).flat_map(|base| base.hardware.caches.values());
    let spill = spill.flat_map(|c| [&c.spill_in_pipe, &c.spill_out_pipe]);
    let mut others: Vec<&str> =
        graphs.iter().flat_map(|g| g.graph.pipe_names()).chain(spill).map(String::as_str).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|name| !names.contains(name));
    names.extend(others);
    names
}

/// The columns of a study, in order; with those of searches and of attribution where it has them.
pub fn of(graphs: &[GraphEntry], hardware: &[HardwareEntry], searches: bool, attribution: bool) -> Vec<Column> {
    let (caches, pipes) = (caches(hardware), pipes(graphs, hardware));
    let mut columns: Vec<_> = INFO.iter().map(|e| column(e, Role::Info, "")).collect();
    columns.extend(AXES.iter().map(|e| column(e, Role::Axis, "")));
    columns.push(column(&FACTOR, Role::Axis, ""));
    columns.extend(caches.iter().map(|c| column(&CAPACITY, Role::Axis, c)));
    columns.extend(SEARCH_AXES.iter().filter(|_| searches).map(|e| column(e, Role::Axis, "")));
    columns.push(column(&SEED, Role::Info, ""));
    columns.extend(RESULTS.iter().map(|e| column(e, Role::Result, "")));
    columns.extend(SEARCH_RESULTS.iter().filter(|_| searches).map(|e| column(e, Role::Result, "")));
    columns.extend(ATTRIBUTION.iter().filter(|_| attribution).map(|e| column(e, Role::Result, "")));
    columns.extend(caches.iter().flat_map(|c| BY_CACHE.iter().map(|e| column(e, Role::Result, c))));
    columns.extend(pipes.iter().flat_map(|p| BY_PIPE.iter().map(|e| column(e, Role::Result, p))));
    columns
}

/// True for the name of an axis column, of any study.
pub fn is_axis(name: &str) -> bool {
    let capacity = name.strip_prefix(CAPACITY.0).is_some_and(|rest| rest.starts_with('.'));
    capacity || name == FACTOR.0 || AXES.iter().chain(SEARCH_AXES).any(|entry| entry.0 == name)
}

/// True for the name of a result column, of any study.
pub fn is_result(name: &str) -> bool {
    let of_something = |e: &Entry| name.strip_prefix(e.0).is_some_and(|rest| rest.starts_with('.'));
    RESULTS.iter().chain(SEARCH_RESULTS).chain(ATTRIBUTION).any(|e| e.0 == name)
        || BY_CACHE.iter().chain(BY_PIPE).any(of_something)
}

/// Unit and description of a column of any study, by its name alone.
pub fn describe(name: &str) -> Option<(&'static str, &'static str)> {
    let fixed = INFO.iter().chain(AXES).chain(SEARCH_AXES).chain([&FACTOR, &SEED]);
    let fixed = fixed.chain(RESULTS).chain(SEARCH_RESULTS).chain(ATTRIBUTION);
    let of_something = [&CAPACITY].into_iter().chain(BY_CACHE).chain(BY_PIPE);
    let found = fixed
        .filter(|e| e.0 == name)
        .chain(of_something.filter(|e| name.strip_prefix(e.0).is_some_and(|rest| rest.starts_with('.'))));
    found.map(|e| (e.1, e.2)).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_plain_and_described() {
        let axes = || INFO.iter().chain(AXES).chain(SEARCH_AXES);
        let all = || axes().chain([&FACTOR, &SEED]).chain(RESULTS).chain(SEARCH_RESULTS).chain(ATTRIBUTION);
        let names: BTreeSet<_> = all().map(|e| e.0).collect();
        assert_eq!(names.len(), all().count());
        let by = [&CAPACITY].into_iter().chain(BY_CACHE).chain(BY_PIPE);
        assert_eq!(by.clone().map(|e| e.0).collect::<BTreeSet<_>>().len(), by.clone().count());
        for (name, _, doc, _) in all().chain(by) {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(!doc.is_empty() && !doc.ends_with('.'), "{name}");
        }
        assert_eq!(describe("movement_backed.L1").map(|d| d.0), Some("bytes"));
        assert_eq!(describe("nothing"), None);
        assert!(is_axis("capacity.L1") && is_axis("capacity_factor") && !is_axis("capacity"));
    }
}
