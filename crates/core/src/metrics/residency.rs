//! Residency segments: which buffer lies where, from when to when.

use super::MeasureError;
use super::steps::{Step, Steps};
use crate::graph::{Graph, NodeKind};
use crate::hardware::Machine;
use crate::index::{BufIx, CacheIx, Pos, indices};
use crate::plan::Plan;
use crate::units::{BufId, Bytes, Id, Offset};
use typed_index_collections::{TiVec, ti_vec};

/// The span of a plan's schedule in which one buffer lies at one address: positions `from..to`,
/// half-open, from `ALLOC` or `SPILL_IN` (included) to the next `SPILL_OUT` or `FREE` (excluded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The buffer.
    pub buf: BufIx,
    /// Its cache.
    pub cache: CacheIx,
    /// Its address throughout the segment.
    pub offset: Offset,
    /// Its size: it covers the addresses `offset..offset + size`, half-open.
    pub size: Bytes,
    /// Position of the `ALLOC` or `SPILL_IN` that begins it.
    pub from: Pos,
    /// Position of the `SPILL_OUT` or `FREE` that ends it, the first that it does not hold.
    pub to: Pos,
    /// The spill that brought the buffer here, by its place in the plan's list; `None` at `ALLOC`.
    pub reloaded_by: Option<u32>,
    /// The spill that moves the buffer away; `None` at `FREE`.
    pub evicted_by: Option<u32>,
}

/// The residency segments of a plan, by rising [`Segment::from`].
///
/// # Errors
/// When the plan does not resolve ([`Steps::resolve`]), a buffer is used, moved or freed while it
/// is not resident, or a segment leaves its cache. That segments do not overlap is not checked.
pub fn segments(graph: &Graph, machine: &Machine, plan: &Plan) -> Result<Vec<Segment>, MeasureError> {
    of_steps(graph, machine, &Steps::resolve(graph, plan)?)
}

/// The residency segments of a resolved plan, by rising [`Segment::from`].
///
/// # Errors
/// As [`segments`].
pub fn of_steps(graph: &Graph, machine: &Machine, steps: &Steps) -> Result<Vec<Segment>, MeasureError> {
    let mut walk = Walk {
        graph,
        machine,
        steps,
        state: ti_vec![State::Out(None); graph.buffer_count()],
        segments: Vec::with_capacity(graph.buffer_count()),
    };
    for pos in indices(steps.as_slice()) {
        walk.step(pos)?;
    }
    Ok(walk.segments)
}

/// Where a buffer is during the walk.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Not resident; moved out by that spill, if by any.
    Out(Option<u32>),
    /// Resident in the segment of that place.
    In(u32),
}

struct Walk<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    steps: &'a Steps,
    state: TiVec<BufIx, State>,
    segments: Vec<Segment>,
}

impl Walk<'_> {
    fn step(&mut self, pos: Pos) -> Result<(), MeasureError> {
        match self.steps.as_slice()[pos] {
            Step::Node(n) => match self.graph.kind(n) {
                NodeKind::Alloc(b) => self.open(pos, b, self.steps.first_offset(b), None),
                NodeKind::Free(b) => self.close(pos, b, None),
                NodeKind::Op => self.graph.operands(n).iter().try_for_each(|&b| self.resident(pos, b).map(|_| ())),
            },
            Step::SpillOut { spill, buf } => self.close(pos, buf, Some(spill)),
            Step::SpillIn { spill, buf } if self.state[buf] == State::Out(Some(spill)) => {
                self.open(pos, buf, self.steps.reload_offset(spill), Some(spill))
            }
            Step::SpillIn { buf, .. } => {
                let (id, buf) = self.names(pos, buf);
                Err(MeasureError::NotOut { pos: pos.index(), id, buf })
            }
        }
    }

    fn names(&self, pos: Pos, buf: BufIx) -> (Id, BufId) {
        (self.steps.id(self.graph, self.steps.as_slice()[pos]), self.graph.buf(buf).id)
    }

    /// Begins a segment. An `ALLOC` finds its buffer out: it stands in the schedule once, and every
    /// other step before it has been refused.
    fn open(&mut self, pos: Pos, b: BufIx, offset: Offset, reloaded_by: Option<u32>) -> Result<(), MeasureError> {
        let buf = self.graph.buf(b);
        let capacity = self.machine.cache(buf.cache).capacity;
        let fits = offset.0.checked_add(buf.size.0).is_some_and(|end| end <= capacity.0);
        if !fits {
            return Err(MeasureError::OutsideCache { pos: pos.index(), buf: buf.id, offset, size: buf.size, capacity });
        }
        self.state[b] = State::In(self.segments.len() as u32);
        let (cache, size) = (buf.cache, buf.size);
        let evicted_by = None;
        self.segments.push(Segment { buf: b, cache, offset, size, from: pos, to: pos, reloaded_by, evicted_by });
        Ok(())
    }

    fn close(&mut self, pos: Pos, b: BufIx, evicted_by: Option<u32>) -> Result<(), MeasureError> {
        let open = self.resident(pos, b)?;
        self.segments[open].to = pos;
        self.segments[open].evicted_by = evicted_by;
        self.state[b] = State::Out(evicted_by);
        Ok(())
    }

    #[inline]
    fn resident(&self, pos: Pos, b: BufIx) -> Result<usize, MeasureError> {
        match self.state[b] {
            State::In(open) => Ok(open as usize),
            State::Out(_) => {
                let (id, buf) = self.names(pos, b);
                Err(MeasureError::NotResident { pos: pos.index(), id, buf })
            }
        }
    }
}
