//! `smallest`: the smallest buffer.

use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// The negative of the bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smallest;

impl VictimHeuristic for Smallest {
    fn score(&self, view: View<'_>, _: &Request, buf: BufIx) -> f64 {
        -(view.buf(buf).size.0 as f64)
    }
}
