//! Building a graph: takes nodes and edges in any order, checks everything once, reports all it
//! finds.

use super::assemble::assemble;
use super::{ALLOC, FREE, Field, Graph, GraphErrors};
use crate::index::{Lists, NodeIx};
use crate::units::Id;
use indexmap::IndexSet;
use std::collections::BTreeMap;
use typed_index_collections::TiVec;

/// One node as it stands in a file: fields that are absent are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeSpec<'a> {
    /// `Id`
    pub id: u64,
    /// `Op`
    pub op: &'a str,
    /// `BufId`
    pub buf: Option<u64>,
    /// `Size`
    pub size: Option<u64>,
    /// `Type`
    pub cache: Option<&'a str>,
    /// `Pipe`
    pub pipe: Option<&'a str>,
    /// `Cycles`
    pub cycles: Option<u64>,
    /// `Bufs`
    pub bufs: Option<&'a [u64]>,
    /// `Writes`
    pub writes: Option<&'a [u64]>,
}

/// Something that a reader passes over but tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An unknown key, ignored.
    UnknownKey {
        /// The key.
        key: String,
        /// How often it stands in the file.
        count: usize,
    },
    /// More unknown keys than are listed one by one.
    MoreUnknownKeys {
        /// How many further distinct keys.
        keys: usize,
    },
    /// A field that means nothing on this kind of node, ignored.
    StrayField {
        /// The field.
        field: Field,
        /// True when on `ALLOC` or `FREE`, false when on an op.
        on_cache_node: bool,
        /// On how many nodes.
        count: usize,
        /// The first of them.
        first: Id,
    },
    /// Ops without `Pipe` or `Cycles`: no timing figures.
    NoTiming {
        /// How many ops.
        ops: usize,
        /// The first of them.
        first: Id,
    },
}

/// What a string of a node is interned to.
pub(crate) type Interned = u32;

/// Columns of the nodes read so far; `NONE` stands for an absent value.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) id: Vec<u64>,
    pub(super) op: Vec<Interned>,
    pub(super) buf: Vec<Option<u64>>,
    pub(super) size: Vec<Option<u64>>,
    pub(super) cache: Vec<Interned>,
    pub(super) pipe: Vec<Interned>,
    pub(super) cycles: Vec<Option<u64>>,
}

/// Stands for an absent string.
pub(super) const NONE: Interned = Interned::MAX;

/// A node whose strings are interned already: what readers push.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InternedNode {
    pub id: u64,
    pub op: Interned,
    pub buf: Option<u64>,
    pub size: Option<u64>,
    pub cache: Option<Interned>,
    pub pipe: Option<Interned>,
    pub cycles: Option<u64>,
    pub has_bufs: bool,
    pub has_writes: bool,
}

/// Strings by index, each once. The last string found is tried first.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    names: IndexSet<String>,
    last: usize,
}

impl Interner {
    pub(crate) fn intern(&mut self, name: &str) -> Interned {
        if self.names.get_index(self.last).is_some_and(|n| n == name) {
            return self.last as Interned;
        }
        self.last = match self.names.get_index_of(name) {
            Some(i) => i,
            None => self.names.insert_full(name.to_owned()).0,
        };
        self.last as Interned
    }

    pub(super) fn into_names<K>(self) -> TiVec<K, String> {
        self.names.into_iter().collect()
    }
}

/// Collects nodes and edges and turns them into a [`Graph`].
#[derive(Debug, Default)]
pub struct GraphBuilder {
    pub(super) nodes: Columns,
    pub(super) bufs: Lists<NodeIx, u64>,
    pub(super) writes: Vec<(u32, Box<[u64]>)>,
    pub(super) edges: Vec<(u64, u64)>,
    pub(crate) ops: Interner,
    pub(crate) pipes: Interner,
    pub(crate) caches: Interner,
    pub(super) meta: Option<String>,
    pub(super) stray: BTreeMap<(bool, Field), (usize, Id)>,
}

impl GraphBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    pub fn node(&mut self, spec: NodeSpec<'_>) -> &mut Self {
        spec.bufs.unwrap_or_default().iter().for_each(|&b| self.push_buf(b));
        let node = InternedNode {
            id: spec.id,
            op: self.ops.intern(spec.op),
            buf: spec.buf,
            size: spec.size,
            cache: spec.cache.map(|c| self.caches.intern(c)),
            pipe: spec.pipe.map(|p| self.pipes.intern(p)),
            cycles: spec.cycles,
            has_bufs: spec.bufs.is_some(),
            has_writes: spec.writes.is_some(),
        };
        self.push(node, spec.writes.unwrap_or_default());
        self
    }

    /// Adds an `ALLOC` of `size` bytes of `cache`.
    pub fn alloc(&mut self, id: u64, buf: u64, size: u64, cache: &str) -> &mut Self {
        self.node(NodeSpec {
            id,
            op: ALLOC,
            buf: Some(buf),
            size: Some(size),
            cache: Some(cache),
            ..Default::default()
        })
    }

    /// Adds the `FREE` of a buffer of `size` bytes of `cache`.
    pub fn free(&mut self, id: u64, buf: u64, size: u64, cache: &str) -> &mut Self {
        self.node(NodeSpec { id, op: FREE, buf: Some(buf), size: Some(size), cache: Some(cache), ..Default::default() })
    }

    /// Adds an op that runs `cycles` cycles on `pipe` and uses `bufs`.
    pub fn op(&mut self, id: u64, op: &str, pipe: &str, cycles: u64, bufs: &[u64]) -> &mut Self {
        let (pipe, cycles, bufs) = (Some(pipe), Some(cycles), Some(bufs));
        self.node(NodeSpec { id, op, pipe, cycles, bufs, ..Default::default() })
    }

    /// Adds an edge; a repeated edge counts once.
    pub fn edge(&mut self, from: u64, to: u64) -> &mut Self {
        self.edges.push((from, to));
        self
    }

    /// Sets the free-form `Meta` object, as JSON text.
    pub fn meta(&mut self, json: impl Into<String>) -> &mut Self {
        self.meta = Some(json.into());
        self
    }

    /// Adds a buffer to the operand list of the node that is pushed next.
    #[inline]
    pub(crate) fn push_buf(&mut self, buf: u64) {
        self.bufs.push(buf);
    }

    /// The number of nodes so far.
    pub(crate) fn len(&self) -> usize {
        self.nodes.id.len()
    }

    /// Ends a node whose operands were given by [`GraphBuilder::push_buf`].
    pub(crate) fn push(&mut self, node: InternedNode, writes: &[u64]) {
        if node.has_writes {
            self.writes.push((self.len() as u32, writes.into()));
        }
        self.bufs.close();
        let columns = &mut self.nodes;
        columns.id.push(node.id);
        columns.op.push(node.op);
        columns.buf.push(node.buf);
        columns.size.push(node.size);
        columns.cache.push(node.cache.unwrap_or(NONE));
        columns.pipe.push(node.pipe.unwrap_or(NONE));
        columns.cycles.push(node.cycles);
        self.note_stray_fields(&node);
    }

    fn note_stray_fields(&mut self, node: &InternedNode) {
        let on_cache_node =
            matches!(self.ops.names.get_index(node.op as usize).map(String::as_str), Some(ALLOC | FREE));
        let fields = if on_cache_node {
            [
                (Field::Pipe, node.pipe.is_some()),
                (Field::Cycles, node.cycles.is_some()),
                (Field::Bufs, node.has_bufs && !self.last_bufs_are(node.buf)),
                (Field::Writes, node.has_writes),
            ]
        } else {
            [
                (Field::BufId, node.buf.is_some()),
                (Field::Size, node.size.is_some()),
                (Field::Type, node.cache.is_some()),
                (Field::Id, false),
            ]
        };
        for (field, _) in fields.into_iter().filter(|f| f.1) {
            self.stray.entry((on_cache_node, field)).or_insert((0, Id(node.id))).0 += 1;
        }
    }

    /// True when the operand list just closed is empty or names the node's own buffer only.
    fn last_bufs_are(&self, buf: Option<u64>) -> bool {
        let last = self.bufs.get(NodeIx::new(self.bufs.len() - 1));
        last.is_empty() || last.iter().all(|&b| Some(b) == buf)
    }

    /// Checks everything and builds the graph, with what it passed over.
    ///
    /// # Errors
    /// All that is wrong, in the order: the nodes by themselves, buffers, operands, edges; cycles
    /// are looked for when the rest is sound.
    pub fn build(self) -> Result<(Graph, Vec<Notice>), GraphErrors> {
        assemble(self)
    }
}
