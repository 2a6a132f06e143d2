//! Failed requests and what they moved, by cache and by what asked for space.

use super::decisions::{Collector, Recorded};
use serde::Serialize;
use spillbench_core::index::CacheIx;
use spillbench_core::plan::Cause;
use spillbench_core::planner::Outcome;
use spillbench_core::units::Bytes;
use spillbench_core::{Graph, NodeKind};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What one group of failed requests cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Failed requests.
    pub failed_requests: usize,
    /// Those met by postponing, which moves nothing.
    pub postponed: usize,
    /// Spills.
    pub spills: usize,
    /// Bytes moved.
    pub moved: Bytes,
    /// Bytes moved for want of free bytes.
    pub by_capacity: Bytes,
    /// Bytes moved for want of contiguous free bytes.
    pub by_fragmentation: Bytes,
}

impl Share {
    fn add(&mut self, graph: &Graph, d: &Recorded) {
        let moved = d.moved(graph);
        self.failed_requests += 1;
        self.postponed += usize::from(matches!(d.outcome, Outcome::PostponedTo(_)));
        self.spills += d.victims.len();
        self.moved += moved;
        match d.cause {
            Cause::Capacity => self.by_capacity += moved,
            Cause::Fragmentation => self.by_fragmentation += moved,
        }
    }
}

/// The share of one cache.
#[derive(Debug, Serialize)]
pub struct CacheShare {
    /// The cache.
    pub cache: String,
    /// What it cost.
    #[serde(flatten)]
    pub share: Share,
}

/// The share of what asked for space in one cache.
#[derive(Debug, Serialize)]
pub struct OpShare {
    /// The operation that the space was for: of an `ALLOC`, that of the first op to use the buffer.
    pub op: String,
    /// `alloc` when its buffer was to be allocated, `reload` when it was to come back.
    pub request: &'static str,
    /// The cache.
    pub cache: String,
    /// What it cost.
    #[serde(flatten)]
    pub share: Share,
}

/// The shares of the caches, in order of first mention; caches without failed requests left out.
pub fn by_cache(graph: &Graph, collector: &Collector) -> Vec<CacheShare> {
    let mut shares: BTreeMap<CacheIx, Share> = BTreeMap::new();
    for d in collector.decisions() {
        shares.entry(graph.buf(d.buf).cache).or_default().add(graph, d);
    }
    let share = |(cache, share)| CacheShare { cache: graph.cache_name(cache).to_owned(), share };
    shares.into_iter().map(share).collect()
}

/// The shares of what asked for space, dearest first.
pub fn by_op(graph: &Graph, collector: &Collector) -> Vec<OpShare> {
    let mut shares: BTreeMap<_, Share> = BTreeMap::new();
    for d in collector.decisions() {
        let (op, request) = match graph.kind(d.node) {
            NodeKind::Alloc(b) => (graph.users(b).first().map_or("none", |&n| graph.op_name(n)), "alloc"),
            _ => (graph.op_name(d.node), "reload"),
        };
        shares.entry((op, request, graph.buf(d.buf).cache)).or_default().add(graph, d);
    }
    let share = |((op, request, cache), share): ((&str, _, _), _)| {
        let cache = graph.cache_name(cache).to_owned();
        OpShare { op: op.to_owned(), request, cache, share }
    };
    let mut shares: Vec<_> = shares.into_iter().map(share).collect();
    shares.sort_by_key(|s| Reverse((s.share.moved, s.share.failed_requests)));
    shares
}
