//! The operator set: one function per operator gives the shapes of its outputs and how they are
//! computed.

mod constant;
mod layout;
mod matmul;
mod pointwise;
mod reduce;
mod spatial;

use super::error::Problem;
use super::kernel::{Call, Output};

type Infer = fn(&Call<'_>) -> Result<Vec<Output>, Problem>;

/// Every operator of the set, by name.
pub(super) static OPERATORS: &[(&str, Infer)] = &[
    ("Conv", spatial::conv),
    ("ConvTranspose", spatial::conv_transpose),
    ("MaxPool", spatial::pool),
    ("AveragePool", spatial::pool),
    ("LpPool", spatial::pool),
    ("GlobalAveragePool", spatial::global_pool),
    ("GlobalMaxPool", spatial::global_pool),
    ("GlobalLpPool", spatial::global_pool),
    ("LRN", spatial::lrn),
    ("Resize", spatial::resize),
    ("Upsample", spatial::resize),
    ("DepthToSpace", spatial::depth_to_space),
    ("SpaceToDepth", spatial::space_to_depth),
    ("MatMul", matmul::matmul),
    ("Gemm", matmul::gemm),
    ("BatchNormalization", pointwise::batch_norm),
    ("Cast", pointwise::cast),
    ("Where", pointwise::choose),
    ("Add", pointwise::nary),
    ("Sub", pointwise::nary),
    ("Mul", pointwise::nary),
    ("Div", pointwise::nary),
    ("Pow", pointwise::nary),
    ("Mod", pointwise::nary),
    ("Min", pointwise::nary),
    ("Max", pointwise::nary),
    ("Sum", pointwise::nary),
    ("Mean", pointwise::nary),
    ("PRelu", pointwise::nary),
    ("BitShift", pointwise::nary),
    ("BitwiseAnd", pointwise::nary),
    ("BitwiseOr", pointwise::nary),
    ("BitwiseXor", pointwise::nary),
    ("And", pointwise::compare),
    ("Or", pointwise::compare),
    ("Xor", pointwise::compare),
    ("Equal", pointwise::compare),
    ("Greater", pointwise::compare),
    ("GreaterOrEqual", pointwise::compare),
    ("Less", pointwise::compare),
    ("LessOrEqual", pointwise::compare),
    ("Not", pointwise::test),
    ("IsNaN", pointwise::test),
    ("IsInf", pointwise::test),
    ("Abs", pointwise::unary),
    ("Acos", pointwise::unary),
    ("Acosh", pointwise::unary),
    ("Asin", pointwise::unary),
    ("Asinh", pointwise::unary),
    ("Atan", pointwise::unary),
    ("Atanh", pointwise::unary),
    ("BitwiseNot", pointwise::unary),
    ("Ceil", pointwise::unary),
    ("Celu", pointwise::unary),
    ("Clip", pointwise::unary),
    ("Cos", pointwise::unary),
    ("Cosh", pointwise::unary),
    ("Elu", pointwise::unary),
    ("Erf", pointwise::unary),
    ("Exp", pointwise::unary),
    ("Floor", pointwise::unary),
    ("Gelu", pointwise::unary),
    ("HardSigmoid", pointwise::unary),
    ("HardSwish", pointwise::unary),
    ("LeakyRelu", pointwise::unary),
    ("Log", pointwise::unary),
    ("Mish", pointwise::unary),
    ("Neg", pointwise::unary),
    ("Reciprocal", pointwise::unary),
    ("Relu", pointwise::unary),
    ("Round", pointwise::unary),
    ("Selu", pointwise::unary),
    ("Shrink", pointwise::unary),
    ("Sigmoid", pointwise::unary),
    ("Sign", pointwise::unary),
    ("Sin", pointwise::unary),
    ("Sinh", pointwise::unary),
    ("Softplus", pointwise::unary),
    ("Softsign", pointwise::unary),
    ("Sqrt", pointwise::unary),
    ("Tan", pointwise::unary),
    ("Tanh", pointwise::unary),
    ("ThresholdedRelu", pointwise::unary),
    ("Trilu", pointwise::unary),
    ("QuantizeLinear", pointwise::quantize),
    ("DequantizeLinear", pointwise::quantize),
    ("ReduceMean", reduce::reduce),
    ("ReduceSum", reduce::reduce),
    ("ReduceMax", reduce::reduce),
    ("ReduceMin", reduce::reduce),
    ("ReduceProd", reduce::reduce),
    ("ReduceL1", reduce::reduce),
    ("ReduceL2", reduce::reduce),
    ("ReduceLogSum", reduce::reduce),
    ("ReduceLogSumExp", reduce::reduce),
    ("ReduceSumSquare", reduce::reduce),
    ("ArgMax", reduce::arg),
    ("ArgMin", reduce::arg),
    ("TopK", reduce::top_k),
    ("CumSum", reduce::cum_sum),
    ("Softmax", reduce::softmax),
    ("LogSoftmax", reduce::softmax),
    ("Hardmax", reduce::softmax),
    ("LayerNormalization", reduce::layer_norm),
    ("RMSNormalization", reduce::layer_norm),
    ("InstanceNormalization", reduce::instance_norm),
    ("GroupNormalization", reduce::instance_norm),
    ("LpNormalization", reduce::lp_norm),
    ("MeanVarianceNormalization", reduce::mean_variance_norm),
    ("Identity", layout::identity),
    ("Dropout", layout::dropout),
    ("Reshape", layout::reshape),
    ("Flatten", layout::flatten),
    ("Squeeze", layout::squeeze),
    ("Unsqueeze", layout::unsqueeze),
    ("Transpose", layout::transpose),
    ("Concat", layout::concat),
    ("Split", layout::split),
    ("Slice", layout::slice),
    ("Pad", layout::pad),
    ("Expand", layout::expand),
    ("Tile", layout::tile),
    ("Gather", layout::gather),
    ("GatherElements", layout::gather_elements),
    ("ScatterElements", layout::scatter),
    ("ScatterND", layout::scatter),
    ("Constant", constant::constant),
    ("ConstantOfShape", constant::constant_of_shape),
    ("Range", constant::range),
    ("Shape", constant::shape),
    ("Size", constant::size),
];

/// The function of an operator of the set.
pub(super) fn operator(name: &str) -> Option<Infer> {
    OPERATORS.iter().find(|o| o.0 == name).map(|o| o.1)
}

#[cfg(test)]
mod tests {
    use super::OPERATORS;
    use std::collections::BTreeSet;

    #[test]
    fn every_operator_stands_once() {
        let names: BTreeSet<_> = OPERATORS.iter().map(|o| o.0).collect();
        assert_eq!(names.len(), OPERATORS.len());
    }
}
