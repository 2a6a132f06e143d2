//! The failed requests one by one: why each failed, who held the space, and what was done.

use super::Mapped;
use super::reserved::Cleared;
use serde::Serialize;
use spillbench_core::Graph;
use spillbench_core::index::{BufIx, CacheIx, NodeIx, Pos};
use spillbench_core::plan::Cause;
use spillbench_core::planner::{Clearing, Decision, Observer, Outcome, Victim};
use spillbench_core::units::{BufId, Bytes, Id, Offset};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A decision as it was taken.
#[derive(Debug)]
pub struct Recorded {
    pub node: NodeIx,
    pub buf: BufIx,
    pub needed: Bytes,
    pub free: Bytes,
    pub largest_hole: Bytes,
    pub cause: Cause,
    pub outcome: Outcome,
    pub victims: Vec<VictimRecord>,
    pub runner_up: Option<(BufIx, f64)>,
    pub hole: Option<(Offset, Bytes)>,
    /// The spill that the first victim became; the others follow it.
    pub first_spill: usize,
}

/// A victim as it was chosen.
#[derive(Debug)]
pub struct VictimRecord {
    pub buf: BufIx,
    pub score: f64,
    pub offset: Offset,
}

impl VictimRecord {
    fn of(victim: &Victim) -> Self {
        Self { buf: victim.buf, score: victim.score, offset: victim.offset }
    }
}

impl Recorded {
    /// Bytes that its victims move.
    pub fn moved(&self, graph: &Graph) -> Bytes {
        self.victims.iter().map(|v| graph.buf(v.buf).movement()).sum()
    }
}

/// Collects every decision of one run.
#[derive(Debug, Default)]
pub struct Collector {
    decisions: Vec<Recorded>,
    cleared: Vec<Cleared>,
    spills: usize,
}

impl Collector {
    /// The number of decisions.
    pub fn len(&self) -> usize {
        self.decisions.len()
    }

    /// True when nothing had to be decided or moved.
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty() && self.cleared.is_empty()
    }

    /// The caches in which some request failed, or a reservation moved something out of its way.
    pub fn pressed(&self, graph: &Graph) -> Vec<CacheIx> {
        let requested = self.decisions.iter().map(|d| graph.buf(d.buf).cache);
        let caches: BTreeSet<_> = requested.chain(self.cleared.iter().map(|c| c.cache)).collect();
        caches.into_iter().collect()
    }

    /// What went out of the way of each reservation, in order.
    pub fn cleared_ways(&self) -> &[Cleared] {
        &self.cleared
    }

    /// All decisions, in order.
    pub fn decisions(&self) -> &[Recorded] {
        &self.decisions
    }
}

impl Observer for Collector {
    fn decided(&mut self, d: &Decision<'_>) {
        self.decisions.push(Recorded {
            node: d.node,
            buf: d.buf,
            needed: d.request.needed,
            free: d.free,
            largest_hole: d.largest_hole,
            cause: d.cause,
            outcome: d.outcome,
            victims: d.victims.iter().map(VictimRecord::of).collect(),
            runner_up: d.runner_up,
            hole: d.hole,
            first_spill: self.spills,
        });
        // Victims become spills in the order in which they go out.
        self.spills += d.victims.len();
    }

    fn cleared(&mut self, c: &Clearing<'_>) {
        self.cleared.push(Cleared {
            node: c.node,
            cache: c.cache,
            usable: c.usable,
            cause: c.cause,
            victims: c.victims.iter().map(VictimRecord::of).collect(),
            first_spill: self.spills,
        });
        self.spills += c.victims.len();
    }
}

/// A failed request, told.
#[derive(Debug, Serialize)]
pub struct DecisionStory {
    /// Where it failed: the place of the first victim's `SPILL_OUT`, or of the node when nothing
    /// went out.
    pub position: usize,
    /// The node that needed space.
    pub node: Id,
    /// Its operation.
    pub op: String,
    /// The cache that was short.
    pub cache: String,
    /// The buffer that needed space.
    pub buf: BufId,
    /// Bytes it needed.
    pub needed: Bytes,
    /// Bytes that were free.
    pub free: Bytes,
    /// The largest free block.
    pub largest_hole: Bytes,
    /// Why the request failed.
    pub cause: Cause,
    /// How it was met: a strategy, `postponed`, `last-resort` or `repack`.
    pub met_by: String,
    /// Bytes that the victims move.
    pub moved: Bytes,
    /// What went out.
    pub victims: Vec<VictimStory>,
    /// The best-scored buffer that stayed.
    pub runner_up: Option<Scored>,
    /// Where the largest free block began afterwards.
    pub hole_offset: Option<Offset>,
    /// Its size.
    pub hole_size: Option<Bytes>,
    /// Who held the space, by address.
    pub held_by: Vec<Held>,
}

/// A victim, told.
#[derive(Debug, Serialize)]
pub struct VictimStory {
    /// The buffer.
    pub buf: BufId,
    /// Its size.
    pub size: Bytes,
    /// Where it lay.
    pub offset: Offset,
    /// Its score; none under the last resort.
    pub score: Option<f64>,
    /// Bytes that the spill moves.
    pub moves: Bytes,
    /// Positions until it is used again, or freed.
    pub next_use_in: usize,
}

/// A buffer with its score.
#[derive(Debug, Serialize)]
pub struct Scored {
    /// The buffer.
    pub buf: BufId,
    /// Its score.
    pub score: f64,
}

/// A buffer that held space when a request failed.
#[derive(Debug, Serialize)]
pub struct Held {
    /// The buffer.
    pub buf: BufId,
    /// Where it lay.
    pub offset: Offset,
    /// Its size.
    pub size: Bytes,
    /// True when the node that needed space uses it too.
    pub pinned: bool,
    /// Positions until it is used again, or freed.
    pub next_use_in: usize,
}

/// The decisions that move most bytes, the earlier first among equals, told.
pub fn dearest(mapped: &Mapped<'_>, collector: &Collector, top: usize) -> Vec<DecisionStory> {
    let mut order: Vec<_> = (0..collector.len()).collect();
    order.sort_by_key(|&i| (Reverse(collector.decisions[i].moved(mapped.graph)), i));
    order.truncate(top);
    let mut stories: Vec<_> = order.iter().map(|&i| tell(mapped, &collector.decisions[i])).collect();
    // Several stories never share the position of a SPILL_OUT.
    let spilling = order.iter().enumerate().filter(|&(_, &i)| !collector.decisions[i].victims.is_empty());
    let wanted = spilling.map(|(story, &i)| (mapped.outs[collector.decisions[i].first_spill], (story, i))).collect();
    residents_before(mapped, &wanted, |at, &(story, i), residents| {
        stories[story].held_by = holders(mapped, &collector.decisions[i], at, residents);
    });
    stories
}

/// What is resident at one moment: segments by cache and address.
type Residents = BTreeMap<(CacheIx, Offset), usize>;

/// Walks the plan once and tells, just before each wanted position, what is resident.
fn residents_before<T>(mapped: &Mapped<'_>, wanted: &BTreeMap<Pos, T>, mut tell: impl FnMut(Pos, &T, &Residents)) {
    let mut residents = Residents::new();
    let mut ends: Vec<_> = (0..mapped.segments.len()).collect();
    ends.sort_by_key(|&s| mapped.segments[s].to);
    let (mut begin, mut end) = (0, 0);
    for (&at, what) in wanted {
        // A segment whose addresses are taken again has ended before: ends go first.
        loop {
            let begins = mapped.segments.get(begin).map(|s| s.from).filter(|&p| p < at);
            let ends_at = ends.get(end).map(|&s| mapped.segments[s].to).filter(|&p| p < at);
            let key = |s: usize| (mapped.segments[s].cache, mapped.segments[s].offset);
            match (begins, ends_at) {
                (None, None) => break,
                (Some(b), e) if e.is_none_or(|e| b < e) => {
                    residents.insert(key(begin), begin);
                    begin += 1;
                }
                _ => {
                    residents.remove(&key(ends[end]));
                    end += 1;
                }
            }
        }
        tell(at, what, &residents);
    }
}

fn tell(mapped: &Mapped<'_>, d: &Recorded) -> DecisionStory {
    let graph = mapped.graph;
    let at = if d.victims.is_empty() { mapped.place[d.node] } else { mapped.outs[d.first_spill] };
    DecisionStory {
        position: at.index(),
        node: graph.id(d.node),
        op: graph.op_name(d.node).to_owned(),
        cache: graph.cache_name(graph.buf(d.buf).cache).to_owned(),
        buf: graph.buf(d.buf).id,
        needed: d.needed,
        free: d.free,
        largest_hole: d.largest_hole,
        cause: d.cause,
        met_by: met_by(d.outcome).to_owned(),
        moved: d.moved(graph),
        victims: d.victims.iter().map(|v| story_of(mapped, v, at)).collect(),
        runner_up: d.runner_up.map(|(buf, score)| Scored { buf: graph.buf(buf).id, score }),
        hole_offset: d.hole.map(|h| h.0),
        hole_size: d.hole.map(|h| h.1),
        held_by: Vec::new(),
    }
}

/// A victim that goes out at a position.
pub fn story_of(mapped: &Mapped<'_>, v: &VictimRecord, at: Pos) -> VictimStory {
    let buf = mapped.graph.buf(v.buf);
    VictimStory {
        buf: buf.id,
        size: buf.size,
        offset: v.offset,
        score: (!v.score.is_nan()).then_some(v.score),
        moves: buf.movement(),
        next_use_in: mapped.next_use(v.buf, at).index() - at.index(),
    }
}

/// How a request was met, in a word.
pub fn met_by(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Evicted(strategy) => strategy.name(),
        Outcome::PostponedTo(_) => "postponed",
        Outcome::LastResort { repack: false } => "last-resort",
        Outcome::LastResort { repack: true } => "repack",
    }
}

/// Who held the cache that was short, by address.
fn holders(mapped: &Mapped<'_>, d: &Recorded, at: Pos, residents: &Residents) -> Vec<Held> {
    let graph = mapped.graph;
    let cache = graph.buf(d.buf).cache;
    let operands = graph.operands(d.node);
    let here = residents.range((cache, Offset(0))..=(cache, Offset(u64::MAX)));
    here.map(|(_, &s)| &mapped.segments[s])
        .map(|s| Held {
            buf: graph.buf(s.buf).id,
            offset: s.offset,
            size: s.size,
            pinned: operands.contains(&s.buf),
            next_use_in: mapped.next_use(s.buf, at).index() - at.index(),
        })
        .collect()
}
