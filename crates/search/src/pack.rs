//! Addresses for a whole plan at once.
//!
//! Once it is settled which buffers stay resident between which uses, every residency segment is
//! known before any is placed, and placing them is dynamic storage allocation: no two segments may
//! overlap in time and in address. Several rules are tried; each either places all segments or gives
//! up. None moves a byte more than the orders and decisions it is given.

use crate::effort::Effort;
use crate::model::{ItemIx, Model};
use spillbench_core::index::{BufIx, CacheIx, NodeIx};
use spillbench_core::plan::{Placed, Plan, Spill, SpillIds};
use spillbench_core::units::{Id, Offset};
use spillbench_core::{Graph, NodeKind};
use std::cmp::Reverse;
use typed_index_collections::{TiVec, ti_vec};

/// How many pairs of segments may be compared for one plan: for each of its segments, and in any
/// case.
const WORK_PER_SEGMENT: u64 = 2048;
const WORK: u64 = 1 << 18;

/// A residency segment, both ends included, in steps.
#[derive(Clone, Copy, Debug)]
struct Segment {
    buf: BufIx,
    start: u32,
    end: u32,
    size: u64,
    offset: u64,
}

impl Segment {
    fn meets(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// The plan of an order whose accesses find their buffers as `hits` says; `None` when no rule finds
/// addresses for it within bounded work, or `stop` says so.
pub(crate) fn pack(model: &Model<'_>, order: &[ItemIx], hits: &[bool], stop: &dyn Fn() -> bool) -> Option<Plan> {
    let mut segments = segments(model, order, hits);
    let mut effort = Effort::new(WORK + WORK_PER_SEGMENT * segments.len() as u64, stop);
    for cache in model.graph().caches() {
        place(model, cache, &mut segments, &mut effort)?;
    }
    emit(model, order, &segments)
}

/// The segments by their starts.
fn segments(model: &Model<'_>, order: &[ItemIx], hits: &[bool]) -> Vec<Segment> {
    let graph = model.graph();
    let mut segments: Vec<Segment> = Vec::new();
    let mut open: TiVec<BufIx, Option<u32>> = ti_vec![None; graph.buffer_count()];
    for (t, step) in order.iter().flat_map(|&i| model.steps(i)).enumerate() {
        for (i, &buf) in model.accesses(step).iter().enumerate() {
            match open[buf] {
                Some(s) if hits[model.first_access(step) + i] => segments[s as usize].end = t as u32,
                _ => {
                    open[buf] = Some(segments.len() as u32);
                    let size = graph.buf(buf).size.0;
                    segments.push(Segment { buf, start: t as u32, end: t as u32, size, offset: 0 });
                }
            }
        }
    }
    segments
}

/// Finds addresses for the segments of one cache.
fn place(model: &Model<'_>, cache: CacheIx, segments: &mut [Segment], effort: &mut Effort<'_>) -> Option<()> {
    let capacity = model.machine().cache(cache).capacity.0;
    let members: Vec<usize> =
        (0..segments.len()).filter(|&s| model.graph().buf(segments[s].buf).cache == cache).collect();
    let mut local: Vec<Segment> = members.iter().map(|&s| segments[s]).collect();
    if !RULES.iter().any(|&rule| in_time_order(&mut local, capacity, rule, effort).is_some()) {
        by_size(&mut local, capacity, effort)?;
    }
    members.iter().zip(&local).for_each(|(&s, l)| segments[s].offset = l.offset);
    Some(())
}

/// Which end of which hole a segment takes, when placed in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The smallest hole.
    BestFit,
    /// The lowest hole.
    FirstFit,
    /// Those of at least the mean size in the lowest hole, others in the highest.
    BySize,
    /// Those of at least the mean duration in the lowest hole, others in the highest.
    ByDuration,
}

const RULES: [Rule; 4] = [Rule::BySize, Rule::BestFit, Rule::FirstFit, Rule::ByDuration];

fn in_time_order(segments: &mut [Segment], capacity: u64, rule: Rule, effort: &mut Effort<'_>) -> Option<()> {
    let count = segments.len().max(1) as u128;
    let mean_size = segments.iter().map(|s| u128::from(s.size)).sum::<u128>() / count;
    let duration = |s: &Segment| u128::from(s.end - s.start);
    let mean_duration = segments.iter().map(duration).sum::<u128>() / count;
    // The residents by address: start, end, and the step at which each leaves.
    let mut residents: Vec<(u64, u64, u32)> = Vec::new();
    for s in segments {
        effort.spend(residents.len())?;
        residents.retain(|r| r.2 >= s.start);
        let bounds = residents.iter().map(|r| (r.0, r.1)).chain([(capacity, capacity)]);
        let mut floor = 0;
        let holes = bounds.filter_map(|(low, high)| {
            let hole = (floor, low);
            floor = high;
            (hole.1 - hole.0 >= s.size).then_some(hole)
        });
        let low = match rule {
            Rule::BestFit => false,
            Rule::FirstFit => true,
            Rule::BySize => u128::from(s.size) >= mean_size,
            Rule::ByDuration => duration(s) >= mean_duration,
        };
        let offset = match rule {
            Rule::BestFit => holes.min_by_key(|h| h.1 - h.0).map(|h| h.0),
            _ if low => { holes }.next().map(|h| h.0),
            _ => holes.last().map(|h| h.1 - s.size),
        };
        let offset = offset?;
        s.offset = offset;
        let at = residents.partition_point(|r| r.0 < offset);
        residents.insert(at, (offset, offset + s.size, s.end));
    }
    Some(())
}

/// Places the largest first, each as low as those placed allow; one that finds no room moves to the
/// front and all begins anew. `None` when that does not end in time.
fn by_size(segments: &mut [Segment], capacity: u64, effort: &mut Effort<'_>) -> Option<()> {
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_by_key(|&s| (Reverse(segments[s].size), Reverse(segments[s].end - segments[s].start)));
    let mut taken: Vec<(u64, u64)> = Vec::new();
    loop {
        let mut failed = None;
        for i in 0..order.len() {
            effort.spend(i + 1)?;
            let s = segments[order[i]];
            taken.clear();
            let met = order[..i].iter().map(|&o| &segments[o]).filter(|o| o.meets(&s));
            taken.extend(met.map(|o| (o.offset, o.offset + o.size)));
            taken.sort_unstable();
            let mut floor = 0;
            for &(low, high) in &taken {
                if low >= floor && low - floor >= s.size {
                    break;
                }
                floor = floor.max(high);
            }
            if capacity.saturating_sub(floor) < s.size {
                failed = Some(i);
                break;
            }
            segments[order[i]].offset = floor;
        }
        match failed {
            None => return Some(()),
            Some(0) => return None,
            Some(i) => order[..=i].rotate_right(1),
        }
    }
}

/// The plan of placed segments.
fn emit(model: &Model<'_>, order: &[ItemIx], segments: &[Segment]) -> Option<Plan> {
    let graph = model.graph();
    let mut emission = Emission::new(graph, segments);
    for (t, step) in order.iter().flat_map(|&i| model.steps(i)).enumerate() {
        let t = t as u32;
        for &buf in model.accesses(step) {
            emission.enter(buf, t);
        }
        let node = model.step_node(step);
        let floating = |&&p: &&NodeIx| graph.kind(p) == NodeKind::Op && model.item_of(p).is_none();
        graph.predecessors(node).iter().filter(floating).for_each(|&load| emission.node(load));
        emission.node(node);
        for &buf in model.accesses(step) {
            emission.exit(buf, t)?;
        }
    }
    // What no op needs.
    graph.topological_order().into_iter().for_each(|n| emission.node(n));
    let memory = graph.bufs().map(|b| Placed { buf: graph.buf(b).id, offset: emission.offsets[b] }).collect();
    Some(Plan { schedule: emission.schedule, memory, spills: emission.spills, counters: None })
}

struct Emission<'a> {
    graph: &'a Graph,
    segments: &'a [Segment],
    /// The segments of each buffer, the next one last.
    ahead: TiVec<BufIx, Vec<u32>>,
    done: TiVec<NodeIx, bool>,
    /// The spill that a buffer is out by.
    out: TiVec<BufIx, Option<usize>>,
    offsets: TiVec<BufIx, Offset>,
    ids: SpillIds,
    schedule: Vec<Id>,
    spills: Vec<Spill>,
}

impl<'a> Emission<'a> {
    fn new(graph: &'a Graph, segments: &'a [Segment]) -> Self {
        let mut ahead: TiVec<BufIx, Vec<u32>> = ti_vec![Vec::new(); graph.buffer_count()];
        for (i, s) in segments.iter().enumerate().rev() {
            ahead[s.buf].push(i as u32);
        }
        Self {
            graph,
            segments,
            ahead,
            done: ti_vec![false; graph.node_count()],
            out: ti_vec![None; graph.buffer_count()],
            offsets: ti_vec![Offset(0); graph.buffer_count()],
            ids: SpillIds::after(graph.max_id()),
            schedule: Vec::with_capacity(graph.node_count()),
            spills: Vec::new(),
        }
    }

    fn node(&mut self, node: NodeIx) {
        if !std::mem::replace(&mut self.done[node], true) {
            self.schedule.push(self.graph.id(node));
        }
    }

    fn next(&self, buf: BufIx) -> Option<&'a Segment> {
        self.ahead[buf].last().map(|&s| &self.segments[s as usize])
    }

    /// Begins the segment of `buf` that begins at this step, if one does.
    fn enter(&mut self, buf: BufIx, t: u32) {
        let Some(segment) = self.next(buf).filter(|s| s.start == t) else { return };
        match self.out[buf].take() {
            Some(k) => self.schedule.extend(self.ids.back(k)),
            None => {
                self.offsets[buf] = Offset(segment.offset);
                self.node(self.graph.buf(buf).alloc);
            }
        }
    }

    /// Ends the segment of `buf` that ends at this step, if one does; `None` when ids run out.
    fn exit(&mut self, buf: BufIx, t: u32) -> Option<()> {
        if self.next(buf).is_none_or(|s| s.end != t) {
            return Some(());
        }
        self.ahead[buf].pop();
        match self.next(buf) {
            Some(next) => {
                self.out[buf] = Some(self.spills.len());
                self.schedule.push(self.ids.out(self.spills.len())?);
                let buf = self.graph.buf(buf).id;
                self.spills.push(Spill { buf, offset: Offset(next.offset), cause: None });
            }
            None => self.node(self.graph.buf(buf).free),
        }
        Some(())
    }
}
