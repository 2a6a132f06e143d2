//! Emitting a program: buffers, ops and what they read and write, turned into a graph.
//!
//! A lowering writes straight-line code, in the order in which a kernel compiler would issue it:
//! [`Emitter::alloc`] reserves a buffer, [`Emitter::op`] runs an instruction on a pipe. The emitter
//! numbers the nodes in program order, so the order of ids is a valid schedule, and draws the edges
//! that the data flow asks for:
//!
//! * `ALLOC(b)` to the first op that uses `b`, and to `FREE(b)`;
//! * the last writer of `b` to each op that reads it (read after write);
//! * each reader of `b` since its last write to the next writer (write after read), except readers
//!   that another of them waits for anyway; and the last writer itself where nobody read in between
//!   (write after write);
//! * the same from the last readers (or the last writer) to `FREE(b)`, which ends what `b` holds.
//!
//! These are the edges of the public kernel graphs, no fewer and no more. An op that accumulates
//! into a buffer (or changes it in place) names it among its writes only.
//!
//! A buffer that is not freed by hand is freed right behind the op that uses it last, or at the end
//! of the program ([`Frees`]).

mod demand;

pub(crate) use demand::Peak;

use crate::error::WorkloadError;
use indexmap::IndexSet;
use spillbench_core::{BufId, Graph, GraphBuilder};
use std::cmp::Reverse;

/// The most nodes a generated graph may have.
pub const NODE_LIMIT: u64 = 5_000_000;

/// A buffer of the program; means nothing to another [`Emitter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buf(u32);

impl Buf {
    /// Its id in the graph: buffers count from 0 in the order of their allocation.
    pub fn id(self) -> u64 {
        u64::from(self.0)
    }
}

/// An op of the program; means nothing to another [`Emitter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(u32);

/// Where the `FREE` of a buffer stands that no [`Emitter::free`] ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frees {
    /// Right behind the op that uses it last; behind its `ALLOC` when nothing uses it.
    #[default]
    LastUse,
    /// At the end of the program, by rising buffer id.
    End,
}

#[derive(Clone, Copy)]
enum Step {
    Alloc(Buf),
    Op(Op),
    Free(Buf),
}

struct OpRecord {
    name: u32,
    pipe: u32,
    cycles: u64,
    /// Where its operands begin in the arena: the writes, then the reads.
    operands: u32,
    writes: u32,
    reads: u32,
}

struct BufRecord {
    cache: u32,
    size: u64,
    /// The last op that named it, so that an op lists it once.
    named_by: Option<Op>,
}

/// Records a program and turns it into a graph.
#[derive(Default)]
pub struct Emitter {
    frees: Frees,
    names: IndexSet<String>,
    steps: Vec<Step>,
    ops: Vec<OpRecord>,
    bufs: Vec<BufRecord>,
    operands: Vec<Buf>,
    order: Vec<(Op, Op)>,
    meta: Option<String>,
    /// Nodes asked for: those recorded and, past the limit, those turned away.
    nodes: u64,
}

impl Emitter {
    /// An empty program.
    pub fn new(frees: Frees) -> Self {
        Self { frees, ..Self::default() }
    }

    /// Reserves `size` bytes of `cache`, from this point of the program on. Counts two nodes, its
    /// `FREE` included.
    pub fn alloc(&mut self, cache: &str, size: u64) -> Buf {
        let buf = Buf(self.bufs.len() as u32);
        if self.admit(2) {
            let cache = self.intern(cache);
            self.bufs.push(BufRecord { cache, size, named_by: None });
            self.steps.push(Step::Alloc(buf));
        }
        buf
    }

    /// Runs `name` for `cycles` cycles on `pipe`. Its operands in the graph are the writes, then
    /// the reads, each buffer once; a buffer of both lists counts as written.
    pub fn op(&mut self, name: &str, pipe: &str, cycles: u64, writes: &[Buf], reads: &[Buf]) -> Op {
        let op = Op(self.ops.len() as u32);
        if self.admit(1) {
            let (name, pipe) = (self.intern(name), self.intern(pipe));
            let operands = self.operands.len();
            self.push_operands(op, writes);
            let written = self.operands.len();
            self.push_operands(op, reads);
            let (writes, reads) = ((written - operands) as u32, (self.operands.len() - written) as u32);
            self.ops.push(OpRecord { name, pipe, cycles, operands: operands as u32, writes, reads });
            self.steps.push(Step::Op(op));
        }
        op
    }

    /// Ends the life of a buffer here. Only for programs whose lifetimes are given from outside;
    /// others leave it to [`Frees`].
    pub fn free(&mut self, buf: Buf) {
        if !self.is_full() {
            self.steps.push(Step::Free(buf));
        }
    }

    /// Makes `then` wait for `first`, an earlier op, though they may share no buffer.
    pub fn order(&mut self, first: Op, then: Op) {
        if !self.is_full() {
            self.order.push((first, then));
            debug_assert!(first < then, "an op cannot wait for a later one");
        }
    }

    /// The size of a buffer in bytes.
    pub fn size(&self, buf: Buf) -> u64 {
        self.bufs.get(buf.0 as usize).map_or(0, |b| b.size)
    }

    /// The provenance that the graph carries as its `Meta` object, as JSON text.
    pub fn meta(&mut self, json: impl Into<String>) {
        self.meta = Some(json.into());
    }

    /// The number of nodes so far, the `FREE` of every buffer included.
    pub fn node_count(&self) -> u64 {
        self.nodes
    }

    /// True when more nodes were asked for than [`NODE_LIMIT`]: the rest is turned away, and
    /// [`Emitter::finish`] will say so. A long loop may stop early.
    pub fn is_full(&self) -> bool {
        self.nodes > NODE_LIMIT
    }

    fn admit(&mut self, nodes: u64) -> bool {
        // Operand lists are bounded as well, because an op may have any number of operands.
        let room = !self.is_full() && (self.operands.len() as u64) < 8 * NODE_LIMIT;
        self.nodes = if room { self.nodes + nodes } else { self.nodes.max(NODE_LIMIT + 1) };
        !self.is_full()
    }

    fn intern(&mut self, name: &str) -> u32 {
        match self.names.get_index_of(name) {
            Some(i) => i as u32,
            None => self.names.insert_full(name.to_owned()).0 as u32,
        }
    }

    fn push_operands(&mut self, op: Op, bufs: &[Buf]) {
        for &buf in bufs {
            if self.bufs[buf.0 as usize].named_by.replace(op) != Some(op) {
                self.operands.push(buf);
            }
        }
    }

    /// Numbers the nodes, draws the edges and builds the graph.
    ///
    /// # Errors
    /// [`WorkloadError::TooLarge`] when more nodes were asked for than [`NODE_LIMIT`],
    /// [`WorkloadError::UseAfterFree`] for a use behind an [`Emitter::free`]; otherwise what the
    /// graph builder finds, such as a size of 0 or a second free.
    pub fn finish(self) -> Result<Graph, WorkloadError> {
        if self.is_full() {
            return Err(WorkloadError::TooLarge { nodes: self.nodes, limit: NODE_LIMIT });
        }
        let mut writer = Writer::new(&self)?;
        for (at, &step) in self.steps.iter().enumerate() {
            match step {
                Step::Alloc(buf) => writer.alloc(buf),
                Step::Op(op) => writer.op(op),
                Step::Free(buf) => writer.free(buf),
            }
            writer.free_dead(at, step);
        }
        if self.frees == Frees::End {
            let by_hand: Vec<_> = writer.life.iter().map(|l| l.last_use == BY_HAND).collect();
            for buf in (0..self.bufs.len()).filter(|&b| !by_hand[b]) {
                writer.free(Buf(buf as u32));
            }
        }
        writer.build()
    }

    /// The step at which each buffer is used last, its `ALLOC` counted; [`BY_HAND`] where it is
    /// freed by hand.
    fn last_uses(&self) -> Result<Vec<u32>, WorkloadError> {
        let mut last = vec![0; self.bufs.len()];
        for (at, &step) in self.steps.iter().enumerate() {
            match step {
                Step::Alloc(buf) => last[buf.0 as usize] = at as u32,
                Step::Free(buf) => last[buf.0 as usize] = BY_HAND,
                Step::Op(op) => {
                    let (writes, reads) = self.operands_of(op);
                    for &buf in writes.iter().chain(reads) {
                        if last[buf.0 as usize] == BY_HAND {
                            let name = self.ops[op.0 as usize].name as usize;
                            return Err(WorkloadError::UseAfterFree {
                                buf: BufId(buf.id()),
                                op: self.names[name].clone(),
                            });
                        }
                        last[buf.0 as usize] = at as u32;
                    }
                }
            }
        }
        Ok(last)
    }

    fn operands_of(&self, op: Op) -> (&[Buf], &[Buf]) {
        let record = &self.ops[op.0 as usize];
        let start = record.operands as usize;
        let end = start + (record.writes + record.reads) as usize;
        self.operands[start..end].split_at(record.writes as usize)
    }
}

/// The value of [`Life::last_use`] for a buffer that [`Emitter::free`] ends.
const BY_HAND: u32 = u32::MAX;
const NOBODY: u32 = u32::MAX;

#[derive(Clone)]
struct Life {
    /// The step of its last use, its `ALLOC` counted.
    last_use: u32,
    alloc: u32,
    writer: u32,
    readers: Vec<u32>,
}

/// Turns the records into nodes and edges.
struct Writer<'a> {
    program: &'a Emitter,
    builder: GraphBuilder,
    next: u32,
    life: Vec<Life>,
    op_nodes: Vec<u32>,
    ids: Vec<u64>,
    /// The nodes from which edges lead to the op being written.
    before: Vec<u32>,
    /// The orders not yet drawn, the next one last.
    order: Vec<(Op, Op)>,
}

impl<'a> Writer<'a> {
    fn new(program: &'a Emitter) -> Result<Self, WorkloadError> {
        let last_uses = program.last_uses()?;
        let life = |last_use| Life { last_use, alloc: NOBODY, writer: NOBODY, readers: Vec::new() };
        let life = last_uses.into_iter().map(life).collect();
        let mut order = program.order.clone();
        order.sort_unstable_by_key(|&(first, then)| Reverse((then, first)));
        let builder = GraphBuilder::new();
        Ok(Self { program, builder, next: 0, life, op_nodes: vec![], ids: vec![], before: vec![], order })
    }

    fn name(&self, name: u32) -> &'a str {
        self.program.names.get_index(name as usize).map_or("", String::as_str)
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn edge(&mut self, from: u32, to: u32) {
        if from != NOBODY && from != to {
            self.builder.edge(u64::from(from), u64::from(to));
            self.before.push(from);
        }
    }

    fn alloc(&mut self, buf: Buf) {
        let record = &self.program.bufs[buf.0 as usize];
        let (node, cache) = (self.number(), self.name(record.cache));
        self.builder.alloc(u64::from(node), buf.id(), record.size, cache);
        self.life[buf.0 as usize].alloc = node;
    }

    fn op(&mut self, op: Op) {
        let record = &self.program.ops[op.0 as usize];
        let (writes, reads) = self.program.operands_of(op);
        let (node, name, pipe) = (self.number(), self.name(record.name), self.name(record.pipe));
        self.ids.clear();
        self.ids.extend(writes.iter().chain(reads).map(|b| b.id()));
        self.builder.op(u64::from(node), name, pipe, record.cycles, &self.ids);
        self.op_nodes.push(node);
        self.before.clear();
        self.order_before(op, node);
        for &buf in reads {
            let Life { alloc, writer, .. } = self.life[buf.0 as usize];
            self.edge(if writer == NOBODY { alloc } else { writer }, node);
        }
        for &buf in writes {
            self.write(buf, node);
        }
        for &buf in reads {
            // Readers stand by rising node.
            let readers = &mut self.life[buf.0 as usize].readers;
            for earlier in &self.before {
                if let Ok(at) = readers.binary_search(earlier) {
                    readers.remove(at);
                }
            }
            readers.push(node);
        }
    }

    /// Edges from the ops that `op` waits for though they share no buffer.
    fn order_before(&mut self, op: Op, node: u32) {
        while let Some(&(first, then)) = self.order.last().filter(|o| o.1 <= op) {
            self.order.pop();
            let from = self.op_nodes.get(first.0 as usize).copied().filter(|_| then == op);
            self.edge(from.unwrap_or(NOBODY), node);
        }
    }

    fn write(&mut self, buf: Buf, node: u32) {
        self.wait_for_all(buf, node);
        let life = &mut self.life[buf.0 as usize];
        life.writer = node;
        life.readers.clear();
    }

    /// Edges to `node` from all that must be over before it may change what `buf` holds.
    fn wait_for_all(&mut self, buf: Buf, node: u32) {
        let readers = std::mem::take(&mut self.life[buf.0 as usize].readers);
        let Life { alloc, writer, .. } = self.life[buf.0 as usize];
        match readers.is_empty() {
            true => self.edge(if writer == NOBODY { alloc } else { writer }, node),
            false => readers.iter().for_each(|&r| self.edge(r, node)),
        }
        self.life[buf.0 as usize].readers = readers;
    }

    fn free(&mut self, buf: Buf) {
        let record = &self.program.bufs[buf.0 as usize];
        let (node, cache) = (self.number(), self.name(record.cache));
        self.builder.free(u64::from(node), buf.id(), record.size, cache);
        self.wait_for_all(buf, node);
        self.edge(self.life[buf.0 as usize].alloc, node);
        self.life[buf.0 as usize].readers = Vec::new();
    }

    /// Frees what the step used last.
    fn free_dead(&mut self, at: usize, step: Step) {
        if self.program.frees == Frees::End {
            return;
        }
        let alloc = if let Step::Alloc(buf) = step { Some(buf) } else { None };
        let (writes, reads) = if let Step::Op(op) = step { self.program.operands_of(op) } else { (&[][..], &[][..]) };
        for &buf in alloc.iter().chain(writes).chain(reads) {
            if self.life[buf.0 as usize].last_use == at as u32 {
                self.free(buf);
            }
        }
    }

    fn build(mut self) -> Result<Graph, WorkloadError> {
        if let Some(meta) = &self.program.meta {
            self.builder.meta(meta.clone());
        }
        Ok(self.builder.build()?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillbench_core::NodeKind;

    fn text(graph: &Graph) -> (Vec<String>, Vec<(u64, u64)>) {
        let name = |n| match graph.kind(n) {
            NodeKind::Alloc(b) | NodeKind::Free(b) => format!("{} {}", graph.op_name(n), graph.buf(b).id),
            NodeKind::Op => graph.op_name(n).to_owned(),
        };
        let edges = graph.nodes().flat_map(|n| graph.successors(n).iter().map(move |&s| (n, s)));
        (graph.nodes().map(name).collect(), edges.map(|(a, b)| (graph.id(a).0, graph.id(b).0)).collect())
    }

    /// a is loaded and read twice, then changed in place; b takes the last reading.
    fn program(frees: Frees) -> Emitter {
        let mut e = Emitter::new(frees);
        let a = e.alloc("UB", 8);
        e.op("COPY_IN", "MTE2", 5, &[a], &[]);
        let b = e.alloc("UB", 4);
        e.op("ROWMAX", "VECTOR", 3, &[b], &[a]);
        e.op("ROWSUM", "VECTOR", 3, &[b], &[a, b]);
        e.op("EXP", "VECTOR", 2, &[a], &[]);
        e
    }

    #[test]
    fn edges_follow_the_data_and_frees_the_last_use() {
        let (nodes, edges) = text(&program(Frees::LastUse).finish().unwrap());
        assert_eq!(
            nodes,
            ["ALLOC 0", "COPY_IN", "ALLOC 1", "ROWMAX", "ROWSUM", "FREE 1", "EXP", "FREE 0"].map(str::to_owned)
        );
        let expected = [
            (0, 1), // ALLOC 0 to its first op
            (0, 7), // ALLOC 0 to its FREE
            (1, 3), // COPY_IN is read by both reductions
            (1, 4),
            (2, 3), // ALLOC 1 to its first writer
            (2, 5), // ALLOC 1 to its FREE
            (3, 4), // ROWSUM writes b after ROWMAX did
            (4, 5), // the last writer of b ends b
            (4, 6), // EXP changes a after both have read it, and ROWSUM waits for ROWMAX
            (6, 7), // the last writer of a ends a
        ];
        assert_eq!(edges, expected);
    }

    #[test]
    fn frees_may_stand_at_the_end() {
        let graph = program(Frees::End).finish().unwrap();
        assert_eq!(text(&graph).0[5..], ["EXP", "FREE 0", "FREE 1"].map(str::to_owned));
        assert!(graph.is_topological(&graph.id_order()));
    }

    #[test]
    fn frees_by_hand_stand_where_they_are_put_and_orders_are_kept() {
        for frees in [Frees::LastUse, Frees::End] {
            let mut e = Emitter::new(frees);
            let [a, b] = [3, 4].map(|size| e.alloc("UB", size));
            let first = e.op("COPY_IN", "MTE2", 1, &[a], &[]);
            let then = e.op("COPY_IN", "MTE2", 1, &[b], &[]);
            e.order(first, then);
            e.free(b);
            e.free(a);
            let (nodes, edges) = text(&e.finish().unwrap());
            assert_eq!(nodes[4..], ["FREE 1", "FREE 0"].map(str::to_owned));
            assert!(edges.contains(&(2, 3)));
        }
    }

    #[test]
    fn a_buffer_without_users_lives_for_two_nodes() {
        let mut e = Emitter::new(Frees::LastUse);
        e.alloc("UB", 3);
        e.alloc("UB", 3);
        assert_eq!(text(&e.finish().unwrap()).0, ["ALLOC 0", "FREE 0", "ALLOC 1", "FREE 1"].map(str::to_owned));
    }

    #[test]
    fn a_use_behind_a_free_is_an_error() {
        let mut e = Emitter::new(Frees::LastUse);
        let a = e.alloc("UB", 3);
        e.free(a);
        e.op("EXP", "VECTOR", 1, &[a], &[]);
        let error = e.finish().unwrap_err();
        assert_eq!(error.to_string(), "EXP uses buffer 0 behind its FREE");
    }

    #[test]
    fn programs_past_the_limit_are_refused_without_being_kept() {
        let mut e = Emitter::new(Frees::LastUse);
        let mut last = e.alloc("UB", 1);
        while !e.is_full() {
            last = e.alloc("UB", 1);
        }
        e.op("EXP", "VECTOR", 1, &[last], &[]);
        assert!(e.steps.len() as u64 <= NODE_LIMIT / 2);
        assert!(matches!(e.finish(), Err(WorkloadError::TooLarge { nodes, limit: NODE_LIMIT }) if nodes > NODE_LIMIT));
    }
}
