//! `lru`: the buffer unused for longest.

use super::distance;
use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// Positions since the last use, or since `ALLOC` while unused; reloads are not uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lru;

impl VictimHeuristic for Lru {
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64 {
        distance(request.pos, view.state(buf).last_use)
    }
}
