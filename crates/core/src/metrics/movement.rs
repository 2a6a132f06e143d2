//! Extra data movement: what the spills of a plan move, split by cache, by backed / generated and
//! by cause.

use super::MeasureError;
use crate::graph::Graph;
use crate::plan::{Cause, Plan, Spill};
use crate::units::Bytes;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use typed_index_collections::{TiVec, ti_vec};

/// Numbers of spills, split like the bytes beside them: `backed + generated` and
/// `capacity + fragmentation + unknown_cause` are each the number of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpillCounts {
    /// Spills of backed buffers.
    pub backed: u64,
    /// Spills of generated buffers.
    pub generated: u64,
    /// Spills for want of free bytes.
    pub capacity: u64,
    /// Spills for want of contiguous free bytes.
    pub fragmentation: u64,
    /// Spills of plans that do not say why.
    pub unknown_cause: u64,
}

/// What the spills of one cache move. `backed + generated` and
/// `capacity + fragmentation + unknown_cause` are each the bytes moved in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The number of spills.
    pub spills: u64,
    /// Bytes moved for backed buffers: `size` a spill.
    pub backed: Bytes,
    /// Bytes moved for generated buffers: `2·size` a spill.
    pub generated: Bytes,
    /// Bytes moved by spills for want of free bytes.
    pub capacity: Bytes,
    /// Bytes moved by spills for want of contiguous free bytes.
    pub fragmentation: Bytes,
    /// Bytes moved by spills of plans that do not say why.
    pub unknown_cause: Bytes,
    /// The numbers of spills behind the bytes.
    pub counts: SpillCounts,
}

/// What all spills of a plan move; its own fields are the sums over the caches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Movement {
    /// The split of each cache of the graph, by name.
    pub by_cache: IndexMap<String, Split>,
    /// Bytes moved for backed buffers.
    pub backed: Bytes,
    /// Bytes moved for generated buffers.
    pub generated: Bytes,
    /// Bytes moved by spills for want of free bytes.
    pub capacity: Bytes,
    /// Bytes moved by spills for want of contiguous free bytes.
    pub fragmentation: Bytes,
    /// Bytes moved by spills of plans that do not say why.
    pub unknown_cause: Bytes,
    /// The numbers of spills behind the bytes.
    pub counts: SpillCounts,
}

impl Movement {
    /// The movement of the spills of `plan`, whether or not the plan is valid otherwise.
    ///
    /// # Errors
    /// A spill of an unknown buffer; a sum past 2⁶⁴ − 1.
    pub fn of(graph: &Graph, plan: &Plan) -> Result<Self, MeasureError> {
        let mut total = Split::default();
        let mut caches: TiVec<_, Split> = ti_vec![Split::default(); graph.cache_names().len()];
        for spill in &plan.spills {
            let buf = graph.buf_by_id(spill.buf).ok_or(MeasureError::UnknownBuffer { buf: spill.buf })?;
            let buf = graph.buf(buf);
            // No sum of a cache passes the sum over all.
            total.add(spill, buf.backed, buf.movement())?;
            caches[buf.cache].add(spill, buf.backed, buf.movement())?;
        }
        let by_cache = caches.into_iter_enumerated().map(|(c, split)| (graph.cache_name(c).to_owned(), split));
        let Split { spills: _, backed, generated, capacity, fragmentation, unknown_cause, counts } = total;
        Ok(Self { by_cache: by_cache.collect(), backed, generated, capacity, fragmentation, unknown_cause, counts })
    }

    /// The extra data movement: all bytes moved.
    pub fn bytes(&self) -> Bytes {
        self.backed + self.generated
    }

    /// The number of spills.
    pub fn spills(&self) -> u64 {
        self.counts.backed + self.counts.generated
    }
}

impl Split {
    /// The bytes moved.
    pub fn bytes(&self) -> Bytes {
        self.backed + self.generated
    }

    fn add(&mut self, spill: &Spill, backed: bool, moved: Bytes) -> Result<(), MeasureError> {
        let overflow = MeasureError::Overflow { what: "bytes moved" };
        self.bytes().checked_add(moved).ok_or(overflow)?;
        self.spills += 1;
        let counts = &mut self.counts;
        let (bytes, count) =
            if backed { (&mut self.backed, &mut counts.backed) } else { (&mut self.generated, &mut counts.generated) };
        *bytes += moved;
        *count += 1;
        let (bytes, count) = match spill.cause {
            Some(Cause::Capacity) => (&mut self.capacity, &mut counts.capacity),
            Some(Cause::Fragmentation) => (&mut self.fragmentation, &mut counts.fragmentation),
            None => (&mut self.unknown_cause, &mut counts.unknown_cause),
        };
        *bytes += moved;
        *count += 1;
        Ok(())
    }
}
