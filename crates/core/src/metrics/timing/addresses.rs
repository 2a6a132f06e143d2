//! Who holds each address of one cache, or released it last.

use crate::index::StepIx;
use std::collections::BTreeMap;

/// Addresses `low..high` that an acquire takes, and the step that released them last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub low: u64,
    pub high: u64,
    pub by: StepIx,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Held,
    Released(StepIx),
}

/// The addresses of one cache that were ever held, in disjoint pieces by where they begin.
/// O(log pieces) for each piece that a change touches, which is at most two more than it removes.
#[derive(Debug, Default)]
pub(super) struct AddressMap {
    pieces: BTreeMap<u64, (u64, Holder)>,
}

impl AddressMap {
    /// Takes `low..high` and calls `visit` for each piece of it that was released before; false when
    /// a part of it is held, and the map is then no longer of use.
    pub(super) fn acquire(&mut self, low: u64, high: u64, mut visit: impl FnMut(Piece)) -> bool {
        let mut is_free = true;
        self.clear(low, high, |low, high, holder| match holder {
            Holder::Released(by) => visit(Piece { low, high, by }),
            Holder::Held => is_free = false,
        });
        self.pieces.insert(low, (high, Holder::Held));
        is_free
    }

    /// Gives back what was acquired as `low..high`.
    pub(super) fn release(&mut self, low: u64, high: u64, by: StepIx) {
        self.pieces.insert(low, (high, Holder::Released(by)));
    }

    /// Sets what is known of a piece, whatever was known before.
    pub(super) fn note(&mut self, piece: Piece) {
        self.clear(piece.low, piece.high, |_, _, _| {});
        self.pieces.insert(piece.low, (piece.high, Holder::Released(piece.by)));
    }

    /// Sets that `low..high` is held, whatever was known before.
    pub(super) fn hold(&mut self, low: u64, high: u64) {
        self.clear(low, high, |_, _, _| {});
        self.pieces.insert(low, (high, Holder::Held));
    }

    /// Calls `visit` for each released piece of `low..high`.
    pub(super) fn released(&self, low: u64, high: u64, mut visit: impl FnMut(Piece)) {
        let before = self.pieces.range(..low).next_back().filter(|p| p.1.0 > low);
        for (&start, &(end, holder)) in before.into_iter().chain(self.pieces.range(low..high)) {
            if let Holder::Released(by) = holder {
                visit(Piece { low: start.max(low), high: end.min(high), by });
            }
        }
    }

    /// Cuts `low..high` out and calls `visit` with what was there.
    fn clear(&mut self, low: u64, high: u64, mut visit: impl FnMut(u64, u64, Holder)) {
        if let Some((_, piece)) = self.pieces.range_mut(..low).next_back()
            && piece.0 > low
        {
            let (end, holder) = *piece;
            piece.0 = low;
            visit(low, end.min(high), holder);
            if end > high {
                self.pieces.insert(high, (end, holder));
            }
        }
        while let Some((&start, &(end, holder))) = self.pieces.range(low..high).next() {
            visit(start, end.min(high), holder);
            self.pieces.remove(&start);
            if end > high {
                self.pieces.insert(high, (end, holder));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_one_holder_per_address(
            events in prop::collection::vec((0u64..30, 1u64..12, any::<prop::sample::Index>()), 1..60),
        ) {
            let (mut map, mut plain) = (AddressMap::default(), [None::<Holder>; 42]);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (k, (low, size, which)) in events.into_iter().enumerate() {
                let (high, by) = (low + size, StepIx::new(k));
                let mut covered = [None; 42];
                map.released(low, high, |p| covered[p.low as usize..p.high as usize].fill(Some(Holder::Released(p.by))));
                let free = (low..high).all(|a| plain[a as usize] != Some(Holder::Held));
                for a in (low..high).map(|a| a as usize) {
                    prop_assert_eq!(covered[a], plain[a].filter(|h| *h != Holder::Held));
                }
                if free && (held.is_empty() || k % 3 > 0) {
                    let taken = map.acquire(low, high, |_| ());
                    prop_assert!(taken);
                    plain[low as usize..high as usize].fill(Some(Holder::Held));
                    held.push((low, high));
                } else if !held.is_empty() {
                    let (low, high) = held.swap_remove(which.index(held.len()));
                    map.release(low, high, by);
                    plain[low as usize..high as usize].fill(Some(Holder::Released(by)));
                }
            }
        }
    }
}
