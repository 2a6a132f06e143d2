//! How full the caches are along a plan: peak residency, peak demand, fragmentation.

use super::MeasureError;
use super::residency::Segment;
use super::steps::{Step, Steps};
use crate::graph::{Graph, NodeKind};
use crate::hardware::Machine;
use crate::index::{CacheIx, NodeIx, Pos};
use crate::reservation::{Usable, backwards};
use crate::units::Bytes;
use std::collections::{BTreeMap, HashMap};
use typed_index_collections::TiVec;

/// How one cache fares along a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// The most bytes resident at one position.
    pub peak: Bytes,
    /// The mean fragmentation over all positions, each seen just after its step.
    pub fragmentation: f64,
}

/// Follows the segments of a plan through every cache; calls `observe` after each position that
/// changes a cache, with the cache, its resident bytes and its fragmentation from there on.
///
/// # Errors
/// Two segments that overlap in time and address; a segment in what is reserved.
pub fn observe(
    graph: &Graph,
    machine: &Machine,
    steps: &Steps,
    segments: &[Segment],
    mut observe: impl FnMut(Pos, CacheIx, Bytes, f64),
) -> Result<(), MeasureError> {
    let mut caches: TiVec<CacheIx, FreeSpace> =
        graph.caches().map(|c| FreeSpace::new(machine.cache(c).capacity)).collect();
    let mut open = vec![0u32; graph.buffer_count()];
    let mut reserved = reserved(graph, machine, steps)?;
    let mut next = 0;
    for (pos, &step) in steps.as_slice().iter_enumerated() {
        let change = match step {
            Step::Node(n) => match graph.kind(n) {
                NodeKind::Alloc(b) => Some((b, true)),
                NodeKind::Free(b) => Some((b, false)),
                NodeKind::Op => None,
            },
            Step::SpillIn { buf, .. } => Some((buf, true)),
            Step::SpillOut { buf, .. } => Some((buf, false)),
        };
        // What leaves here does not hold its addresses here, so that they may be reserved from here on.
        if let Some((buf, false)) = change {
            let segment = &segments[open[buf.index()] as usize];
            let space = &mut caches[segment.cache];
            space.give(segment.offset.0, segment.offset.end(segment.size).0);
            observe(pos, segment.cache, space.used(), space.fragmentation());
        }
        while let Some((cache, usable)) = reserved.begin(pos.index()) {
            let space = &mut caches[cache];
            if !space.reserve(usable.0) {
                let (cache, pos) = (graph.cache_name(cache).to_owned(), pos.index());
                return Err(MeasureError::Reserved { pos, cache, usable });
            }
            observe(pos, cache, space.used(), space.fragmentation());
        }
        if let Some((buf, true)) = change {
            open[buf.index()] = next;
            let segment = &segments[next as usize];
            next += 1;
            let space = &mut caches[segment.cache];
            if !space.take(segment.offset.0, segment.offset.end(segment.size).0) {
                let (buf, offset) = (graph.buf(buf).id, segment.offset);
                return Err(MeasureError::Overlap { pos: pos.index(), buf, offset });
            }
            observe(pos, segment.cache, space.used(), space.fragmentation());
        }
        while let Some((cache, usable)) = reserved.end(pos.index()) {
            let space = &mut caches[cache];
            space.unreserve(usable.0);
            observe(pos, cache, space.used(), space.fragmentation());
        }
    }
    Ok(())
}

/// What reservations leave of the caches along a plan.
fn reserved(graph: &Graph, machine: &Machine, steps: &Steps) -> Result<Usable, MeasureError> {
    if machine.reservations().is_empty() {
        return Ok(Usable::default());
    }
    // Every node stands in the plan once.
    let place = steps.as_slice().iter_enumerated().filter_map(|(pos, &step)| match step {
        Step::Node(n) => Some((n, pos.index())),
        _ => None,
    });
    let place: HashMap<NodeIx, usize> = place.collect();
    let len = steps.as_slice().len();
    let place = |node: NodeIx| place.get(&node).copied().unwrap_or(len);
    match backwards(machine, place).next() {
        Some((r, from, to)) => Err(MeasureError::ReservedBackwards { reservation: r.stated(graph), from, to }),
        None => Ok(Usable::along(machine, len, place)),
    }
}

/// Peak residency and mean fragmentation of every cache.
///
/// # Errors
/// As [`observe`].
pub fn of_segments(
    graph: &Graph,
    machine: &Machine,
    steps: &Steps,
    segments: &[Segment],
) -> Result<TiVec<CacheIx, Occupancy>, MeasureError> {
    let mut sums: TiVec<CacheIx, Running> = graph.caches().map(|_| Running::default()).collect();
    observe(graph, machine, steps, segments, |pos, cache, used, fragmentation| {
        let sum = &mut sums[cache];
        sum.advance(pos.index());
        sum.peak = sum.peak.max(used);
        sum.value = fragmentation;
    })?;
    let len = steps.as_slice().len();
    let finish = |mut sum: Running| {
        sum.advance(len);
        Occupancy { peak: sum.peak, fragmentation: sum.weighted / len.max(1) as f64 }
    };
    Ok(sums.into_iter().map(finish).collect())
}

/// The largest sum of live bytes over the caches that count in it, by `ALLOC` and `FREE` alone.
pub fn peak_demand(graph: &Graph, machine: &Machine, steps: &Steps) -> Bytes {
    let (mut live, mut peak) = (Bytes(0), Bytes(0));
    for &step in steps.as_slice() {
        let Step::Node(n) = step else { continue };
        match graph.kind(n) {
            NodeKind::Alloc(b) if machine.cache(graph.buf(b).cache).counts_in_peak => {
                live += graph.buf(b).size;
                peak = peak.max(live);
            }
            NodeKind::Free(b) if machine.cache(graph.buf(b).cache).counts_in_peak => {
                live = live.saturating_sub(graph.buf(b).size);
            }
            _ => {}
        }
    }
    peak
}

/// A value that holds from one change to the next, summed over positions.
#[derive(Default)]
struct Running {
    peak: Bytes,
    value: f64,
    since: usize,
    weighted: f64,
}

impl Running {
    fn advance(&mut self, pos: usize) {
        self.weighted += self.value * (pos - self.since) as f64;
        self.since = pos;
    }
}

/// The free blocks of one cache, coalesced, with the multiset of their sizes. What is reserved is
/// neither free nor used.
struct FreeSpace {
    /// The bytes from address 0 on that are not reserved.
    usable: u64,
    free: u64,
    /// Start to end, half-open.
    blocks: BTreeMap<u64, u64>,
    sizes: BTreeMap<u64, u32>,
}

impl FreeSpace {
    fn new(capacity: Bytes) -> Self {
        let mut space = Self { usable: capacity.0, free: 0, blocks: BTreeMap::new(), sizes: BTreeMap::new() };
        space.give(0, capacity.0);
        space
    }

    fn insert(&mut self, low: u64, high: u64) {
        if low < high {
            self.blocks.insert(low, high);
            *self.sizes.entry(high - low).or_insert(0) += 1;
        }
    }

    fn remove(&mut self, low: u64, high: u64) {
        self.blocks.remove(&low);
        if let Some(count) = self.sizes.get_mut(&(high - low)) {
            *count -= 1;
            if *count == 0 {
                self.sizes.remove(&(high - low));
            }
        }
    }

    /// Takes `low..high`; false when some of it is taken.
    fn take(&mut self, low: u64, high: u64) -> bool {
        let Some((start, end)) = self.blocks.range(..=low).next_back().map(|(&s, &e)| (s, e)) else { return false };
        if end < high {
            return false;
        }
        self.remove(start, end);
        self.insert(start, low);
        self.insert(high, end);
        self.free -= high - low;
        true
    }

    /// Gives `low..high` back, which was taken.
    fn give(&mut self, low: u64, high: u64) {
        let before = self.blocks.range(..low).next_back().map(|(&s, &e)| (s, e)).filter(|b| b.1 == low);
        let after = self.blocks.get(&high).map(|&e| (high, e));
        before.into_iter().chain(after).for_each(|(s, e)| self.remove(s, e));
        self.insert(before.map_or(low, |b| b.0), after.map_or(high, |a| a.1));
        self.free += high - low;
    }

    /// Leaves no more than `usable` bytes; false when some of what goes is taken.
    fn reserve(&mut self, usable: u64) -> bool {
        let reserved = usable >= self.usable || self.take(usable, self.usable);
        self.usable = usable;
        reserved
    }

    /// Leaves `usable` bytes, no fewer than before.
    fn unreserve(&mut self, usable: u64) {
        if usable > self.usable {
            self.give(self.usable, usable);
        }
        self.usable = usable;
    }

    fn used(&self) -> Bytes {
        Bytes(self.usable - self.free)
    }

    /// 1 − largest free block / free bytes; 0 when full.
    fn fragmentation(&self) -> f64 {
        match self.sizes.last_key_value() {
            Some((&largest, _)) => 1.0 - largest as f64 / self.free as f64,
            None => 0.0,
        }
    }
}
