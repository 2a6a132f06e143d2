//! `fifo`: the buffer whose residency segment began first.

use super::distance;
use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// Positions since the current residency segment began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl VictimHeuristic for Fifo {
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64 {
        distance(request.pos, view.state(buf).segment_start)
    }
}
