//! Random graphs of every shape that the formats allow, each with a schedule, and random valid
//! plans for them. The plans come from no planner: buffers lie and leave where the dice say.

#![allow(dead_code, reason = "each test crate uses a part")]

use proptest::prelude::*;
use spillbench_core::graph::NodeSpec;
use spillbench_core::plan::{Cause, Placed, Plan, Spill};
use spillbench_core::{BufId, Graph, GraphBuilder, Id, NodeKind, Offset};

pub const CACHES: [&str; 3] = ["UB", "L1", "L0A"];
const OPS: [&str; 5] = ["COPY_IN", "ADD", "EXP", "COPY_OUT", "odd, \"op\"\n\u{e9}"];
const PIPES: [&str; 4] = ["MTE2", "MTE3", "VECTOR", "my,pipe"];

#[derive(Clone, Debug)]
struct Buf {
    size: u64,
    cache: usize,
    /// How far before its first user it is born, and after its last it dies, in per cent.
    slack: (u32, u32),
}

#[derive(Clone, Debug)]
struct Op {
    name: usize,
    timing: Option<(usize, u64)>,
    operands: Vec<usize>,
    writes: Option<usize>,
}

/// A graph and its node ids in one topological order.
#[derive(Clone, Debug)]
pub struct Case {
    pub graph: Graph,
    pub order: Vec<Id>,
}

/// Random graphs; with `timed`, every op has a pipe and cycles and no name is odd to CSV.
pub fn cases(timed: bool) -> impl Strategy<Value = Case> {
    let buf = (1u64..9, 0usize..3, (0u32..100, 0u32..100)).prop_map(|(size, cache, slack)| Buf { size, cache, slack });
    let timing = (0usize..4, 0u64..20);
    let timing = if timed { timing.prop_map(Some).boxed() } else { prop::option::of(timing).boxed() };
    let op = (0usize..5, timing, prop::collection::vec(0usize..64, 0..4), prop::option::of(0usize..4));
    let op = op.prop_map(|(name, timing, operands, writes)| Op { name, timing, operands, writes });
    (prop::collection::vec(buf, 1..8), prop::collection::vec(op, 0..14)).prop_flat_map(|(bufs, ops)| {
        let nodes = 2 * bufs.len() + ops.len();
        let edges = prop::collection::vec((0..nodes, 0..nodes), 0..nodes);
        let ids = (0u64..5, prop_oneof![Just(1u64), Just(3), Just(1 << 40)]);
        let places = Just((0..nodes).collect::<Vec<_>>()).prop_shuffle();
        let meta = prop::option::of(Just("{\"by\": [\"chance\", 1e400, {}]}"));
        (Just(bufs), Just(ops), edges, ids, places, meta).prop_map(build)
    })
}

#[derive(Clone, Copy)]
enum Node {
    Alloc(usize),
    Op(usize),
    Free(usize),
}

type Parts = (Vec<Buf>, Vec<Op>, Vec<(usize, usize)>, (u64, u64), Vec<usize>, Option<&'static str>);

fn build((bufs, ops, edges, (first_id, stride), places, meta): Parts) -> Case {
    let operands = |op: &Op| op.operands.iter().map(|b| b % bufs.len()).collect::<Vec<_>>();
    // Sort keys: op i at 100·i + 50, so that a buffer can be born and die anywhere around it.
    let mut keyed: Vec<(u32, u8, Node)> = (0..ops.len()).map(|i| (100 * i as u32 + 50, 1, Node::Op(i))).collect();
    let end = 100 * ops.len() as u32;
    for (b, buf) in bufs.iter().enumerate() {
        let users: Vec<_> = (0..ops.len()).filter(|&i| operands(&ops[i]).contains(&b)).collect();
        let middle = end / 2;
        let first = users.first().map_or(middle, |&i| 100 * i as u32 + 50);
        let last = users.last().map_or(middle, |&i| 100 * i as u32 + 50);
        keyed.push((first - first * buf.slack.0 / 100, 0, Node::Alloc(b)));
        keyed.push((last + (end - last.min(end)) * buf.slack.1 / 100, 2, Node::Free(b)));
    }
    keyed.sort_by_key(|k| (k.0, k.1));
    let id = |at: usize| first_id + places[at] as u64 * stride;
    let mut g = GraphBuilder::new();
    // The file order is another than the schedule's and the ids'.
    let mut file: Vec<_> = (0..keyed.len()).collect();
    file.sort_by_key(|&at| (places[at] * 7 + 3) % (keyed.len() + 1));
    for at in file {
        match keyed[at].2 {
            Node::Alloc(b) => g.alloc(id(at), 3 * b as u64, bufs[b].size, CACHES[bufs[b].cache]),
            Node::Free(b) => g.free(id(at), 3 * b as u64, bufs[b].size, CACHES[bufs[b].cache]),
            Node::Op(i) => {
                let used: Vec<_> = operands(&ops[i]).iter().map(|&b| 3 * b as u64).collect();
                let (pipe, cycles) = ops[i].timing.map_or((None, None), |t| (Some(PIPES[t.0]), Some(t.1)));
                let writes = ops[i].writes.map(|n| &used[..n.min(used.len())]);
                let (op, bufs) = (OPS[ops[i].name], Some(&used[..]));
                g.node(NodeSpec { id: id(at), op, pipe, cycles, bufs, writes, ..Default::default() })
            }
        };
    }
    for &(a, b) in edges.iter().filter(|(a, b)| a != b) {
        g.edge(id(a.min(b)), id(a.max(b)));
    }
    if let Some(meta) = meta {
        g.meta(meta);
    }
    let order = (0..keyed.len()).map(|at| Id(id(at))).collect();
    Case { graph: g.build().unwrap().0, order }
}

/// Bytes of each cache under which [`random_plan`] always finds room.
pub const CAPACITY: u64 = 160;

/// A valid plan of a case in caches of [`CAPACITY`] bytes.
pub fn random_plan(case: &Case, dice: &[u32]) -> Plan {
    let graph = &case.graph;
    let base = graph.max_id().0 + 1;
    let mut walk = Walk {
        graph,
        dice: dice.iter().copied().cycle(),
        plan: Plan { schedule: vec![], memory: vec![], spills: vec![], counters: None },
        at: vec![None; graph.buffer_count()],
        out: vec![None; graph.buffer_count()],
        base,
    };
    for &id in &case.order {
        walk.node(id);
    }
    walk.plan
}

struct Walk<'a, D> {
    graph: &'a Graph,
    dice: D,
    plan: Plan,
    /// Offset of each resident buffer, by index.
    at: Vec<Option<u64>>,
    /// The spill that each buffer is out by.
    out: Vec<Option<usize>>,
    base: u64,
}

impl<D: Iterator<Item = u32>> Walk<'_, D> {
    fn roll(&mut self, sides: u32) -> u32 {
        self.dice.next().unwrap_or(0) % sides
    }

    fn node(&mut self, id: Id) {
        for _ in 0..3 {
            if self.roll(4) == 0 {
                self.evict_one();
            }
        }
        let node = self.graph.node_by_id(id).unwrap();
        match self.graph.kind(node) {
            NodeKind::Alloc(b) => {
                let offset = self.place(b.index());
                self.plan.memory.push(Placed { buf: self.graph.buf(b).id, offset: Offset(offset) });
            }
            NodeKind::Op => self.graph.operands(node).iter().for_each(|b| self.reload(b.index())),
            NodeKind::Free(b) => {
                self.reload(b.index());
                self.at[b.index()] = None;
            }
        }
        self.plan.schedule.push(id);
    }

    fn evict_one(&mut self) {
        let resident: Vec<_> = (0..self.at.len()).filter(|&b| self.at[b].is_some()).collect();
        if resident.is_empty() {
            return;
        }
        let b = resident[self.roll(resident.len() as u32) as usize];
        let k = self.plan.spills.len();
        self.at[b] = None;
        self.out[b] = Some(k);
        let cause = [None, Some(Cause::Capacity), Some(Cause::Fragmentation)][self.roll(3) as usize];
        self.plan.spills.push(Spill { buf: BufId(0), offset: Offset(0), cause });
        self.plan.spills[k].buf = self.graph.buf(b.into()).id;
        self.plan.schedule.push(Id(self.base + 2 * k as u64));
    }

    fn reload(&mut self, b: usize) {
        if let Some(k) = self.out[b].take() {
            self.plan.spills[k].offset = Offset(self.place(b));
            self.plan.schedule.push(Id(self.base + 2 * k as u64 + 1));
        }
    }

    /// Puts a buffer at the first offset from a random one on, around the end, where it is alone.
    fn place(&mut self, b: usize) -> u64 {
        let buf = *self.graph.buf(b.into());
        let start = u64::from(self.roll(24));
        let alone = |offset: u64| {
            offset + buf.size.0 <= CAPACITY
                && (0..self.at.len()).all(|o| {
                    let other = self.graph.buf(o.into());
                    let apart = |at: u64| at + other.size.0 <= offset || offset + buf.size.0 <= at;
                    other.cache != buf.cache || self.at[o].is_none_or(apart)
                })
        };
        let offset = (start..CAPACITY).chain(0..start).find(|&o| alone(o)).unwrap();
        self.at[b] = Some(offset);
        offset
    }
}
