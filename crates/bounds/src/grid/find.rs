//! Finding grids by how ops use buffers.

use rustc_hash::{FxHashMap, FxHashSet};
use spillbench_core::Graph;
use spillbench_core::graph::NodeKind;
use spillbench_core::index::{BufIx, CacheIx, NodeIx};
use std::collections::BTreeMap;
use typed_index_collections::{TiVec, ti_vec};

/// An op that adds to an accumulator what it makes of a row and a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub accumulator: BufIx,
    pub row: BufIx,
    pub column: BufIx,
    pub row_carrier: Option<BufIx>,
    pub column_carrier: Option<BufIx>,
    /// The layer: a number that its rows and columns share with no others.
    pub layer: usize,
}

impl Product {
    pub(super) fn buffers(&self) -> impl Iterator<Item = BufIx> {
        [self.accumulator, self.row, self.column].into_iter().chain(self.carriers())
    }

    pub(super) fn carriers(&self) -> impl Iterator<Item = BufIx> {
        self.row_carrier.into_iter().chain(self.column_carrier)
    }
}

/// The grids of a graph, each as its products. Those of one cache of accumulators have no buffer in
/// common.
pub(super) fn grids(graph: &Graph) -> Vec<Vec<Product>> {
    graph.caches().flat_map(|cache| families(graph, products(graph, cache))).collect()
}

/// The ops that use one generated buffer of `cache` and two buffers of other caches.
fn products(graph: &Graph, cache: CacheIx) -> Vec<Product> {
    let mut found: Vec<Product> =
        graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op).filter_map(|op| product(graph, op, cache)).collect();
    // A buffer has one part to play, and a carrier carries one row or column.
    let accumulators: FxHashSet<BufIx> = found.iter().map(|p| p.accumulator).collect();
    let sources: FxHashSet<BufIx> = found.iter().flat_map(|p| [p.row, p.column]).collect();
    let mut carried: FxHashMap<BufIx, BufIx> = FxHashMap::default();
    found.retain(|p| {
        let pairs = [(p.row, p.row_carrier), (p.column, p.column_carrier)];
        pairs.iter().all(|&(source, carrier)| {
            let is_carrier = |x: BufIx| {
                !accumulators.contains(&x) && !sources.contains(&x) && *carried.entry(x).or_insert(source) == source
            };
            !accumulators.contains(&source) && carrier.is_none_or(is_carrier)
        })
    });
    found
}

fn product(graph: &Graph, op: NodeIx, cache: CacheIx) -> Option<Product> {
    let &[x, y, z] = graph.operands(op) else { return None };
    let in_cache = |b: BufIx| graph.buf(b).cache == cache;
    let (accumulator, others) = match (in_cache(x), in_cache(y), in_cache(z)) {
        (true, false, false) => (x, [y, z]),
        (false, true, false) => (y, [x, z]),
        (false, false, true) => (z, [x, y]),
        _ => return None,
    };
    if graph.buf(accumulator).backed {
        return None;
    }
    let [(row, row_carrier), (column, column_carrier)] = others.map(|b| source(graph, op, b, accumulator));
    let is_new = row != column && row != accumulator && column != accumulator;
    is_new.then_some(Product { accumulator, row, column, row_carrier, column_carrier, layer: 0 })
}

/// What operand `x` of `op` brings: the buffer that the one op before it moved into `x`, where that
/// serves more ops than `x` does, or `x` itself.
fn source(graph: &Graph, op: NodeIx, x: BufIx, accumulator: BufIx) -> (BufIx, Option<BufIx>) {
    let moved = |&v: &NodeIx| match *graph.operands(v) {
        [a, b] if a == x => Some(b),
        [a, b] if b == x => Some(a),
        _ => None,
    };
    let mut moves = graph.predecessors(op).iter().filter_map(moved).filter(|&b| b != accumulator);
    match (moves.next(), moves.next()) {
        (Some(b), None) if graph.users(x).len() < graph.users(b).len() => (b, Some(x)),
        _ => (x, None),
    }
}

/// Numbers joined to groups, each with a parity within its group.
struct Groups {
    parent: TiVec<BufIx, BufIx>,
    odd: TiVec<BufIx, bool>,
}

impl Groups {
    fn new(count: usize) -> Self {
        Self { parent: (0..count).map(BufIx::new).collect(), odd: ti_vec![false; count] }
    }

    /// The root of `b` and whether `b` differs from it.
    fn find(&mut self, b: BufIx) -> (BufIx, bool) {
        let (mut root, mut odd) = (b, false);
        while self.parent[root] != root {
            odd ^= self.odd[root];
            root = self.parent[root];
        }
        let (mut at, mut rest) = (b, odd);
        while self.parent[at] != root && at != root {
            let (next, step) = (self.parent[at], self.odd[at]);
            (self.parent[at], self.odd[at]) = (root, rest);
            rest ^= step;
            at = next;
        }
        (root, odd)
    }

    /// Joins two; false if they stood together and not as `differ` says.
    fn join(&mut self, a: BufIx, b: BufIx, differ: bool) -> bool {
        let ((a, odd_a), (b, odd_b)) = (self.find(a), self.find(b));
        if a == b {
            return (odd_a ^ odd_b) == differ;
        }
        let (low, high) = (a.min(b), a.max(b));
        self.parent[high] = low;
        self.odd[high] = odd_a ^ odd_b ^ differ;
        true
    }
}

/// Products by what their buffers join. In each layer one side becomes the rows, the larger one, then
/// the one that costs more; layers that have no two sides are left out.
fn families(graph: &Graph, products: Vec<Product>) -> Vec<Vec<Product>> {
    let mut layers = Groups::new(graph.buffer_count());
    let mut no_sides: Vec<BufIx> = Vec::new();
    for p in &products {
        if !layers.join(p.row, p.column, true) {
            no_sides.push(p.row);
        }
    }
    let no_sides: FxHashSet<BufIx> = no_sides.into_iter().map(|b| layers.find(b).0).collect();
    let mut sides: FxHashMap<(BufIx, bool), (FxHashSet<BufIx>, u64)> = FxHashMap::default();
    let mut joined = Groups::new(graph.buffer_count());
    for b in products.iter().flat_map(|p| [p.row, p.column]) {
        let side = sides.entry(layers.find(b)).or_default();
        side.0.insert(b);
        side.1 = side.1.max(graph.buf(b).movement().0);
    }
    let mut kept = Vec::with_capacity(products.len());
    for mut p in products {
        let (layer, odd) = layers.find(p.row);
        if no_sides.contains(&layer) {
            continue;
        }
        let weight = |odd: bool| sides.get(&(layer, odd)).map_or((0, 0), |s| (s.0.len(), s.1));
        let odd_rows = weight(true) > weight(false);
        if odd != odd_rows {
            (p.row, p.column) = (p.column, p.row);
            (p.row_carrier, p.column_carrier) = (p.column_carrier, p.row_carrier);
        }
        p.layer = layer.index();
        joined.join(p.accumulator, p.row, false);
        joined.join(p.row, p.column, false);
        kept.push(p);
    }
    let mut families: BTreeMap<BufIx, Vec<Product>> = BTreeMap::new();
    for p in kept {
        families.entry(joined.find(p.accumulator).0).or_default().push(p);
    }
    families.into_values().collect()
}
