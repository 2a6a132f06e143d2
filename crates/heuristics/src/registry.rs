//! The registry of victim heuristics: names, one-line docs and constructors, in one static slice.

use crate::victim::{Belady, CostBelady, Fifo, GreedyDualSize, Largest, Lfu, LifeSize, Lru, Mru, Random, Smallest};
use spillbench_core::VictimHeuristic;

/// A victim heuristic by name.
#[derive(Clone, Copy, Debug)]
pub struct Heuristic {
    /// What commands and tables call it.
    pub name: &'static str,
    /// One line on it; p is the current position.
    pub doc: &'static str,
    /// True when plans depend on the seed.
    pub seeded: bool,
    /// Makes one; heuristics that draw do so from `seed`.
    pub make: fn(seed: u64) -> Box<dyn VictimHeuristic>,
}

const fn plain(name: &'static str, doc: &'static str, make: fn(u64) -> Box<dyn VictimHeuristic>) -> Heuristic {
    Heuristic { name, doc, seeded: false, make }
}

/// All victim heuristics.
pub static HEURISTICS: &[Heuristic] = &[
    plain("life-size", "remaining life x size: (position of FREE - p) x size", |_| Box::new(LifeSize)),
    plain("lru", "least recently used: p - position of last use", |_| Box::new(Lru)),
    plain("belady", "furthest next use: position of next use (of FREE if none) - p", |_| Box::new(Belady)),
    plain("cost-belady", "belady x min(size, bytes missing) / movement cost", |_| Box::new(CostBelady)),
    plain("fifo", "longest resident: p - start of the current residency segment", |_| Box::new(Fifo)),
    plain("mru", "most recently used: the negative of lru", |_| Box::new(Mru)),
    plain("lfu", "least often used so far", |_| Box::new(Lfu)),
    Heuristic { seeded: true, ..plain("random", "a hash of seed, buffer and p", |seed| Box::new(Random { seed })) },
    plain("largest", "the largest buffer", |_| Box::new(Largest)),
    plain("smallest", "the smallest buffer", |_| Box::new(Smallest)),
    plain("greedy-dual-size", "lowest credit (Cao & Irani 1997), cost = movement cost", |_| {
        Box::<GreedyDualSize>::default()
    }),
];

/// The heuristic of that name.
pub fn heuristic(name: &str) -> Option<&'static Heuristic> {
    HEURISTICS.iter().find(|h| h.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_plain() {
        let names: BTreeSet<_> = HEURISTICS.iter().map(|h| h.name).collect();
        assert_eq!(names.len(), HEURISTICS.len());
        for h in HEURISTICS {
            assert!(h.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", h.name);
            assert!(!h.doc.is_empty() && h.doc.len() <= 80 && !h.doc.ends_with('.'), "{}", h.name);
            assert!(std::ptr::eq(heuristic(h.name).unwrap(), h));
        }
        assert!(heuristic("optimal").is_none());
    }
}
