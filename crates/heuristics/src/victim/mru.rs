//! `mru`: the buffer used most recently.

use super::distance;
use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;

/// The negative of `lru`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mru;

impl VictimHeuristic for Mru {
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64 {
        -distance(request.pos, view.state(buf).last_use)
    }
}
