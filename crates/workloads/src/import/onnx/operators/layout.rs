//! Operators that rename, move or pick elements.

use super::super::error::Problem;
use super::super::kernel::{Call, Gather, Kernel, Output, axis, checked, same, whole};
use super::super::region::{BoxMap, DimMap};
use super::super::tensor::{DataType, MAX_RANK, MAX_VALUES, Shape, Tensor, Value};
use super::pointwise::{broadcast, broadcast_map};

/// The elements of input 0 under another shape.
fn view(x: &Tensor, dims: Vec<u64>) -> Result<Output, Problem> {
    let shape = Shape::new(dims)?;
    if shape.elements() != x.shape.elements() {
        let (left, right) = (x.shape.clone(), shape);
        return Err(Problem::Mismatch { left, right, why: "both must have the same number of elements" });
    }
    Ok(Output::new(shape, x.data_type, Kernel::View).valued(x.value.clone()))
}

/// The same tensor under another name.
pub(super) fn identity(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    Ok(vec![view(x, x.shape.dims().to_vec())?])
}

/// `Dropout` does nothing in inference; its mask is computed where something reads it.
pub(super) fn dropout(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let mask = Output::vector(x.shape.clone(), DataType::BOOL, "DROPOUT", vec![(0, same(x.shape.rank()))]);
    Ok(vec![view(x, x.shape.dims().to_vec())?, mask])
}

/// `Reshape`: 0 keeps an extent, -1 stands for what is left over.
pub(super) fn reshape(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let wanted = call.needed_list(1, "shape")?;
    let keep_zero = call.int("allowzero", 0) != 0;
    let mut dims = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (i, &d) in wanted.iter().enumerate() {
        let extent = match d {
            0 if !keep_zero => x.shape.dims().get(i).copied(),
            -1 if open.replace(i).is_none() => Some(1),
            _ => u64::try_from(d).ok(),
        };
        dims.push(extent.ok_or_else(|| Problem::Value {
            name: "shape",
            value: format!("{d} at place {i}"),
            wanted: "no extent that the output can have",
        })?);
    }
    if let Some(i) = open {
        let rest = Shape::new(dims.clone())?.elements();
        dims[i] = x.shape.elements().checked_div(rest).unwrap_or(0);
    }
    Ok(vec![view(x, dims)?])
}

/// `Flatten`: a matrix of the dimensions before `axis` and those from it on.
pub(super) fn flatten(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let rank = x.shape.rank();
    let at = call.int("axis", 1);
    let at = if at == rank as i64 { rank } else { axis("axis", at, rank)? };
    let (rows, columns) = x.shape.dims().split_at(at);
    Ok(vec![view(x, vec![rows.iter().product(), columns.iter().product()])?])
}

/// `Squeeze`: drops extents of 1.
pub(super) fn squeeze(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let d = x.shape.dims();
    let gone: Vec<usize> = match call.list(1, "axes")? {
        None => (0..d.len()).filter(|&i| d[i] == 1).collect(),
        Some(axes) => axes.iter().map(|&a| axis("axes", a, d.len())).collect::<Result<_, _>>()?,
    };
    let dims = d.iter().enumerate().filter(|(i, _)| !gone.contains(i)).map(|(_, &e)| e).collect();
    Ok(vec![view(x, dims)?])
}

/// `Unsqueeze`: inserts extents of 1 at places of the output.
pub(super) fn unsqueeze(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let axes = call.needed_list(1, "axes")?;
    let axes = checked_count("axes", axes)?;
    let rank = x.shape.rank() + axes.len();
    let new: Vec<_> = axes.iter().map(|&a| axis("axes", a, rank)).collect::<Result<_, _>>()?;
    let mut old = x.shape.dims().iter().copied();
    let dims = (0..rank).map(|i| if new.contains(&i) { 1 } else { old.next().unwrap_or(1) }).collect();
    Ok(vec![view(x, dims)?])
}

/// A list with one number per dimension of a tensor at most.
fn checked_count(name: &'static str, list: Vec<i64>) -> Result<Vec<i64>, Problem> {
    if list.len() <= MAX_RANK {
        return Ok(list);
    }
    Err(Problem::Value { name, value: format!("a list of {}", list.len()), wanted: "longer than any shape" })
}

/// `Transpose`: dimensions in another order, reversed by default.
pub(super) fn transpose(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let rank = x.shape.rank();
    let perm: Vec<usize> = match call.ints("perm") {
        Some(perm) => perm.iter().map(|&p| axis("perm", p, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut map = vec![None; rank];
    perm.iter().enumerate().for_each(|(out, &p)| map[p] = Some(DimMap::Same(out)));
    let complete = (perm.len() == rank).then(|| map.into_iter().collect::<Option<BoxMap>>()).flatten();
    let map = complete.ok_or_else(|| Problem::Value {
        name: "perm",
        value: format!("{perm:?}"),
        wanted: "no permutation of the dimensions",
    })?;
    let shape = Shape::new(perm.iter().map(|&p| x.shape.dims()[p]).collect())?;
    Ok(vec![Output::vector(shape, x.data_type, "TRANSPOSE", vec![(0, map)])])
}

/// `Concat`: inputs behind each other along one dimension.
pub(super) fn concat(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let first = call.ranked(0, 1, "at least 1")?;
    let at = axis("axis", call.int("axis", 1), first.shape.rank())?;
    let (mut start, mut reads) = (0u64, Vec::new());
    let mut values = Some(Vec::new());
    for index in 0..call.inputs.len() {
        let x = call.input(index)?;
        let alike = |(i, (a, b)): (usize, (&u64, &u64))| i == at || a == b;
        let same_rank = x.shape.rank() == first.shape.rank();
        if !same_rank || !x.shape.dims().iter().zip(first.shape.dims()).enumerate().all(alike) {
            let (left, right) = (first.shape.clone(), x.shape.clone());
            return Err(Problem::Mismatch { left, right, why: "they may differ along `axis` only" });
        }
        let mut map = same(x.shape.rank());
        map[at] = DimMap::shifted(at, -(start as i64));
        reads.push((index, map));
        start += x.shape.dims()[at];
        match x.value.as_ref().and_then(Value::ints).filter(|_| first.shape.rank() == 1) {
            Some(more) => values.iter_mut().for_each(|v| v.extend_from_slice(more)),
            None => values = None,
        }
        values = values.filter(|v| v.len() <= MAX_VALUES);
    }
    let mut dims = first.shape.dims().to_vec();
    dims[at] = start;
    let output = Output::vector(Shape::new(dims)?, first.data_type, "CONCAT", reads);
    Ok(vec![output.valued(values.map(Value::Ints))])
}

/// `Split`: the opposite of `Concat`; into equal parts where no lengths are given.
pub(super) fn split(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 1, "at least 1")?;
    let at = axis("axis", call.int("axis", 0), x.shape.rank())?;
    let extent = x.shape.dims()[at];
    let parts = call.proto.output.len().max(1) as u64;
    let lengths = match call.list(1, "split")? {
        Some(list) => checked("split", &list, list.len(), 0)?.into_iter().map(|l| l as u64).collect(),
        None => {
            let each = extent.div_ceil(parts);
            (0..parts).map(|i| each.min(extent.saturating_sub(i * each))).collect::<Vec<_>>()
        }
    };
    if lengths.iter().sum::<u64>() != extent {
        let value = format!("{lengths:?}");
        return Err(Problem::Value { name: "split", value, wanted: "not what the dimension adds up to" });
    }
    let mut start = 0;
    let mut part = |length: u64| {
        let mut dims = x.shape.dims().to_vec();
        dims[at] = length;
        let mut map = same(x.shape.rank());
        map[at] = DimMap::shifted(at, start as i64);
        start += length;
        Ok(Output::vector(Shape::new(dims)?, x.data_type, "SPLIT", vec![(0, map)]))
    };
    lengths.into_iter().map(&mut part).collect()
}

/// `Slice`: a range with a step per dimension; ends are clipped to the input.
pub(super) fn slice(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let rank = x.shape.rank();
    let (starts, ends) = (call.needed_list(1, "starts")?, call.needed_list(2, "ends")?);
    let axes = call.list(3, "axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = call.list(4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&l| l != starts.len()) {
        let value = format!("{} starts", starts.len());
        return Err(Problem::Value { name: "starts", value, wanted: "not as many as ends, axes and steps" });
    }
    let mut dims = x.shape.dims().to_vec();
    let mut map = same(rank);
    let mut values = x.value.clone();
    for (i, &a) in axes.iter().enumerate() {
        let at = axis("axes", a, rank)?;
        let (start, step, count) = bounds(starts[i], ends[i], steps[i], x.shape.dims()[at])?;
        dims[at] = count;
        map[at] = DimMap::Affine { dim: at, mul: step, div: 1, lo: start, hi: start };
        let pick = |v: &[i64]| (0..count as i64).map(|k| v.get((start + k * step) as usize).copied()).collect();
        values = values.filter(|_| rank == 1).and_then(|v| v.ints().and_then(pick).map(Value::Ints));
    }
    Ok(vec![Output::vector(Shape::new(dims)?, x.data_type, "SLICE", vec![(0, map)]).valued(values)])
}

/// First index, step and number of elements of a slice of a dimension.
fn bounds(start: i64, end: i64, step: i64, extent: u64) -> Result<(i64, i64, u64), Problem> {
    let extent = extent as i64;
    // Steps longer than the dimension pick one element, whatever their length.
    let step = step.clamp(-extent - 1, extent + 1);
    let from_end = |v: i64| if v < 0 { v.saturating_add(extent) } else { v };
    let (start, end) = match step {
        0 => return Err(Problem::Value { name: "steps", value: "0".to_owned(), wanted: "no step" }),
        1.. => (from_end(start).clamp(0, extent), from_end(end).clamp(0, extent)),
        _ => (from_end(start).clamp(0, (extent - 1).max(0)), from_end(end).clamp(-1, (extent - 1).max(-1))),
    };
    let span = if step > 0 { end - start } else { start - end };
    let count = if span <= 0 || extent == 0 { 0 } else { (span - 1) / step.abs() + 1 };
    Ok((start, step, count as u64))
}

/// `Pad`: elements are added around the input, or cut off where a pad is negative.
pub(super) fn pad(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let rank = x.shape.rank();
    let pads = match call.list(1, "pads")? {
        Some(pads) => pads,
        None => call.ints("paddings").map(<[i64]>::to_vec).ok_or(Problem::MissingInput { index: 1 })?,
    };
    let axes = call.list(3, "axes")?.unwrap_or_else(|| (0..rank as i64).collect());
    let pads = checked("pads", &pads, 2 * axes.len(), -(1 << 31))?;
    let mut dims = x.shape.dims().to_vec();
    let mut map = same(rank);
    for (i, &a) in axes.iter().enumerate() {
        let at = axis("axes", a, rank)?;
        let (before, after) = (pads[i], pads[i + axes.len()]);
        dims[at] = u64::try_from(dims[at] as i64 + before + after).map_err(|_| Problem::Value {
            name: "pads",
            value: format!("{before} and {after}"),
            wanted: "more than there is to cut off",
        })?;
        map[at] = DimMap::shifted(at, -before);
    }
    Ok(vec![Output::vector(Shape::new(dims)?, x.data_type, "PAD", vec![(0, map)])])
}

/// `Expand`: broadcasts to a shape.
pub(super) fn expand(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let wanted = call.needed_list(1, "shape")?;
    let dims = checked("shape", &wanted, wanted.len(), 0)?.into_iter().map(|d| d as u64).collect();
    let shape = broadcast(&x.shape, &Shape::new(dims)?)?;
    let map = broadcast_map(&x.shape, &shape);
    Ok(vec![Output::vector(shape, x.data_type, "EXPAND", vec![(0, map)])])
}

/// `Tile`: repeats the input along each dimension. A tile that crosses a seam reads all of it.
pub(super) fn tile(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let repeats = call.needed_list(1, "repeats")?;
    let repeats = checked("repeats", &repeats, x.shape.rank(), 0)?;
    let once = |(i, &r): (usize, &i64)| if r == 1 { DimMap::Same(i) } else { DimMap::Full };
    let map = repeats.iter().enumerate().map(once).collect();
    let dims = x.shape.dims().iter().zip(&repeats).map(|(&d, &r)| d.saturating_mul(r as u64)).collect();
    Ok(vec![Output::vector(Shape::new(dims)?, x.data_type, "TILE", vec![(0, map)])])
}

/// `Gather`: the dimensions of the indices take the place of `axis`.
pub(super) fn gather(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let (data, indices) = (call.ranked(0, 1, "at least 1")?, call.input(1)?);
    let at = axis("axis", call.int("axis", 0), data.shape.rank())?;
    let (d, picked) = (data.shape.dims(), indices.shape.rank());
    let dims = [&d[..at], indices.shape.dims(), &d[at + 1..]].concat();
    let map = (0..d.len()).map(|i| match i {
        _ if i < at => DimMap::Same(i),
        _ if i == at => DimMap::Full,
        _ => DimMap::Same(i + picked - 1),
    });
    let data_map = if picked == 0 { map_without(at, d.len()) } else { map.collect() };
    let value = pick(data, indices);
    let index_map = (0..picked).map(|i| DimMap::Same(i + at)).collect();
    let kernel = Kernel::Gather(Gather { data: (0, data_map), indices: (1, index_map) });
    Ok(vec![Output::new(Shape::new(dims)?, data.data_type, kernel).valued(value)])
}

/// The map of a single pick, which drops the dimension `at`.
fn map_without(at: usize, rank: usize) -> BoxMap {
    (0..rank)
        .map(|i| match i {
            _ if i < at => DimMap::Same(i),
            _ if i == at => DimMap::Full,
            _ => DimMap::Same(i - 1),
        })
        .collect()
}

/// The picked values of a constant list.
fn pick(data: &Tensor, indices: &Tensor) -> Option<Value> {
    let (values, places) = (data.value.as_ref()?.ints()?, indices.value.as_ref()?.ints()?);
    let length = values.len() as i64;
    let at = |&i: &i64| usize::try_from(if i < 0 { i.checked_add(length)? } else { i }).ok();
    let picked: Option<Vec<_>> = places.iter().map(|i| values.get(at(i)?).copied()).collect();
    (data.shape.rank() == 1).then_some(Value::Ints(picked?))
}

/// `GatherElements`: any element may come from anywhere along `axis`.
pub(super) fn gather_elements(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let (data, indices) = (call.input(0)?, call.input(1)?);
    let reads = vec![(0, whole(data.shape.rank())), (1, same(indices.shape.rank()))];
    Ok(vec![Output::vector(indices.shape.clone(), data.data_type, "GATHER", reads)])
}

/// `ScatterElements`, `ScatterND`: any update may fall into any tile.
pub(super) fn scatter(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let (data, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let reads = vec![(0, same(data.shape.rank())), (1, whole(indices.shape.rank())), (2, whole(updates.shape.rank()))];
    Ok(vec![Output::vector(data.shape.clone(), data.data_type, "SCATTER", reads)])
}
