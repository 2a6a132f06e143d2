//! `lfu`: the buffer used least often so far.

use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// The negative of the number of uses so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lfu;

impl VictimHeuristic for Lfu {
    fn score(&self, view: View<'_>, _: &Request, buf: BufIx) -> f64 {
        -f64::from(view.state(buf).uses)
    }
}
