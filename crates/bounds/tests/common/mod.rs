//! Random graphs and public data sets for the tests of bounds.
#![allow(dead_code, reason = "each test binary uses some of it")]

use proptest::prelude::*;
use spillbench_core::{Bytes, Graph, GraphBuilder, Hardware, Machine};
use std::path::{Path, PathBuf};

/// How large random graphs are.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub ops: usize,
    pub buffers: usize,
    /// The fewest operands of an op before repeats are dropped; the most are 2.
    pub operands: usize,
    /// The smallest size of a buffer; the largest is half the capacity.
    pub smallest: u64,
    /// Whether all buffers are of one cache.
    pub one_cache: bool,
    /// Edges drawn between ops, and between cache nodes and ops.
    pub edges: usize,
    /// Whether edges that involve cache nodes are drawn too.
    pub cache_edges: bool,
}

/// Capacity of both caches of random graphs.
pub const CAPACITY: u64 = 8;

/// A graph over the caches UB and L1 of [`CAPACITY`] bytes, in which everything fits.
///
/// Ids rise in a topological order, so that any edge from a smaller to a larger id may be drawn:
/// `ALLOC`s first, then ops, then `FREE`s.
pub fn graph(shape: Shape) -> impl Strategy<Value = (Graph, Machine)> {
    let buffers = prop::collection::vec((shape.smallest..=CAPACITY / 2, any::<bool>()), 1..=shape.buffers);
    let ops = prop::collection::vec(
        (prop::collection::vec(any::<prop::sample::Index>(), shape.operands..3), 0..4u8),
        1..=shape.ops,
    );
    let edges = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..=shape.edges);
    (buffers, ops, edges).prop_map(move |(buffers, ops, edges)| build(&buffers, &ops, &edges, shape))
}

type Drawn = Vec<prop::sample::Index>;

fn build(
    buffers: &[(u64, bool)],
    ops: &[(Drawn, u8)],
    edges: &[(prop::sample::Index, prop::sample::Index)],
    shape: Shape,
) -> (Graph, Machine) {
    let (b, n) = (buffers.len(), ops.len());
    let total = 2 * b + n;
    let mut builder = GraphBuilder::new();
    for (i, &(size, l1)) in buffers.iter().enumerate() {
        let cache = if l1 && !shape.one_cache { "L1" } else { "UB" };
        builder.alloc(i as u64, i as u64, size, cache).free((b + n + i) as u64, i as u64, size, cache);
    }
    for (i, (drawn, kind)) in ops.iter().enumerate() {
        let bufs: Vec<u64> = drawn.iter().map(|d| d.index(b) as u64).collect();
        builder.op((b + i) as u64, if *kind == 0 { "COPY_IN" } else { "ADD" }, "P", 1, &bufs);
    }
    for (x, y) in edges {
        let (low, count) = if shape.cache_edges { (0, total) } else { (b, n) };
        let (x, y) = (low + x.index(count), low + y.index(count));
        if x != y {
            builder.edge(x.min(y) as u64, x.max(y) as u64);
        }
    }
    let graph = builder.build().expect("edges go from smaller to larger ids").0;
    let mut hardware = Hardware::default();
    for cache in ["UB", "L1"] {
        hardware.set_capacity(cache, Bytes(CAPACITY)).unwrap();
    }
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    assert!(machine.misfits(&graph).is_empty());
    (graph, machine)
}

/// The directory of the public data sets, if it is there.
pub fn data() -> Option<PathBuf> {
    let fallback = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/external");
    let dir = std::env::var_os("SPILLBENCH_DATA").map_or(fallback, PathBuf::from);
    let there = dir.join("cpmcm2025a").is_dir();
    if !there {
        eprintln!("skipped: no cpmcm2025a under {} (set SPILLBENCH_DATA)", dir.display());
    }
    there.then_some(dir)
}
