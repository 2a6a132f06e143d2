//! What a victim heuristic sees and says.
//!
//! A heuristic gets a read-only view of one cache that is short of space and scores its buffers;
//! the planner decides. Indices are positions in the normalised schedule; spills and postponements
//! never renumber them.

use crate::graph::{Buffer, Graph};
use crate::index::{BufIx, CacheIx, Pos};
use crate::units::Bytes;

/// One request for space that found no hole.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The cache that is short.
    pub cache: CacheIx,
    /// The current position.
    pub pos: Pos,
    /// Bytes asked for.
    pub needed: Bytes,
    /// Bytes missing: `needed` less the largest free block of the cache; at least 1.
    pub missing: Bytes,
}

/// Where a buffer stands at one moment of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferState {
    /// Position of its `ALLOC` in the schedule.
    pub alloc: Pos,
    /// Position of its `FREE`.
    pub free: Pos,
    /// Position of its last use; of its `ALLOC` while unused. Reloads are not uses.
    pub last_use: Pos,
    /// Position of its next use; of its `FREE` if there is none.
    pub next_use: Pos,
    /// Number of uses so far.
    pub uses: u32,
    /// Position at which its current residency segment began.
    pub segment_start: Pos,
}

/// Read-only view of the walk, given to a heuristic.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    graph: &'a Graph,
    states: &'a typed_index_collections::TiSlice<BufIx, BufferState>,
}

impl<'a> View<'a> {
    /// A view of `states`.
    pub fn new(graph: &'a Graph, states: &'a typed_index_collections::TiSlice<BufIx, BufferState>) -> Self {
        Self { graph, states }
    }

    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// A buffer's fixed data.
    #[inline]
    pub fn buf(&self, buf: BufIx) -> &'a Buffer {
        self.graph.buf(buf)
    }

    /// A buffer's state now.
    #[inline]
    pub fn state(&self, buf: BufIx) -> BufferState {
        self.states[buf]
    }
}

/// Something that happened to a buffer, for heuristics that keep a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `ALLOC` or `SPILL_IN`: it became resident.
    Acquired,
    /// An op used it.
    Used,
    /// It was chosen as a victim and goes out.
    Evicted,
}

/// Scores the buffers of a cache that is short of space: the highest score goes out first, ties by
/// the smaller buffer id.
///
/// The score must be a number (not NaN) and depend on nothing but the arguments and on the events
/// seen since [`VictimHeuristic::reset`], so that a plan is the same whenever it is made.
pub trait VictimHeuristic: Send {
    /// The score of a resident, unpinned buffer of `request.cache`.
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64;

    /// Forgets everything: called before each plan.
    fn reset(&mut self, _graph: &Graph) {}

    /// Takes note of an event. Called only if [`VictimHeuristic::observes`] says so.
    fn observe(&mut self, _view: View<'_>, _event: Event, _buf: BufIx) {}

    /// True for heuristics that want [`VictimHeuristic::observe`] called.
    fn observes(&self) -> bool {
        false
    }
}
