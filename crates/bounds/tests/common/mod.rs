//! Random graphs and public data sets for the tests of bounds.
#![allow(dead_code, reason = "each test binary uses some of it")]

use proptest::prelude::*;
use spillbench_bounds::model::models;
use spillbench_bounds::{CacheModel, Cover};
use spillbench_core::graph::NodeKind;
use spillbench_core::index::NodeIx;
use spillbench_core::{Bytes, Graph, GraphBuilder, Hardware, Machine, Schedule};
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

/// Calls `visit` with every topological order of all nodes in which cache nodes stand where they
/// must: `ALLOC`s first, `FREE`s last. Edges of these graphs join ops only.
fn each_order(graph: &Graph, visit: &mut dyn FnMut(Vec<NodeIx>)) {
    let nodes = |wanted: fn(NodeKind) -> bool| graph.nodes().filter(move |&n| wanted(graph.kind(n)));
    let mut placed: Vec<NodeIx> = nodes(|k| matches!(k, NodeKind::Alloc(_))).collect();
    let ops: Vec<NodeIx> = nodes(|k| k == NodeKind::Op).collect();
    let frees: Vec<NodeIx> = nodes(|k| matches!(k, NodeKind::Free(_))).collect();
    fn go(
        graph: &Graph,
        ops: &[NodeIx],
        frees: &[NodeIx],
        placed: &mut Vec<NodeIx>,
        visit: &mut dyn FnMut(Vec<NodeIx>),
    ) {
        let next: Vec<NodeIx> = ops.iter().copied().filter(|op| !placed.contains(op)).collect();
        if next.is_empty() {
            visit(placed.iter().chain(frees).copied().collect());
        }
        for op in next {
            if graph.predecessors(op).iter().all(|p| placed.contains(p)) {
                placed.push(op);
                go(graph, ops, frees, placed, visit);
                placed.pop();
            }
        }
    }
    go(graph, &ops, &frees, &mut placed, visit);
}

/// The least cost over all choices of gaps: every gap is kept or given up.
fn least(model: &CacheModel, from: usize, kept: &mut Vec<usize>) -> u64 {
    let Some(gap) = model.gaps.get(from) else { return 0 };
    let mut best = gap.cost.0 + least(model, from + 1, kept);
    let fits = |t: usize| {
        let over = kept.iter().map(|&k| &model.gaps[k]).filter(|g| (g.first..g.end).contains(&t));
        over.map(|g| g.size.0).sum::<u64>() + gap.size.0 <= model.room(t).0
    };
    if (gap.first..gap.end).all(fits) {
        kept.push(from);
        best = best.min(least(model, from + 1, kept));
        kept.pop();
    }
    best
}

/// The least movement over all orders, capacity counted in bytes.
pub fn by_trial(graph: &Graph, machine: &Machine) -> u64 {
    let mut best = u64::MAX;
    each_order(graph, &mut |order| {
        let schedule = Schedule::from_nodes(graph, order).unwrap();
        let models = models(graph, machine, &schedule, Cover::OpOrder).unwrap();
        best = best.min(models.iter().map(|m| least(m, 0, &mut Vec::new())).sum());
    });
    best
}
