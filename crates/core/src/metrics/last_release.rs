//! When each address of a cache was last released, over compressed addresses. "When" is any ordered
//! measure that starts at its default: cycles for timing, positions for prefetching.

use super::residency::Segment;
use crate::graph::Graph;
use crate::index::CacheIx;
use std::ops::Range;
use typed_index_collections::TiVec;

/// The address range of every segment, in places between the boundaries that occur in its cache.
#[derive(Debug)]
pub(crate) struct AddressRanges {
    ranges: Vec<(u32, u32)>,
    places: TiVec<CacheIx, usize>,
}

impl AddressRanges {
    pub(crate) fn of(graph: &Graph, segments: &[Segment]) -> Self {
        let mut boundaries: TiVec<CacheIx, Vec<u64>> = graph.caches().map(|_| Vec::new()).collect();
        for s in segments {
            boundaries[s.cache].extend([s.offset.0, s.offset.end(s.size).0]);
        }
        for list in &mut boundaries {
            list.sort_unstable();
            list.dedup();
        }
        let place = |s: &Segment, address: u64| boundaries[s.cache].partition_point(|&b| b < address) as u32;
        let ranges = segments.iter().map(|s| (place(s, s.offset.0), place(s, s.offset.end(s.size).0))).collect();
        let places = boundaries.iter().map(|list| list.len().saturating_sub(1)).collect();
        Self { ranges, places }
    }

    /// The places of a segment, by its place in the list of segments.
    #[inline]
    pub(crate) fn get(&self, segment: u32) -> Range<usize> {
        let (low, high) = self.ranges[segment as usize];
        low as usize..high as usize
    }

    /// One clock per cache, nothing released yet.
    pub(crate) fn clocks<T: Copy + Default + Ord>(&self) -> TiVec<CacheIx, LastRelease<T>> {
        self.places.iter().map(|&n| LastRelease::new(n)).collect()
    }
}

/// The latest release of each place of one cache: a segment tree in which each node holds the
/// latest release of its whole span and the latest of any place in it. O(log places) each.
#[derive(Debug)]
pub(crate) struct LastRelease<T> {
    leaves: usize,
    nodes: Vec<Latest<T>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Latest<T> {
    /// Of the whole span at once.
    whole: T,
    /// Of some place in the span, those given to spans above left out.
    any: T,
}

impl<T: Copy + Default + Ord> LastRelease<T> {
    fn new(places: usize) -> Self {
        // A power of two: each node's ancestors are then those of its first and last leaf.
        let leaves = places.next_power_of_two();
        Self { leaves, nodes: vec![Latest::default(); 2 * leaves] }
    }

    /// Calls `visit` with the nodes that together span `places`.
    fn cover(&mut self, places: &Range<usize>, mut visit: impl FnMut(&mut Latest<T>)) {
        let (mut low, mut high) = (places.start + self.leaves, places.end + self.leaves);
        while low < high {
            if low % 2 == 1 {
                visit(&mut self.nodes[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                visit(&mut self.nodes[high]);
            }
            low /= 2;
            high /= 2;
        }
    }

    /// Calls `visit` with the ancestors of the first and the last of `places`, each at least once.
    fn ancestors(&mut self, places: &Range<usize>, mut visit: impl FnMut(&mut Latest<T>)) {
        let (mut low, mut high) = ((places.start + self.leaves) / 2, (places.end - 1 + self.leaves) / 2);
        while low > 0 {
            visit(&mut self.nodes[low]);
            if high != low {
                visit(&mut self.nodes[high]);
            }
            low /= 2;
            high /= 2;
        }
    }

    /// Notes that `places`, not empty, are released at `at`.
    pub(crate) fn release(&mut self, places: Range<usize>, at: T) {
        self.cover(&places, |node| {
            node.whole = node.whole.max(at);
            node.any = node.any.max(at);
        });
        self.ancestors(&places, |node| node.any = node.any.max(at));
    }

    /// The latest release of any of `places`, not empty; the default when none was released.
    pub(crate) fn latest(&mut self, places: Range<usize>) -> T {
        let mut latest = T::default();
        self.cover(&places, |node| latest = latest.max(node.any));
        self.ancestors(&places, |node| latest = latest.max(node.whole));
        latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Cycles;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_one_clock_per_place(
            places in 1usize..40,
            events in prop::collection::vec((any::<bool>(), 0usize..40, 1usize..40, 0u64..50), 0..60),
        ) {
            let mut tree = LastRelease::new(places);
            let mut plain = vec![Cycles(0); places];
            for (is_release, low, len, at) in events {
                let (low, at) = (low % places, Cycles(at));
                let range = low..(low + len).min(places);
                if is_release {
                    tree.release(range.clone(), at);
                    plain[range].iter_mut().for_each(|t| *t = at.max(*t));
                } else {
                    prop_assert_eq!(tree.latest(range.clone()), plain[range].iter().copied().max().unwrap_or_default());
                }
            }
        }
    }
}
