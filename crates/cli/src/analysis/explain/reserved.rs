//! What went out of the way of reservations: no request failed, and no heuristic was asked.

use super::Mapped;
use super::decisions::{Collector, VictimRecord, VictimStory, story_of};
use serde::Serialize;
use spillbench_core::Graph;
use spillbench_core::index::{CacheIx, NodeIx};
use spillbench_core::plan::Cause;
use spillbench_core::units::{Bytes, Id};
use std::cmp::Reverse;

/// A reservation that began where something lay.
#[derive(Debug)]
pub struct Cleared {
    pub node: NodeIx,
    pub cache: CacheIx,
    pub usable: Bytes,
    pub cause: Cause,
    pub victims: Vec<VictimRecord>,
    /// The spill that the first victim became; the others follow it.
    pub first_spill: usize,
}

impl Cleared {
    fn moved(&self, graph: &Graph) -> Bytes {
        self.victims.iter().map(|v| graph.buf(v.buf).movement()).sum()
    }
}

/// The same, told.
#[derive(Debug, Serialize)]
pub struct ClearingStory {
    /// Where the first victim goes out.
    pub position: usize,
    /// The node with which the reservation begins.
    pub node: Id,
    /// Its operation.
    pub op: String,
    /// The cache.
    pub cache: String,
    /// What is left of it.
    pub usable: Bytes,
    /// Whether free bytes were short, or only the place was taken.
    pub cause: Cause,
    /// Bytes that the victims move.
    pub moved: Bytes,
    /// What went out; no score was asked for.
    pub victims: Vec<VictimStory>,
}

/// What went out of the way of reservations in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forced {
    /// Spills.
    pub spills: usize,
    /// Bytes that they move.
    pub moved: Bytes,
}

/// All that reservations forced.
pub fn forced(graph: &Graph, collector: &Collector) -> Forced {
    let mut forced = Forced::default();
    for cleared in collector.cleared_ways() {
        forced.spills += cleared.victims.len();
        forced.moved += cleared.moved(graph);
    }
    forced
}

/// The reservations that moved most bytes out of their way, the earlier first among equals, told.
pub fn dearest(mapped: &Mapped<'_>, collector: &Collector, top: usize) -> Vec<ClearingStory> {
    let graph = mapped.graph;
    let mut order: Vec<_> = collector.cleared_ways().iter().collect();
    order.sort_by_key(|c| Reverse(c.moved(graph)));
    order.truncate(top);
    let tell = |c: &Cleared| {
        let at = mapped.outs[c.first_spill];
        ClearingStory {
            position: at.index(),
            node: graph.id(c.node),
            op: graph.op_name(c.node).to_owned(),
            cache: graph.cache_name(c.cache).to_owned(),
            usable: c.usable,
            cause: c.cause,
            moved: c.moved(graph),
            victims: c.victims.iter().map(|v| story_of(mapped, v, at)).collect(),
        }
    };
    order.into_iter().map(tell).collect()
}
