//! Rule 5: segments of one cache that overlap in time do not overlap in address.
//!
//! Segments are rectangles, time by address; the question is which of them meet another. One sweep
//! along the schedule keeps the segments that are resident now, per cache, in two sets:
//!
//! - those that met no other yet: pairwise apart, so an ordered map by address serves, and a
//!   newcomer's neighbours in it are exactly those that it meets; each that it meets leaves the set
//!   for good;
//! - those that met another: they may lie in any number on top of each other, but of them a
//!   newcomer needs only one, and a tree of the farthest addresses over the segments by first
//!   address finds it.
//!
//! So every segment costs O(log n), however many pairs are in conflict. A cache without conflicts
//! never builds the second set.

use super::reading::{ABSENT, Reading};
use super::report::{Fault, Report, Rule, Span};
use super::residency::Segment;
use crate::index::CacheIx;
use crate::units::Offset;
use std::collections::BTreeMap;
use typed_index_collections::TiVec;

/// Reports every segment that is in conflict, once, with one of those that it overlaps.
pub(super) fn check(reading: &Reading<'_>, segments: &[Segment], report: &mut Report) {
    let others = conflicts(segments, reading.graph.caches().len());
    for (segment, &other) in segments.iter().zip(&others).filter(|(_, other)| **other != ABSENT) {
        report.add(Rule::Overlap, || Fault::Overlap {
            cache: reading.cache_name(segment.buf),
            segment: span(reading, segment),
            other: span(reading, &segments[other as usize]),
        });
    }
}

/// What a report says of a segment.
pub(super) fn span(reading: &Reading<'_>, segment: &Segment) -> Span {
    let buffer = reading.graph.buf(segment.buf);
    Span {
        buf: buffer.id,
        node: reading.plan.schedule[segment.start as usize],
        start: segment.start as usize,
        end: segment.end as usize,
        offset: Offset(segment.low),
        size: buffer.size,
    }
}

/// For each segment, the index of one that it overlaps in time and address, or [`ABSENT`].
/// `segments` come by rising start.
fn conflicts(segments: &[Segment], caches: usize) -> Vec<u32> {
    let mut by_end: Vec<u32> = (0..segments.len() as u32).collect();
    by_end.sort_by_key(|&i| segments[i as usize].end);
    let mut ended = by_end.into_iter().peekable();
    let mut sweep = Sweep {
        segments,
        other: vec![ABSENT; segments.len()],
        rank: Vec::new(),
        active: (0..caches).map(|_| Active::default()).collect(),
    };
    for (i, segment) in segments.iter().enumerate() {
        while let Some(gone) = ended.next_if(|&j| segments[j as usize].end <= segment.start) {
            sweep.remove(gone);
        }
        sweep.insert(i as u32);
    }
    sweep.other
}

/// The segments of one cache that are resident at the sweep's position.
#[derive(Default)]
struct Active {
    /// Those that met no other: the first address, then the index.
    apart: BTreeMap<u64, u32>,
    /// Those that met another.
    clashing: Option<Farthest>,
}

struct Sweep<'a> {
    segments: &'a [Segment],
    other: Vec<u32>,
    /// The place of each segment among those of its cache by first address; set for the caches that
    /// have a conflict.
    rank: Vec<u32>,
    active: TiVec<CacheIx, Active>,
}

impl Sweep<'_> {
    fn insert(&mut self, new: u32) {
        let segments = self.segments;
        let segment = &segments[new as usize];
        // From the right-most on: in this set, lower first addresses mean lower last ones.
        while let Some((&low, &met)) = self.active[segment.cache].apart.range(..=segment.last).next_back()
            && segments[met as usize].last >= segment.low
        {
            self.active[segment.cache].apart.remove(&low);
            self.other[met as usize] = new;
            self.other[new as usize] = met;
            self.insert_clashing(met);
        }
        let active = &mut self.active[segment.cache];
        if self.other[new as usize] == ABSENT
            && let Some(met) = active.clashing.as_ref().and_then(|c| c.find(segments, segment))
        {
            self.other[new as usize] = met;
        }
        if self.other[new as usize] == ABSENT {
            active.apart.insert(segment.low, new);
        } else {
            self.insert_clashing(new);
        }
    }

    fn remove(&mut self, gone: u32) {
        let segment = &self.segments[gone as usize];
        let active = &mut self.active[segment.cache];
        if self.other[gone as usize] == ABSENT {
            active.apart.remove(&segment.low);
        } else if let Some(clashing) = &mut active.clashing {
            clashing.set(self.segments, self.rank[gone as usize], ABSENT);
        }
    }

    fn insert_clashing(&mut self, met: u32) {
        let segments = self.segments;
        let cache = segments[met as usize].cache;
        let rank = &mut self.rank;
        let clashing = self.active[cache].clashing.get_or_insert_with(|| Farthest::of(segments, cache, rank));
        clashing.set(segments, rank[met as usize], met);
    }
}

/// A binary tree over the segments of one cache by first address: each node knows which of the
/// segments present below it reaches farthest.
struct Farthest {
    /// The first addresses, rising.
    lows: Vec<u64>,
    /// The tree: node `i` has the children `2i` and `2i + 1`, the leaves come last.
    tree: Vec<u32>,
}

impl Farthest {
    /// The empty tree of one cache; writes the places of its segments into `rank`.
    fn of(segments: &[Segment], cache: CacheIx, rank: &mut Vec<u32>) -> Self {
        let index = 0..segments.len() as u32;
        let mut by_low: Vec<u32> = index.filter(|&i| segments[i as usize].cache == cache).collect();
        by_low.sort_by_key(|&i| segments[i as usize].low);
        rank.resize(segments.len(), ABSENT);
        by_low.iter().enumerate().for_each(|(place, &i)| rank[i as usize] = place as u32);
        let lows: Vec<_> = by_low.iter().map(|&i| segments[i as usize].low).collect();
        let tree = vec![ABSENT; 2 * lows.len()];
        Self { lows, tree }
    }

    /// Puts a segment, or [`ABSENT`], in its place.
    fn set(&mut self, segments: &[Segment], rank: u32, segment: u32) {
        let mut node = self.lows.len() + rank as usize;
        self.tree[node] = segment;
        while node > 1 {
            node /= 2;
            self.tree[node] = farther(segments, self.tree[2 * node], self.tree[2 * node + 1]);
        }
    }

    /// One of the segments present that overlaps `segment` in address.
    fn find(&self, segments: &[Segment], segment: &Segment) -> Option<u32> {
        let leaves = self.lows.len();
        let (mut left, mut right) = (leaves, leaves + self.lows.partition_point(|&low| low <= segment.last));
        let mut best = ABSENT;
        while left < right {
            if left % 2 == 1 {
                best = farther(segments, best, self.tree[left]);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                best = farther(segments, best, self.tree[right]);
            }
            (left, right) = (left / 2, right / 2);
        }
        segments.get(best as usize).filter(|s| s.last >= segment.low).map(|_| best)
    }
}

/// Which of two segments, each possibly [`ABSENT`], reaches farther.
fn farther(segments: &[Segment], a: u32, b: u32) -> u32 {
    let last = |i: u32| segments.get(i as usize).map(|s| s.last);
    if last(b) > last(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::BufIx;
    use proptest::prelude::*;

    fn segment(low: u64, size: u64, start: u32, length: u32, cache: usize) -> Segment {
        let last = low.saturating_add(size - 1);
        Segment { low, last, start, end: start + length, cache: CacheIx::new(cache), buf: BufIx::new(0) }
    }

    fn meet(a: &Segment, b: &Segment) -> bool {
        a.cache == b.cache && a.start < b.end && b.start < a.end && a.low <= b.last && b.low <= a.last
    }

    #[test]
    fn touching_is_not_overlapping() {
        let apart = [segment(0, 4, 0, 5, 0), segment(4, 4, 1, 5, 0), segment(0, 4, 5, 5, 0), segment(0, 4, 5, 1, 1)];
        assert_eq!(conflicts(&apart, 2), [ABSENT; 4]);
    }

    #[test]
    fn one_on_top_of_many_puts_all_in_conflict() {
        let pile = [segment(0, 2, 0, 9, 0), segment(2, 2, 1, 9, 0), segment(6, 2, 2, 9, 0), segment(1, 4, 3, 9, 0)];
        assert_eq!(conflicts(&pile, 1), [3, 3, ABSENT, 0]);
    }

    #[test]
    fn the_last_address_of_all_can_be_fought_over() {
        let top = [segment(u64::MAX, 1, 0, 2, 0), segment(u64::MAX - 3, 9, 1, 2, 0)];
        assert_eq!(conflicts(&top, 1), [1, 0]);
    }

    proptest! {
        #[test]
        fn agrees_with_comparing_every_pair(
            shapes in prop::collection::vec((0u64..60, 1u64..9, 1u32..30, 0usize..2), 0..70),
        ) {
            let shapes = shapes.into_iter().enumerate();
            let segments: Vec<_> = shapes.map(|(i, (low, size, len, cache))| segment(low, size, i as u32, len, cache)).collect();
            let others = conflicts(&segments, 2);
            for (i, &other) in others.iter().enumerate() {
                let any = segments.iter().enumerate().any(|(j, s)| j != i && meet(s, &segments[i]));
                prop_assert_eq!(other != ABSENT, any);
                prop_assert!(other == ABSENT || (other as usize != i && meet(&segments[i], &segments[other as usize])));
            }
        }
    }
}
