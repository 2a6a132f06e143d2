//! What a graph is made of: buffers by cache and size, ops by kind and pipe, demand along a
//! schedule, and the buffers used most or living longest.

use serde::Serialize;
use spillbench_core::graph::{Buffer, Graph, NodeKind};
use spillbench_core::hardware::{Hardware, smallest_capacities};
use spillbench_core::index::{BufIx, CacheIx, OpIx, PipeIx};
use spillbench_core::plan::Plan;
use spillbench_core::schedule::Schedule;
use spillbench_core::units::{BufId, Bytes, Id};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use typed_index_collections::{TiVec, ti_vec};

/// One cache of a graph.
#[derive(Debug, Serialize)]
pub struct CacheProfile {
    /// Its name.
    pub cache: String,
    /// Bytes the hardware gives it; `None` when the hardware does not have it.
    pub capacity: Option<Bytes>,
    /// Number of buffers.
    pub buffers: usize,
    /// How many of them a `COPY_IN` backs.
    pub backed: usize,
    /// Bytes of all buffers.
    pub bytes: Bytes,
    /// Most bytes live at once along the schedule.
    pub peak_demand: Bytes,
    /// The `ALLOC` at which that is reached first.
    pub peak_node: Option<Id>,
    /// Most bytes that one node needs at once: under less, no plan exists.
    pub smallest_capacity: Bytes,
    /// The first node that needs so many.
    pub smallest_capacity_node: Id,
    /// Its operation.
    pub smallest_capacity_op: String,
    /// Most operands that one op has here.
    pub most_operands: usize,
    /// Buffers by size, rising.
    pub sizes: Vec<SizeClass>,
}

/// The buffers of one size.
#[derive(Debug, Serialize)]
pub struct SizeClass {
    /// The size.
    pub size: Bytes,
    /// How many buffers have it.
    pub buffers: usize,
}

/// The ops of one name on one pipe.
#[derive(Debug, Serialize)]
pub struct OpProfile {
    /// Name of the operation.
    pub op: String,
    /// Name of the pipe; `None` for cache nodes and where the file gives none.
    pub pipe: Option<String>,
    /// How many there are.
    pub nodes: usize,
    /// Cycles of all of them that have any; `None` where none has.
    pub cycles: Option<u64>,
}

/// A buffer that stands out.
#[derive(Clone, Debug, Serialize)]
pub struct BufferProfile {
    /// The buffer.
    pub buf: BufId,
    /// Its cache.
    pub cache: String,
    /// Its size.
    pub size: Bytes,
    /// True when moving it out costs nothing.
    pub backed: bool,
    /// Ops that use it.
    pub uses: usize,
    /// Positions from its `ALLOC` to its `FREE`.
    pub life: usize,
}

/// A buffer that a plan moves.
#[derive(Clone, Debug, Serialize)]
pub struct MovedBuffer {
    /// The buffer.
    #[serde(flatten)]
    pub buffer: BufferProfile,
    /// How often it is spilled.
    pub spills: usize,
    /// Bytes that its spills move.
    pub moved: Bytes,
}

/// The buffers that a plan moves most, by rising id among equals.
pub fn most_moved(graph: &Graph, schedule: &Schedule, plan: &Plan, top: usize) -> Vec<MovedBuffer> {
    let lives = lives(graph, schedule);
    let mut spills: BTreeMap<BufIx, usize> = BTreeMap::new();
    for buf in plan.spills.iter().filter_map(|s| graph.buf_by_id(s.buf)) {
        *spills.entry(buf).or_default() += 1;
    }
    let moved = |(b, spills): (BufIx, usize)| MovedBuffer {
        buffer: describe(graph, b, lives[b]),
        spills,
        moved: Bytes(graph.buf(b).movement().0 * spills as u64),
    };
    let mut moved: Vec<_> = spills.into_iter().map(moved).collect();
    moved.sort_by_key(|m| (Reverse(m.moved), m.buffer.buf));
    moved.truncate(top);
    moved
}

/// A graph seen along one schedule.
#[derive(Debug, Serialize)]
pub struct Profile {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of distinct edges in the file.
    pub edges: usize,
    /// Number of buffers.
    pub buffers: usize,
    /// True when every op has a pipe and cycles.
    pub has_timing: bool,
    /// One entry per cache, in order of first mention.
    pub caches: Vec<CacheProfile>,
    /// One entry per operation and pipe, in order of first mention.
    pub ops: Vec<OpProfile>,
    /// The buffers that most ops use.
    pub most_used: Vec<BufferProfile>,
    /// The buffers that live longest.
    pub longest_lived: Vec<BufferProfile>,
}

impl Profile {
    /// Counts a graph; `top` bounds the lists of buffers.
    pub fn of(graph: &Graph, schedule: &Schedule, hardware: &Hardware, top: usize) -> Self {
        let lives = lives(graph, schedule);
        let buffer = |b: BufIx| describe(graph, b, lives[b]);
        let ranked = |key: &dyn Fn(BufIx) -> usize| {
            let mut bufs: Vec<_> = graph.bufs().collect();
            bufs.sort_by_key(|&b| (Reverse(key(b)), graph.buf(b).id));
            bufs.into_iter().take(top).map(buffer).collect()
        };
        Self {
            nodes: graph.node_count(),
            edges: graph.edge_count(),
            buffers: graph.buffer_count(),
            has_timing: graph.has_timing(),
            caches: caches(graph, schedule, hardware),
            ops: ops(graph),
            most_used: ranked(&|b| graph.users(b).len()),
            longest_lived: ranked(&|b| lives[b]),
        }
    }
}

/// A buffer with its place in the graph.
fn describe(graph: &Graph, b: BufIx, life: usize) -> BufferProfile {
    let &Buffer { id, size, cache, backed, .. } = graph.buf(b);
    BufferProfile { buf: id, cache: graph.cache_name(cache).to_owned(), size, backed, uses: graph.users(b).len(), life }
}

/// Positions from `ALLOC` to `FREE`, per buffer.
fn lives(graph: &Graph, schedule: &Schedule) -> TiVec<BufIx, usize> {
    let place = schedule.positions();
    graph.bufs().map(|b| graph.buf(b)).map(|b| place[b.free].index() - place[b.alloc].index()).collect()
}

fn caches(graph: &Graph, schedule: &Schedule, hardware: &Hardware) -> Vec<CacheProfile> {
    let smallest = smallest_capacities(graph);
    let peaks = peaks(graph, schedule);
    let most_operands = most_operands(graph);
    let mut sizes: TiVec<CacheIx, BTreeMap<Bytes, usize>> = ti_vec![BTreeMap::new(); graph.cache_names().len()];
    for buf in graph.bufs().map(|b| graph.buf(b)) {
        *sizes[buf.cache].entry(buf.size).or_default() += 1;
    }
    // A cache that only an op's stray Type names has no buffer, and nothing to tell.
    let named = graph.caches().filter(|&c| !sizes[c].is_empty());
    named
        .map(|c| {
            let name = graph.cache_name(c);
            let backed = graph.bufs().map(|b| graph.buf(b)).filter(|b| b.cache == c && b.backed).count();
            let (needed, node) = smallest[c];
            CacheProfile {
                cache: name.to_owned(),
                capacity: hardware.caches.get(name).map(|spec| spec.capacity),
                buffers: sizes[c].values().sum(),
                backed,
                bytes: sizes[c].iter().map(|(size, &count)| Bytes(size.0 * count as u64)).sum(),
                peak_demand: peaks[c].0,
                peak_node: peaks[c].1,
                smallest_capacity: needed,
                smallest_capacity_node: graph.id(node),
                smallest_capacity_op: graph.op_name(node).to_owned(),
                most_operands: most_operands[c],
                sizes: sizes[c].iter().map(|(&size, &buffers)| SizeClass { size, buffers }).collect(),
            }
        })
        .collect()
}

/// Most bytes live at once, per cache, and the `ALLOC` that reaches them first.
fn peaks(graph: &Graph, schedule: &Schedule) -> TiVec<CacheIx, (Bytes, Option<Id>)> {
    let mut live = ti_vec![Bytes(0); graph.cache_names().len()];
    let mut peaks = ti_vec![(Bytes(0), None); graph.cache_names().len()];
    for &n in schedule.order() {
        match graph.kind(n) {
            NodeKind::Alloc(b) => {
                let &Buffer { size, cache, .. } = graph.buf(b);
                live[cache] += size;
                if live[cache] > peaks[cache].0 {
                    peaks[cache] = (live[cache], Some(graph.id(n)));
                }
            }
            NodeKind::Free(b) => live[graph.buf(b).cache] -= graph.buf(b).size,
            NodeKind::Op => {}
        }
    }
    peaks
}

/// Most operands that one op has, per cache.
fn most_operands(graph: &Graph) -> TiVec<CacheIx, usize> {
    let mut most = ti_vec![0; graph.cache_names().len()];
    let mut here: TiVec<CacheIx, usize> = most.clone();
    for n in graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op) {
        let caches = || graph.operands(n).iter().map(|&b| graph.buf(b).cache);
        caches().for_each(|c| here[c] += 1);
        caches().for_each(|c| most[c] = most[c].max(here[c]));
        caches().for_each(|c| here[c] = 0);
    }
    most
}

fn ops(graph: &Graph) -> Vec<OpProfile> {
    let mut counts = BTreeMap::new();
    for n in graph.nodes() {
        let (nodes, cycles) = counts.entry((graph.op(n), graph.pipe(n))).or_insert((0usize, None));
        *nodes += 1;
        if let Some(more) = graph.cycles(n) {
            *cycles = Some(cycles.unwrap_or(0) + more.0);
        }
    }
    let entry = |((op, pipe), (nodes, cycles)): ((OpIx, Option<PipeIx>), (usize, Option<u64>))| OpProfile {
        op: graph.op_names()[op].clone(),
        pipe: pipe.map(|p| graph.pipe_names()[p].clone()),
        nodes,
        cycles,
    };
    counts.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillbench_core::graph::GraphBuilder;

    fn profile() -> Profile {
        let mut b = GraphBuilder::new();
        b.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 10, &[0]).alloc(2, 1, 4, "UB");
        b.op(3, "EXP", "VECTOR", 5, &[0, 1]).free(4, 0, 6, "UB").op(5, "EXP", "VECTOR", 7, &[1]);
        b.free(6, 1, 4, "UB").alloc(7, 2, 4, "X").free(8, 2, 4, "X");
        let (graph, _) = b.build().unwrap();
        Profile::of(&graph, &Schedule::default_for(&graph), &Hardware::default(), 1)
    }

    #[test]
    fn caches_are_counted() {
        let p = profile();
        let ub = &p.caches[0];
        assert_eq!((ub.cache.as_str(), ub.buffers, ub.backed, ub.bytes), ("UB", 2, 1, Bytes(10)));
        assert_eq!((ub.peak_demand, ub.peak_node), (Bytes(10), Some(Id(2))));
        assert_eq!((ub.smallest_capacity, ub.smallest_capacity_node, ub.most_operands), (Bytes(10), Id(3), 2));
        assert_eq!((ub.capacity, p.caches[1].capacity), (Some(Bytes(1024)), None));
        assert_eq!(p.caches[1].most_operands, 0);
    }

    #[test]
    fn ops_and_buffers_are_ranked() {
        let p = profile();
        let exp = p.ops.iter().find(|o| o.op == "EXP").unwrap();
        assert_eq!((exp.pipe.as_deref(), exp.nodes, exp.cycles), (Some("VECTOR"), 2, Some(12)));
        // Both buffers have two users; the smaller id comes first. They live equally long.
        assert_eq!((p.most_used[0].buf, p.most_used[0].uses), (BufId(0), 2));
        assert_eq!((p.longest_lived[0].buf, p.longest_lived[0].life), (BufId(0), 4));
        assert_eq!(p.most_used.len(), 1);
    }
}
