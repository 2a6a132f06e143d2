//! Random graphs for the tests: any edges that some hidden order allows, odd ones between cache
//! nodes included.

#![allow(dead_code)]

pub mod brute;

use proptest::prelude::*;
use spillbench_core::index::CacheIx;
use spillbench_core::{Bytes, Graph, GraphBuilder, Hardware, Machine};

/// The choices behind one random graph.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Per buffer: cache, size, whether a load fills it.
    pub bufs: Vec<(u8, u64, bool)>,
    /// Per op: its operands, by number modulo the buffers.
    pub ops: Vec<Vec<u16>>,
    /// Edges between any two nodes, turned to point forward in the hidden order.
    pub edges: Vec<(u16, u16)>,
    /// Room in each cache beyond the least, in bytes.
    pub slack: u64,
}

/// Recipes of up to `ops` ops; `odd` edges may touch cache nodes.
pub fn recipes(ops: usize) -> impl Strategy<Value = Recipe> {
    let bufs = prop::collection::vec((0u8..3, 1u64..9, any::<bool>()), 1..ops);
    let operands = prop::collection::vec(prop::collection::vec(any::<u16>(), 0..4), 1..ops);
    let edges = prop::collection::vec((any::<u16>(), any::<u16>()), 0..ops);
    (bufs, operands, edges, 0u64..12).prop_map(|(bufs, ops, edges, slack)| Recipe { bufs, ops, edges, slack })
}

const CACHES: [&str; 3] = ["L1", "UB", "L0C"];

/// The graph of a recipe. With `odd`, its extra edges join any nodes, otherwise ops only.
pub fn graph(recipe: &Recipe, odd: bool) -> Graph {
    let bufs = recipe.bufs.len() as u64;
    let mut builder = GraphBuilder::new();
    for (b, &(cache, size, _)) in recipe.bufs.iter().enumerate() {
        let (b, cache) = (b as u64, CACHES[cache as usize]);
        builder.alloc(b, b, size, cache).free(100_000 + b, b, size, cache);
    }
    // The hidden order: ALLOCs, loads, ops, FREEs, each by rising id.
    let mut ids: Vec<u64> = if odd { (0..bufs).collect() } else { Vec::new() };
    let mut loaded = vec![None; recipe.bufs.len()];
    for (b, buf) in recipe.bufs.iter().enumerate().filter(|(_, buf)| buf.2) {
        let id = 10_000 + b as u64;
        builder.op(id, "COPY_IN", "MTE2", 10, &[b as u64]);
        builder.edge(b as u64, id);
        loaded[b] = Some(id);
        debug_assert!(buf.1 > 0);
    }
    for (i, operands) in recipe.ops.iter().enumerate() {
        let id = 20_000 + i as u64;
        let operands: Vec<u64> = operands.iter().map(|&o| u64::from(o) % bufs).collect();
        builder.op(id, "ADD", "VECTOR", 5, &operands);
        ids.push(id);
        for &b in &operands {
            if let Some(load) = loaded[b as usize] {
                builder.edge(load, id);
            }
        }
    }
    if odd {
        ids.extend((0..bufs).map(|b| 100_000 + b));
    }
    for &(a, b) in &recipe.edges {
        let (a, b) = (ids[a as usize % ids.len()], ids[b as usize % ids.len()]);
        if a != b {
            builder.edge(a.min(b), a.max(b));
        }
    }
    // An edge FREE(a) → ALLOC(b), where a's users stand before b's.
    if odd && bufs > 1 {
        let uses = |b: u64| {
            let at = |ops: &Vec<u16>| ops.iter().any(|&o| u64::from(o) % bufs == b);
            let all: Vec<usize> = (0..recipe.ops.len()).filter(|&i| at(&recipe.ops[i])).collect();
            (all.first().copied(), all.last().copied())
        };
        for b in 1..bufs {
            let plain = recipe.edges.is_empty() && loaded[b as usize].is_none() && loaded[b as usize - 1].is_none();
            if let ((_, Some(last)), (Some(first), _)) = (uses(b - 1), uses(b))
                && plain
                && last < first
            {
                builder.edge(100_000 + b - 1, b);
            }
        }
    }
    builder.build().expect("edges go forward in the hidden order").0
}

/// A machine whose caches hold the largest operand list and `slack` bytes more.
pub fn machine(graph: &Graph, slack: u64) -> Machine {
    let mut hardware = Hardware::default();
    let least = spillbench_core::hardware::smallest_capacities(graph);
    for cache in graph.caches() {
        let capacity = least.get(CacheIx::new(cache.index())).map_or(1, |l| l.0.0);
        hardware.set_capacity(graph.cache_name(cache), Bytes(capacity + slack)).expect("a cache of the hardware");
    }
    Machine::resolve(graph, &hardware).expect("every cache is known")
}
