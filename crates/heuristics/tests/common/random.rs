//! Random graphs, schedules and capacities for the property tests.

use proptest::prelude::*;
use proptest::sample::Index;
use spillbench_core::hardware::{Machine, smallest_capacities};
use spillbench_core::index::NodeIx;
use spillbench_core::{Bytes, Graph, GraphBuilder, Hardware, NodeKind, Schedule};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A random case: a graph, a topological order of it, and hardware that it fits.
#[derive(Clone, Debug)]
pub struct Case {
    pub graph: Graph,
    pub schedule: Schedule,
    pub hardware: Hardware,
}

impl Case {
    pub fn machine(&self) -> Machine {
        Machine::resolve(&self.graph, &self.hardware).unwrap()
    }

    /// The same with caches without limits.
    pub fn unbounded(&self) -> Hardware {
        let mut hardware = self.hardware.clone();
        hardware.caches.values_mut().for_each(|c| c.capacity = Hardware::UNBOUNDED);
        hardware
    }
}

#[derive(Clone, Debug)]
struct Op {
    load: bool,
    operands: Vec<Index>,
    after: Vec<Index>,
}

const CACHES: [&str; 3] = ["UB", "L1", "L0C"];

/// Cases of up to `buffers` buffers and `ops` ops. L0C evicts last; ids are spread out and do not
/// follow the order.
pub fn case(buffers: usize, ops: usize) -> impl Strategy<Value = Case> {
    sized(buffers, ops, 1..9, 1)
}

/// Cases whose buffers all have the size `unit` and whose capacities are multiples of it, so that
/// free bytes always lie as they are needed.
pub fn equal_case(buffers: usize, ops: usize, unit: u64) -> impl Strategy<Value = Case> {
    sized(buffers, ops, unit..unit + 1, unit)
}

fn sized(buffers: usize, ops: usize, sizes: Range<u64>, unit: u64) -> impl Strategy<Value = Case> {
    let op = (any::<bool>(), prop::collection::vec(any::<Index>(), 0..4), prop::collection::vec(any::<Index>(), 0..3))
        .prop_map(|(load, operands, after)| Op { load, operands, after });
    (
        prop::collection::vec((sizes, 0usize..CACHES.len()), 1..=buffers),
        prop::collection::vec(op, 0..=ops),
        prop::collection::vec(any::<u16>(), 2 * buffers + ops),
        prop::array::uniform3(0u64..5),
    )
        .prop_map(move |(buffers, ops, priorities, slack)| build(&buffers, &ops, &priorities, slack.map(|s| s * unit)))
}

fn build(buffers: &[(u64, usize)], ops: &[Op], priorities: &[u16], slack: [u64; 3]) -> Case {
    let mut builder = GraphBuilder::new();
    let nodes = 2 * buffers.len() + ops.len();
    // Ids run down with gaps, so that file order, id order and schedule differ.
    let id = |place: usize| 3 * (nodes - place) as u64;
    let first_op = 2 * buffers.len();
    for (b, &(size, cache)) in buffers.iter().enumerate() {
        builder.alloc(id(2 * b), 10 + b as u64, size, CACHES[cache]);
        builder.free(id(2 * b + 1), 10 + b as u64, size, CACHES[cache]);
    }
    for (o, op) in ops.iter().enumerate() {
        let used: Vec<u64> = op.operands.iter().map(|i| 10 + i.index(buffers.len()) as u64).collect();
        let (name, pipe) = if op.load { ("COPY_IN", "MTE2") } else { ("ADD", "VECTOR") };
        builder.op(id(first_op + o), name, pipe, 1 + (o as u64 * 7) % 40, &used);
        for before in op.after.iter().filter(|_| o > 0) {
            builder.edge(id(first_op + before.index(o)), id(first_op + o));
        }
    }
    let graph = builder.build().unwrap().0;
    let schedule = Schedule::from_nodes(&graph, order_by(&graph, priorities)).unwrap();
    let mut hardware = Hardware::default();
    for (cache, &(least, _)) in smallest_capacities(&graph).iter_enumerated() {
        let name = graph.cache_name(cache);
        let extra = slack[CACHES.iter().position(|c| *c == name).unwrap()];
        hardware.set_capacity(name, Bytes(least.0 + extra)).unwrap();
    }
    Case { graph, schedule, hardware }
}

/// The topological order that always takes the ready node of the lowest priority.
fn order_by(graph: &Graph, priorities: &[u16]) -> Vec<NodeIx> {
    let mut waiting = vec![0usize; graph.node_count()];
    for n in graph.nodes() {
        graph.for_each_successor(n, |s| waiting[s.index()] += 1);
    }
    let key = |n: NodeIx| {
        // ALLOCs tend to come early and FREEs late, as in real files.
        let lean = match graph.kind(n) {
            NodeKind::Alloc(_) => 0,
            NodeKind::Op => 20_000,
            NodeKind::Free(_) => 40_000,
        };
        Reverse((u32::from(priorities[n.index() % priorities.len()]) + lean, n))
    };
    let mut ready: BinaryHeap<_> = graph.nodes().filter(|n| waiting[n.index()] == 0).map(key).collect();
    let mut order = Vec::new();
    while let Some(Reverse((_, n))) = ready.pop() {
        order.push(n);
        graph.for_each_successor(n, |s| {
            waiting[s.index()] -= 1;
            if waiting[s.index()] == 0 {
                ready.push(key(s));
            }
        });
    }
    order
}
