//! Shapes, element types and the small constant values that shape inference reads.

use super::error::Problem;
use super::proto::TensorProto;
use std::fmt;

/// The most elements a tensor may have.
pub(super) const MAX_ELEMENTS: u64 = 1 << 40;
/// The most dimensions a tensor may have.
pub(super) const MAX_RANK: usize = 16;
/// The most elements of a constant whose values are kept.
pub(super) const MAX_VALUES: usize = 4096;

/// The extents of a tensor, the outermost first; at most 2⁴⁰ elements in 16 dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape(Vec<u64>);

impl Shape {
    /// A shape of these extents.
    ///
    /// # Errors
    /// [`Problem::TooLarge`] past the limits. Extents of 0 are taken as 1 in the product, so that no
    /// dimension is unbounded.
    pub fn new(dims: Vec<u64>) -> Result<Self, Problem> {
        let product = dims.iter().try_fold(1u64, |p, &d| p.checked_mul(d.max(1))).filter(|&p| p <= MAX_ELEMENTS);
        match product {
            Some(_) if dims.len() <= MAX_RANK => Ok(Self(dims)),
            _ => {
                let shape = Self(dims.into_iter().take(MAX_RANK).collect());
                Err(Problem::TooLarge { shape, limit: MAX_ELEMENTS })
            }
        }
    }

    /// The extents.
    pub fn dims(&self) -> &[u64] {
        &self.0
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of elements; 1 for a scalar.
    pub fn elements(&self) -> u64 {
        self.0.iter().product()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { "x" })?;
        }
        f.write_str("]")
    }
}

/// The type of an element, as a `TensorProto.DataType` number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataType(pub i32);

impl DataType {
    pub const FLOAT: Self = Self(1);
    pub const INT64: Self = Self(7);
    pub const BOOL: Self = Self(9);

    /// The bytes of an element; types narrower than a byte count as a byte, strings and unknown
    /// types as 4.
    pub fn width(self) -> u64 {
        match self.0 {
            2 | 3 | 9 | 17..=25 => 1,
            4 | 5 | 10 | 16 => 2,
            7 | 11 | 13 | 14 => 8,
            15 => 16,
            _ => 4,
        }
    }
}

/// The values of a small constant, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

impl Value {
    pub fn ints(&self) -> Option<&[i64]> {
        match self {
            Self::Ints(v) => Some(v),
            Self::Floats(_) => None,
        }
    }

    pub fn floats(&self) -> Vec<f64> {
        match self {
            Self::Ints(v) => v.iter().map(|&i| i as f64).collect(),
            Self::Floats(v) => v.clone(),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Ints(v) => v.len(),
            Self::Floats(v) => v.len(),
        }
    }

    /// The value, unless it is longer than what is kept.
    pub fn kept(self) -> Option<Self> {
        (self.len() <= MAX_VALUES).then_some(self)
    }
}

/// A tensor of the network.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub shape: Shape,
    pub data_type: DataType,
    pub value: Option<Value>,
    /// True when it does not depend on an input of the network: it stands in main memory when the
    /// network starts.
    pub constant: bool,
}

impl Tensor {
    /// An initializer or the value of a `Constant` node.
    pub fn from_proto(proto: &TensorProto) -> Result<Self, Problem> {
        let shape = Shape::new(dims_of(&proto.dims)?)?;
        let data_type = DataType(proto.data_type);
        let value = value_of(proto, shape.elements(), data_type);
        Ok(Self { shape, data_type, value, constant: true })
    }
}

/// Extents out of a file.
pub(super) fn dims_of(dims: &[i64]) -> Result<Vec<u64>, Problem> {
    let negative = |&d: &i64| Problem::Value { name: "dims", value: d.to_string(), wanted: "not a number from 0 up" };
    dims.iter().map(|d| u64::try_from(*d).map_err(|_| negative(d))).collect()
}

/// The values of a constant that is small and complete; weights kept elsewhere have none.
fn value_of(proto: &TensorProto, elements: u64, data_type: DataType) -> Option<Value> {
    let count = usize::try_from(elements).ok().filter(|&c| c <= MAX_VALUES)?;
    let raw = |width: usize| (proto.raw_data.len() == count * width).then(|| proto.raw_data.chunks_exact(width));
    let value = match data_type {
        DataType::INT64 if proto.raw_data.is_empty() => Value::Ints(proto.int64_data.clone()),
        DataType::INT64 => Value::Ints(raw(8)?.filter_map(|c| Some(i64::from_le_bytes(c.try_into().ok()?))).collect()),
        DataType(6) if proto.raw_data.is_empty() => Value::Ints(proto.int32_data.iter().map(|&i| i.into()).collect()),
        DataType(6) => {
            Value::Ints(raw(4)?.filter_map(|c| Some(i32::from_le_bytes(c.try_into().ok()?).into())).collect())
        }
        DataType::FLOAT if proto.raw_data.is_empty() => {
            Value::Floats(proto.float_data.iter().map(|&x| x.into()).collect())
        }
        DataType::FLOAT => {
            Value::Floats(raw(4)?.filter_map(|c| Some(f32::from_le_bytes(c.try_into().ok()?).into())).collect())
        }
        _ => return None,
    };
    (value.len() == count).then_some(value)
}
