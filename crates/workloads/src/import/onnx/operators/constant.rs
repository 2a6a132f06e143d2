//! Operators whose outputs are known when the model is read.

use super::super::error::Problem;
use super::super::kernel::{Call, Kernel, Output, checked};
use super::super::tensor::{DataType, Shape, Tensor, Value};

fn known(shape: Shape, data_type: DataType, value: Option<Value>) -> Vec<Output> {
    vec![Output::new(shape, data_type, Kernel::Constant).valued(value)]
}

fn ints(values: Vec<i64>) -> Result<Vec<Output>, Problem> {
    Ok(known(Shape::new(vec![values.len() as u64])?, DataType::INT64, Some(Value::Ints(values))))
}

/// `Constant`: a tensor, a number or a list of numbers.
pub(super) fn constant(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    if let Some(proto) = call.tensor("value") {
        let Tensor { shape, data_type, value, .. } = Tensor::from_proto(proto)?;
        return Ok(known(shape, data_type, value));
    }
    if let Some(list) = call.ints("value_ints") {
        return ints(list.to_vec());
    }
    if let Some(list) = call.floats("value_floats") {
        let values = list.iter().map(|&x| x.into()).collect();
        return Ok(known(Shape::new(vec![list.len() as u64])?, DataType::FLOAT, Some(Value::Floats(values))));
    }
    let scalar = Shape::default();
    match call.float("value_float") {
        Some(x) => Ok(known(scalar, DataType::FLOAT, Some(Value::Floats(vec![x.into()])))),
        None => Ok(known(scalar, DataType::INT64, Some(Value::Ints(vec![call.int("value_int", 0)])))),
    }
}

/// `ConstantOfShape`: one value everywhere.
pub(super) fn constant_of_shape(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let dims = call.needed_list(0, "shape")?;
    let dims = checked("shape", &dims, dims.len(), 0)?.into_iter().map(|d| d as u64).collect();
    let shape = Shape::new(dims)?;
    let fill = call.tensor("value").map(Tensor::from_proto).transpose()?;
    let data_type = fill.as_ref().map_or(DataType::FLOAT, |t| t.data_type);
    let few = usize::try_from(shape.elements()).ok().filter(|&n| n <= 64);
    let value = few.and_then(|n| match fill?.value? {
        Value::Ints(v) => Some(Value::Ints(vec![*v.first()?; n])),
        Value::Floats(v) => Some(Value::Floats(vec![*v.first()?; n])),
    });
    Ok(known(shape, data_type, value))
}

/// `Range`: numbers from start to limit.
pub(super) fn range(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let number = |i: usize| {
        let value = call.input(i)?.value.as_ref().ok_or(Problem::NotConstant { name: "a bound of the range" })?;
        value.floats().first().copied().ok_or(Problem::NotConstant { name: "a bound of the range" })
    };
    let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
    let count = ((limit - start) / delta).ceil().max(0.0);
    if count.is_nan() || count > 2f64.powi(40) {
        return Err(Problem::Value { name: "the range", value: count.to_string(), wanted: "too long" });
    }
    let data_type = call.input(0)?.data_type;
    let few = (count <= 4096.0 && call.input(0)?.value.as_ref().is_some_and(|v| v.ints().is_some()))
        .then(|| Value::Ints((0..count as i64).map(|i| (start + i as f64 * delta) as i64).collect()));
    Ok(known(Shape::new(vec![count as u64])?, data_type, few))
}

/// `Shape`: the extents of a tensor, or some of them.
pub(super) fn shape(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let dims = call.input(0)?.shape.dims();
    let rank = dims.len() as i64;
    let place = |v: i64| (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank) as usize;
    let (start, end) = (place(call.int("start", 0)), place(call.int("end", rank)));
    ints(dims.get(start..end).unwrap_or_default().iter().map(|&d| d as i64).collect())
}

/// `Size`: the number of elements.
pub(super) fn size(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let count = call.input(0)?.shape.elements() as i64;
    Ok(known(Shape::default(), DataType::INT64, Some(Value::Ints(vec![count]))))
}
