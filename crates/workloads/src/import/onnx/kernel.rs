//! What an operator becomes: the shape of each output, and which boxes of the inputs a box of the
//! output is computed from.

use super::error::Problem;
use super::proto::NodeProto;
use super::region::{BoxMap, DimMap};
use super::tensor::{DataType, Shape, Tensor, Value};

/// How one output of a node is computed. Inputs are named by their place in the node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kernel {
    /// The elements of input 0 under another shape: no work.
    View,
    /// Known when the model is read: no work.
    Constant,
    /// On the vector pipe.
    Vector(Vector),
    /// On the cube pipe.
    Cube(Cube),
    /// Rows of a table, picked by indices.
    Gather(Gather),
}

/// Elementwise, reducing or moving work: one op per tile of the output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Vector {
    /// Name of the op.
    pub name: String,
    /// Inputs with the box each tile reads.
    pub reads: Vec<(usize, BoxMap)>,
    /// What must be known of whole rows of the first read before any of their tiles is done.
    pub stats: Option<Stats>,
}

/// Statistics over some dimensions, such as the maximum and the sum of a softmax.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stats {
    /// The dimensions they run over.
    pub axes: Vec<usize>,
    /// The op of each pass; a pass reads the results of those before it.
    pub passes: &'static [&'static str],
}

/// Work that multiplies and accumulates: for each tile of the output one op per tile of the right
/// operand (weights, usually) and, for `MATMUL`, per tile of the left one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cube {
    pub name: &'static str,
    pub left: usize,
    pub right: usize,
    /// The box of the right operand that a box of the output needs.
    pub right_map: BoxMap,
    /// The box of the left operand that goes with a box of the output and one of the right operand.
    pub left_map: Vec<LeftDim>,
    /// What is added once per tile of the output.
    pub bias: Option<(usize, BoxMap)>,
    /// True when the left operand passes through L0A; feature maps are read from L1.
    pub through_l0a: bool,
}

/// The range of one dimension of the left operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftDim {
    /// Given by the output.
    Out(DimMap),
    /// The range of this dimension of the right operand.
    Right(usize),
    /// Input channels of a grouped convolution: `right` holds those of one group.
    Channels { right: usize, outputs_per_group: u64, inputs_per_group: u64 },
    /// A window of a convolution: output `dim`, kernel dimension `right`.
    Window { dim: usize, right: usize, stride: i64, dilation: i64, pad: i64 },
    /// The window of a transposed convolution.
    Transposed { dim: usize, right: usize, stride: i64, dilation: i64, pad: i64 },
}

impl LeftDim {
    /// The range within an extent; `None` when it is empty.
    pub fn apply(self, out: &[(u64, u64)], right: &[(u64, u64)], extent: u64) -> Option<(u64, u64)> {
        let ends = |r: (u64, u64)| (i128::from(r.0), i128::from(r.1) - 1);
        let (from, to) = match self {
            Self::Out(map) => return map.apply(out, extent),
            Self::Right(r) => ends(*right.get(r)?),
            Self::Channels { right: r, outputs_per_group, inputs_per_group } => {
                let ((o0, o1), (c0, c1)) = (ends(*out.get(1)?), ends(*right.get(r)?));
                let group = |o: i128| o / i128::from(outputs_per_group.max(1)) * i128::from(inputs_per_group);
                (group(o0) + c0, group(o1) + c1)
            }
            Self::Window { dim, right: r, stride, dilation, pad } => {
                let ((o0, o1), (k0, k1)) = (ends(*out.get(dim)?), ends(*right.get(r)?));
                let at = |o: i128, k: i128| o * i128::from(stride) + k * i128::from(dilation) - i128::from(pad);
                (at(o0, k0), at(o1, k1))
            }
            Self::Transposed { dim, right: r, stride, dilation, pad } => {
                let ((o0, o1), (k0, k1)) = (ends(*out.get(dim)?), ends(*right.get(r)?));
                let at = |o: i128, k: i128| o + i128::from(pad) - k * i128::from(dilation);
                let stride = i128::from(stride.max(1));
                (-(-at(o0, k1)).div_euclid(stride), at(o1, k0).div_euclid(stride))
            }
        };
        let (from, end) = (from.clamp(0, extent.into()) as u64, (to + 1).clamp(0, extent.into()) as u64);
        (from < end).then_some((from, end))
    }
}

/// Rows picked from a table: a constant table stays in main memory, and each tile of the output is
/// loaded from it once its indices are known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gather {
    pub data: (usize, BoxMap),
    pub indices: (usize, BoxMap),
}

/// One output of a node.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub shape: Shape,
    pub data_type: DataType,
    pub value: Option<Value>,
    pub kernel: Kernel,
}

impl Output {
    pub fn new(shape: Shape, data_type: DataType, kernel: Kernel) -> Self {
        Self { shape, data_type, value: None, kernel }
    }

    /// An output of a vector op without statistics.
    pub fn vector(shape: Shape, data_type: DataType, name: &str, reads: Vec<(usize, BoxMap)>) -> Self {
        let name = name.to_ascii_uppercase();
        Self::new(shape, data_type, Kernel::Vector(Vector { name, reads, stats: None }))
    }

    pub fn valued(mut self, value: Option<Value>) -> Self {
        self.value = value.and_then(Value::kept);
        self
    }
}

/// A node with the shapes of its inputs.
pub(super) struct Call<'a> {
    pub proto: &'a NodeProto,
    pub inputs: Vec<Option<&'a Tensor>>,
    pub opset: i64,
}

/// The largest stride, pad, kernel and the like: keeps the arithmetic of windows far from its ends.
const MAX_ATTRIBUTE: i64 = 1 << 31;

impl<'a> Call<'a> {
    /// An input that must be there.
    pub fn input(&self, index: usize) -> Result<&'a Tensor, Problem> {
        self.optional(index).ok_or(Problem::MissingInput { index })
    }

    /// An input that may be absent.
    pub fn optional(&self, index: usize) -> Option<&'a Tensor> {
        self.inputs.get(index).copied().flatten()
    }

    /// An input of at least `least` dimensions.
    pub fn ranked(&self, index: usize, least: usize, wanted: &'static str) -> Result<&'a Tensor, Problem> {
        let tensor = self.input(index)?;
        if tensor.shape.rank() < least {
            return Err(Problem::Rank { index, shape: tensor.shape.clone(), wanted });
        }
        Ok(tensor)
    }

    fn attribute(&self, name: &str) -> Option<&'a super::proto::AttributeProto> {
        self.proto.attribute.iter().find(|a| a.name == name)
    }

    /// An integer attribute.
    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).and_then(|a| a.i).unwrap_or(default)
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.attribute(name).map(|a| a.ints.as_slice())
    }

    /// A list of reals.
    pub fn floats(&self, name: &str) -> Option<&'a [f32]> {
        self.attribute(name).map(|a| a.floats.as_slice())
    }

    /// A real.
    pub fn float(&self, name: &str) -> Option<f32> {
        self.attribute(name).and_then(|a| a.f)
    }

    /// A string attribute, "" when absent.
    pub fn string(&self, name: &str) -> &'a str {
        self.attribute(name).and_then(|a| a.s.as_deref()).and_then(|s| std::str::from_utf8(s).ok()).unwrap_or("")
    }

    /// A constant tensor attribute.
    pub fn tensor(&self, name: &str) -> Option<&'a super::proto::TensorProto> {
        self.attribute(name).and_then(|a| a.t.as_ref())
    }

    /// One positive number per spatial dimension, 1 where the attribute is absent.
    pub fn steps(&self, name: &'static str, count: usize) -> Result<Vec<i64>, Problem> {
        match self.ints(name) {
            None => Ok(vec![1; count]),
            Some(values) => checked(name, values, count, 1),
        }
    }

    /// Numbers from 0 up, `count` of them, 0 where the attribute is absent.
    pub fn pads(&self, name: &'static str, count: usize) -> Result<Vec<i64>, Problem> {
        match self.ints(name) {
            None => Ok(vec![0; count]),
            Some(values) => checked(name, values, count, 0),
        }
    }

    /// A list that newer operator sets give as a constant input and older ones as an attribute.
    /// `Ok(None)` when it is given in neither way.
    pub fn list(&self, index: usize, name: &'static str) -> Result<Option<Vec<i64>>, Problem> {
        match self.optional(index) {
            None => Ok(self.ints(name).map(<[i64]>::to_vec)),
            Some(tensor) => match tensor.value.as_ref().and_then(Value::ints) {
                Some(values) => Ok(Some(values.to_vec())),
                None if tensor.shape.elements() == 0 => Ok(Some(Vec::new())),
                None => Err(Problem::NotConstant { name }),
            },
        }
    }

    /// As [`Call::list`], for a list that must be there.
    pub fn needed_list(&self, index: usize, name: &'static str) -> Result<Vec<i64>, Problem> {
        self.list(index, name)?.ok_or(Problem::MissingInput { index })
    }
}

/// Numbers of an attribute within `least` and 2³¹.
pub(super) fn checked(name: &'static str, values: &[i64], count: usize, least: i64) -> Result<Vec<i64>, Problem> {
    if values.len() != count {
        let value = format!("a list of {}", values.len());
        return Err(Problem::Value { name, value, wanted: "not one number per spatial dimension (two for pads)" });
    }
    match values.iter().find(|v| !(least..=MAX_ATTRIBUTE).contains(v)) {
        None => Ok(values.to_vec()),
        Some(v) => Err(Problem::Value { name, value: v.to_string(), wanted: "out of its range (at most 2^31)" }),
    }
}

/// A dimension counted from the end where it is negative.
pub(super) fn axis(name: &'static str, value: i64, rank: usize) -> Result<usize, Problem> {
    let at = if value < 0 { value.checked_add(rank as i64) } else { Some(value) };
    at.and_then(|a| usize::try_from(a).ok()).filter(|&a| a < rank).ok_or_else(|| Problem::Value {
        name,
        value: value.to_string(),
        wanted: "not a dimension of the input",
    })
}

/// The map under which an input has the boxes of the output.
pub(super) fn same(rank: usize) -> BoxMap {
    (0..rank).map(DimMap::Same).collect()
}

/// The map under which every tile reads the whole input.
pub(super) fn whole(rank: usize) -> BoxMap {
    vec![DimMap::Full; rank]
}
