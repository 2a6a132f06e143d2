//! `cost-belady`: next-use distance, weighed by the room a victim makes and what moving it costs.

use super::distance;
use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// `belady` × min(size, bytes missing) / movement cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostBelady;

impl VictimHeuristic for CostBelady {
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64 {
        let made = view.buf(buf).size.min(request.missing);
        distance(view.state(buf).next_use, request.pos) * made.0 as f64 / view.buf(buf).movement().0 as f64
    }
}
