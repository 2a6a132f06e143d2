//! Operators that see whole rows: reductions, softmax, normalisations.

use super::super::error::Problem;
use super::super::kernel::{Call, Kernel, Output, Stats, Vector, axis, checked, same, whole};
use super::super::region::{BoxMap, DimMap};
use super::super::tensor::{DataType, Shape, Tensor, Value};
use super::pointwise::{broadcast, broadcast_map};

/// The shape that is left when `axes` are reduced, and how it reads the input.
fn reduced(x: &Tensor, axes: &[usize], keep: bool) -> Result<(Shape, BoxMap), Problem> {
    let (mut dims, mut map) = (Vec::new(), Vec::new());
    for (i, &extent) in x.shape.dims().iter().enumerate() {
        let gone = axes.contains(&i);
        map.push(if gone { DimMap::Full } else { DimMap::Same(dims.len()) });
        match gone {
            false => dims.push(extent),
            true if keep => dims.push(1),
            true => {}
        }
    }
    Ok((Shape::new(dims)?, map))
}

fn axes_of(values: &[i64], rank: usize) -> Result<Vec<usize>, Problem> {
    values.iter().map(|&a| axis("axes", a, rank)).collect()
}

/// `ReduceSum` and its kin.
pub(super) fn reduce(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let rank = x.shape.rank();
    let given = call.list(1, "axes")?.unwrap_or_default();
    let axes = match given.is_empty() {
        false => axes_of(&given, rank)?,
        true if call.int("noop_with_empty_axes", 0) != 0 => Vec::new(),
        true => (0..rank).collect(),
    };
    let (shape, map) = reduced(x, &axes, call.int("keepdims", 1) != 0)?;
    let whole = shape.elements() == 1 && call.proto.op_type == "ReduceProd";
    let product = |v: &[i64]| v.iter().try_fold(1i64, |p, &x| p.checked_mul(x));
    let value = x.value.as_ref().filter(|_| whole).and_then(Value::ints).and_then(product);
    let output = Output::vector(shape, x.data_type, &call.proto.op_type, vec![(0, map)]);
    Ok(vec![output.valued(value.map(|p| Value::Ints(vec![p])))])
}

/// `ArgMax` and `ArgMin`.
pub(super) fn arg(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 1, "at least 1")?;
    let axes = [axis("axis", call.int("axis", 0), x.shape.rank())?];
    let (shape, map) = reduced(x, &axes, call.int("keepdims", 1) != 0)?;
    Ok(vec![Output::vector(shape, DataType::INT64, &call.proto.op_type, vec![(0, map)])])
}

/// The `k` largest along a dimension, and their places.
pub(super) fn top_k(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 1, "at least 1")?;
    let at = axis("axis", call.int("axis", -1), x.shape.rank())?;
    let k = call.list(1, "k")?.unwrap_or_else(|| vec![call.int("k", 0)]);
    let k = checked("k", &k, 1, 0)?[0] as u64;
    let mut dims = x.shape.dims().to_vec();
    dims[at] = k.min(dims[at]);
    let mut map = same(x.shape.rank());
    map[at] = DimMap::Full;
    let shape = Shape::new(dims)?;
    let output = |data_type| Output::vector(shape.clone(), data_type, "TOPK", vec![(0, map.clone())]);
    Ok(vec![output(x.data_type), output(DataType::INT64)])
}

/// Running sums along a dimension that may be known only later.
pub(super) fn cum_sum(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let along = call.optional(1).and_then(|t| t.value.as_ref()).and_then(Value::ints).and_then(|v| v.first());
    let map = match along {
        None => whole(x.shape.rank()),
        Some(&a) => {
            let mut map = same(x.shape.rank());
            map[axis("axis", a, x.shape.rank())?] = DimMap::Full;
            map
        }
    };
    Ok(vec![Output::vector(x.shape.clone(), x.data_type, "CUMSUM", vec![(0, map)])])
}

/// An operator that passes over rows of input 0 to gather statistics, then over the tiles.
fn normalized(
    x: &Tensor,
    name: &str,
    axes: Vec<usize>,
    passes: &'static [&'static str],
    parameters: Vec<(usize, BoxMap)>,
) -> Output {
    let mut reads = vec![(0, same(x.shape.rank()))];
    reads.extend(parameters);
    let stats = (!axes.is_empty()).then_some(Stats { axes, passes });
    let vector = Vector { name: name.to_ascii_uppercase(), reads, stats };
    Output::new(x.shape.clone(), x.data_type, Kernel::Vector(vector))
}

/// Before operator set 13, a softmax ran over all dimensions from `axis` on.
pub(super) fn softmax(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 1, "at least 1")?;
    let rank = x.shape.rank();
    let axes = if call.opset < 13 {
        let default = 1.min(rank as i64 - 1);
        (axis("axis", call.int("axis", default), rank)?..rank).collect()
    } else {
        vec![axis("axis", call.int("axis", -1), rank)?]
    };
    Ok(vec![normalized(x, &call.proto.op_type, axes, &["ROWMAX", "ROWSUM"], Vec::new())])
}

/// Normalisation over all dimensions from `axis` on.
pub(super) fn layer_norm(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 1, "at least 1")?;
    let rank = x.shape.rank();
    let first = axis("axis", call.int("axis", -1), rank)?;
    let mut parameters = Vec::new();
    for (i, t) in (1..3).filter_map(|i| Some((i, call.optional(i)?))) {
        if t.shape.rank() > rank || broadcast(&x.shape, &t.shape)? != x.shape {
            let (left, right) = (x.shape.clone(), t.shape.clone());
            return Err(Problem::Mismatch { left, right, why: "scale and bias must broadcast to the input" });
        }
        parameters.push((i, broadcast_map(&t.shape, &x.shape)));
    }
    let rms = call.proto.op_type == "RMSNormalization";
    let passes: &[&str] = if rms { &["ROWSUM"] } else { &["ROWMEAN", "ROWVAR"] };
    let main = normalized(x, if rms { "RMSNORM" } else { "LAYERNORM" }, (first..rank).collect(), passes, parameters);
    let axes: Vec<_> = (first..rank).collect();
    let (shape, map) = reduced(x, &axes, true)?;
    let row = |name| Output::vector(shape.clone(), DataType::FLOAT, name, vec![(0, map.clone())]);
    Ok(vec![main, row("ROWMEAN"), row("ROWVAR")])
}

/// Normalisation over the spatial dimensions, and over the channels of a group.
pub(super) fn instance_norm(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 3, "at least 3")?;
    let grouped = call.proto.op_type == "GroupNormalization";
    let channels = x.shape.dims()[1];
    let mut parameters = Vec::new();
    for (i, t) in [(1, call.input(1)?), (2, call.input(2)?)] {
        let map = if t.shape.dims() == [channels] { vec![DimMap::Same(1)] } else { whole(t.shape.rank()) };
        parameters.push((i, map));
    }
    let name = if grouped { "GROUPNORM" } else { "INSTANCENORM" };
    // A group of channels is taken as all of them: no tile may be done before its whole group is.
    let axes = (if grouped { 1 } else { 2 }..x.shape.rank()).collect();
    Ok(vec![normalized(x, name, axes, &["ROWMEAN", "ROWVAR"], parameters)])
}

/// Division by the norm of a row.
pub(super) fn lp_norm(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 1, "at least 1")?;
    let axes = vec![axis("axis", call.int("axis", -1), x.shape.rank())?];
    Ok(vec![normalized(x, "LPNORM", axes, &["ROWSUM"], Vec::new())])
}

/// Normalisation over the dimensions that the node lists: all but the channels by default.
pub(super) fn mean_variance_norm(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 1, "at least 1")?;
    let rank = x.shape.rank();
    let axes = match call.ints("axes") {
        Some(axes) => axes_of(axes, rank)?,
        None => (0..rank).filter(|&a| a != 1).collect(),
    };
    Ok(vec![normalized(x, "MVNORM", axes, &["ROWMEAN", "ROWVAR"], Vec::new())])
}
