//! What can be wrong with a graph, and the notices that do not stop it.

use crate::names::Shown;
use crate::units::{BufId, Bytes, Id};
use std::fmt;
use thiserror::Error;

/// A field of a node in the graph files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// `Id`
    Id,
    /// `Op`
    Op,
    /// `BufId`
    BufId,
    /// `Size`
    Size,
    /// `Type`
    Type,
    /// `Pipe`
    Pipe,
    /// `Cycles`
    Cycles,
    /// `Bufs`
    Bufs,
    /// `Writes`
    Writes,
}

impl Field {
    /// The name as it stands in the files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Id => "Id",
            Self::Op => "Op",
            Self::BufId => "BufId",
            Self::Size => "Size",
            Self::Type => "Type",
            Self::Pipe => "Pipe",
            Self::Cycles => "Cycles",
            Self::Bufs => "Bufs",
            Self::Writes => "Writes",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One edge of a dependency cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleStep {
    /// The node that comes first.
    pub from: Id,
    /// The node that must follow it.
    pub to: Id,
    /// The buffer whose life implies the edge; `None` when the file lists it.
    pub implied_by: Option<BufId>,
}

/// One thing that is wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// There is no node at all.
    #[error("the graph has no nodes")]
    Empty,
    /// More nodes, edges or operands than a 32-bit index reaches.
    #[error("{count} {what} are more than the {limit} that one graph may have")]
    TooMany {
        /// `nodes`, `edges` or `operands`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Two nodes have the same id.
    #[error("node id {id} stands twice, at Nodes[{first}] and Nodes[{second}]")]
    DuplicateId {
        /// The id.
        id: Id,
        /// Place of the first node in the file, from 0.
        first: usize,
        /// Place of the second.
        second: usize,
    },
    /// An id past 2⁶³ − 1.
    #[error("{field} {value} at Nodes[{place}] passes 2^63-1")]
    IdOutOfRange {
        /// `Id` or `BufId`.
        field: Field,
        /// The id.
        value: u64,
        /// Place of the node in the file, from 0.
        place: usize,
    },
    /// A node lacks a field that its operation needs.
    #[error("node {node} ({}) has no {field}", Shown(.op))]
    MissingField {
        /// The node.
        node: Id,
        /// Its operation.
        op: String,
        /// What it lacks.
        field: Field,
    },
    /// A buffer of size 0.
    #[error("node {node}: buffer {buf} has size 0")]
    ZeroSize {
        /// The `ALLOC` or `FREE`.
        node: Id,
        /// The buffer.
        buf: BufId,
    },
    /// A buffer has a `FREE` and no `ALLOC`.
    #[error("buffer {buf} has no ALLOC (its FREE is node {node})")]
    NoAlloc {
        /// The buffer.
        buf: BufId,
        /// Its `FREE`.
        node: Id,
    },
    /// A buffer has no `FREE`.
    #[error("buffer {buf} has no FREE (its ALLOC is node {alloc})")]
    NoFree {
        /// The buffer.
        buf: BufId,
        /// Its `ALLOC`.
        alloc: Id,
    },
    /// A buffer has two `ALLOC`s or two `FREE`s.
    #[error("buffer {buf} has two {op} nodes, {first} and {second}")]
    Twice {
        /// The buffer.
        buf: BufId,
        /// `ALLOC` or `FREE`.
        op: &'static str,
        /// The first node.
        first: Id,
        /// The second node.
        second: Id,
    },
    /// `ALLOC` and `FREE` disagree on the size.
    #[error("buffer {buf} has size {alloc_size} at its ALLOC (node {alloc}) and {free_size} at its FREE (node {free})")]
    SizeMismatch {
        /// The buffer.
        buf: BufId,
        /// Its `ALLOC`.
        alloc: Id,
        /// The size there.
        alloc_size: Bytes,
        /// Its `FREE`.
        free: Id,
        /// The size there.
        free_size: Bytes,
    },
    /// `ALLOC` and `FREE` disagree on the cache.
    #[error(
        "buffer {buf} is of {} at its ALLOC (node {alloc}) and of {} at its FREE (node {free})",
        Shown(.alloc_cache),
        Shown(.free_cache)
    )]
    CacheMismatch {
        /// The buffer.
        buf: BufId,
        /// Its `ALLOC`.
        alloc: Id,
        /// The cache there.
        alloc_cache: String,
        /// Its `FREE`.
        free: Id,
        /// The cache there.
        free_cache: String,
    },
    /// An op uses a buffer that no `ALLOC` brings to life.
    #[error("node {node} ({}) uses buffer {buf}, which has no ALLOC", Shown(.op))]
    UnknownBuffer {
        /// The op.
        node: Id,
        /// Its operation.
        op: String,
        /// The buffer.
        buf: BufId,
    },
    /// `Writes` names a buffer that is not in `Bufs`.
    #[error("node {node} writes buffer {buf}, which is not among its Bufs")]
    WritesOutsideBufs {
        /// The op.
        node: Id,
        /// The buffer.
        buf: BufId,
    },
    /// An edge ends at a node that is not there.
    #[error("edge {from} -> {to} (Edges[{place}]): there is no node {missing}")]
    EdgeToMissing {
        /// Place of the edge in the file, from 0.
        place: usize,
        /// Start of the edge.
        from: Id,
        /// End of the edge.
        to: Id,
        /// The id that no node has.
        missing: Id,
    },
    /// The edges, implied ones included, form a cycle.
    #[error("the graph has a cycle: {}", Path(.steps))]
    Cycle {
        /// The edges of one cycle, in order.
        steps: Vec<CycleStep>,
    },
    /// The edges put an op after the `FREE`, or before the `ALLOC`, of a buffer it uses.
    #[error("node {node} uses buffer {buf} outside its life: the edges put it {side} {cache_op} (node {cache_node}): {}", Path(.steps))]
    UseOutsideLife {
        /// The op.
        node: Id,
        /// The buffer.
        buf: BufId,
        /// `after` or `before`.
        side: &'static str,
        /// `FREE` or `ALLOC`.
        cache_op: &'static str,
        /// That node.
        cache_node: Id,
        /// The path that contradicts the buffer's life.
        steps: Vec<CycleStep>,
    },
    /// A sum over the graph passes 64 bits.
    #[error("the sum of all {what} passes 2^64-1 at node {node}")]
    Overflow {
        /// `sizes, each counted twice,` (a spill moves a buffer out and in) or `cycles`.
        what: &'static str,
        /// The node at which it passes.
        node: Id,
    },
}

/// Writes a path of edges, shortened in the middle when it is long.
struct Path<'a>(&'a [CycleStep]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        let steps = self.0;
        if let Some(first) = steps.first() {
            write!(f, "{}", first.from)?;
        }
        for (i, step) in steps.iter().enumerate() {
            if steps.len() > SHOWN && i == SHOWN / 2 {
                write!(f, " -> ... {} more ...", steps.len() - SHOWN)?;
            }
            if steps.len() > SHOWN && (SHOWN / 2..steps.len() - SHOWN / 2).contains(&i) {
                continue;
            }
            write!(f, " -> {}", step.to)?;
            if let Some(buf) = step.implied_by {
                write!(f, " (life of buffer {buf})")?;
            }
        }
        Ok(())
    }
}

/// All that is wrong with a graph: never empty, the first hundred in full.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} in the graph; the first: {}", Count(.total, "error"), .list[0])]
pub struct GraphErrors {
    /// The first [`GraphErrors::LISTED`] errors.
    pub list: Vec<GraphError>,
    /// How many there are in all.
    pub total: usize,
}

struct Count<'a>(&'a usize, &'a str);

impl fmt::Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if *self.0 == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.0, self.1)
    }
}

impl GraphErrors {
    /// How many errors are kept in full.
    pub const LISTED: usize = 100;
}

/// Collects errors, keeping the first hundred.
#[derive(Debug, Default)]
pub(super) struct Collector {
    list: Vec<GraphError>,
    total: usize,
}

impl Collector {
    pub(super) fn push(&mut self, error: GraphError) {
        self.total += 1;
        if self.list.len() < GraphErrors::LISTED {
            self.list.push(error);
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), GraphErrors> {
        if self.total == 0 {
            return Ok(());
        }
        Err(GraphErrors { list: std::mem::take(&mut self.list), total: self.total })
    }
}
