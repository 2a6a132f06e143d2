//! `life-size`: the buffer with the most remaining life in bytes.

use super::distance;
use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// Remaining life × size: positions to `FREE`, times bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LifeSize;

impl VictimHeuristic for LifeSize {
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64 {
        distance(view.state(buf).free, request.pos) * view.buf(buf).size.0 as f64
    }
}
