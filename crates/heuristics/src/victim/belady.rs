//! `belady`: the buffer whose next use is furthest away.

use super::distance;
use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// Distance to the next use, or to `FREE` if none follows (Belady, "A study of replacement algorithms for a
/// virtual-storage computer", 1966).
#[derive(Clone, Copy, Debug, Default)]
pub struct Belady;

impl VictimHeuristic for Belady {
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64 {
        distance(view.state(buf).next_use, request.pos)
    }
}
