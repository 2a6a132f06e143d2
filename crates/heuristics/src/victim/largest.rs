//! `largest`: the largest buffer.

use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// Bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Largest;

impl VictimHeuristic for Largest {
    fn score(&self, view: View<'_>, _: &Request, buf: BufIx) -> f64 {
        view.buf(buf).size.0 as f64
    }
}
