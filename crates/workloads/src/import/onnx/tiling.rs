//! Cutting tensors into tiles of a bounded size.

use super::region::Region;
use super::tensor::Shape;

/// A grid of equal tiles over a tensor; those at the far ends may be smaller.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tiling {
    shape: Shape,
    /// Extents of a tile.
    tile: Vec<u64>,
    /// Tiles per dimension.
    grid: Vec<u64>,
}

impl Tiling {
    /// Halves the largest dimension of a tile until it has at most `limit` elements. The last of
    /// four or more dimensions is halved only when nothing else is left, so that rows of a feature
    /// map and of attention scores stay whole.
    pub fn new(shape: &Shape, limit: u64) -> Self {
        let mut tile = shape.dims().to_vec();
        let volume = |tile: &[u64]| tile.iter().product::<u64>();
        while volume(&tile) > limit.max(1) {
            let spared = usize::from(tile.len() >= 4);
            let front = &tile[..tile.len() - spared];
            // The first of the largest: `max_by_key` would take the last.
            let largest = front.iter().copied().max().unwrap_or(1);
            let at = if largest > 1 { front.iter().position(|&d| d == largest) } else { None };
            let at = at.unwrap_or(tile.len() - 1);
            tile[at] = tile[at].div_ceil(2);
        }
        let grid = shape.dims().iter().zip(&tile).map(|(&d, &t)| d.div_ceil(t.max(1))).collect();
        Self { shape: shape.clone(), tile, grid }
    }

    /// The number of tiles; 0 for a tensor without elements.
    pub fn count(&self) -> u64 {
        self.grid.iter().product()
    }

    /// The box of a tile.
    pub fn region(&self, mut index: u64) -> Region {
        let mut region = vec![(0, 0); self.tile.len()];
        for (d, range) in region.iter_mut().enumerate().rev() {
            let at = index % self.grid[d];
            index /= self.grid[d];
            *range = (at * self.tile[d], ((at + 1) * self.tile[d]).min(self.shape.dims()[d]));
        }
        region
    }

    /// The first tile of the row that a tile belongs to, where rows run along `axes`.
    pub fn row(&self, mut index: u64, axes: &[usize]) -> u64 {
        let (mut row, mut stride) = (0, 1);
        for d in (0..self.grid.len()).rev() {
            let at = index % self.grid[d];
            index /= self.grid[d];
            row += if axes.contains(&d) { 0 } else { at * stride };
            stride *= self.grid[d];
        }
        row
    }

    /// How many tiles share an element with a box.
    pub fn touching(&self, region: &[(u64, u64)]) -> u64 {
        self.spans(region).map(|(first, end)| end - first).product()
    }

    /// The tiles that share an element with a box, in order.
    pub fn tiles(&self, region: &[(u64, u64)]) -> Tiles {
        let spans: Vec<_> = self.spans(region).collect();
        let done = spans.iter().any(|s| s.0 >= s.1);
        Tiles { at: spans.iter().map(|s| s.0).collect(), spans, grid: self.grid.clone(), done }
    }

    fn spans(&self, region: &[(u64, u64)]) -> impl Iterator<Item = (u64, u64)> {
        region.iter().zip(&self.tile).map(|(&(lo, hi), &t)| (lo / t.max(1), hi.div_ceil(t.max(1))))
    }
}

/// The tiles under a box.
pub(super) struct Tiles {
    spans: Vec<(u64, u64)>,
    at: Vec<u64>,
    grid: Vec<u64>,
    done: bool,
}

impl Iterator for Tiles {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.done {
            return None;
        }
        let index = self.at.iter().zip(&self.grid).fold(0, |index, (at, grid)| index * grid + at);
        self.done = true;
        for (at, span) in self.at.iter_mut().zip(&self.spans).rev() {
            *at += 1;
            if *at < span.1 {
                self.done = false;
                break;
            }
            *at = span.0;
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_a_tensor_once() {
        let shape = Shape::new(vec![1, 5, 7, 4]).unwrap();
        let tiling = Tiling::new(&shape, 30);
        assert_eq!((tiling.tile.as_slice(), tiling.grid.as_slice()), (&[1, 3, 2, 4][..], &[1, 2, 4, 1][..]));
        let mut seen = vec![0; 140];
        for t in 0..tiling.count() {
            let r = tiling.region(t);
            for c in r[1].0..r[1].1 {
                for h in r[2].0..r[2].1 {
                    (0..4).for_each(|w| seen[(c * 28 + h * 4 + w) as usize] += 1);
                }
            }
        }
        assert!(seen.iter().all(|&n| n == 1));
    }

    #[test]
    fn the_tiles_under_a_box_are_those_that_touch_it() {
        let tiling = Tiling::new(&Shape::new(vec![1, 5, 7, 4]).unwrap(), 30);
        let found: Vec<_> = tiling.tiles(&[(0, 1), (2, 4), (1, 3), (0, 4)]).collect();
        assert_eq!(found, [0, 1, 4, 5]);
        assert_eq!(tiling.touching(&[(0, 1), (2, 4), (1, 3), (0, 4)]), 4);
        assert_eq!((tiling.row(5, &[1]), tiling.row(5, &[2]), tiling.row(5, &[1, 2])), (1, 4, 0));
    }

    #[test]
    fn scalars_and_empty_tensors_have_one_tile_and_none() {
        assert_eq!(Tiling::new(&Shape::default(), 8).count(), 1);
        assert_eq!(Tiling::new(&Shape::new(vec![0, 3]).unwrap(), 8).count(), 0);
        assert_eq!(Tiling::new(&Shape::default(), 8).tiles(&[]).collect::<Vec<_>>(), [0]);
    }
}
