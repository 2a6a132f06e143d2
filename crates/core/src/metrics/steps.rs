//! A plan resolved against its graph: external ids become indices, once, for all that measure.

use super::MeasureError;
use crate::graph::Graph;
use crate::index::{BufIx, NodeIx, Pos};
use crate::plan::{Plan, SpillEnd, SpillIds};
use crate::units::{Id, Offset};
use typed_index_collections::{TiSlice, TiVec, ti_vec};

/// One entry of a plan's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A node of the graph.
    Node(NodeIx),
    /// A buffer moves out of its cache.
    SpillOut {
        /// The spill in the plan's list, from 0.
        spill: u32,
        /// The buffer.
        buf: BufIx,
    },
    /// A buffer comes back into its cache.
    SpillIn {
        /// The spill in the plan's list, from 0.
        spill: u32,
        /// The buffer.
        buf: BufIx,
    },
}

/// A plan's schedule and addresses by index: every node and every spill node stands there exactly
/// once, and no edge of the graph goes backward.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: TiVec<Pos, Step>,
    first_offsets: TiVec<BufIx, Offset>,
    reload_offsets: Vec<Offset>,
    spill_ids: SpillIds,
}

impl Steps {
    /// Resolves `plan` against `graph`.
    ///
    /// # Errors
    /// Ids that mean nothing, nodes that are missing or stand twice, buffers without exactly one
    /// initial offset, edges that go backward.
    pub fn resolve(graph: &Graph, plan: &Plan) -> Result<Self, MeasureError> {
        let spilled = plan
            .spills
            .iter()
            .map(|s| graph.buf_by_id(s.buf).map(|b| (b, s.offset)).ok_or(MeasureError::UnknownBuffer { buf: s.buf }));
        let spilled: Vec<(BufIx, Offset)> = spilled.collect::<Result<_, _>>()?;
        let spill_ids = SpillIds::after(graph.max_id());
        let steps = resolve_schedule(graph, &plan.schedule, spill_ids, &spilled)?;
        let first_offsets = resolve_memory(graph, plan)?;
        let reload_offsets = spilled.into_iter().map(|s| s.1).collect();
        Ok(Self { steps, first_offsets, reload_offsets, spill_ids })
    }

    /// The steps in order.
    pub fn as_slice(&self) -> &TiSlice<Pos, Step> {
        &self.steps
    }

    /// The first offset of a buffer.
    pub fn first_offset(&self, buf: BufIx) -> Offset {
        self.first_offsets[buf]
    }

    /// The offset that the buffer of a spill comes back to.
    pub fn reload_offset(&self, spill: u32) -> Offset {
        self.reload_offsets[spill as usize]
    }

    /// The external id of a step of this plan.
    pub fn id(&self, graph: &Graph, step: Step) -> Id {
        let id = match step {
            Step::Node(n) => Some(graph.id(n)),
            Step::SpillOut { spill, .. } => self.spill_ids.out(spill as usize),
            Step::SpillIn { spill, .. } => self.spill_ids.back(spill as usize),
        };
        // The step was resolved from an id, so it has one.
        id.unwrap_or_default()
    }
}

fn resolve_schedule(
    graph: &Graph,
    ids: &[Id],
    spill_ids: SpillIds,
    spilled: &[(BufIx, Offset)],
) -> Result<TiVec<Pos, Step>, MeasureError> {
    let (nodes, spills) = (graph.node_count(), spilled.len());
    let expected = nodes.saturating_add(spills.saturating_mul(2));
    if ids.len() != expected || expected >= u32::MAX as usize {
        return Err(MeasureError::Length { found: ids.len(), nodes, spills, expected });
    }
    // Nodes, then spill nodes in the order of their ids; with the right length, none twice means
    // none missing.
    let mut place = vec![u32::MAX; expected];
    let mut steps = TiVec::with_capacity(expected);
    for (pos, &id) in ids.iter().enumerate() {
        let (step, slot) = if let Some(n) = graph.node_by_id(id) {
            (Step::Node(n), n.index())
        } else {
            match spill_ids.end(id, spills).filter(|_| id.0 <= crate::units::MAX_ID) {
                Some(SpillEnd::Out(k)) => (Step::SpillOut { spill: k as u32, buf: spilled[k].0 }, nodes + 2 * k),
                Some(SpillEnd::Back(k)) => (Step::SpillIn { spill: k as u32, buf: spilled[k].0 }, nodes + 2 * k + 1),
                None => return Err(MeasureError::UnknownNode { pos, id }),
            }
        };
        if place[slot] != u32::MAX {
            return Err(MeasureError::Repeated { pos, id });
        }
        place[slot] = pos as u32;
        steps.push(step);
    }
    for n in graph.nodes() {
        let pos = place[n.index()];
        if let Some(&p) = graph.predecessors(n).iter().find(|p| place[p.index()] > pos) {
            return Err(MeasureError::Backward { pos: pos as usize, id: graph.id(n), predecessor: graph.id(p) });
        }
    }
    Ok(steps)
}

fn resolve_memory(graph: &Graph, plan: &Plan) -> Result<TiVec<BufIx, Offset>, MeasureError> {
    let mut offsets: TiVec<BufIx, Option<Offset>> = ti_vec![None; graph.buffer_count()];
    for placed in &plan.memory {
        let buf = placed.buf;
        let ix = graph.buf_by_id(buf).ok_or(MeasureError::UnknownBuffer { buf })?;
        if offsets[ix].replace(placed.offset).is_some() {
            return Err(MeasureError::PlacedTwice { buf });
        }
    }
    let placed = |(b, offset): (BufIx, Option<Offset>)| offset.ok_or(MeasureError::NotPlaced { buf: graph.buf(b).id });
    offsets.into_iter_enumerated().map(placed).collect()
}
