//! The gap model of one cache: what a given order leaves to decide, and what it costs.
//!
//! Once the order of the steps is given, all that is left to decide, capacity counted in bytes, is
//! which buffers stay resident between two consecutive events of theirs. A [`Gap`] is such a
//! stretch: keeping the buffer occupies its size at every step of the stretch, not keeping it costs
//! one spill. A [`Step`] is a node that needs bytes of the cache: what it needs is taken, whatever
//! is decided, and the rest is there for kept gaps. Steps that need nothing of the cache are left
//! out, because the steps beside them bind at least as tightly: whoever is kept across such a step
//! is kept across, or needed at, the next one.
//!
//! Ignored is only that a buffer needs contiguous addresses. So the least cost over all choices of
//! gaps is a lower bound on the extra movement of every plan that the [`Cover`] describes, and it
//! is what the cost would be if bytes need not be contiguous.

use crate::held::Held;
use serde::{Deserialize, Serialize};
use spillbench_core::graph::NodeKind;
use spillbench_core::index::{BufIx, CacheIx, NodeIx, Pos};
use spillbench_core::{Bytes, Graph, Machine, Schedule, hardware::FitError};
use thiserror::Error;
use typed_index_collections::{TiVec, ti_vec};

/// Which plans a lower bound speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cover {
    /// Plans that keep the whole schedule: every node stands where it stands, spills come between.
    Schedule,
    /// Plans that keep the order of the ops; `ALLOC` and `FREE` may move.
    OpOrder,
    /// All plans of the graph.
    EveryOrder,
}

impl Cover {
    /// All kinds of cover with their names and one line each, from the narrowest.
    pub const ALL: &[(Self, &'static str, &'static str)] = &[
        (Self::Schedule, "schedule", "every plan that keeps this schedule, ALLOC and FREE included"),
        (Self::OpOrder, "op-order", "every plan that keeps this order of ops; ALLOC and FREE may move"),
        (Self::EveryOrder, "every-order", "every plan of the graph"),
    ];

    /// The name that files and tables use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::OpOrder => "op-order",
            Self::EveryOrder => "every-order",
        }
    }

    /// The cover of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|c| c.1 == name).map(|c| c.0)
    }
}

/// A node that needs bytes of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The node: an op, or where the schedule is pinned also an `ALLOC` or `FREE`.
    pub node: NodeIx,
    /// Its position in the schedule.
    pub pos: Pos,
    /// The bytes of the cache that it needs itself or that are reserved there, never more than the
    /// capacity.
    pub demand: Bytes,
}

/// A stretch between two consecutive events of a buffer, over which it may be kept or be out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The buffer.
    pub buf: BufIx,
    /// The first step of the stretch.
    pub first: usize,
    /// The step after the last one; never `first`.
    pub end: usize,
    /// The bytes that keeping it takes at each of its steps.
    pub size: Bytes,
    /// The bytes moved by the spill that keeping it saves: a multiple of `size`.
    pub cost: Bytes,
    /// The event before the stretch: the `ALLOC`, or an op that uses the buffer.
    pub after: NodeIx,
    /// The event behind the stretch: an op that uses the buffer, or the `FREE`.
    pub before: NodeIx,
}

/// The gap model of one cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheModel {
    /// The cache.
    pub cache: CacheIx,
    /// The bytes it holds.
    pub capacity: Bytes,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The gaps that hold at least one step, buffer by buffer, each buffer's in order. A stretch
    /// without a step is free to keep and not listed.
    pub gaps: Vec<Gap>,
}

/// Why there is no model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    /// No plan exists: something does not fit its cache by itself. Never empty.
    #[error("{}", .0[0])]
    Misfit(Vec<FitError>),
    /// The schedule is of another graph.
    #[error("the schedule has {schedule} nodes and the graph {graph}")]
    OtherSchedule {
        /// Nodes of the schedule.
        schedule: usize,
        /// Nodes of the graph.
        graph: usize,
    },
    /// The machine is of another graph.
    #[error("the machine was resolved for {machine} caches and the graph has {graph}")]
    OtherMachine {
        /// Caches of the machine.
        machine: usize,
        /// Caches of the graph.
        graph: usize,
    },
    /// A model of one schedule was asked for every order.
    #[error("no one schedule stands for every order")]
    EveryOrder,
}

impl CacheModel {
    /// The bytes that step `t` leaves for kept gaps.
    pub fn room(&self, t: usize) -> Bytes {
        self.capacity.saturating_sub(self.steps[t].demand)
    }
}

/// How many gaps a schedule of `graph` has at most: what a limit on the size of a bound counts.
pub fn gap_limit(graph: &Graph) -> usize {
    graph.bufs().map(|b| graph.users(b).len() + 1).sum()
}

/// The gap models of all caches of `graph`, by cache index, for plans that keep `schedule`
/// ([`Cover::Schedule`]) or its order of ops ([`Cover::OpOrder`]).
///
/// Runs in time linear in the graph, but for sorting the users of each buffer.
///
/// # Errors
/// When no plan exists at all, `schedule` or `machine` is of another graph, or `cover` is
/// [`Cover::EveryOrder`].
pub fn models(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    cover: Cover,
) -> Result<TiVec<CacheIx, CacheModel>, ModelError> {
    if schedule.len() != graph.node_count() {
        return Err(ModelError::OtherSchedule { schedule: schedule.len(), graph: graph.node_count() });
    }
    if machine.cache_count() != graph.cache_names().len() {
        return Err(ModelError::OtherMachine { machine: machine.cache_count(), graph: graph.cache_names().len() });
    }
    let misfits = machine.misfits(graph);
    if !misfits.is_empty() {
        return Err(ModelError::Misfit(misfits));
    }
    let pinned = match cover {
        Cover::Schedule => true,
        Cover::OpOrder => false,
        Cover::EveryOrder => return Err(ModelError::EveryOrder),
    };
    let mut models: TiVec<CacheIx, CacheModel> = graph
        .caches()
        .map(|cache| CacheModel { cache, capacity: machine.cache(cache).capacity, steps: Vec::new(), gaps: Vec::new() })
        .collect();
    let held = Held::new(graph, machine, schedule, cover).map_err(ModelError::Misfit)?;
    push_steps(graph, schedule, pinned, &mut models);
    for model in &mut models {
        let (cache, capacity) = (model.cache, model.capacity);
        for step in &mut model.steps {
            step.demand = held.taken(graph, step.node, step.pos, cache, step.demand).min(capacity);
        }
    }
    push_gaps(graph, schedule, pinned, &mut models);
    Ok(models)
}

fn push_steps(graph: &Graph, schedule: &Schedule, pinned: bool, models: &mut TiVec<CacheIx, CacheModel>) {
    for (pos, &node) in schedule.order().iter_enumerated() {
        if !pinned && graph.kind(node) != NodeKind::Op {
            continue;
        }
        for buf in graph.operands(node).iter().map(|&b| graph.buf(b)) {
            let steps = &mut models[buf.cache].steps;
            match steps.last_mut() {
                Some(step) if step.node == node => step.demand += buf.size,
                _ => steps.push(Step { node, pos, demand: buf.size }),
            }
        }
    }
}

/// Half-open ranges of positions count events as "at or after `from`, before `to`".
fn push_gaps(graph: &Graph, schedule: &Schedule, pinned: bool, models: &mut TiVec<CacheIx, CacheModel>) {
    let places = schedule.positions();
    let life = if pinned { Life::pinned(graph, &places) } else { Life::forced(graph, schedule, &places) };
    let before: TiVec<CacheIx, StepsBefore> = models.iter().map(|m| StepsBefore::new(m, schedule.len())).collect();
    let mut uses: Vec<(usize, NodeIx)> = Vec::new();
    for b in graph.bufs() {
        let buf = graph.buf(b);
        uses.clear();
        uses.extend(graph.users(b).iter().map(|&n| (places[n].index(), n)));
        uses.sort_unstable();
        // Each event as (node, first position after it, last position before which it stands).
        let ops = uses.iter().map(|&(at, n)| (n, at + 1, at));
        let events = std::iter::once((buf.alloc, life.start[b], 0)).chain(ops).chain([(buf.free, 0, life.end[b])]);
        let mut last: Option<(NodeIx, usize)> = None;
        for (node, after, until) in events {
            if let Some((previous, from)) = last {
                let steps = &before[buf.cache];
                let (first, end) = (steps.at(from), steps.at(until));
                if first < end {
                    let (size, cost) = (buf.size, buf.movement());
                    let gap = Gap { buf: b, first, end, size, cost, after: previous, before: node };
                    models[buf.cache].gaps.push(gap);
                }
            }
            last = Some((node, after));
        }
    }
}

/// From where to where each buffer must live, as positions of the schedule: resident or spilled at
/// every position in `start..end`, whether used there or not.
struct Life {
    start: TiVec<BufIx, usize>,
    end: TiVec<BufIx, usize>,
}

impl Life {
    /// From just after `ALLOC` to just before `FREE`.
    fn pinned(graph: &Graph, places: &TiVec<NodeIx, Pos>) -> Self {
        let at = |n: NodeIx| places[n].index();
        Self {
            start: graph.bufs().map(|b| at(graph.buf(b).alloc) + 1).collect(),
            end: graph.bufs().map(|b| at(graph.buf(b).free)).collect(),
        }
    }

    /// From the first op that must follow the `ALLOC` to the last op that the `FREE` must follow,
    /// over chains of cache nodes too.
    fn forced(graph: &Graph, schedule: &Schedule, places: &TiVec<NodeIx, Pos>) -> Self {
        let (mut start, mut end) = (ti_vec![0; graph.buffer_count()], ti_vec![0; graph.buffer_count()]);
        // The first op at or behind each node, and just past the last op at or before it.
        let mut first: TiVec<NodeIx, usize> = places.iter().map(|p| p.index()).collect();
        for &n in schedule.order().iter().rev() {
            if graph.kind(n) != NodeKind::Op {
                let mut earliest = schedule.len();
                graph.for_each_successor(n, |s| earliest = earliest.min(first[s]));
                first[n] = earliest;
            }
            if let NodeKind::Alloc(b) = graph.kind(n) {
                start[b] = first[n];
            }
        }
        let mut past: TiVec<NodeIx, usize> = places.iter().map(|p| p.index() + 1).collect();
        for &n in schedule.order() {
            if graph.kind(n) != NodeKind::Op {
                let mut latest = 0;
                graph.for_each_predecessor(n, |p| latest = latest.max(past[p]));
                past[n] = latest;
            }
            if let NodeKind::Free(b) = graph.kind(n) {
                end[b] = past[n];
            }
        }
        Self { start, end }
    }
}

/// Answers how many steps of a cache stand before a position.
struct StepsBefore(Vec<u32>);

impl StepsBefore {
    fn new(model: &CacheModel, positions: usize) -> Self {
        let mut counts = Vec::with_capacity(positions + 1);
        let mut steps = model.steps.iter().peekable();
        let mut count = 0;
        for pos in 0..=positions {
            counts.push(count);
            if steps.next_if(|s| s.pos.index() == pos).is_some() {
                count += 1;
            }
        }
        Self(counts)
    }

    fn at(&self, pos: usize) -> usize {
        self.0[pos.min(self.0.len() - 1)] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillbench_core::schedule::Normalize;
    use spillbench_core::{GraphBuilder, Hardware, Id};

    /// The worked example of the specification; UB holds 10.
    fn worked_example() -> (Graph, Machine) {
        let mut builder = GraphBuilder::new();
        builder.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 1, &[0]).alloc(2, 1, 6, "UB");
        builder.op(3, "COPY_IN", "MTE2", 1, &[1]).op(4, "EXP", "VECTOR", 1, &[0]).free(5, 0, 6, "UB");
        builder.op(6, "EXP", "VECTOR", 1, &[1]).free(7, 1, 6, "UB");
        for (from, to) in [(0, 1), (1, 4), (4, 5), (2, 3), (3, 6), (6, 7)] {
            builder.edge(from, to);
        }
        let graph = builder.build().unwrap().0;
        let mut hardware = Hardware::default();
        hardware.set_capacity("UB", Bytes(10)).unwrap();
        let machine = Machine::resolve(&graph, &hardware).unwrap();
        (graph, machine)
    }

    fn gaps(graph: &Graph, model: &CacheModel) -> Vec<(u64, usize, usize, u64, u64, u64)> {
        let id = |n| graph.id(n).0;
        model
            .gaps
            .iter()
            .map(|g| (graph.buf(g.buf).id.0, g.first, g.end, g.cost.0, id(g.after), id(g.before)))
            .collect()
    }

    #[test]
    fn a_pinned_schedule_has_a_step_for_every_cache_node() {
        let (graph, machine) = worked_example();
        let schedule = Schedule::from_ids(&graph, &[0, 1, 2, 4, 5, 3, 6, 7].map(Id)).unwrap();
        let models = models(&graph, &machine, &schedule, Cover::Schedule).unwrap();
        let model = &models[CacheIx::new(0)];
        assert_eq!(model.steps.iter().map(|s| graph.id(s.node).0).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 3, 6, 7]);
        assert!((0..8).all(|t| model.room(t) == Bytes(4)));
        // b0 is out while 2 stands between its uses, b1 while 4 and 5 stand before its first.
        assert_eq!(gaps(&graph, model), [(0, 2, 3, 6, 1, 4), (1, 3, 5, 6, 2, 3)]);
    }

    #[test]
    fn an_order_of_ops_leaves_alloc_and_free_out() {
        let (graph, machine) = worked_example();
        let schedule = Schedule::from_ids(&graph, &[0, 2, 1, 3, 4, 6, 5, 7].map(Id)).unwrap();
        let models = models(&graph, &machine, &schedule, Cover::OpOrder).unwrap();
        let model = &models[CacheIx::new(0)];
        assert_eq!(model.steps.iter().map(|s| graph.id(s.node).0).collect::<Vec<_>>(), [1, 3, 4, 6]);
        assert_eq!(gaps(&graph, model), [(0, 1, 2, 6, 1, 4), (1, 2, 3, 6, 3, 6)]);
    }

    #[test]
    fn edges_of_cache_nodes_force_a_buffer_to_live_before_and_behind_its_uses() {
        // b0 must be allocated before op 11, through the ALLOC of b1, and freed after op 13; it is
        // used by 12 alone. Each op needs a buffer of its own.
        let mut builder = GraphBuilder::new();
        for buf in 0..5 {
            builder.alloc(buf, buf, 2, "UB").free(20 + buf, buf, 2, "UB");
        }
        builder.op(10, "A", "P", 1, &[2]).op(11, "A", "P", 1, &[1]).op(12, "A", "P", 1, &[0]);
        builder.op(13, "A", "P", 1, &[3]).op(14, "A", "P", 1, &[4]);
        for (from, to) in [(0, 1), (13, 23), (23, 20), (10, 11), (11, 12), (12, 13), (13, 14)] {
            builder.edge(from, to);
        }
        let graph = builder.build().unwrap().0;
        let machine = Machine::resolve(&graph, &Hardware::default()).unwrap();
        let schedule = Schedule::default_for(&graph).normalized(&graph, Normalize::Memory);
        let models = models(&graph, &machine, &schedule, Cover::OpOrder).unwrap();
        let model = &models[CacheIx::new(0)];
        assert_eq!(model.steps.iter().map(|s| graph.id(s.node).0).collect::<Vec<_>>(), [10, 11, 12, 13, 14]);
        assert_eq!(gaps(&graph, model), [(0, 1, 2, 4, 0, 12), (0, 3, 4, 4, 12, 20)]);
    }

    #[test]
    fn what_does_not_belong_together_or_fit_is_refused() {
        let (graph, machine) = worked_example();
        let mut builder = GraphBuilder::new();
        builder.alloc(0, 0, 6, "UB").free(1, 0, 6, "UB");
        let other = builder.build().unwrap().0;
        let schedule = Schedule::default_for(&graph);
        let error = models(&other, &machine, &schedule, Cover::OpOrder).unwrap_err();
        assert_eq!(error, ModelError::OtherSchedule { schedule: 8, graph: 2 });
        let mut hardware = Hardware::default();
        hardware.set_capacity("UB", Bytes(5)).unwrap();
        let small = Machine::resolve(&graph, &hardware).unwrap();
        let error = models(&graph, &small, &schedule, Cover::OpOrder).unwrap_err();
        assert!(matches!(error, ModelError::Misfit(misfits) if misfits.len() == 2));
    }
}
