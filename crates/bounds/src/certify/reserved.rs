//! What reservations take of a cache, for the prices: by trying each reservation at each priced step.
//!
//! A reservation holds from its first node to its last, both included, but for the buffer that a `FREE`
//! at which it begins gives back. Where `ALLOC` and `FREE` may move, one that ends at such a node is
//! passed over, and so is one whose last node stands before its first: less is proven then, and nothing
//! that is not true.

use spillbench_core::graph::NodeKind;
use spillbench_core::index::{CacheIx, NodeIx, Pos};
use spillbench_core::reservation::Reserved;
use spillbench_core::{Bytes, Graph, Machine, Schedule};
use typed_index_collections::TiVec;

/// Priced steps times reservations that are tried at most; past it reservations are passed over.
const MOST_WORK: u64 = 1 << 30;

/// The reservations that have a place in the schedule.
pub(super) struct Holds {
    positions: TiVec<NodeIx, Pos>,
    /// Cache, bytes, first and last position.
    spans: Vec<(CacheIx, u64, usize, usize)>,
}

impl Holds {
    pub(super) fn new(graph: &Graph, machine: &Machine, schedule: &Schedule, pinned: bool, priced: usize) -> Self {
        let positions = schedule.positions();
        let placed = |node: Option<NodeIx>, open: usize| match node {
            None => Some(open),
            Some(n) if pinned || graph.kind(n) == NodeKind::Op => Some(positions[n].index()),
            Some(_) => None,
        };
        let span = |r: &Reserved| {
            let (from, to) = (placed(r.from, 0)?, placed(r.to, schedule.len())?);
            (from <= to).then_some((r.cache, r.bytes.0, from, to))
        };
        let mut spans: Vec<_> = machine.reservations().iter().filter_map(span).collect();
        if (spans.len() as u64).saturating_mul(priced as u64) > MOST_WORK {
            spans.clear();
        }
        Self { positions, spans }
    }

    /// The room that a step leaves of a cache.
    pub(super) fn room(&self, graph: &Graph, machine: &Machine, node: NodeIx, cache: CacheIx) -> Bytes {
        let at = self.positions[node].index();
        let operands = graph.operands(node).iter().map(|&b| graph.buf(b)).filter(|b| b.cache == cache);
        let operands: u128 = operands.map(|b| u128::from(b.size.0)).sum();
        let (mut held, mut held_before) = (0u128, 0u128);
        for &(_, bytes, from, _) in self.spans.iter().filter(|s| s.0 == cache && s.2 <= at && at <= s.3) {
            held += u128::from(bytes);
            held_before += if from < at { u128::from(bytes) } else { 0 };
        }
        let taken = match graph.kind(node) {
            NodeKind::Free(_) => held.max(held_before + operands),
            _ => held + operands,
        };
        Bytes(u128::from(machine.cache(cache).capacity.0).saturating_sub(taken) as u64)
    }
}
