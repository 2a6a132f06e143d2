//! The victim heuristics, one file each.
//!
//! Scores are of resident, unpinned buffers of the cache that is short; `p` is the current position.
//! The highest score goes out first, ties by the smaller buffer id.

mod belady;
mod cost_belady;
mod fifo;
mod greedy_dual_size;
mod largest;
mod lfu;
mod life_size;
mod lru;
mod mru;
mod random;
mod smallest;

pub use belady::Belady;
pub use cost_belady::CostBelady;
pub use fifo::Fifo;
pub use greedy_dual_size::GreedyDualSize;
pub use largest::Largest;
pub use lfu::Lfu;
pub use life_size::LifeSize;
pub use lru::Lru;
pub use mru::Mru;
pub use random::Random;
pub use smallest::Smallest;

use spillbench_core::index::Pos;

/// How many positions `later` stands behind `earlier`, 0 if it does not.
fn distance(later: Pos, earlier: Pos) -> f64 {
    later.index().saturating_sub(earlier.index()) as f64
}
