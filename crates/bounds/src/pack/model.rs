//! What the searches see of a problem: sections of time instead of moments.
//!
//! A section stands for a maximal set of pieces that are live together; two pieces meet in time if
//! and only if they share a section.

use super::Problem;
use std::ops::Range;

/// A stretch of sections `[from, to)` over which an interval occupies its bytes `[low, high)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub from: u32,
    pub to: u32,
    pub low: u64,
    pub high: u64,
}

/// One interval, as the searches see it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// In order of time.
    pub pieces: Vec<Piece>,
    /// Its sections lie in `[from, to)`.
    pub from: u32,
    pub to: u32,
    pub size: u64,
    pub alignment: u64,
    pub fixed: Option<u64>,
    /// Moments of its life.
    pub width: u64,
    /// The least high end of its pieces.
    pub least_high: u64,
    /// The most bytes occupied in any of its sections.
    pub crowd: u64,
}

/// A problem in sections.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub items: Vec<Item>,
    /// Bytes occupied per section.
    pub totals: Vec<u64>,
    pub capacity: u64,
    /// True when some piece leaves out part of its interval from above.
    pub windows: bool,
    /// True when some piece leaves out part of its interval from below: floors are then no longer
    /// all that matters.
    pub raised: bool,
}

impl Model {
    pub fn new(problem: &Problem) -> Self {
        let pieces: Vec<Vec<Timed>> = problem.intervals.iter().map(timed).collect();
        let ends = section_ends(&pieces);
        let at = |t: i64| ends.partition_point(|&end| end <= t) as u32;
        let place = |p: &Timed| Piece { from: at(p.lower), to: at(p.upper), low: p.low, high: p.high };
        let mut items = Vec::with_capacity(pieces.len());
        for (i, timed) in problem.intervals.iter().zip(&pieces) {
            let pieces: Vec<Piece> = timed.iter().map(place).collect();
            items.push(Item {
                from: pieces.first().map_or(0, |p| p.from),
                to: pieces.last().map_or(0, |p| p.to),
                least_high: pieces.iter().map(|p| p.high).min().unwrap_or(i.size),
                pieces,
                size: i.size,
                alignment: i.alignment,
                fixed: i.offset,
                width: i.upper.abs_diff(i.lower),
                crowd: 0,
            });
        }
        let windows = items.iter().any(|i| i.least_high < i.size);
        let raised = items.iter().any(|i| i.pieces.iter().any(|p| p.low > 0));
        let mut model = Self { items, totals: vec![0; ends.len()], capacity: problem.capacity, windows, raised };
        model.count();
        model
    }

    /// The model of some `items` with the places given, over a `stretch` of sections.
    pub fn part(&self, items: impl Iterator<Item = (u32, Option<u64>)>, stretch: &Range<u32>) -> Self {
        let clip = |t: u32| t.clamp(stretch.start, stretch.end) - stretch.start;
        let item = |(i, fixed): (u32, Option<u64>)| {
            let whole = &self.items[i as usize];
            let clipped = whole.pieces.iter().map(|p| Piece { from: clip(p.from), to: clip(p.to), ..*p });
            let pieces = clipped.filter(|p| p.from < p.to).collect();
            Item { pieces, from: clip(whole.from), to: clip(whole.to), fixed, ..*whole }
        };
        let mut part = Self {
            items: items.map(item).collect(),
            totals: vec![0; stretch.len()],
            capacity: self.capacity,
            windows: self.windows,
            raised: self.raised,
        };
        part.count();
        part
    }

    /// Counts what is occupied in each section.
    fn count(&mut self) {
        for p in self.items.iter().flat_map(|i| &i.pieces) {
            self.totals[p.from as usize..p.to as usize].iter_mut().for_each(|t| *t += p.high - p.low);
        }
        for item in &mut self.items {
            item.crowd = item.sections().map(|(q, _)| self.totals[q]).max().unwrap_or(0);
        }
    }

    /// No packing is lower.
    pub fn lower_bound(&self) -> u64 {
        let single = self.items.iter().map(|i| i.fixed.unwrap_or(0) + i.size).max().unwrap_or(0);
        self.totals.iter().copied().max().unwrap_or(0).max(single)
    }

    /// The steps that one look at every section of every item takes.
    pub fn work(&self) -> u64 {
        self.items.iter().map(|i| u64::from(i.to - i.from)).sum()
    }

    /// True when the two are ever live together.
    #[inline]
    pub fn meet(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.items[a], &self.items[b]);
        let hulls = a.from < b.to && b.from < a.to;
        if !hulls || (a.pieces.len() == 1 && b.pieces.len() == 1) {
            return hulls;
        }
        shared(a, b).next().is_some()
    }

    /// How far above its own offset `below` reaches where it meets `above`; `None` if they never do.
    #[inline]
    pub fn reach(&self, below: usize, above: usize) -> Option<u64> {
        let (a, b) = (&self.items[below], &self.items[above]);
        if a.from >= b.to || b.from >= a.to {
            return None;
        }
        if a.pieces.len() == 1 && b.pieces.len() == 1 {
            return Some(a.pieces[0].high);
        }
        shared(a, b).map(|(p, _)| p.high).max()
    }
}

impl Item {
    /// The sections with the high end of the piece there.
    #[inline]
    pub fn sections(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.pieces.iter().flat_map(|p| (p.from as usize..p.to as usize).map(move |q| (q, p.high)))
    }

    /// The first place at or above `floor` that its alignment and its fixed place allow.
    #[inline]
    pub fn place_from(&self, floor: u64) -> u64 {
        match self.fixed {
            Some(fixed) if fixed >= floor => fixed,
            // No place: above every capacity, yet sums with sizes do not overflow.
            Some(_) => 1 << 62,
            None if self.alignment == 1 => floor,
            None => floor.next_multiple_of(self.alignment),
        }
    }
}

/// The pairs of pieces of two items that meet in time.
pub(super) fn shared<'a>(a: &'a Item, b: &'a Item) -> impl Iterator<Item = (&'a Piece, &'a Piece)> {
    a.pieces.iter().flat_map(move |p| {
        let first = b.pieces.partition_point(|q| q.to <= p.from);
        b.pieces[first..].iter().take_while(move |q| q.from < p.to).map(move |q| (p, q))
    })
}

struct Timed {
    lower: i64,
    upper: i64,
    low: u64,
    high: u64,
}

fn timed(i: &super::Interval) -> Vec<Timed> {
    let mut gaps = i.gaps.clone();
    gaps.sort_unstable_by_key(|g| g.lower);
    let mut parts = Vec::with_capacity(2 * gaps.len() + 1);
    let mut from = i.lower;
    for g in gaps {
        parts.push(Timed { lower: from, upper: g.lower, low: 0, high: i.size });
        if let Some((low, high)) = g.window {
            parts.push(Timed { lower: g.lower, upper: g.upper, low, high });
        }
        from = g.upper;
    }
    parts.push(Timed { lower: from, upper: i.upper, low: 0, high: i.size });
    parts.retain(|p| p.lower < p.upper && p.low < p.high);
    parts
}

/// The moments at which sections end: each first end of a piece behind a start of one.
fn section_ends(pieces: &[Vec<Timed>]) -> Vec<i64> {
    let mut events: Vec<(i64, bool)> = Vec::new();
    for p in pieces.iter().flatten() {
        events.extend([(p.lower, true), (p.upper, false)]);
    }
    events.sort_unstable();
    let mut ends = Vec::new();
    let mut grew = false;
    for (moment, starts) in events {
        if !starts && grew {
            ends.push(moment);
        }
        grew = starts;
    }
    ends
}
