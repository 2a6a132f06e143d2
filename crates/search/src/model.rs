//! The search space: orders of items, where an item is what a move shifts as one.
//!
//! Only ops are searched over; where `ALLOC` and `FREE` stand follows from the ops. Two kinds of op
//! are not items of their own, both by structure alone:
//! - a **floating load**: a `COPY_IN` with no op before it, whose one buffer is used by just the ops
//!   that its edges lead to. It stands directly before the first of them.
//! - a **glued** op: one whose only successor it feeds through a private buffer of a cache that
//!   evicts last. It stands directly before that successor, in the same item.
//!
//! A cache node that edges put between ops (`FREE(a) → ALLOC(b)`, say), or tie to more than the ops
//! and the other end of its buffer, is an item without work, a *gate*: so every path between two ops
//! is a path between items, where any other cache node stands follows from the ops alone, and the
//! edges stay as many as those of the graph.

use spillbench_core::graph::COPY_IN;
use spillbench_core::index::{BufIx, Lists, NodeIx};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Graph, Machine, NodeKind, Schedule};
use typed_index_collections::{TiVec, ti_vec};

/// An item: some ops, or a gate, that stand together in every order searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemIx(u32);

impl ItemIx {
    /// The `i`-th item.
    #[inline]
    pub fn new(i: usize) -> Self {
        Self(i as u32)
    }

    /// Its place in dense storage.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for ItemIx {
    fn from(i: usize) -> Self {
        Self::new(i)
    }
}

impl From<ItemIx> for usize {
    fn from(i: ItemIx) -> usize {
        i.index()
    }
}

/// The items of a graph, the edges between them, and what they touch.
#[derive(Debug)]
pub struct Model<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    nodes: Lists<ItemIx, NodeIx>,
    item_of: TiVec<NodeIx, Option<ItemIx>>,
    successors: Lists<ItemIx, ItemIx>,
    predecessors: Lists<ItemIx, ItemIx>,
    steps: Lists<ItemIx, NodeIx>,
    accesses: Lists<usize, BufIx>,
    cost_shift: u32,
}

impl<'a> Model<'a> {
    /// The model of `graph`; linear in its nodes and edges but for sorting.
    pub fn new(graph: &'a Graph, machine: &'a Machine) -> Self {
        let shape = Shape::of(graph, machine);
        let topological = graph.topological_order();
        let mut item_of: TiVec<NodeIx, Option<ItemIx>> = ti_vec![None; graph.node_count()];
        // Items are numbered by the topological order of their last nodes.
        let mut count = 0;
        for &n in topological.iter().filter(|&&n| shape.is_head(n)) {
            item_of[n] = Some(ItemIx::new(count));
            count += 1;
        }
        for &n in topological.iter().rev() {
            if let Role::Glued(to) = shape.roles[n] {
                item_of[n] = item_of[to];
            }
        }
        let members: Vec<_> = topological.iter().filter_map(|&n| Some((item_of[n]?, n))).collect();
        let nodes = lists(count, members);
        let edges = item_edges(graph, &item_of);
        let reversed: Vec<_> = edges.iter().map(|&(from, to)| (to, from)).collect();
        let mut model = Self {
            graph,
            machine,
            nodes,
            item_of,
            successors: lists(count, edges),
            predecessors: lists(count, reversed),
            steps: Lists::new(),
            accesses: Lists::new(),
            cost_shift: 0,
        };
        model.find_accesses();
        let moved = model.accesses_flat().iter().map(|&b| u128::from(graph.buf(b).size.0) * 2);
        model.cost_shift = (128 - moved.sum::<u128>().leading_zeros()).saturating_sub(62);
        model
    }

    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The machine.
    pub fn machine(&self) -> &'a Machine {
        self.machine
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when the graph has no op.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All items, in a topological order.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = ItemIx> + ExactSizeIterator + use<> {
        (0..self.len()).map(ItemIx::new)
    }

    /// The nodes of an item, in order.
    pub fn nodes(&self, item: ItemIx) -> &[NodeIx] {
        self.nodes.get(item)
    }

    /// The item that a node belongs to; `None` for floating loads and most cache nodes.
    pub fn item_of(&self, node: NodeIx) -> Option<ItemIx> {
        self.item_of[node]
    }

    /// The items that must follow `item`, each once.
    #[inline]
    pub fn successors(&self, item: ItemIx) -> &[ItemIx] {
        self.successors.get(item)
    }

    /// The items that must precede `item`, each once.
    #[inline]
    pub fn predecessors(&self, item: ItemIx) -> &[ItemIx] {
        self.predecessors.get(item)
    }

    /// The ops of an item as steps, each by its number in [`Model::accesses`].
    #[inline]
    pub fn steps(&self, item: ItemIx) -> std::ops::Range<usize> {
        let first = self.steps.start(item);
        first..first + self.steps.get(item).len()
    }

    /// The op of a step.
    pub fn step_node(&self, step: usize) -> NodeIx {
        self.steps.items()[step]
    }

    /// The number of steps.
    pub fn step_count(&self) -> usize {
        self.steps.items().len()
    }

    /// The buffers that a step needs resident: the operands of its op, and buffers that an odd edge
    /// (`ALLOC(b) → op`, `op → FREE(b)`) keeps live around it.
    #[inline]
    pub fn accesses(&self, step: usize) -> &[BufIx] {
        self.accesses.get(step)
    }

    /// The accesses of all steps, step after step.
    #[inline]
    pub fn accesses_flat(&self) -> &[BufIx] {
        self.accesses.items()
    }

    /// Where the accesses of a step begin among all accesses.
    #[inline]
    pub fn first_access(&self, step: usize) -> usize {
        self.accesses.start(step)
    }

    /// The number of accesses of all steps.
    pub fn access_count(&self) -> usize {
        self.accesses.items().len()
    }

    /// Bits by which evaluators shift costs, so that the sum over all accesses stays below 2⁶²; 0 but
    /// for absurd sizes.
    pub(crate) fn cost_shift(&self) -> u32 {
        self.cost_shift
    }

    /// The order of items that a schedule induces: by the last node of each.
    pub fn order_of(&self, schedule: &Schedule) -> Vec<ItemIx> {
        let mut last: TiVec<ItemIx, u32> = ti_vec![0; self.len()];
        for (pos, &n) in schedule.order().iter_enumerated() {
            if let Some(item) = self.item_of[n] {
                last[item] = pos.index() as u32;
            }
        }
        let mut order: Vec<_> = self.items().collect();
        order.sort_unstable_by_key(|&i| last[i]);
        order
    }

    /// True when `order` holds every item once and no edge goes backward in it.
    pub fn is_topological(&self, order: &[ItemIx]) -> bool {
        let mut place: TiVec<ItemIx, Option<u32>> = ti_vec![None; self.len()];
        for (i, &item) in order.iter().enumerate() {
            if place.get(item).is_none_or(Option::is_some) {
                return false;
            }
            place[item] = Some(i as u32);
        }
        order.len() == self.len() && self.items().all(|i| self.successors(i).iter().all(|&s| place[i] < place[s]))
    }

    /// The whole schedule of an order: loads and `ALLOC`s sunk to their first use, `FREE`s raised to
    /// the last. It is valid for every order; for a topological one, the ops stand in that order.
    pub fn schedule(&self, order: &[ItemIx]) -> Schedule {
        let mut emitter = Emitter { graph: self.graph, done: ti_vec![false; self.graph.node_count()], out: Vec::new() };
        for &item in order {
            self.nodes(item).iter().for_each(|&n| emitter.emit(n));
        }
        // What is left is FREEs, and buffers and loads that no op needs: they come when all else is
        // gone.
        self.graph.topological_order().into_iter().for_each(|n| emitter.emit(n));
        let schedule = Schedule::from_nodes(self.graph, emitter.out);
        schedule.expect("every node follows its predecessors").normalized(self.graph, Normalize::Memory)
    }

    fn find_accesses(&mut self) {
        let graph = self.graph;
        let mut seen: TiVec<BufIx, u32> = ti_vec![u32::MAX; graph.buffer_count()];
        let mut step = 0;
        for item in self.items() {
            for &n in self.nodes.get(item).iter().filter(|&&n| graph.kind(n) == NodeKind::Op) {
                let mut access = |b: BufIx| {
                    if seen[b] != step {
                        seen[b] = step;
                        self.accesses.push(b);
                    }
                };
                graph.operands(n).iter().for_each(|&b| access(b));
                for &p in graph.predecessors(n) {
                    if let NodeKind::Alloc(b) = graph.kind(p) {
                        access(b);
                    }
                }
                for &s in graph.successors(n) {
                    if let NodeKind::Free(b) = graph.kind(s) {
                        access(b);
                    }
                }
                self.accesses.close();
                self.steps.push(n);
                step += 1;
            }
            self.steps.close();
        }
    }
}

/// Puts out nodes, each after its predecessors.
struct Emitter<'a> {
    graph: &'a Graph,
    done: TiVec<NodeIx, bool>,
    out: Vec<NodeIx>,
}

impl Emitter<'_> {
    fn emit(&mut self, node: NodeIx) {
        // A stack of its own, since a chain of cache nodes may be as long as the graph.
        let mut stack = vec![(node, false)];
        while let Some((n, ready)) = stack.pop() {
            if self.done[n] {
                continue;
            }
            if ready {
                self.done[n] = true;
                self.out.push(n);
            } else {
                stack.push((n, true));
                self.graph.for_each_predecessor(n, |p| {
                    if !self.done[p] {
                        stack.push((p, false));
                    }
                });
            }
        }
    }
}

/// What becomes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// An op that ends an item.
    Head,
    /// An op that stands before that op.
    Glued(NodeIx),
    /// A load that stands before its first consumer.
    Floating,
    /// A cache node between ops.
    Gate,
    /// Any other cache node: it follows from the ops.
    Follows,
}

/// The roles of all nodes.
#[derive(Debug)]
struct Shape {
    roles: TiVec<NodeIx, Role>,
}

impl Shape {
    fn of(graph: &Graph, machine: &Machine) -> Self {
        let after_op = reached(graph, true);
        let before_op = reached(graph, false);
        let mut roles: TiVec<NodeIx, Role> = graph
            .nodes()
            .map(|n| match graph.kind(n) {
                NodeKind::Op => Role::Head,
                _ if (after_op[n] && before_op[n]) || is_tied(graph, n) => Role::Gate,
                _ => Role::Follows,
            })
            .collect();
        for n in graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op) {
            if !after_op[n] && floats(graph, &roles, n) {
                roles[n] = Role::Floating;
            } else if let Some(to) = glued_to(graph, machine, &roles, n) {
                roles[n] = Role::Glued(to);
            }
        }
        Self { roles }
    }

    fn is_head(&self, node: NodeIx) -> bool {
        matches!(self.roles[node], Role::Head | Role::Gate)
    }
}

/// Which nodes have an op among their ancestors (`forward`) or their descendants.
fn reached(graph: &Graph, forward: bool) -> TiVec<NodeIx, bool> {
    let mut reached = ti_vec![false; graph.node_count()];
    let mut visit = |n: NodeIx| {
        if graph.kind(n) == NodeKind::Op || reached[n] {
            let mark = |next: NodeIx| reached[next] = true;
            if forward { graph.for_each_successor(n, mark) } else { graph.for_each_predecessor(n, mark) }
        }
    };
    let order = graph.topological_order();
    if forward {
        order.into_iter().for_each(&mut visit)
    } else {
        order.into_iter().rev().for_each(&mut visit)
    }
    reached
}

/// True for a cache node with an edge that no buffer implies and no op's residency covers: into an
/// `ALLOC`, out of a `FREE`, or to a cache node of another buffer.
fn is_tied(graph: &Graph, node: NodeIx) -> bool {
    let other = |b: BufIx| {
        move |&n: &NodeIx| match graph.kind(n) {
            NodeKind::Op => false,
            NodeKind::Alloc(c) | NodeKind::Free(c) => c != b,
        }
    };
    match graph.kind(node) {
        NodeKind::Alloc(b) => !graph.predecessors(node).is_empty() || graph.successors(node).iter().any(other(b)),
        NodeKind::Free(b) => !graph.successors(node).is_empty() || graph.predecessors(node).iter().any(other(b)),
        NodeKind::Op => false,
    }
}

/// True for a `COPY_IN` of one buffer whose other users are just the ops that its edges lead to, that
/// waits for nothing but the `ALLOC`, and that no other cache node waits for.
fn floats(graph: &Graph, roles: &TiVec<NodeIx, Role>, node: NodeIx) -> bool {
    let &[buf] = graph.operands(node) else { return false };
    let alloc = graph.buf(buf).alloc;
    if roles[alloc] != Role::Follows || graph.predecessors(node).iter().any(|&p| p != alloc) {
        return false;
    }
    let users = graph.users(buf);
    let mut consumers = 0;
    for &s in graph.successors(node) {
        match graph.kind(s) {
            NodeKind::Op if graph.operands(s).contains(&buf) => consumers += 1,
            NodeKind::Free(b) if b == buf => {}
            _ => return false,
        }
    }
    graph.op_name(node) == COPY_IN && consumers > 0 && consumers + 1 == users.len()
}

/// The only successor of an op, if the op feeds it through a private buffer of a cache that evicts
/// last.
fn glued_to(graph: &Graph, machine: &Machine, roles: &TiVec<NodeIx, Role>, node: NodeIx) -> Option<NodeIx> {
    let mut only = None;
    for &s in graph.successors(node) {
        match graph.kind(s) {
            NodeKind::Op if only.is_none() => only = Some(s),
            NodeKind::Free(_) if roles[s] == Role::Follows => {}
            _ => return None,
        }
    }
    let to = only?;
    let held = |&b: &BufIx| roles[graph.buf(b).free] == Role::Gate;
    let private = |&b: &BufIx| {
        machine.cache(graph.buf(b).cache).evict_last
            && graph.users(b).len() == 2
            && graph.users(b).contains(&node)
            && graph.users(b).contains(&to)
    };
    let operands = graph.operands(node);
    (!operands.iter().any(held) && operands.iter().any(private)).then_some(to)
}

/// The edges between items, sorted, each once.
fn item_edges(graph: &Graph, item_of: &TiVec<NodeIx, Option<ItemIx>>) -> Vec<(ItemIx, ItemIx)> {
    let mut edges = Vec::new();
    for n in graph.nodes() {
        let Some(from) = item_of[n] else { continue };
        graph.for_each_successor(n, |s| {
            if let Some(to) = item_of[s].filter(|&to| to != from) {
                edges.push((from, to));
            }
        });
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Lists of the pairs by their first member, in the order they came in.
fn lists<V>(keys: usize, mut pairs: Vec<(ItemIx, V)>) -> Lists<ItemIx, V> {
    pairs.sort_by_key(|p| p.0);
    let mut lists = Lists::with_capacity(keys, pairs.len());
    let mut pairs = pairs.into_iter().peekable();
    for key in (0..keys).map(ItemIx::new) {
        while let Some((_, value)) = pairs.next_if(|p| p.0 == key) {
            lists.push(value);
        }
        lists.close();
    }
    lists
}
