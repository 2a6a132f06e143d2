//! `greedy-dual-size`: the buffer of the lowest credit, where credit is cost per byte on top of what
//! the last victim had.

use spillbench_core::heuristic::{Event, Request, View};
use spillbench_core::index::{BufIx, CacheIx};
use spillbench_core::{Graph, VictimHeuristic};
use typed_index_collections::{TiVec, ti_vec};

/// Cao and Irani, "Cost-Aware WWW Proxy Caching Algorithms", 1997: `H = L + cost / size` on every
/// load and use, where `L` is the `H` of the last victim of that cache; the victim has the lowest
/// `H`. The cost is the movement cost.
#[derive(Clone, Debug, Default)]
pub struct GreedyDualSize {
    credit: TiVec<BufIx, f64>,
    inflation: TiVec<CacheIx, f64>,
}

impl VictimHeuristic for GreedyDualSize {
    fn score(&self, _: View<'_>, _: &Request, buf: BufIx) -> f64 {
        -self.credit[buf]
    }

    fn reset(&mut self, graph: &Graph) {
        self.credit = ti_vec![0.0; graph.buffer_count()];
        self.inflation = ti_vec![0.0; graph.cache_names().len()];
    }

    fn observe(&mut self, view: View<'_>, event: Event, buf: BufIx) {
        let data = view.buf(buf);
        match event {
            Event::Acquired | Event::Used => {
                let cost = data.movement().0 as f64 / data.size.0 as f64;
                self.credit[buf] = self.inflation[data.cache] + cost;
            }
            Event::Evicted => {
                // Contiguity can force out a buffer that has not the lowest credit; `L` never falls.
                let inflation = &mut self.inflation[data.cache];
                *inflation = inflation.max(self.credit[buf]);
            }
        }
    }

    fn observes(&self) -> bool {
        true
    }
}
