//! Normalising a schedule: `FREE`s rise to their last use, `ALLOC`s and loads sink to their first.
//!
//! Each step anchors the nodes it moves to a node that stays, then lays the order anew in one
//! pass; nodes with the same anchor keep their order. All steps are linear in nodes and edges.

use super::Schedule;
use crate::graph::{COPY_IN, Graph, NodeKind};
use crate::index::{NodeIx, Pos};
use serde::{Deserialize, Serialize};
use typed_index_collections::{TiVec, ti_vec};

/// How far a schedule is normalised before it is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// Every node stays where it stands.
    None,
    /// Each `FREE` moves to just after the last of its buffer's users and its other predecessors.
    #[default]
    Free,
    /// Also, each `ALLOC` moves to just before its buffer's first user (or earlier successor).
    Memory,
    /// Also, each `COPY_IN` whose predecessors are all `ALLOC`s moves to just before its first
    /// consumer: the first op that an edge leads to or that uses one of its buffers later.
    Loads,
}

impl Normalize {
    /// All levels with their names and one line each.
    pub const ALL: &[(Self, &'static str, &'static str)] = &[
        (Self::None, "none", "keep every node where it stands"),
        (Self::Free, "free", "move each FREE to just after the last use of its buffer"),
        (Self::Memory, "memory", "also move each ALLOC to just before the first use of its buffer"),
        (Self::Loads, "loads", "also move each COPY_IN that waits for ALLOCs only to just before its first consumer"),
    ];
}

pub(super) fn apply(schedule: Schedule, graph: &Graph, level: Normalize) -> Schedule {
    let mut order = schedule.order;
    if level == Normalize::Loads {
        order = sink_loads(graph, &order);
    }
    if level != Normalize::None {
        order = raise_frees(graph, &order);
    }
    if matches!(level, Normalize::Memory | Normalize::Loads) {
        order = sink_allocs(graph, &order);
    }
    Schedule { order }
}

fn positions(order: &TiVec<Pos, NodeIx>) -> TiVec<NodeIx, Pos> {
    let mut place = ti_vec![Pos::new(0); order.len()];
    for (pos, &n) in order.iter_enumerated() {
        place[n] = pos;
    }
    place
}

/// Moves each `FREE` to just after the last of its predecessors, implied ones included.
fn raise_frees(graph: &Graph, order: &TiVec<Pos, NodeIx>) -> TiVec<Pos, NodeIx> {
    // The place of a node, or for a FREE the place it is anchored to; the order is topological, so
    // the anchors of all predecessors are known.
    let mut anchor = positions(order);
    for &n in order.iter().filter(|&&n| matches!(graph.kind(n), NodeKind::Free(_))) {
        let mut last = Pos::new(0);
        graph.for_each_predecessor(n, |p| last = last.max(anchor[p]));
        anchor[n] = last;
    }
    let moved = |n: NodeIx| matches!(graph.kind(n), NodeKind::Free(_));
    lay(order, &anchor, moved, Side::After)
}

/// Moves each `ALLOC` to just before the first of its successors, implied ones included.
fn sink_allocs(graph: &Graph, order: &TiVec<Pos, NodeIx>) -> TiVec<Pos, NodeIx> {
    let moved = |n: NodeIx| matches!(graph.kind(n), NodeKind::Alloc(_));
    let mut anchor = positions(order);
    for &n in order.iter().rev().filter(|&&n| moved(n)) {
        let mut first = Pos::new(order.len());
        graph.for_each_successor(n, |s| first = first.min(anchor[s]));
        anchor[n] = first;
    }
    lay(order, &anchor, moved, Side::Before)
}

/// Moves each `COPY_IN` that waits for `ALLOC`s only to just before its first consumer, where it
/// has one. A `FREE` may be passed: [`raise_frees`] has to follow.
fn sink_loads(graph: &Graph, order: &TiVec<Pos, NodeIx>) -> TiVec<Pos, NodeIx> {
    let is_load = |n: NodeIx| {
        graph.kind(n) == NodeKind::Op
            && graph.op_name(n) == COPY_IN
            && graph.predecessors(n).iter().all(|&p| matches!(graph.kind(p), NodeKind::Alloc(_)))
    };
    let own = positions(order);
    let mut anchor = own.clone();
    // The anchor of the next op that uses each buffer, seen from the end of the order.
    let mut next_use = ti_vec![Pos::new(order.len()); graph.buffer_count()];
    for &n in order.iter().rev() {
        match graph.kind(n) {
            NodeKind::Alloc(_) => continue,
            // Where a FREE stands is no bound, for it follows its predecessors when it is raised
            // next; what waits for it is.
            NodeKind::Free(_) => {
                let waiting = graph.successors(n).iter().map(|&s| anchor[s]);
                anchor[n] = waiting.min().unwrap_or(Pos::new(order.len()));
                continue;
            }
            NodeKind::Op if is_load(n) => {
                let ops = graph.successors(n).iter().filter(|&&s| graph.kind(s) == NodeKind::Op).map(|&s| anchor[s]);
                let consumer = ops.chain(graph.operands(n).iter().map(|&b| next_use[b])).min();
                if let Some(consumer) = consumer.filter(|c| c.index() < order.len()) {
                    anchor[n] = consumer;
                    graph.for_each_successor(n, |s| anchor[n] = anchor[n].min(anchor[s]));
                }
            }
            NodeKind::Op => {}
        }
        graph.operands(n).iter().for_each(|&b| next_use[b] = anchor[n]);
    }
    let moved = |n: NodeIx| graph.kind(n) == NodeKind::Op && anchor[n] != own[n];
    lay(order, &anchor, moved, Side::Before)
}

enum Side {
    Before,
    After,
}

/// Lays the order anew: each moved node beside its anchor, in the old order among themselves.
fn lay(
    order: &TiVec<Pos, NodeIx>,
    anchor: &TiVec<NodeIx, Pos>,
    moved: impl Fn(NodeIx) -> bool,
    side: Side,
) -> TiVec<Pos, NodeIx> {
    let mut start = vec![0u32; order.len() + 1];
    for &n in order.iter().filter(|&&n| moved(n)) {
        start[anchor[n].index() + 1] += 1;
    }
    for i in 1..start.len() {
        start[i] += start[i - 1];
    }
    let mut slot = start.clone();
    let mut attached = vec![NodeIx::new(0); start[order.len()] as usize];
    for &n in order.iter().filter(|&&n| moved(n)) {
        let next = &mut slot[anchor[n].index()];
        attached[*next as usize] = n;
        *next += 1;
    }
    let mut laid = TiVec::with_capacity(order.len());
    for (pos, &n) in order.iter_enumerated() {
        let beside = &attached[start[pos.index()] as usize..start[pos.index() + 1] as usize];
        let stays = (!moved(n)).then_some(n);
        match side {
            Side::Before => laid.extend(beside.iter().copied().chain(stays)),
            Side::After => laid.extend(stays.into_iter().chain(beside.iter().copied())),
        }
    }
    laid
}
