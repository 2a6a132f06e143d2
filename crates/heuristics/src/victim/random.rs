//! `random`: any buffer, drawn anew at each position.

use spillbench_core::VictimHeuristic;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A hash of seed, buffer id and position, so that a draw depends on nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random {
    /// The seed.
    pub seed: u64,
}

impl VictimHeuristic for Random {
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64 {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&view.buf(buf).id.0.to_le_bytes());
        key[8..].copy_from_slice(&(request.pos.index() as u64).to_le_bytes());
        // 53 bits are what a float holds exactly.
        (xxh3_64_with_seed(&key, self.seed) >> 11) as f64
    }
}
