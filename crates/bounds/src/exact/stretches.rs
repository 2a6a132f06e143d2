//! What there is to decide in one cache, and the segments that a decision leaves to pack.

use crate::model::{CacheModel, Gap};
use crate::pack::{Interval, Problem};
use spillbench_core::index::{BufIx, CacheIx};
use spillbench_core::{Bytes, Graph, Schedule};

/// All stretches of one cache with its model.
pub(super) struct Stretches {
    pub cache: CacheIx,
    pub model: CacheModel,
    /// Stretches between consecutive events, buffer by buffer, each buffer's in order; those over no
    /// step included. `first` is the step behind the event before it, `end` that of the event behind
    /// it.
    pub list: Vec<Gap>,
}

/// A run of kept stretches of one buffer: live over the steps `[first, end)`.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub buf: BufIx,
    pub size: Bytes,
    pub first: usize,
    pub end: usize,
    /// The stretch whose spill brings it back; `None` for the first segment of its buffer.
    pub entered_by: Option<usize>,
    /// The stretches it keeps are `list[kept.0..kept.1]`.
    pub kept: (usize, usize),
}

impl Stretches {
    pub fn new(graph: &Graph, schedule: &Schedule, model: &CacheModel) -> Self {
        let places = schedule.positions();
        let mut list = Vec::new();
        for b in graph.bufs().filter(|&b| graph.buf(b).cache == model.cache) {
            let buf = graph.buf(b);
            let mut events = graph.users(b).to_vec();
            events.extend([buf.alloc, buf.free]);
            events.sort_unstable_by_key(|&n| places[n]);
            // Each event uses the buffer, so it is a step of the cache.
            let step = |n| model.steps.partition_point(|s| s.pos < places[n]);
            for pair in events.windows(2) {
                let (after, before) = (pair[0], pair[1]);
                let (first, end) = (step(after) + 1, step(before));
                list.push(Gap { buf: b, first, end, size: buf.size, cost: buf.movement(), after, before });
            }
        }
        Self { cache: model.cache, model: model.clone(), list }
    }

    /// What spilling the stretches that `keep` denies moves; saturates.
    pub fn cost(&self, keep: &[bool]) -> u64 {
        self.list.iter().zip(keep).filter(|(_, k)| !**k).fold(0, |sum, (g, _)| g.cost.0.saturating_add(sum))
    }

    /// The segments that are left when exactly the stretches that `keep` says are kept.
    pub fn segments(&self, keep: &[bool]) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        for (g, gap) in self.list.iter().enumerate() {
            if segments.last().is_none_or(|s| s.buf != gap.buf) {
                let first = gap.first - 1;
                segments.push(Segment {
                    buf: gap.buf,
                    size: gap.size,
                    first,
                    end: gap.first,
                    entered_by: None,
                    kept: (g, g),
                });
            }
            if let Some(open) = segments.last_mut().filter(|_| keep[g]) {
                open.end = gap.end + 1;
                open.kept.1 = g + 1;
            } else {
                let (first, end) = (gap.end, gap.end + 1);
                segments.push(Segment {
                    buf: gap.buf,
                    size: gap.size,
                    first,
                    end,
                    entered_by: Some(g),
                    kept: (g + 1, g + 1),
                });
            }
        }
        segments
    }

    /// The packing problem of `segments`.
    pub fn problem(&self, segments: &[Segment]) -> Problem {
        let interval = |s: &Segment| Interval::new(s.first as i64, s.end as i64, s.size.0);
        Problem { intervals: segments.iter().map(interval).collect(), capacity: self.model.capacity.0 }
    }
}
