//! Operators that compute each element from the elements at the same place, with broadcasting.

use super::super::error::Problem;
use super::super::kernel::{Call, Output, same};
use super::super::region::{BoxMap, DimMap};
use super::super::tensor::{DataType, Shape, Tensor, Value};

/// The shape that `a` and `b` broadcast to, aligned at their last dimensions.
pub(super) fn broadcast(a: &Shape, b: &Shape) -> Result<Shape, Problem> {
    let rank = a.rank().max(b.rank());
    let dim = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(1, |j| s.dims()[j]);
    let merged = (0..rank).map(|i| match (dim(a, i), dim(b, i)) {
        (x, y) if x == y || y == 1 => Ok(x),
        (1, y) => Ok(y),
        _ => Err(Problem::Mismatch {
            left: a.clone(),
            right: b.clone(),
            why: "dimensions must be equal, or one of them 1",
        }),
    });
    Shape::new(merged.collect::<Result<_, _>>()?)
}

/// How an input of `shape` is read by an output that its shape broadcasts to.
pub(super) fn broadcast_map(shape: &Shape, out: &Shape) -> BoxMap {
    let offset = out.rank() - shape.rank();
    // An extent of 1 on both sides is no broadcast: the map stays that of the same element.
    let dim = |(i, (&d, &o)): (usize, (&u64, &u64))| if d == o { DimMap::Same(i + offset) } else { DimMap::Full };
    shape.dims().iter().zip(&out.dims()[offset..]).enumerate().map(dim).collect()
}

/// Broadcasts all inputs that are there.
fn broadcast_all(
    call: &Call<'_>,
    inputs: impl Iterator<Item = usize>,
) -> Result<(Shape, Vec<(usize, BoxMap)>), Problem> {
    let present: Vec<_> = inputs.filter_map(|i| call.optional(i).map(|t| (i, &t.shape))).collect();
    let first = present.first().ok_or(Problem::MissingInput { index: 0 })?.1.clone();
    let out = present.iter().try_fold(first, |out, (_, shape)| broadcast(&out, shape))?;
    let reads = present.iter().map(|&(i, shape)| (i, broadcast_map(shape, &out))).collect();
    Ok((out, reads))
}

/// One element in, one out; further inputs (the bounds of `Clip`) are broadcast.
pub(super) fn unary(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let mut reads = vec![(0, same(x.shape.rank()))];
    for (i, t) in (1..call.inputs.len()).filter_map(|i| Some((i, call.optional(i)?))) {
        if t.shape.rank() > x.shape.rank() || broadcast(&x.shape, &t.shape)? != x.shape {
            let (left, right) = (x.shape.clone(), t.shape.clone());
            return Err(Problem::Mismatch { left, right, why: "the second must broadcast to the first" });
        }
        reads.push((i, broadcast_map(&t.shape, &x.shape)));
    }
    let value = x.value.clone().filter(|_| matches!(call.proto.op_type.as_str(), "Floor" | "Ceil" | "Round"));
    let value = value.map(|v| match v {
        Value::Ints(v) => Value::Ints(v),
        Value::Floats(v) => Value::Floats(v.into_iter().map(|x| round(&call.proto.op_type, x)).collect()),
    });
    Ok(vec![Output::vector(x.shape.clone(), x.data_type, &call.proto.op_type, reads).valued(value)])
}

fn round(op: &str, x: f64) -> f64 {
    match op {
        "Floor" => x.floor(),
        "Ceil" => x.ceil(),
        _ => x.round_ties_even(),
    }
}

/// One element in, a truth value out.
pub(super) fn test(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let reads = vec![(0, same(x.shape.rank()))];
    Ok(vec![Output::vector(x.shape.clone(), DataType::BOOL, &call.proto.op_type, reads)])
}

/// Any number of inputs, broadcast to each other.
pub(super) fn nary(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let data_type = call.input(0)?.data_type;
    if let Some(output) = aligned_at_axis(call, data_type)? {
        return Ok(vec![output]);
    }
    let (shape, reads) = broadcast_all(call, 0..call.inputs.len())?;
    let value = arithmetic(call, &shape);
    Ok(vec![Output::vector(shape, data_type, &call.proto.op_type, reads).valued(value)])
}

/// As [`nary`], with truth values out.
pub(super) fn compare(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let (shape, reads) = broadcast_all(call, 0..call.inputs.len())?;
    Ok(vec![Output::vector(shape, DataType::BOOL, &call.proto.op_type, reads)])
}

/// `Where`: a condition picks between two inputs.
pub(super) fn choose(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let data_type = call.input(1)?.data_type;
    call.input(2)?;
    let (shape, reads) = broadcast_all(call, 0..3)?;
    Ok(vec![Output::vector(shape, data_type, &call.proto.op_type, reads)])
}

/// Before operator set 7, the second operand was aligned at a dimension given by `axis`.
fn aligned_at_axis(call: &Call<'_>, data_type: DataType) -> Result<Option<Output>, Problem> {
    let (Some(b), true) = (call.optional(1), call.opset < 7 && call.int("broadcast", 0) == 1) else {
        return Ok(None);
    };
    let a = call.input(0)?;
    let default = a.shape.rank().saturating_sub(b.shape.rank()) as i64;
    let at = usize::try_from(call.int("axis", default)).ok();
    let Some(part) = at.and_then(|at| a.shape.dims().get(at..at.checked_add(b.shape.rank())?)) else {
        let (left, right) = (a.shape.clone(), b.shape.clone());
        return Err(Problem::Mismatch { left, right, why: "the second must fit into the first from `axis` on" });
    };
    if part.iter().zip(b.shape.dims()).any(|(x, y)| x != y && *y != 1) {
        let (left, right) = (a.shape.clone(), b.shape.clone());
        return Err(Problem::Mismatch { left, right, why: "dimensions must be equal, or that of the second 1" });
    }
    let at = at.unwrap_or(0);
    let map = b.shape.dims().iter().zip(part).enumerate();
    let map = map.map(|(i, (d, o))| if d == o { DimMap::Same(i + at) } else { DimMap::Full }).collect();
    let reads = vec![(0, same(a.shape.rank())), (1, map)];
    Ok(Some(Output::vector(a.shape.clone(), data_type, &call.proto.op_type, reads)))
}

/// The value of whole-number arithmetic on constants: shapes are computed so in many models.
fn arithmetic(call: &Call<'_>, shape: &Shape) -> Option<Value> {
    let values = |t: &Tensor| t.value.clone().and_then(|v| v.ints().map(<[i64]>::to_vec));
    let (a, b) = (values(call.optional(0)?)?, values(call.optional(1)?)?);
    let count = usize::try_from(shape.elements()).ok()?;
    if call.inputs.len() != 2 || [&a, &b].iter().any(|v| v.len() != 1 && v.len() != count) {
        return None;
    }
    let at = |v: &[i64], i: usize| v.get(if v.len() == 1 { 0 } else { i }).copied();
    let element = |i| {
        let (x, y) = (at(&a, i)?, at(&b, i)?);
        match call.proto.op_type.as_str() {
            "Add" => x.checked_add(y),
            "Sub" => x.checked_sub(y),
            "Mul" => x.checked_mul(y),
            "Div" => x.checked_div(y),
            "Mod" => x.checked_rem_euclid(y),
            "Min" => Some(x.min(y)),
            "Max" => Some(x.max(y)),
            _ => None,
        }
    };
    (0..count).map(element).collect::<Option<Vec<_>>>().map(Value::Ints)
}

/// `Cast`: the element type changes, and with it the bytes of a tile.
pub(super) fn cast(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let to = i32::try_from(call.int("to", 1)).unwrap_or(1);
    let integral = matches!(to, 6 | 7);
    let value = x.value.clone().map(|v| match v {
        Value::Floats(v) if integral => Value::Ints(v.into_iter().map(|x| x as i64).collect()),
        Value::Ints(v) if !integral => Value::Floats(v.into_iter().map(|x| x as f64).collect()),
        other => other,
    });
    let reads = vec![(0, same(x.shape.rank()))];
    Ok(vec![Output::vector(x.shape.clone(), DataType(to), "CAST", reads).valued(value)])
}

/// Scale and zero point are one number, or one per index of a dimension.
pub(super) fn quantize(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let rank = x.shape.rank();
    let at = super::super::kernel::axis("axis", call.int("axis", 1), rank.max(2))?.min(rank.saturating_sub(1));
    let mut reads = vec![(0, same(rank))];
    for (i, t) in (1..3).filter_map(|i| Some((i, call.optional(i)?))) {
        let per_index = t.shape.rank() == 1 && rank > 0 && t.shape.dims()[0] == x.shape.dims()[at];
        let map = if per_index { vec![DimMap::Same(at)] } else { vec![DimMap::Full; t.shape.rank()] };
        reads.push((i, map));
    }
    let data_type = match (call.proto.op_type.as_str(), call.optional(2)) {
        ("QuantizeLinear", Some(zero)) => zero.data_type,
        ("QuantizeLinear", None) => DataType(2),
        _ => call.input(1)?.data_type,
    };
    Ok(vec![Output::vector(x.shape.clone(), data_type, &call.proto.op_type, reads)])
}

/// Four parameters per channel; in inference one pass over the tile.
pub(super) fn batch_norm(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 2, "at least 2")?;
    let mut reads = vec![(0, same(x.shape.rank()))];
    for i in 1..5 {
        let parameter = call.input(i)?;
        if parameter.shape.dims() != [x.shape.dims()[1]] {
            let (left, right) = (x.shape.clone(), parameter.shape.clone());
            return Err(Problem::Mismatch { left, right, why: "one parameter per channel" });
        }
        reads.push((i, vec![DimMap::Same(1)]));
    }
    let main = Output::vector(x.shape.clone(), x.data_type, "BATCHNORM", reads);
    // In training the running statistics are outputs as well.
    let running = |i: usize| {
        let parameter = call.input(i)?;
        Ok(Output::vector(parameter.shape.clone(), parameter.data_type, "BATCHNORM", vec![(i, same(1))]))
    };
    [3, 4, 3, 4].into_iter().map(running).try_fold(vec![main], |mut all, o: Result<_, Problem>| {
        all.push(o?);
        Ok(all)
    })
}
