//! Topological orders of a graph, and the cycle that stands in the way of one.

use super::{CycleStep, Graph, GraphError, NodeKind};
use crate::index::NodeIx;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use typed_index_collections::{TiVec, ti_vec};

impl Graph {
    /// All nodes by rising external id.
    pub fn id_order(&self) -> Vec<NodeIx> {
        let mut order: Vec<_> = self.nodes().collect();
        if !order.is_sorted_by_key(|&n| self.id(n)) {
            order.sort_unstable_by_key(|&n| self.id(n));
        }
        order
    }

    /// The topological order that always takes the ready node of the smallest id.
    pub fn topological_order(&self) -> Vec<NodeIx> {
        self.kahn().0
    }

    /// True when no edge, implied edges included, goes backward in `order`.
    pub fn is_topological(&self, order: &[NodeIx]) -> bool {
        let mut place: TiVec<NodeIx, u32> = ti_vec![0; self.node_count()];
        for (i, &n) in order.iter().enumerate() {
            place[n] = i as u32;
        }
        order.iter().all(|&n| {
            let mut forward = true;
            self.for_each_successor(n, |s| forward &= place[n] < place[s]);
            forward
        })
    }

    /// Kahn's algorithm; shorter than the graph when there is a cycle. The second value holds the
    /// predecessors not yet done, per node.
    fn kahn(&self) -> (Vec<NodeIx>, TiVec<NodeIx, u32>) {
        let mut waiting: TiVec<NodeIx, u32> = ti_vec![0; self.node_count()];
        for n in self.nodes() {
            self.for_each_successor(n, |s| waiting[s] += 1);
        }
        let mut ready: BinaryHeap<_> =
            self.nodes().filter(|&n| waiting[n] == 0).map(|n| Reverse((self.id(n), n))).collect();
        let mut order = Vec::with_capacity(self.node_count());
        while let Some(Reverse((_, n))) = ready.pop() {
            order.push(n);
            self.for_each_successor(n, |s| {
                waiting[s] -= 1;
                if waiting[s] == 0 {
                    ready.push(Reverse((self.id(s), s)));
                }
            });
        }
        (order, waiting)
    }

    /// The error that names one cycle, if there is any.
    pub(super) fn find_cycle(&self) -> Option<GraphError> {
        let in_file_order: Vec<_> = self.nodes().collect();
        if self.is_topological(&in_file_order) {
            return None;
        }
        let (order, waiting) = self.kahn();
        if order.len() == self.node_count() {
            return None;
        }
        let cycle = self.walk_back(&waiting);
        Some(self.describe_cycle(&cycle))
    }

    /// Follows unfinished predecessors until a node repeats: every unfinished node has one.
    fn walk_back(&self, waiting: &TiVec<NodeIx, u32>) -> Vec<NodeIx> {
        let mut at = self.nodes().find(|&n| waiting[n] > 0).unwrap_or_else(|| NodeIx::new(0));
        let mut step: TiVec<NodeIx, u32> = ti_vec![u32::MAX; self.node_count()];
        let mut path = Vec::new();
        while step[at] == u32::MAX {
            step[at] = path.len() as u32;
            path.push(at);
            let mut before = at;
            self.for_each_predecessor(at, |p| {
                if waiting[p] > 0 {
                    before = p;
                }
            });
            at = before;
        }
        let mut cycle = path.split_off(step[at] as usize);
        cycle.reverse();
        cycle
    }

    fn describe_cycle(&self, cycle: &[NodeIx]) -> GraphError {
        let pairs = || cycle.iter().zip(cycle.iter().cycle().skip(1)).take(cycle.len()).map(|(&a, &b)| (a, b));
        let steps: Vec<_> = pairs().map(|(a, b)| self.cycle_step(a, b)).collect();
        let life = pairs().enumerate().find(|&(i, (a, b))| {
            steps[i].implied_by.is_some() && (self.kind(a) == NodeKind::Op || self.kind(b) == NodeKind::Op)
        });
        let Some((i, (a, b))) = life else {
            return GraphError::Cycle { steps };
        };
        let (node, cache_node, side, cache_op) = match self.kind(a) {
            NodeKind::Op => (a, b, "after", "FREE"),
            _ => (b, a, "before", "ALLOC"),
        };
        let Some(buf) = steps[i].implied_by else {
            return GraphError::Cycle { steps };
        };
        let mut path = steps[i + 1..].to_vec();
        path.extend_from_slice(&steps[..i]);
        GraphError::UseOutsideLife {
            node: self.id(node),
            buf,
            side,
            cache_op,
            cache_node: self.id(cache_node),
            steps: path,
        }
    }

    fn cycle_step(&self, from: NodeIx, to: NodeIx) -> CycleStep {
        let listed = self.successors(from).contains(&to);
        let buf = match (self.kind(from), self.kind(to)) {
            (NodeKind::Alloc(b), _) | (_, NodeKind::Free(b)) => Some(self.buf(b).id),
            _ => None,
        };
        CycleStep { from: self.id(from), to: self.id(to), implied_by: if listed { None } else { buf } }
    }
}
