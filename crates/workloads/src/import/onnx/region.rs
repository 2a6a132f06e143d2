//! Boxes of elements, and which box of an input a box of an output depends on.

use super::tensor::Shape;

/// A box of elements: for each dimension the half-open range of indices.
pub(super) type Region = Vec<(u64, u64)>;

/// The number of elements of a box.
pub(super) fn volume(region: &[(u64, u64)]) -> u64 {
    region.iter().map(|&(lo, hi)| hi.saturating_sub(lo)).product()
}

/// The elements that two boxes share; `None` when there are none.
pub(super) fn intersect(a: &[(u64, u64)], b: &[(u64, u64)]) -> Option<Region> {
    let common: Region = a.iter().zip(b).map(|(x, y)| (x.0.max(y.0), x.1.min(y.1))).collect();
    common.iter().all(|r| r.0 < r.1).then_some(common)
}

/// The range of one dimension of an input that a box of the output depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DimMap {
    /// All of it.
    Full,
    /// The same range as this dimension of the output.
    Same(usize),
    /// From `⌊first·mul/div⌋ + lo` to `⌊last·mul/div⌋ + hi`, both included, where `first` and `last`
    /// bound the range of dimension `dim` of the output; clipped to the input.
    Affine { dim: usize, mul: i64, div: i64, lo: i64, hi: i64 },
}

impl DimMap {
    /// A shift: index `i` of the output depends on `i + by` of the input.
    pub fn shifted(dim: usize, by: i64) -> Self {
        Self::Affine { dim, mul: 1, div: 1, lo: by, hi: by }
    }

    /// The range within an input dimension of `extent`; `None` when it is empty.
    pub fn apply(self, out: &[(u64, u64)], extent: u64) -> Option<(u64, u64)> {
        let range = match self {
            Self::Full => (0, extent),
            Self::Same(dim) => {
                let (lo, hi) = *out.get(dim)?;
                (lo, hi.min(extent))
            }
            Self::Affine { dim, mul, div, lo, hi } => {
                let (first, end) = *out.get(dim)?;
                let at = |i: u64| (i128::from(i) * i128::from(mul)).div_euclid(i128::from(div.max(1)));
                let (a, b) = (at(first), at(end.saturating_sub(1)));
                let from = (a.min(b) + i128::from(lo)).clamp(0, i128::from(extent));
                let to = (a.max(b) + i128::from(hi) + 1).clamp(0, i128::from(extent));
                (from as u64, to as u64)
            }
        };
        (range.0 < range.1).then_some(range)
    }
}

/// One [`DimMap`] per dimension of an input.
pub(super) type BoxMap = Vec<DimMap>;

/// The box of an input of `shape` that the box `out` of the output depends on.
pub(super) fn apply(map: &[DimMap], out: &[(u64, u64)], shape: &Shape) -> Option<Region> {
    map.iter().zip(shape.dims()).map(|(m, &extent)| m.apply(out, extent)).collect()
}

/// The box of `old` that holds the box `region` of `new`, where both read the same elements in
/// row-major order. Dimensions are matched in groups of equal product, so that a split or merged
/// dimension does not blur its neighbours; within a group the result is the smallest box that holds
/// the elements from the first to the last.
pub(super) fn reshape(region: &[(u64, u64)], new: &Shape, old: &Shape) -> Region {
    let (new, old) = (new.dims(), old.dims());
    let mut result = Vec::with_capacity(old.len());
    let (mut i, mut j) = (0, 0);
    while j < old.len() {
        let (i0, j0) = (i, j);
        let (mut left, mut right) = (1, old[j]);
        j += 1;
        while left != right {
            let (dims, at, product) = if left < right { (new, &mut i, &mut left) } else { (old, &mut j, &mut right) };
            let Some(dim) = dims.get(*at) else { break };
            *product *= dim;
            *at += 1;
        }
        result.extend(reshape_group(&region[i0..i], &new[i0..i], &old[j0..j]));
    }
    result
}

fn reshape_group(region: &[(u64, u64)], new: &[u64], old: &[u64]) -> Region {
    let flat = |pick: fn(&(u64, u64)) -> u64| region.iter().zip(new).fold(0, |at, (r, d)| at * d + pick(r));
    let (mut first, mut last) = (flat(|r| r.0), flat(|r| r.1.saturating_sub(1)));
    let mut result = vec![(0, 0); old.len()];
    let mut stride: u64 = old.iter().product();
    let mut exact = true;
    for (range, &extent) in result.iter_mut().zip(old) {
        stride /= extent.max(1);
        let (a, b) = (first / stride.max(1), last / stride.max(1));
        *range = if exact { (a, b + 1) } else { (0, extent) };
        // Behind a dimension with a range of its own, the elements wrap around.
        exact &= a == b;
        (first, last) = (first % stride.max(1), last % stride.max(1));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u64]) -> Shape {
        Shape::new(dims.to_vec()).unwrap()
    }

    #[test]
    fn a_strided_window_reaches_over_the_edges_and_is_clipped() {
        let conv = DimMap::Affine { dim: 0, mul: 2, div: 1, lo: -1, hi: 1 };
        assert_eq!(conv.apply(&[(0, 2)], 8), Some((0, 4)));
        assert_eq!(conv.apply(&[(2, 4)], 8), Some((3, 8)));
        let backward = DimMap::Affine { dim: 0, mul: -1, div: 1, lo: 7, hi: 7 };
        assert_eq!(backward.apply(&[(0, 3)], 8), Some((5, 8)));
        assert_eq!(DimMap::shifted(0, -4).apply(&[(0, 4)], 8), None);
    }

    #[test]
    fn reshapes_keep_dimensions_apart() {
        // A head of an attention layer stands in its own columns of the projection.
        let (old, new) = (shape(&[1, 128, 768]), shape(&[1, 128, 12, 64]));
        assert_eq!(reshape(&[(0, 1), (32, 64), (3, 4), (0, 64)], &new, &old), [(0, 1), (32, 64), (192, 256)]);
        // A flattened map: columns of the flat one cover whole channels.
        let (old, new) = (shape(&[1, 512, 7, 7]), shape(&[1, 25088]));
        assert_eq!(reshape(&[(0, 1), (98, 147)], &new, &old), [(0, 1), (2, 3), (0, 7), (0, 7)]);
        assert_eq!(reshape(&[(0, 1), (90, 147)], &new, &old), [(0, 1), (1, 3), (0, 7), (0, 7)]);
        // Dimensions of 1 come and go anywhere.
        let (old, new) = (shape(&[6, 4]), shape(&[1, 6, 1, 4, 1]));
        assert_eq!(reshape(&[(0, 1), (2, 3), (0, 1), (1, 3), (0, 1)], &new, &old), [(2, 3), (1, 3)]);
        assert_eq!(reshape(&[(2, 3), (1, 3)], &old, &new), [(0, 1), (2, 3), (0, 1), (1, 3), (0, 1)]);
    }
}
