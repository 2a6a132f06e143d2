//! From the columns of a builder to a sound graph, or to all that is wrong with it.

use super::build::NONE;
use super::error::Collector;
use super::{
    ALLOC, Buffer, COPY_IN, FREE, Field, Graph, GraphBuilder, GraphError, GraphErrors, IdTable, NodeKind, Notice,
    Writes,
};
use crate::index::{BufIx, CacheIx, Lists, NodeIx, OpIx, PipeIx};
use crate::units::{BufId, Bytes, Cycles, Id, MAX_ID};
use typed_index_collections::{TiVec, ti_vec};

/// Checks everything and builds the graph, with what it passed over.
pub(super) fn assemble(builder: GraphBuilder) -> Result<(Graph, Vec<Notice>), GraphErrors> {
    Assembly::start(builder)?.buffers()?.finish()
}

/// What an `ALLOC` or `FREE` says; an absent field is `None`.
struct CacheNode {
    id: BufId,
    size: Option<Bytes>,
    cache: Option<CacheIx>,
}

/// The stages between the columns and the graph.
struct Assembly {
    from: GraphBuilder,
    errors: Collector,
    node_table: IdTable,
    ids: TiVec<NodeIx, Id>,
    op_names: TiVec<OpIx, String>,
    cache_names: TiVec<CacheIx, String>,
    buffers: TiVec<BufIx, Buffer>,
    buf_table: IdTable,
    kinds: TiVec<NodeIx, NodeKind>,
}

impl Assembly {
    fn start(mut from: GraphBuilder) -> Result<Self, GraphErrors> {
        let mut errors = Collector::default();
        let limit = u32::MAX as usize - 1;
        let counts = [("nodes", from.len()), ("edges", from.edges.len()), ("operands", from.bufs.items().len())];
        for (what, count) in counts.into_iter().filter(|c| c.1 > limit) {
            errors.push(GraphError::TooMany { what, count, limit });
        }
        if from.len() == 0 {
            errors.push(GraphError::Empty);
        }
        errors.finish()?;
        let ids = std::mem::take(&mut from.nodes.id);
        for (place, &value) in ids.iter().enumerate().filter(|i| *i.1 > MAX_ID) {
            errors.push(GraphError::IdOutOfRange { field: Field::Id, value, place });
        }
        let (node_table, repeats) = IdTable::build(ids.iter().copied());
        for (first, second) in repeats {
            let (first, second) = (first as usize, second as usize);
            errors.push(GraphError::DuplicateId { id: Id(ids[first]), first, second });
        }
        let kinds = ti_vec![NodeKind::Op; ids.len()];
        let op_names = std::mem::take(&mut from.ops).into_names();
        let cache_names = std::mem::take(&mut from.caches).into_names();
        let ids = ids.into_iter().map(Id).collect();
        let buffers = TiVec::new();
        let buf_table = IdTable::Sorted(Vec::new());
        Ok(Self { from, errors, node_table, ids, op_names, cache_names, buffers, buf_table, kinds })
    }

    fn op_name(&self, node: NodeIx) -> &str {
        &self.op_names[OpIx::new(self.from.nodes.op[node.index()] as usize)]
    }

    /// Makes the buffers from the `ALLOC`s, then joins each `FREE` to its own.
    fn buffers(mut self) -> Result<Self, GraphErrors> {
        let find = |name| self.op_names.position(|n: &String| n == name);
        let (alloc_op, free_op) = (find(ALLOC), find(FREE));
        let with_op = |op: Option<OpIx>| {
            let ops = &self.from.nodes.op;
            (0..ops.len()).filter(move |&i| op.is_some_and(|o| ops[i] as usize == o.index())).map(NodeIx::new)
        };
        let (allocs, frees): (Vec<_>, Vec<_>) = (with_op(alloc_op).collect(), with_op(free_op).collect());
        let mut buf_ids = Vec::with_capacity(allocs.len());
        for node in allocs {
            if let Some(CacheNode { id, size, cache }) = self.cache_node_fields(node) {
                // What is absent has been told; a filler keeps the buffer known to its users.
                let (size, cache) = (size.unwrap_or(Bytes(1)), cache.unwrap_or(CacheIx::new(0)));
                self.kinds[node] = NodeKind::Alloc(BufIx::new(buf_ids.len()));
                buf_ids.push(id.0);
                // `free` is the ALLOC itself until its FREE is found.
                self.buffers.push(Buffer { id, size, cache, alloc: node, free: node, backed: false });
            }
        }
        let (buf_table, repeats) = IdTable::build(buf_ids.iter().copied());
        self.buf_table = buf_table;
        for (first, second) in repeats {
            let [first, second] = [first, second].map(|i| self.buffers[BufIx::new(i as usize)]);
            let (buf, first, second) = (first.id, self.ids[first.alloc], self.ids[second.alloc]);
            self.errors.push(GraphError::Twice { buf, op: ALLOC, first, second });
        }
        frees.into_iter().for_each(|node| self.join_free(node));
        self.check_every_buffer_is_freed();
        Ok(self)
    }

    /// The fields of an `ALLOC` or `FREE`, if it says which buffer; errors for those that it lacks.
    fn cache_node_fields(&mut self, node: NodeIx) -> Option<CacheNode> {
        let (i, columns) = (node.index(), &self.from.nodes);
        let (buf, size, cache) = (columns.buf[i], columns.size[i], columns.cache[i]);
        let absent = [(Field::BufId, buf.is_none()), (Field::Size, size.is_none()), (Field::Type, cache == NONE)];
        for (field, _) in absent.into_iter().filter(|a| a.1) {
            let op = self.op_name(node).to_owned();
            self.errors.push(GraphError::MissingField { node: self.ids[node], op, field });
        }
        let buf = buf?;
        if size == Some(0) {
            self.errors.push(GraphError::ZeroSize { node: self.ids[node], buf: BufId(buf) });
        }
        if buf > MAX_ID {
            self.errors.push(GraphError::IdOutOfRange { field: Field::BufId, value: buf, place: i });
        }
        Some(self.cache_node(node, BufId(buf)))
    }

    fn cache_node(&self, node: NodeIx, id: BufId) -> CacheNode {
        let (i, columns) = (node.index(), &self.from.nodes);
        let cache = (columns.cache[i] != NONE).then(|| CacheIx::new(columns.cache[i] as usize));
        CacheNode { id, size: columns.size[i].map(Bytes), cache }
    }

    fn join_free(&mut self, node: NodeIx) {
        let Some(ours) = self.cache_node_fields(node) else { return };
        let id = ours.id;
        let Some(b) = self.buf_table.get(id.0).map(BufIx::new) else {
            self.errors.push(GraphError::NoAlloc { buf: id, node: self.ids[node] });
            return;
        };
        self.kinds[node] = NodeKind::Free(b);
        let buf = self.buffers[b];
        let (alloc, free) = (self.ids[buf.alloc], self.ids[node]);
        if buf.free != buf.alloc {
            self.errors.push(GraphError::Twice { buf: id, op: FREE, first: self.ids[buf.free], second: free });
            return;
        }
        self.buffers[b].free = node;
        let theirs = self.cache_node(buf.alloc, id);
        if let (Some(alloc_size), Some(free_size)) = (theirs.size, ours.size)
            && alloc_size != free_size
        {
            self.errors.push(GraphError::SizeMismatch { buf: id, alloc, alloc_size, free, free_size });
        }
        if let (Some(alloc_cache), Some(free_cache)) = (theirs.cache, ours.cache)
            && alloc_cache != free_cache
        {
            let [alloc_cache, free_cache] = [alloc_cache, free_cache].map(|c| self.cache_names[c].clone());
            self.errors.push(GraphError::CacheMismatch { buf: id, alloc, alloc_cache, free, free_cache });
        }
    }

    fn check_every_buffer_is_freed(&mut self) {
        let mut total = Bytes(0);
        for (b, buf) in self.buffers.iter_enumerated() {
            // A second ALLOC of a buffer has been told; the FREE belongs to the first.
            let first_of_its_id = self.buf_table.get(buf.id.0) == Some(b.index());
            if buf.free == buf.alloc && first_of_its_id {
                self.errors.push(GraphError::NoFree { buf: buf.id, alloc: self.ids[buf.alloc] });
            }
            // Twice the sum must fit: a generated buffer moves 2·size.
            match total.checked_add(buf.size).filter(|t| t.0 <= u64::MAX / 2) {
                Some(sum) => total = sum,
                None => {
                    self.errors
                        .push(GraphError::Overflow { what: "sizes, each counted twice,", node: self.ids[buf.alloc] });
                    return;
                }
            }
        }
    }

    fn finish(mut self) -> Result<(Graph, Vec<Notice>), GraphErrors> {
        let copy_in = self.op_names.position(|n| n == COPY_IN);
        let operands = self.operands(copy_in);
        let writes = self.writes(&operands);
        let edges = self.edges();
        self.check_cycles_sum();
        self.errors.finish()?;
        let n = self.ids.len();
        let successors = Lists::grouped(n, n, &edges);
        let mut backward: Vec<_> =
            self.ids.keys().flat_map(|f| successors.get(f).iter().map(move |&t| (t, f))).collect();
        drop(edges);
        let predecessors = Lists::grouped(n, n, &backward);
        backward = Vec::new();
        drop(backward);
        let is_op = |node: &NodeIx| self.kinds[*node] == NodeKind::Op;
        let uses: Vec<_> =
            self.ids.keys().filter(is_op).flat_map(|o| operands.get(o).iter().map(move |&b| (b, o))).collect();
        let users = Lists::grouped(self.buffers.len(), n, &uses);
        let notices = self.notices();
        let columns = self.from.nodes;
        let graph = Graph {
            ids: self.ids,
            ops: columns.op.into_iter().map(|o| OpIx::new(o as usize)).collect(),
            pipes: columns.pipe.iter().map(|&p| (p != NONE).then(|| PipeIx::new(p as usize))).collect(),
            cycles: columns.cycles.iter().map(|c| c.map(Cycles)).collect(),
            kinds: self.kinds,
            operands,
            writes,
            successors,
            predecessors,
            buffers: self.buffers,
            users,
            op_names: self.op_names,
            pipe_names: self.from.pipes.into_names(),
            cache_names: self.cache_names,
            node_table: self.node_table,
            buf_table: self.buf_table,
            meta: self.from.meta,
        };
        match graph.find_cycle() {
            Some(cycle) => Err(GraphErrors { list: vec![cycle], total: 1 }),
            None => Ok((graph, notices)),
        }
    }

    /// The operand lists as buffer indices, each buffer once; marks what a `COPY_IN` backs.
    fn operands(&mut self, copy_in: Option<OpIx>) -> Lists<NodeIx, BufIx> {
        let raw = std::mem::take(&mut self.from.bufs);
        let mut operands: Lists<NodeIx, BufIx> = Lists::with_capacity(self.ids.len(), raw.items().len());
        let mut seen_at: TiVec<BufIx, u32> = ti_vec![u32::MAX; self.buffers.len()];
        for node in self.ids.keys() {
            match self.kinds[node] {
                NodeKind::Alloc(b) | NodeKind::Free(b) => operands.push(b),
                NodeKind::Op => {
                    let backs = copy_in.is_some_and(|o| self.from.nodes.op[node.index()] as usize == o.index());
                    for &id in raw.get(node) {
                        let Some(b) = self.operand(node, id) else { continue };
                        self.buffers[b].backed |= backs;
                        if seen_at[b] != node.index() as u32 {
                            seen_at[b] = node.index() as u32;
                            operands.push(b);
                        }
                    }
                }
            }
            operands.close();
        }
        operands
    }

    fn operand(&mut self, node: NodeIx, id: u64) -> Option<BufIx> {
        let found = self.buf_table.get(id).map(BufIx::new);
        let is_cache_node = matches!(self.op_name(node), ALLOC | FREE);
        if found.is_none() && !is_cache_node {
            let op = self.op_name(node).to_owned();
            self.errors.push(GraphError::UnknownBuffer { node: self.ids[node], op, buf: BufId(id) });
        }
        found
    }

    fn writes(&mut self, operands: &Lists<NodeIx, BufIx>) -> Option<Writes> {
        let raw = std::mem::take(&mut self.from.writes);
        let mut lists = Lists::with_capacity(self.ids.len(), raw.len());
        let mut known: TiVec<NodeIx, bool> = ti_vec![false; self.ids.len()];
        let mut raw = raw.iter().peekable();
        for node in self.ids.keys() {
            if let Some((_, ids)) = raw.next_if(|w| w.0 as usize == node.index())
                && self.kinds[node] == NodeKind::Op
            {
                known[node] = true;
                for &id in ids {
                    match self.buf_table.get(id).map(BufIx::new).filter(|b| operands.get(node).contains(b)) {
                        Some(b) if lists.open().contains(&b) => {}
                        Some(b) => lists.push(b),
                        None => {
                            self.errors.push(GraphError::WritesOutsideBufs { node: self.ids[node], buf: BufId(id) });
                        }
                    }
                }
            }
            lists.close();
        }
        known.iter().any(|&k| k).then_some(Writes { known, lists })
    }

    fn edges(&mut self) -> Vec<(NodeIx, NodeIx)> {
        let raw = std::mem::take(&mut self.from.edges);
        let mut edges = Vec::with_capacity(raw.len());
        for (place, (from, to)) in raw.into_iter().enumerate() {
            match [from, to].map(|id| self.node_table.get(id).map(NodeIx::new)) {
                [Some(f), Some(t)] => edges.push((f, t)),
                [f, _] => {
                    let missing = Id(if f.is_none() { from } else { to });
                    self.errors.push(GraphError::EdgeToMissing { place, from: Id(from), to: Id(to), missing });
                }
            }
        }
        edges
    }

    fn check_cycles_sum(&mut self) {
        let mut total = 0u64;
        for (i, cycles) in self.from.nodes.cycles.iter().enumerate() {
            let cycles = cycles.filter(|_| self.kinds[NodeIx::new(i)] == NodeKind::Op);
            match total.checked_add(cycles.unwrap_or(0)) {
                Some(sum) => total = sum,
                None => {
                    self.errors.push(GraphError::Overflow { what: "cycles", node: self.ids[NodeIx::new(i)] });
                    return;
                }
            }
        }
    }

    fn notices(&mut self) -> Vec<Notice> {
        // Fields that mean nothing on a node are dropped here, once they have been told.
        let stray = std::mem::take(&mut self.from.stray);
        let mut notices: Vec<_> = stray
            .into_iter()
            .map(|((on_cache_node, field), (count, first))| Notice::StrayField { field, on_cache_node, count, first })
            .collect();
        let columns = &mut self.from.nodes;
        let (mut untimed, mut first) = (0, None);
        for (i, kind) in self.kinds.iter().enumerate() {
            if *kind != NodeKind::Op {
                columns.pipe[i] = NONE;
                columns.cycles[i] = None;
            } else if columns.pipe[i] == NONE || columns.cycles[i].is_none() {
                untimed += 1;
                first = first.or(Some(self.ids[NodeIx::new(i)]));
            }
        }
        if let Some(first) = first {
            notices.push(Notice::NoTiming { ops: untimed, first });
        }
        notices
    }
}
