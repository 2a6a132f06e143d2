//! The compute graph: op nodes, cache nodes (`ALLOC`, `FREE`), buffers and edges.
//!
//! A [`Graph`] is immutable and sound once built: ids are unique, every buffer has exactly one
//! `ALLOC` and one `FREE` that agree, every edge ends at a node, and the graph together with the
//! implied edges `ALLOC(b) → every user of b → FREE(b)` is acyclic. [`GraphBuilder`] checks all of
//! that once; after it, code indexes without doubt.

mod assemble;
mod build;
mod error;
mod ids;
mod order;

pub(crate) use build::InternedNode;
pub use build::{GraphBuilder, NodeSpec, Notice};
pub use error::{CycleStep, Field, GraphError, GraphErrors};
pub(crate) use ids::IdTable;

use crate::index::{BufIx, CacheIx, Lists, NodeIx, OpIx, PipeIx};
use crate::units::{BufId, Bytes, Cycles, Id};
use typed_index_collections::{TiSlice, TiVec};

/// The operation name of a node that brings a buffer to life.
pub const ALLOC: &str = "ALLOC";
/// The operation name of a node that ends the life of a buffer.
pub const FREE: &str = "FREE";
/// The operation name whose buffers are backed by the next level.
pub const COPY_IN: &str = "COPY_IN";

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Brings a buffer to life.
    Alloc(BufIx),
    /// Ends the life of a buffer.
    Free(BufIx),
    /// Runs on a pipe and uses the buffers of its operand list.
    Op,
}

/// A buffer: `size` bytes of one cache, live from `alloc` to `free`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its external id.
    pub id: BufId,
    /// Its size, never 0.
    pub size: Bytes,
    /// The cache it lives in.
    pub cache: CacheIx,
    /// Its `ALLOC` node.
    pub alloc: NodeIx,
    /// Its `FREE` node.
    pub free: NodeIx,
    /// True when some `COPY_IN` has it among its `Bufs`: moving it out then costs nothing.
    pub backed: bool,
}

impl Buffer {
    /// The bytes one spill of this buffer moves: `size` when backed, `2·size` when generated.
    #[inline]
    pub fn movement(&self) -> Bytes {
        if self.backed { self.size } else { Bytes(self.size.0 * 2) }
    }
}

/// An immutable, validated compute graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    ids: TiVec<NodeIx, Id>,
    kinds: TiVec<NodeIx, NodeKind>,
    ops: TiVec<NodeIx, OpIx>,
    pipes: TiVec<NodeIx, Option<PipeIx>>,
    cycles: TiVec<NodeIx, Option<Cycles>>,
    operands: Lists<NodeIx, BufIx>,
    writes: Option<Writes>,
    successors: Lists<NodeIx, NodeIx>,
    predecessors: Lists<NodeIx, NodeIx>,
    buffers: TiVec<BufIx, Buffer>,
    users: Lists<BufIx, NodeIx>,
    op_names: TiVec<OpIx, String>,
    pipe_names: TiVec<PipeIx, String>,
    cache_names: TiVec<CacheIx, String>,
    node_table: IdTable,
    buf_table: IdTable,
    meta: Option<String>,
}

/// Which operands each op writes, for the ops that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Writes {
    known: TiVec<NodeIx, bool>,
    lists: Lists<NodeIx, BufIx>,
}

impl Graph {
    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.ids.len()
    }

    /// The number of buffers.
    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// The number of distinct edges, implied ones that the file does not list left out.
    pub fn edge_count(&self) -> usize {
        self.successors.items().len()
    }

    /// All nodes, in file order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeIx> + ExactSizeIterator + use<> {
        (0..self.ids.len()).map(NodeIx::new)
    }

    /// All buffers, in the order in which their `ALLOC`s stand in the file.
    pub fn bufs(&self) -> impl DoubleEndedIterator<Item = BufIx> + ExactSizeIterator + use<> {
        (0..self.buffers.len()).map(BufIx::new)
    }

    /// All caches that some buffer names, in order of first mention.
    pub fn caches(&self) -> impl DoubleEndedIterator<Item = CacheIx> + ExactSizeIterator + use<> {
        (0..self.cache_names.len()).map(CacheIx::new)
    }

    /// The external id of a node.
    #[inline]
    pub fn id(&self, node: NodeIx) -> Id {
        self.ids[node]
    }

    /// What a node does.
    #[inline]
    pub fn kind(&self, node: NodeIx) -> NodeKind {
        self.kinds[node]
    }

    /// The operation name of a node, `ALLOC` and `FREE` included.
    pub fn op_name(&self, node: NodeIx) -> &str {
        &self.op_names[self.ops[node]]
    }

    /// The operation of a node as an index into [`Graph::op_names`].
    pub fn op(&self, node: NodeIx) -> OpIx {
        self.ops[node]
    }

    /// All operation names, in order of first mention.
    pub fn op_names(&self) -> &TiSlice<OpIx, String> {
        &self.op_names
    }

    /// The pipe an op runs on; `None` for cache nodes and where the file gives none.
    #[inline]
    pub fn pipe(&self, node: NodeIx) -> Option<PipeIx> {
        self.pipes[node]
    }

    /// All pipe names, in order of first mention.
    pub fn pipe_names(&self) -> &TiSlice<PipeIx, String> {
        &self.pipe_names
    }

    /// The cycles an op takes; `None` for cache nodes and where the file gives none.
    #[inline]
    pub fn cycles(&self, node: NodeIx) -> Option<Cycles> {
        self.cycles[node]
    }

    /// True when every op has a pipe and cycles, so that timing figures exist.
    pub fn has_timing(&self) -> bool {
        self.nodes()
            .all(|n| !matches!(self.kinds[n], NodeKind::Op) || (self.pipes[n].is_some() && self.cycles[n].is_some()))
    }

    /// The buffers an op uses, each once, in file order; of a cache node, its one buffer.
    #[inline]
    pub fn operands(&self, node: NodeIx) -> &[BufIx] {
        self.operands.get(node)
    }

    /// The subset of its operands that an op writes, where the file says so.
    pub fn writes(&self, node: NodeIx) -> Option<&[BufIx]> {
        let writes = self.writes.as_ref()?;
        writes.known[node].then(|| writes.lists.get(node))
    }

    /// The nodes that the edges of the file lead to from `node`, each once; implied edges are not
    /// among them unless the file lists them.
    #[inline]
    pub fn successors(&self, node: NodeIx) -> &[NodeIx] {
        self.successors.get(node)
    }

    /// The nodes from which the edges of the file lead to `node`, each once.
    #[inline]
    pub fn predecessors(&self, node: NodeIx) -> &[NodeIx] {
        self.predecessors.get(node)
    }

    /// Calls `visit` for every successor of `node`, implied edges included; a node may come twice.
    #[inline]
    pub fn for_each_successor(&self, node: NodeIx, mut visit: impl FnMut(NodeIx)) {
        self.successors.get(node).iter().copied().for_each(&mut visit);
        match self.kinds[node] {
            NodeKind::Alloc(b) => {
                self.users.get(b).iter().copied().for_each(&mut visit);
                visit(self.buffers[b].free);
            }
            NodeKind::Op => self.operands.get(node).iter().for_each(|&b| visit(self.buffers[b].free)),
            NodeKind::Free(_) => {}
        }
    }

    /// Calls `visit` for every predecessor of `node`, implied edges included; a node may come twice.
    #[inline]
    pub fn for_each_predecessor(&self, node: NodeIx, mut visit: impl FnMut(NodeIx)) {
        self.predecessors.get(node).iter().copied().for_each(&mut visit);
        match self.kinds[node] {
            NodeKind::Free(b) => {
                self.users.get(b).iter().copied().for_each(&mut visit);
                visit(self.buffers[b].alloc);
            }
            NodeKind::Op => self.operands.get(node).iter().for_each(|&b| visit(self.buffers[b].alloc)),
            NodeKind::Alloc(_) => {}
        }
    }

    /// A buffer.
    #[inline]
    pub fn buf(&self, buf: BufIx) -> &Buffer {
        &self.buffers[buf]
    }

    /// The ops that use a buffer, in file order.
    #[inline]
    pub fn users(&self, buf: BufIx) -> &[NodeIx] {
        self.users.get(buf)
    }

    /// The name of a cache.
    pub fn cache_name(&self, cache: CacheIx) -> &str {
        &self.cache_names[cache]
    }

    /// All cache names, in order of first mention.
    pub fn cache_names(&self) -> &TiSlice<CacheIx, String> {
        &self.cache_names
    }

    /// The node with an external id.
    #[inline]
    pub fn node_by_id(&self, id: Id) -> Option<NodeIx> {
        self.node_table.get(id.0).map(NodeIx::new)
    }

    /// The buffer with an external id.
    #[inline]
    pub fn buf_by_id(&self, id: BufId) -> Option<BufIx> {
        self.buf_table.get(id.0).map(BufIx::new)
    }

    /// The largest external node id.
    pub fn max_id(&self) -> Id {
        self.node_table.max().map_or(Id(0), Id)
    }

    /// The free-form `Meta` object, as JSON text.
    pub fn meta(&self) -> Option<&str> {
        self.meta.as_deref()
    }
}
