//! Random graphs for the tests of the decoder.

use crate::draw::Draw;
use spillbench_core::hardware::smallest_capacities;
use spillbench_core::{Bytes, Graph, GraphBuilder, Hardware, Machine};

const CACHES: [&str; 3] = ["L1", "UB", "L0C"];
const PIPES: [&str; 4] = ["MTE1", "MTE3", "VECTOR", "CUBE"];

/// A graph of `ops` ops over a few buffers, some of them loaded; an op may wait for earlier ones.
pub(super) fn random_graph(draw: &mut Draw, ops: usize) -> Graph {
    let mut builder = GraphBuilder::new();
    let bufs = 2 + draw.below(ops) as u64;
    let mut loads = Vec::new();
    for b in 0..bufs {
        let (size, cache) = (1 + draw.below(9) as u64, CACHES[draw.below(3)]);
        builder.alloc(b, b, size, cache).free(100_000 + b, b, size, cache);
        let load = (draw.below(2) == 0).then_some(10_000 + b);
        if let Some(id) = load {
            builder.op(id, "COPY_IN", "MTE2", draw.below(40) as u64, &[b]);
            builder.edge(b, id);
        }
        loads.push(load);
    }
    for i in 0..ops as u64 {
        let mut operands: Vec<u64> = (0..draw.below(4)).map(|_| draw.below(bufs as usize) as u64).collect();
        operands.sort_unstable();
        operands.dedup();
        builder.op(20_000 + i, "ADD", PIPES[draw.below(4)], draw.below(60) as u64, &operands);
        for &b in &operands {
            if let Some(load) = loads[b as usize] {
                builder.edge(load, 20_000 + i);
            }
        }
        if i > 0 && draw.below(2) == 0 {
            builder.edge(20_000 + draw.below(i as usize) as u64, 20_000 + i);
        }
    }
    builder.build().expect("edges go forward").0
}

/// A machine whose caches hold the largest operand list and `slack` bytes more.
pub(super) fn machine(graph: &Graph, slack: u64) -> Machine {
    let mut hardware = Hardware::default();
    let least = smallest_capacities(graph);
    for cache in graph.caches() {
        hardware.set_capacity(graph.cache_name(cache), least[cache].0 + Bytes(slack + 1)).expect("a cache of it");
    }
    Machine::resolve(graph, &hardware).expect("every cache is known")
}
