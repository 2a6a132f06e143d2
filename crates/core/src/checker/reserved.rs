//! Rule 4, where reservations leave less than the cache: no segment lies in what is reserved while it
//! is.
//!
//! A reservation holds the top of its cache at every position from its first node to its last, both
//! included; without the one it holds from the first position on, without the other to the last. A plan
//! that has the last before the first is no plan for it: that is reported, and nothing is held. Those
//! of one cache add up. What is left of it is a function of the position that changes at few of them;
//! a segment needs the least over its own positions, which a table of minima over powers of two gives.

use super::overlap::span;
use super::reading::{ABSENT, Entry, Reading};
use super::report::{Fault, Report, Rule};
use super::residency::Segment;
use crate::index::{CacheIx, NodeIx};
use crate::units::Bytes;

/// What is left of one cache: `changes[k]` holds from its position to that of the next.
struct Left {
    /// Positions, rising, the first 0.
    from: Vec<u32>,
    /// `minima[j][k]`: the place of the least of `left[k..k + 2^j]`.
    minima: Vec<Vec<u32>>,
    left: Vec<u64>,
}

impl Left {
    /// `None` where nothing of the cache is reserved.
    fn of(reading: &Reading<'_>, cache: CacheIx) -> Option<Self> {
        let mut changes = vec![(0u32, 0i128)];
        for reserved in reading.machine.reservations().iter().filter(|r| r.cache == cache && r.bytes.0 > 0) {
            let (first, last) = ends(reading, reserved.from, reserved.to);
            // That a node is missing, or comes too early, has been said; from where to where is not
            // known then.
            if first == ABSENT || last == ABSENT || last < first {
                continue;
            }
            changes.extend([(first, i128::from(reserved.bytes.0)), (last + 1, -i128::from(reserved.bytes.0))]);
        }
        if changes.len() == 1 {
            return None;
        }
        changes.sort_unstable();
        let (mut from, mut left, mut held) = (Vec::new(), Vec::new(), 0i128);
        for same in changes.chunk_by(|a, b| a.0 == b.0) {
            held += same.iter().map(|c| c.1).sum::<i128>();
            from.push(same[0].0);
            left.push((i128::from(reading.machine.cache(cache).capacity.0) - held).max(0) as u64);
        }
        let mut minima = vec![(0..left.len() as u32).collect::<Vec<_>>()];
        while let Some(finer) = minima.last().filter(|m| m.len() > 1 << (minima.len() - 1)) {
            let half = 1 << (minima.len() - 1);
            let pairs = finer.iter().zip(&finer[half..]);
            let least = |(&a, &b): (&u32, &u32)| if left[b as usize] < left[a as usize] { b } else { a };
            let coarser = pairs.map(least).collect();
            minima.push(coarser);
        }
        Some(Self { from, minima, left })
    }

    /// The least that is left at positions `start..end`, not empty, and the first of its positions.
    fn least(&self, start: u32, end: u32) -> (u64, u32) {
        let first = self.from.partition_point(|&f| f <= start) - 1;
        let past = self.from.partition_point(|&f| f < end).max(first + 1);
        let level = (past - first).ilog2() as usize;
        let (a, b) = (self.minima[level][first], self.minima[level][past - (1 << level)]);
        let least = if self.left[b as usize] < self.left[a as usize] { b } else { a } as usize;
        (self.left[least], self.from[least].max(start))
    }
}

/// The positions of the first and the last node of a reservation.
fn ends(reading: &Reading<'_>, from: Option<NodeIx>, to: Option<NodeIx>) -> (u32, u32) {
    let at = |node: Option<_>, open| node.map_or(open, |n| reading.at(Entry::Node(n)));
    (at(from, 0), at(to, ABSENT - 1))
}

/// Reports every reservation whose last node stands before its first.
fn check_ends(reading: &Reading<'_>, report: &mut Report) {
    for reserved in reading.machine.reservations().iter().filter(|r| r.bytes.0 > 0) {
        let (first, last) = ends(reading, reserved.from, reserved.to);
        let (Some(from), Some(to)) = (reserved.from, reserved.to) else { continue };
        if first != ABSENT && last != ABSENT && last < first {
            report.add(Rule::Bounds, || Fault::ReservedBackwards {
                cache: reading.graph.cache_name(reserved.cache).to_owned(),
                bytes: reserved.bytes,
                from: reading.graph.id(from),
                from_pos: first as usize,
                to: reading.graph.id(to),
                to_pos: last as usize,
            });
        }
    }
}

/// Reports every segment that reaches into what is reserved; those that leave their cache altogether
/// have been reported.
pub(super) fn check(reading: &Reading<'_>, segments: &[Segment], report: &mut Report) {
    if reading.machine.reservations().is_empty() {
        return;
    }
    check_ends(reading, report);
    let caches: Vec<Option<Left>> = reading.graph.caches().map(|c| Left::of(reading, c)).collect();
    for segment in segments {
        let Some(left) = &caches[segment.cache.index()] else { continue };
        let (usable, pos) = left.least(segment.start, segment.end);
        let inside = segment.last < reading.machine.cache(segment.cache).capacity.0;
        if inside && segment.last >= usable {
            report.add(Rule::Bounds, || Fault::InReserved {
                cache: reading.cache_name(segment.buf),
                segment: span(reading, segment),
                usable: Bytes(usable),
                pos: pos as usize,
            });
        }
    }
}
