//! An independent reader of packings: the rules, tried pair by pair in order of time; of a whole packing,
//! or of what is fixed before there is one.
//!
//! A packing holds when every offset is a multiple of its alignment, lies where it is fixed, ends
//! within the capacity, and no two intervals ever occupy the same byte at the same moment.

use super::{Interval, Problem};
use thiserror::Error;

/// The first rule that a packing breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Conflict {
    /// Not one offset per interval.
    #[error("{offsets} offsets for {intervals} intervals")]
    Count {
        /// Offsets given.
        offsets: usize,
        /// Intervals of the problem.
        intervals: usize,
    },
    /// An offset off its alignment or its fixed place.
    #[error("interval {interval} may not lie at {offset}")]
    Place {
        /// The interval.
        interval: usize,
        /// Its offset.
        offset: u64,
    },
    /// An interval that ends above the capacity.
    #[error("interval {interval} at {offset} ends above the capacity")]
    Capacity {
        /// The interval.
        interval: usize,
        /// Its offset.
        offset: u64,
    },
    /// Two intervals in the same bytes at the same moment.
    #[error("intervals {first} and {second} overlap at moment {moment}")]
    Overlap {
        /// One of them.
        first: usize,
        /// The other.
        second: usize,
        /// A moment at which they do.
        moment: i64,
    },
}

/// Tries every rule on `offsets`.
///
/// # Errors
/// The first rule that is broken.
pub fn verify(problem: &Problem, offsets: &[u64]) -> Result<(), Conflict> {
    let intervals = problem.intervals.len();
    if offsets.len() != intervals {
        return Err(Conflict::Count { offsets: offsets.len(), intervals });
    }
    try_rules(problem, offsets.iter().copied().enumerate())
}

/// Tries every rule on the intervals whose offsets are fixed, as if there were no others. What is broken
/// among them is broken in every packing.
///
/// # Errors
/// The first rule that is broken.
pub fn verify_fixed(problem: &Problem) -> Result<(), Conflict> {
    try_rules(problem, problem.intervals.iter().enumerate().filter_map(|(n, i)| Some((n, i.offset?))))
}

/// Tries the rules on some intervals at some offsets.
fn try_rules(problem: &Problem, placed: impl Iterator<Item = (usize, u64)> + Clone) -> Result<(), Conflict> {
    let intervals = &problem.intervals;
    for (interval, offset) in placed.clone() {
        let i = &intervals[interval];
        if i.offset.is_some_and(|fixed| fixed != offset) || offset.checked_rem(i.alignment) != Some(0) {
            return Err(Conflict::Place { interval, offset });
        }
        if offset.checked_add(i.size).is_none_or(|end| end > problem.capacity) {
            return Err(Conflict::Capacity { interval, offset });
        }
    }
    let mut rectangles: Vec<_> = placed.flat_map(|(n, offset)| rectangles(n, &intervals[n], offset)).collect();
    rectangles.sort_unstable_by_key(|r| (r.from, r.to, r.interval));
    let mut live: Vec<Rectangle> = Vec::new();
    for r in rectangles {
        live.retain(|other| other.to > r.from);
        if let Some(o) = live.iter().find(|o| o.interval != r.interval && o.low < r.high && r.low < o.high) {
            let (first, second) = (o.interval.min(r.interval), o.interval.max(r.interval));
            return Err(Conflict::Overlap { first, second, moment: r.from });
        }
        live.push(r);
    }
    Ok(())
}

/// The bytes `[low, high)` over the moments `[from, to)`.
#[derive(Clone, Copy)]
struct Rectangle {
    interval: usize,
    from: i64,
    to: i64,
    low: u64,
    high: u64,
}

fn rectangles(interval: usize, i: &Interval, offset: u64) -> Vec<Rectangle> {
    let full = |from, to| Rectangle { interval, from, to, low: offset, high: offset + i.size };
    let mut gaps = i.gaps.clone();
    gaps.sort_unstable_by_key(|g| g.lower);
    let mut parts = Vec::new();
    let mut from = i.lower;
    for g in gaps {
        parts.push(full(from, g.lower));
        if let Some((low, high)) = g.window {
            parts.push(Rectangle { interval, from: g.lower, to: g.upper, low: offset + low, high: offset + high });
        }
        from = g.upper;
    }
    parts.push(full(from, i.upper));
    parts.retain(|r| r.from < r.to && r.low < r.high);
    parts
}
