//! When the steps of a plan run while it is being made, for placements that ask: the timing model
//! `segment`, step by step. Times saturate; a plan too long to time is placed as if it ended there.

use crate::graph::Graph;
use crate::hardware::Machine;
use crate::index::{BufIx, NodeIx, PipeIx};
use typed_index_collections::{TiVec, ti_vec};

/// The times of what has been emitted, in cycles.
#[derive(Debug)]
pub(super) struct Clock<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    ends: TiVec<NodeIx, u64>,
    pipe_free: TiVec<PipeIx, u64>,
    /// End of the `ALLOC` or `SPILL_IN` of each buffer, and of the last that touched it.
    ready: TiVec<BufIx, u64>,
    quiet: TiVec<BufIx, u64>,
}

impl<'a> Clock<'a> {
    /// At the begin of a plan; `None` where some op has no pipe or no cycles.
    pub(super) fn new(graph: &'a Graph, machine: &'a Machine) -> Option<Self> {
        graph.has_timing().then(|| Self {
            graph,
            machine,
            ends: ti_vec![0; graph.node_count()],
            pipe_free: ti_vec![0; machine.pipe_names().len()],
            ready: ti_vec![0; graph.buffer_count()],
            quiet: ti_vec![0; graph.buffer_count()],
        })
    }

    fn predecessors(&self, node: NodeIx) -> u64 {
        self.graph.predecessors(node).iter().map(|&p| self.ends[p]).max().unwrap_or(0)
    }

    /// Until when the `ALLOC` of a buffer may wait for its addresses and hold nothing up: until the pipe
    /// of its first user is free.
    pub(super) fn alloc_may_wait(&self, alloc: NodeIx, user: NodeIx) -> u64 {
        let pipe = self.graph.pipe(user).map_or(0, |pipe| self.pipe_free[pipe]);
        self.predecessors(alloc).max(pipe)
    }

    /// The same for a `SPILL_IN`: until its pipe is free and the buffer is out.
    pub(super) fn reload_may_wait(&self, b: BufIx) -> u64 {
        let pipe = self.machine.cache(self.graph.buf(b).cache).spill_in_pipe;
        self.pipe_free[pipe].max(self.quiet[b])
    }

    /// The `ALLOC` of `b` runs, its addresses released at `released`.
    pub(super) fn alloc(&mut self, b: BufIx, released: u64) {
        let node = self.graph.buf(b).alloc;
        self.ends[node] = self.predecessors(node).max(released);
        self.begin(b, self.ends[node]);
    }

    /// The `SPILL_IN` of `b` runs, its addresses released at `released`.
    pub(super) fn spill_in(&mut self, b: BufIx, released: u64) {
        let buf = self.graph.buf(b);
        let cycles = self.machine.spill_cost().cycles(buf.size).0;
        let end = self.occupy(self.machine.cache(buf.cache).spill_in_pipe, self.quiet[b].max(released), cycles);
        self.begin(b, end);
    }

    /// The `SPILL_OUT` of `b` runs; when it ends.
    pub(super) fn spill_out(&mut self, b: BufIx) -> u64 {
        let buf = self.graph.buf(b);
        let cycles = if buf.backed { 0 } else { self.machine.spill_cost().cycles(buf.size).0 };
        let end = self.occupy(self.machine.cache(buf.cache).spill_out_pipe, self.quiet[b], cycles);
        self.begin(b, end);
        end
    }

    /// The `FREE` of `b` runs; when it ends.
    pub(super) fn free(&mut self, b: BufIx) -> u64 {
        let node = self.graph.buf(b).free;
        self.ends[node] = self.predecessors(node).max(self.quiet[b]);
        self.ends[node]
    }

    /// An op runs.
    pub(super) fn op(&mut self, node: NodeIx) {
        let operands = self.graph.operands(node);
        let ready = operands.iter().map(|&b| self.ready[b]).max().unwrap_or(0).max(self.predecessors(node));
        if let (Some(pipe), Some(cycles)) = (self.graph.pipe(node), self.graph.cycles(node)) {
            let end = self.occupy(pipe, ready, cycles.0);
            self.ends[node] = end;
            operands.iter().for_each(|&b| self.quiet[b] = self.quiet[b].max(end));
        }
    }

    /// When a node that ran ended.
    pub(super) fn end(&self, node: NodeIx) -> u64 {
        self.ends[node]
    }

    fn begin(&mut self, b: BufIx, at: u64) {
        (self.ready[b], self.quiet[b]) = (at, at);
    }

    fn occupy(&mut self, pipe: PipeIx, ready: u64, cycles: u64) -> u64 {
        let end = self.pipe_free[pipe].max(ready).saturating_add(cycles);
        self.pipe_free[pipe] = end;
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Placed, Plan, Spill};
    use crate::{BufId, GraphBuilder, Hardware, Id, Offset, metrics::timing};

    #[test]
    fn the_clock_agrees_with_the_timing_of_the_plan() {
        // The worked example of the problem model in UB of 10 bytes: both buffers of 6 at 0 in turn.
        let mut b = GraphBuilder::new();
        b.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 11, &[0]).alloc(2, 1, 6, "UB");
        b.op(3, "ADD", "VECTOR", 7, &[1]).op(4, "EXP", "VECTOR", 5, &[0]).free(5, 0, 6, "UB");
        b.op(6, "EXP", "VECTOR", 3, &[1]).free(7, 1, 6, "UB");
        [(0, 1), (1, 4), (4, 5), (2, 3), (3, 6), (6, 7)].iter().for_each(|&(from, to)| {
            b.edge(from, to);
        });
        let graph = b.build().unwrap().0;
        let machine = Machine::resolve(&graph, &Hardware::default()).unwrap();
        let at_0 = |buf| Spill { buf: BufId(buf), offset: Offset(0), cause: None };
        let plan = Plan {
            schedule: [0, 1, 8, 2, 10, 9, 4, 5, 11, 3, 6, 7].map(Id).to_vec(),
            memory: [0, 1].map(|buf| Placed { buf: BufId(buf), offset: Offset(0) }).to_vec(),
            spills: vec![at_0(0), at_0(1)],
            counters: None,
        };
        let spans = timing::segment(&graph, &machine, &plan).unwrap().unwrap().spans;
        let expected: Vec<u64> = spans.iter().map(|s| s.end.0).collect();
        let mut clock = Clock::new(&graph, &machine).unwrap();
        let node = |id| graph.node_by_id(Id(id)).unwrap();
        let [a, b] = [0, 1].map(|id| graph.buf_by_id(BufId(id)).unwrap());
        let mut ends = Vec::new();
        clock.alloc(a, 0);
        ends.push(clock.end(node(0)));
        clock.op(node(1));
        ends.push(clock.end(node(1)));
        let out = clock.spill_out(a);
        ends.push(out);
        clock.alloc(b, out);
        ends.push(clock.end(node(2)));
        let out = clock.spill_out(b);
        ends.push(out);
        assert_eq!(clock.reload_may_wait(a), 11, "MTE2 is free and a is out");
        clock.spill_in(a, out);
        ends.push(clock.ready[a]);
        clock.op(node(4));
        ends.push(clock.end(node(4)));
        assert_eq!(clock.alloc_may_wait(node(2), node(6)), clock.end(node(4)), "VECTOR is busy until then");
        let free = clock.free(a);
        ends.push(free);
        clock.spill_in(b, free);
        ends.push(clock.ready[b]);
        clock.op(node(3));
        clock.op(node(6));
        ends.extend([clock.end(node(3)), clock.end(node(6)), clock.free(b)]);
        assert_eq!(ends, expected);
    }
}
