//! Rule 4: every segment has exactly one address and lies inside its cache.

use super::reading::{ABSENT, Entry, Reading};
use super::report::{Fault, Report, Rule};
use crate::index::BufIx;
use crate::plan::Plan;
use crate::units::Offset;
use typed_index_collections::{TiVec, ti_vec};

/// Which memory entry places each buffer first, or [`ABSENT`].
pub(super) struct FirstOffsets(TiVec<BufIx, u32>);

impl FirstOffsets {
    /// Finds the first entry of every buffer.
    pub fn new(reading: &Reading<'_>) -> Self {
        let mut first = ti_vec![ABSENT; reading.graph.buffer_count()];
        for (entry, placed) in reading.plan.memory.iter().enumerate() {
            if let Some(buf) = reading.graph.buf_by_id(placed.buf)
                && first[buf] == ABSENT
            {
                first[buf] = entry as u32;
            }
        }
        Self(first)
    }

    /// The initial offset of a buffer, where the plan gives one.
    #[inline]
    pub fn of(&self, plan: &Plan, buf: BufIx) -> Option<Offset> {
        plan.memory.get(self.0[buf] as usize).map(|placed| placed.offset)
    }
}

/// Reports entries of no buffer, repeated and missing ones, and every segment out of bounds.
///
/// Offsets are judged where the plan gives them, whether or not the node that begins the segment
/// stands in the schedule: that is rule 1's affair.
pub(super) fn check(reading: &Reading<'_>, offsets: &FirstOffsets, report: &mut Report) {
    let (graph, plan) = (reading.graph, reading.plan);
    for (entry, placed) in plan.memory.iter().enumerate() {
        let (number, buf) = (entry + 1, placed.buf);
        let Some(ix) = graph.buf_by_id(buf) else {
            report.add(Rule::Bounds, || Fault::OffsetOfUnknownBuffer { entry: number, buf });
            continue;
        };
        let first_entry = offsets.0[ix] as usize;
        if first_entry == entry {
            check_bounds(reading, ix, Entry::Node(graph.buf(ix).alloc), placed.offset, report);
        } else {
            let (offset, first) = (placed.offset, plan.memory[first_entry].offset);
            let first_entry = first_entry + 1;
            report.add(Rule::Bounds, || Fault::OffsetRepeated { entry: number, buf, offset, first_entry, first });
        }
    }
    for buf in graph.bufs().filter(|&b| offsets.0[b] == ABSENT) {
        let buffer = graph.buf(buf);
        report.add(Rule::Bounds, || Fault::NoOffset {
            buf: buffer.id,
            node: graph.id(buffer.alloc),
            cache: reading.cache_name(buf),
        });
    }
    for (k, spill) in plan.spills.iter().enumerate() {
        if let Some(buf) = reading.spill_bufs[k] {
            check_bounds(reading, buf, Entry::Back(k as u32), spill.offset, report);
        }
    }
}

fn check_bounds(reading: &Reading<'_>, buf: BufIx, begin: Entry, offset: Offset, report: &mut Report) {
    let buffer = reading.graph.buf(buf);
    let capacity = reading.machine.cache(buffer.cache).capacity;
    // Below 0 the sum overflows, or ends past any capacity.
    if offset.0.checked_add(buffer.size.0).is_none_or(|end| end > capacity.0) {
        let pos = reading.at(begin);
        report.add(Rule::Bounds, || Fault::OutOfBounds {
            buf: buffer.id,
            node: reading.id(begin),
            pos: (pos != ABSENT).then_some(pos as usize),
            cache: reading.cache_name(buf),
            offset,
            size: buffer.size,
            capacity,
        });
    }
}
