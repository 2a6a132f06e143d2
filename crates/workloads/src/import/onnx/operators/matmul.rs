//! Matrix products.

use super::super::error::Problem;
use super::super::kernel::{Call, Cube, Kernel, LeftDim, Output};
use super::super::region::DimMap;
use super::super::tensor::Shape;
use super::pointwise::{broadcast, broadcast_map};

/// Products of stacks of matrices, as numpy's `matmul`: leading dimensions broadcast, a vector is a
/// matrix of one row (left) or one column (right).
pub(super) fn matmul(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let (a, b) = (call.ranked(0, 1, "at least 1")?, call.ranked(1, 1, "at least 1")?);
    let (ad, bd) = (a.shape.dims(), b.shape.dims());
    let (ar, br) = (ad.len(), bd.len());
    if ad[ar - 1] != bd[br.saturating_sub(2)] {
        let (left, right) = (a.shape.clone(), b.shape.clone());
        return Err(Problem::Mismatch { left, right, why: "columns of the first must be rows of the second" });
    }
    let stack = |d: &[u64]| Shape::new(d[..d.len().saturating_sub(2)].to_vec());
    let (a_stack, b_stack) = (stack(ad)?, stack(bd)?);
    let stacked = broadcast(&a_stack, &b_stack)?;
    let (rows, columns) = (ar > 1, br > 1);
    let mut dims = stacked.dims().to_vec();
    dims.extend(rows.then(|| ad[ar - 2]));
    dims.extend(columns.then(|| bd[br - 1]));
    let out = Shape::new(dims)?;
    let row = stacked.rank();
    let column = row + usize::from(rows);
    let mut right_map = broadcast_map(&b_stack, &stacked);
    right_map.push(DimMap::Full);
    right_map.extend(columns.then_some(DimMap::Same(column)));
    let inner = right_map.len() - 1 - usize::from(columns);
    let mut left_map: Vec<_> = broadcast_map(&a_stack, &stacked).into_iter().map(LeftDim::Out).collect();
    left_map.extend(rows.then_some(LeftDim::Out(DimMap::Same(row))));
    left_map.push(LeftDim::Right(inner));
    let cube = Cube { name: "MATMUL", left: 0, right: 1, right_map, left_map, bias: None, through_l0a: true };
    Ok(vec![Output::new(out, a.data_type, Kernel::Cube(cube))])
}

/// `alpha·A·B + beta·C`, either factor transposed, C broadcast.
pub(super) fn gemm(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let (a, b) = (call.ranked(0, 2, "2")?, call.ranked(1, 2, "2")?);
    if let Some((index, t)) = [(0, a), (1, b)].into_iter().find(|(_, t)| t.shape.rank() != 2) {
        return Err(Problem::Rank { index, shape: t.shape.clone(), wanted: "2" });
    }
    let [trans_a, trans_b] = ["transA", "transB"].map(|name| call.int(name, 0) != 0);
    let flip = |d: &[u64], t: bool| if t { (d[1], d[0]) } else { (d[0], d[1]) };
    let ((m, k), (k2, n)) = (flip(a.shape.dims(), trans_a), flip(b.shape.dims(), trans_b));
    if k != k2 {
        let (left, right) = (a.shape.clone(), b.shape.clone());
        return Err(Problem::Mismatch { left, right, why: "the inner dimensions must be equal" });
    }
    let out = Shape::new(vec![m, n])?;
    let bias = match call.optional(2) {
        None => None,
        Some(c) if c.shape.rank() <= 2 && broadcast(&c.shape, &out)? == out => Some((2, broadcast_map(&c.shape, &out))),
        Some(c) => {
            let (left, right) = (c.shape.clone(), out);
            return Err(Problem::Mismatch { left, right, why: "the bias must broadcast to the product" });
        }
    };
    let mut right_map = vec![DimMap::Full, DimMap::Same(1)];
    let mut left_map = vec![LeftDim::Out(DimMap::Same(0)), LeftDim::Right(usize::from(trans_b))];
    if trans_b {
        right_map.reverse();
    }
    if trans_a {
        left_map.reverse();
    }
    let cube = Cube { name: "MATMUL", left: 0, right: 1, right_map, left_map, bias, through_l0a: true };
    Ok(vec![Output::new(out, a.data_type, Kernel::Cube(cube))])
}
