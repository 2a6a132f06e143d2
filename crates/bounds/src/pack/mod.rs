//! Packing of intervals with fixed lives: offsets within a capacity, or a proof that there are none.
//!
//! Also known as dynamic storage allocation. The search follows the ideas of Moffitt, "MiniMalloc: A
//! Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023 (canonical
//! solutions, floors per section, dominance, temporal decomposition, restarts over several orders),
//! with the branching of active schedules in the manner of Giffler and Thompson, "Algorithms for
//! Solving Production-Scheduling Problems", 1960, each section of time being a machine.
//!
//! [`verify`] shares nothing with the search but the problem.

mod boxes;
mod greedy;
mod model;
mod pairs;
mod portfolio;
mod roll;
mod search;
mod verify;

pub use verify::{Conflict, verify, verify_fixed};

use std::time::{Duration, Instant};
use thiserror::Error;

/// A part of a life over which fewer bytes are occupied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveGap {
    /// Its first moment.
    pub lower: i64,
    /// The first moment behind it.
    pub upper: i64,
    /// The bytes `[low, high)` that are occupied all the same; `None` for none.
    pub window: Option<(u64, u64)>,
}

/// Something of a fixed life that needs an offset. It is live over `[lower, upper)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first moment of its life.
    pub lower: i64,
    /// The first moment behind its life; later than `lower`.
    pub upper: i64,
    /// Bytes, at least 1.
    pub size: u64,
    /// Its offset must be a multiple of this; at least 1.
    pub alignment: u64,
    /// Where it is not, or not wholly, live; they do not overlap.
    pub gaps: Vec<LiveGap>,
    /// A place that it must have.
    pub offset: Option<u64>,
    /// A place that it would like to have. If all hints together are a packing, that is the result.
    pub hint: Option<u64>,
}

impl Interval {
    /// An interval with nothing but a life and a size.
    pub fn new(lower: i64, upper: i64, size: u64) -> Self {
        Self { lower, upper, size, alignment: 1, gaps: Vec::new(), offset: None, hint: None }
    }
}

/// Intervals to pack into `[0, capacity)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The intervals.
    pub intervals: Vec<Interval>,
    /// The bytes that there are.
    pub capacity: u64,
}

/// What is wrong with a problem. Intervals count from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PackError {
    /// A life of no time.
    #[error("interval {interval}: the life {lower}..{upper} is empty")]
    EmptyLife {
        /// The interval.
        interval: usize,
        /// Its first moment.
        lower: i64,
        /// The first moment behind it.
        upper: i64,
    },
    /// A size or an alignment of 0.
    #[error("interval {interval}: size and alignment must be at least 1")]
    Zero {
        /// The interval.
        interval: usize,
    },
    /// A gap that is empty, leaves the life or the size, or overlaps another.
    #[error("interval {interval}: the gap {lower}..{upper} is empty, overlaps another, or leaves the life or the size")]
    BadGap {
        /// The interval.
        interval: usize,
        /// First moment of the gap.
        lower: i64,
        /// The first moment behind it.
        upper: i64,
    },
    /// Numbers past 2⁶².
    #[error("sizes, alignments and offsets together pass 2^62")]
    TooLarge,
}

/// When to stop. Searches with a limit in nodes alone end the same way on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Search nodes.
    pub nodes: Option<u64>,
    /// Wall time.
    pub time: Option<Duration>,
}

impl Limits {
    /// A limit in search nodes alone.
    pub fn nodes(nodes: u64) -> Self {
        Self { nodes: Some(nodes), time: None }
    }
}

/// Limits that are being used up.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) used: u64,
    nodes: u64,
    deadline: Option<Instant>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        let deadline = limits.time.and_then(|t| Instant::now().checked_add(t));
        Self { used: 0, nodes: limits.nodes.unwrap_or(u64::MAX), deadline }
    }

    /// Takes one node; false when none is left.
    pub(crate) fn take(&mut self) -> bool {
        if self.spent() {
            return false;
        }
        self.used += 1;
        true
    }

    /// True when nothing is left.
    pub(crate) fn spent(&self) -> bool {
        self.used >= self.nodes || self.deadline.is_some_and(|d| Instant::now() >= d)
    }

    /// A part of at most `nodes` nodes; give it back with [`Budget::give_back`].
    pub(crate) fn part(&self, nodes: u64) -> Self {
        Self { used: 0, nodes: nodes.min(self.nodes - self.used.min(self.nodes)), deadline: self.deadline }
    }

    /// The nodes and the time of one of `parts` that share what is left.
    pub(crate) fn share(&self, parts: usize) -> Self {
        let parts = u32::try_from(parts).unwrap_or(u32::MAX).max(1);
        let mut share = self.part(self.nodes.saturating_sub(self.used) / u64::from(parts));
        let now = Instant::now();
        share.deadline = self.deadline.map(|d| now + d.saturating_duration_since(now) / parts);
        share
    }

    pub(crate) fn give_back(&mut self, part: &Self) {
        self.used = self.used.saturating_add(part.used);
    }
}

/// Offsets for all intervals, without conflict but for the capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// One offset per interval.
    pub offsets: Vec<u64>,
    /// The largest offset + size.
    pub height: u64,
}

impl Packing {
    fn new(problem: &Problem, offsets: Vec<u64>) -> Self {
        let height = problem.intervals.iter().zip(&offsets).map(|(i, o)| o.saturating_add(i.size)).max().unwrap_or(0);
        Self { offsets, height }
    }
}

/// What is known about a packing within the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is one, and here it is.
    Packed,
    /// There is none: the search looked everywhere, or more bytes are live at once than there are.
    Infeasible,
    /// A limit was reached first.
    NotProven,
}

/// The result of [`pack`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// What is known.
    pub verdict: Verdict,
    /// The lowest packing found: within the capacity when packed, above it otherwise. `None` where
    /// fixed offsets left none to the greedy rules.
    pub best: Option<Packing>,
    /// No packing is lower: the most bytes live at once, and where fixed offsets reach.
    pub lower_bound: u64,
    /// Why there is no packing, where the fixed offsets alone say so; nothing was searched then.
    pub conflict: Option<Conflict>,
    /// Search nodes used.
    pub nodes: u64,
}

/// Finds offsets within the capacity or proves that there are none.
///
/// # Errors
/// What is wrong with the problem.
pub fn pack(problem: &Problem, limits: Limits) -> Result<Packed, PackError> {
    check(problem)?;
    let mut budget = Budget::new(limits);
    Ok(portfolio::run(problem, &mut budget))
}

/// Packs as [`pack`] does, out of a budget shared with others; nothing is known of a problem that
/// [`pack`] refuses.
pub(crate) fn pack_within(problem: &Problem, budget: &mut Budget) -> Packed {
    match check(problem) {
        Ok(()) => portfolio::run(problem, budget),
        Err(_) => Packed { verdict: Verdict::NotProven, best: None, lower_bound: 0, conflict: None, nodes: 0 },
    }
}

fn check(problem: &Problem) -> Result<(), PackError> {
    let mut total: u64 = 0;
    for (interval, i) in problem.intervals.iter().enumerate() {
        if i.lower >= i.upper {
            return Err(PackError::EmptyLife { interval, lower: i.lower, upper: i.upper });
        }
        if i.size == 0 || i.alignment == 0 {
            return Err(PackError::Zero { interval });
        }
        let mut gaps: Vec<_> = i.gaps.iter().collect();
        gaps.sort_unstable_by_key(|g| g.lower);
        let mut from = i.lower;
        for g in gaps {
            let window_fits = g.window.is_none_or(|(low, high)| low <= high && high <= i.size);
            if g.lower < from || g.lower >= g.upper || g.upper > i.upper || !window_fits {
                return Err(PackError::BadGap { interval, lower: g.lower, upper: g.upper });
            }
            from = g.upper;
        }
        for part in [i.size, i.alignment, i.offset.unwrap_or(0)] {
            total = total.checked_add(part).filter(|&t| t <= 1 << 62).ok_or(PackError::TooLarge)?;
        }
    }
    Ok(())
}
