//! One cache while a plan is decoded: residents and free pieces by address, each free piece with the
//! time at which it was last released.

use super::clock::Clock;

/// The buffer of a free piece.
const FREE: u32 = u32::MAX;

/// Addresses `start..end`, half-open: a resident, or a free piece.
#[derive(Clone, Copy, Debug)]
struct Span<T> {
    start: u64,
    end: u64,
    buf: u32,
    release: T,
}

/// One cache.
#[derive(Debug, Default)]
pub(super) struct Space<T> {
    spans: Vec<Span<T>>,
}

impl<T: Clone> Clone for Space<T> {
    fn clone(&self) -> Self {
        Self { spans: self.spans.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.spans.clone_from(&other.spans);
    }
}

/// What a request for space is after.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub size: u64,
    /// Before this time, space is of no use.
    pub ready: u64,
    /// Bytes left over that one cycle of waiting is worth.
    pub wait: f64,
    /// Of equal places, the highest.
    pub high: bool,
}

/// What evicting a resident costs, and when its addresses are released then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eviction {
    pub cost: f64,
    pub release: u64,
}

impl<T: Clock> Space<T> {
    pub(super) fn clear(&mut self, capacity: u64) {
        self.spans.clear();
        self.spans.push(Span { start: 0, end: capacity, buf: FREE, release: T::default() });
    }

    /// The place that delays least and leaves least; `None` when there is no hole of that size.
    pub(super) fn hole(&self, wish: Wish) -> Option<u64> {
        let mut best: Option<(f64, u64)> = None;
        let mut i = 0;
        while i < self.spans.len() {
            if self.spans[i].buf != FREE {
                i += 1;
                continue;
            }
            let first = i;
            while i < self.spans.len() && self.spans[i].buf == FREE {
                i += 1;
            }
            let run = &self.spans[first..i];
            let (low, high) = (run[0].start, run[run.len() - 1].end);
            if high - low >= wish.size {
                Self::places(run, wish, &mut best);
            }
        }
        best.map(|b| b.1)
    }

    /// Tries the places in one hole that begin or end with a piece of it.
    fn places(run: &[Span<T>], wish: Wish, best: &mut Option<(f64, u64)>) {
        let (low, high) = (run[0].start, run[run.len() - 1].end);
        let left = high - low - wish.size;
        let mut offer = |offset: u64| {
            let end = offset + wish.size;
            let over = run.iter().filter(|s| s.start < end && offset < s.end);
            let release = over.map(|s| s.release.at()).max().unwrap_or(0);
            // A place in the middle leaves two holes.
            let torn = if offset > low && end < high { wish.size } else { 0 };
            let cost = wish.wait * release.saturating_sub(wish.ready) as f64 + (left + torn) as f64;
            let better = best.is_none_or(|b| cost < b.0 || (cost == b.0 && wish.high && offset > b.1));
            if better {
                *best = Some((cost, offset));
            }
        };
        offer(low);
        if left > 0 {
            offer(high - wish.size);
        }
        for s in &run[1..] {
            if high - s.start > wish.size {
                offer(s.start);
            }
            if s.start - low > wish.size {
                offer(s.start - wish.size);
            }
        }
    }

    /// The window whose eviction costs least, and delays least by `stall` per cycle; `evict` says
    /// what a resident costs, `None` that it must stay. `None` when no window is free to go.
    pub(super) fn window(
        &self,
        wish: Wish,
        stall: f64,
        scratch: &mut Vec<(f64, u64)>,
        mut evict: impl FnMut(u32) -> Option<Eviction>,
    ) -> Option<u64> {
        scratch.clear();
        scratch.extend(self.spans.iter().map(|s| {
            if s.buf == FREE {
                return (0.0, s.release.at());
            }
            evict(s.buf).map_or((f64::INFINITY, 0), |e| (e.cost, e.release))
        }));
        let capacity = self.spans.last().map_or(0, |s| s.end);
        let mut best: Option<(f64, u64)> = None;
        let mut offer = |offset: u64, over: &mut dyn Iterator<Item = usize>| {
            let (mut cost, mut release) = (0.0, 0);
            for i in over {
                cost += scratch[i].0;
                release = release.max(scratch[i].1);
                if cost == f64::INFINITY {
                    return;
                }
            }
            let cost = cost + stall * release.saturating_sub(wish.ready) as f64;
            if best.is_none_or(|b| cost < b.0) {
                best = Some((cost, offset));
            }
        };
        for (i, s) in self.spans.iter().enumerate() {
            if capacity - s.start >= wish.size {
                let end = s.start + wish.size;
                offer(s.start, &mut (i..self.spans.len()).take_while(|&j| self.spans[j].start < end));
            }
            if s.end >= wish.size {
                let start = s.end - wish.size;
                offer(start, &mut (0..=i).rev().take_while(|&j| self.spans[j].end > start));
            }
        }
        best.map(|b| b.1)
    }

    /// Calls `visit` with every resident over some addresses.
    pub(super) fn residents(&self, offset: u64, size: u64, mut visit: impl FnMut(u32)) {
        let first = self.spans.partition_point(|s| s.end <= offset);
        let over = self.spans[first..].iter().take_while(|s| s.start < offset.saturating_add(size));
        over.filter(|s| s.buf != FREE).for_each(|s| visit(s.buf));
    }

    /// Gives free addresses to a buffer; returns when the last of them was released.
    pub(super) fn take(&mut self, offset: u64, size: u64, buf: u32) -> T {
        let end = offset + size;
        let first = self.spans.partition_point(|s| s.end <= offset);
        let mut last = first;
        let mut release = self.spans[first].release;
        while self.spans[last].end < end {
            last += 1;
            release = release.later(self.spans[last].release);
        }
        let (before, after) = (self.spans[first], self.spans[last]);
        let taken = Span { start: offset, end, buf, release: T::default() };
        let low = (before.start < offset).then_some(Span { end: offset, ..before });
        let high = (after.end > end).then_some(Span { start: end, ..after });
        match (low, high, last == first) {
            (None, None, true) => self.spans[first] = taken,
            _ => {
                self.spans.splice(first..=last, low.into_iter().chain([taken]).chain(high));
            }
        }
        release
    }

    /// Takes the addresses of the buffer at `offset` back.
    pub(super) fn give(&mut self, offset: u64, release: T) {
        let i = self.spans.partition_point(|s| s.end <= offset);
        self.spans[i].buf = FREE;
        self.spans[i].release = release;
        // Pieces that were released together are one.
        let joins = |a: &Span<T>, b: &Span<T>| a.buf == FREE && b.buf == FREE && a.release.at() == b.release.at();
        if i + 1 < self.spans.len() && joins(&self.spans[i], &self.spans[i + 1]) {
            self.spans[i].end = self.spans[i + 1].end;
            self.spans.remove(i + 1);
        }
        if i > 0 && joins(&self.spans[i - 1], &self.spans[i]) {
            self.spans[i - 1].end = self.spans[i].end;
            self.spans.remove(i);
        }
    }
}
