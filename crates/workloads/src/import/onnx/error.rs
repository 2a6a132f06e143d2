//! What can be wrong with an ONNX file, and what an import passes over but tells.

use super::tensor::Shape;
use crate::error::WorkloadError;
use std::fmt;
use thiserror::Error;

/// Which node of the network, in the words of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLabel {
    /// Its place in the file, from 0.
    pub index: usize,
    /// Its operator.
    pub op: String,
    /// Its name; often empty.
    pub name: String,
}

impl fmt::Display for NodeLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} ({}", self.index, Shortened(&self.op))?;
        if self.name.is_empty() { f.write_str(")") } else { write!(f, " {:?})", Shortened(&self.name)) }
    }
}

/// A name out of a file, cut where it is too long to be read.
pub(super) struct Shortened<'a>(pub &'a str);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(80) {
            Some((end, _)) => write!(f, "{}...", &self.0[..end]),
            None => f.write_str(self.0),
        }
    }
}

impl fmt::Debug for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// What an operator cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// An input that the operator needs and the node does not name.
    #[error("input {index} is missing")]
    MissingInput {
        /// Its place, from 0.
        index: usize,
    },
    /// An input of a rank that the operator has no meaning for.
    #[error("input {index} has the shape {shape}, not {wanted} dimensions")]
    Rank {
        /// The input.
        index: usize,
        /// Its shape.
        shape: Shape,
        /// What was expected, in words.
        wanted: &'static str,
    },
    /// Shapes that do not go together.
    #[error("the shapes {left} and {right} do not go together ({why})")]
    Mismatch {
        /// One shape.
        left: Shape,
        /// The other.
        right: Shape,
        /// Which rule they break.
        why: &'static str,
    },
    /// An attribute or a constant input with a value out of its range.
    #[error("{name} is {value}, {wanted}")]
    Value {
        /// The attribute or input.
        name: &'static str,
        /// Its value, in words.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// An input that must be known when the model is read and is only known when it runs.
    #[error("{name} is not a constant")]
    NotConstant {
        /// The input.
        name: &'static str,
    },
    /// A tensor of more elements than an import takes.
    #[error("a tensor of shape {shape} is larger than {limit} elements")]
    TooLarge {
        /// Its shape.
        shape: Shape,
        /// How many elements are allowed.
        limit: u64,
    },
    /// Neither the operator nor the file says what shape an output has.
    #[error("its shape is not known: the operator is outside the set and the file declares no shape")]
    NoShape,
}

/// Why an ONNX file could not be imported.
#[derive(Debug, Error)]
pub enum OnnxError {
    /// Not a protobuf message of the ONNX kind.
    #[error("not an ONNX file: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// A model without a network in it.
    #[error("the file holds no network (an ONNX model has a graph with nodes)")]
    NoGraph,
    /// A tensor that no node, input or initializer provides.
    #[error("{node} reads tensor {tensor:?}, which nothing provides")]
    UnknownTensor {
        /// The node that reads it.
        node: NodeLabel,
        /// The tensor.
        tensor: String,
    },
    /// An output of the network that nothing provides.
    #[error("the output {tensor:?} of the network is provided by nothing")]
    UnknownOutput {
        /// The tensor.
        tensor: String,
    },
    /// A tensor that two nodes (or an input and a node) provide.
    #[error("{node} provides tensor {tensor:?}, which exists already")]
    DuplicateTensor {
        /// The second node.
        node: NodeLabel,
        /// The tensor.
        tensor: String,
    },
    /// Nodes that wait for each other.
    #[error("{node} waits for tensor {tensor:?}, which depends on its own output")]
    Cycle {
        /// A node of the cycle.
        node: NodeLabel,
        /// The tensor of the cycle that it reads.
        tensor: String,
    },
    /// An input of the network without a shape.
    #[error("the input {tensor:?} of the network declares no shape")]
    MissingShape {
        /// The tensor.
        tensor: String,
    },
    /// A dimension or a number of elements out of range.
    #[error("tensor {tensor:?}: {problem}")]
    Tensor {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        problem: Problem,
    },
    /// An operator with inputs or attributes it cannot work with.
    #[error("{node}, output {tensor:?}: {problem}")]
    Operator {
        /// The node.
        node: NodeLabel,
        /// Its first output.
        tensor: String,
        /// What is wrong.
        problem: Box<Problem>,
    },
    /// A value given for a dimension that no input of the network names.
    #[error("no input of the network has a dimension {name:?} (it has: {known})")]
    UnknownDim {
        /// The name.
        name: String,
        /// The names there are, comma-separated.
        known: String,
    },
    /// The hardware lacks a cache that the lowering uses.
    #[error("the hardware {hardware} has no cache {cache}, which the lowering of a network needs")]
    MissingCache {
        /// Name of the hardware.
        hardware: String,
        /// The cache.
        cache: &'static str,
    },
    /// A tile that leaves no room for the operands of one op.
    #[error("a tile of {tile} is out of range: it must be 1 to {limit} for the operands of every op to fit")]
    Tile {
        /// The size asked for.
        tile: u64,
        /// The largest possible.
        limit: u64,
    },
    /// More nodes than allowed, however coarse the tiles.
    #[error("the graph would have more than {limit} nodes with whole tensors as tiles or with the unit asked for")]
    TooManyNodes {
        /// How many are allowed.
        limit: u64,
    },
    /// The network has nothing to run: every node was evaluated while reading.
    #[error("the network has no work left after constants are folded")]
    NothingToRun,
    /// The emitted nodes are no sound graph.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

/// Something that an ONNX import tells without stopping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnnxNotice {
    /// A dimension without a number, taken as 1.
    DimDefaulted {
        /// The input of the network.
        tensor: String,
        /// The place of the dimension, from 0.
        axis: usize,
        /// Its name; `None` for one without.
        name: Option<String>,
    },
    /// An operator outside the set, lowered as a generic vector op.
    Generic {
        /// The operator, with its domain where that is not the standard one.
        op: String,
        /// How many nodes.
        count: usize,
        /// The first of them.
        first: NodeLabel,
        /// For how many of their outputs the shape of the first input was taken, since the file
        /// declares none.
        shapes_assumed: usize,
    },
    /// Nodes that depend on constants only: evaluated when the model is compiled, not lowered.
    Folded {
        /// How many.
        count: usize,
    },
    /// A shape in the file that is not the one the operators give; theirs is taken.
    ShapeDiffers {
        /// The tensor.
        tensor: String,
        /// What the file says.
        declared: Shape,
        /// What was computed.
        inferred: Shape,
        /// How many further tensors differ.
        more: usize,
    },
    /// One unit of size stands for more than one byte, so that the graph stays small.
    Scaled {
        /// Bytes per unit.
        bytes_per_unit: u64,
        /// Units per tile.
        tile: u64,
        /// The number of nodes that was not to be exceeded.
        limit: u64,
    },
}

impl fmt::Display for OnnxNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DimDefaulted { tensor, axis, name } => {
                write!(f, "dimension {axis} of input {:?} has no number: 1 is taken", Shortened(tensor))?;
                name.as_ref().map_or(Ok(()), |n| write!(f, " (give one with --dim {}=N)", Shortened(n)))
            }
            Self::Generic { op, count, first, shapes_assumed } => {
                write!(f, "{} is outside the operator set: {count} node(s), the first {first}, ", Shortened(op))?;
                f.write_str("lowered as generic vector ops")?;
                if *shapes_assumed == 0 {
                    return Ok(());
                }
                write!(f, "; {shapes_assumed} output(s) of unknown shape got the shape of the first input")
            }
            Self::Folded { count } => write!(f, "{count} node(s) depend on constants only and take no part"),
            Self::ShapeDiffers { tensor, declared, inferred, more } => {
                let tensor = Shortened(tensor);
                write!(f, "the file declares {tensor:?} as {declared}, its operator gives {inferred}, which is taken")?;
                if *more == 0 { Ok(()) } else { write!(f, "; {more} more differ") }
            }
            Self::Scaled { bytes_per_unit, tile, limit } => write!(
                f,
                "one unit of size stands for {bytes_per_unit} bytes (a tile of {tile} units for {}), so that the graph has at most {limit} nodes",
                tile.saturating_mul(*bytes_per_unit)
            ),
        }
    }
}
