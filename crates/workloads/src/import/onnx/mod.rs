//! Import of ONNX models: shapes are inferred, tensors cut into tiles, operators lowered to
//! instructions.
//!
//! **Sizes.** A tile has `tile` units of size; the default leaves room for two tiles in L0A and
//! L0B, for two sums in L0C, for eight tiles in UB and sixteen in L1 (128 on `davinci`, as in the
//! public kernel graphs). One unit stands for `bytes_per_unit` bytes of the model. Unless given, it
//! is the smallest power of two that keeps the graph within `max_nodes`; a notice says so when it
//! is more than 1. So the graph of a large model is that of a machine with tiles as large in
//! proportion, and its pressure stays the same.
//!
//! **Dependences.** Each operator says which box of each input a box of its output is computed
//! from; a tile reads the tiles under that box. So convolutions read the halo of their neighbours,
//! `Concat` only the parts a tile is made of, and a softmax first passes over whole rows.
//!
//! **What takes no work.** `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`, `Identity` and `Dropout`
//! are views of their input. What depends on constants only is folded: it stands in main memory
//! like a weight, and so does what `ConstantOfShape` generates.
//!
//! **What is not known.** An operator outside the set becomes one vector op per tile of its output,
//! which reads the same box of inputs of the same shape and all of the others; a notice counts them.

mod error;
mod infer;
mod kernel;
mod lower;
mod network;
mod operators;
mod plan;
mod proto;
mod region;
mod tensor;
mod tiling;

pub use error::{NodeLabel, OnnxError, OnnxNotice, Problem};
pub use tensor::Shape;

use crate::emit::Emitter;
use crate::error::WorkloadError;
use lower::Limits;
use network::Network;
use plan::{Plan, Scale};
use prost::Message;
use serde::Serialize;
use spillbench_core::{Graph, Hardware};
use std::collections::BTreeMap;

/// How a model is imported.
#[derive(Clone, Debug)]
pub struct OnnxOptions {
    /// The hardware whose caches the operands of each op must fit.
    pub hardware: Hardware,
    /// Units of a tile; derived from the hardware when `None`.
    pub tile: Option<u64>,
    /// Bytes that one unit stands for; found from `max_nodes` when `None`.
    pub bytes_per_unit: Option<u64>,
    /// Values of the symbolic dimensions of the inputs, by name. Those not given are 1.
    pub dims: BTreeMap<String, u64>,
    /// The most nodes of the graph.
    pub max_nodes: u64,
}

impl Default for OnnxOptions {
    fn default() -> Self {
        Self {
            hardware: Hardware::default(),
            tile: None,
            bytes_per_unit: None,
            dims: BTreeMap::new(),
            max_nodes: 200_000,
        }
    }
}

/// Imports a model.
///
/// # Errors
/// Whatever is wrong with the file or the options, with node and tensor; no file content makes it
/// panic or take more memory than the file and `max_nodes` ask for.
pub fn import(bytes: &[u8], options: &OnnxOptions) -> Result<(Graph, Vec<OnnxNotice>), OnnxError> {
    let (tile, limits) = sizes(options)?;
    let model = proto::ModelProto::decode(bytes)?;
    let mut program = infer::infer(Network::new(&model, &options.dims)?)?;
    let mut notices = std::mem::take(&mut program.notices);
    let plan = Plan::new(&program);
    let (mut emitter, scale) = emit(&plan, tile, options, limits)?;
    if emitter.node_count() == 0 {
        return Err(OnnxError::NothingToRun);
    }
    if scale.bytes_per_unit > 1 && options.bytes_per_unit.is_none() {
        let Scale { tile, bytes_per_unit } = scale;
        notices.push(OnnxNotice::Scaled { bytes_per_unit, tile, limit: limits.nodes });
    }
    emitter.meta(provenance(&model, scale, options)?);
    Ok((emitter.finish()?, notices))
}

/// Units of a tile, and the bounds of the lowering.
fn sizes(options: &OnnxOptions) -> Result<(u64, Limits), OnnxError> {
    let hardware = &options.hardware;
    let capacity = |cache: &'static str| match hardware.caches.get(cache) {
        Some(spec) => Ok(spec.capacity.0),
        None => Err(OnnxError::MissingCache { hardware: hardware.name.clone(), cache }),
    };
    let (l1, ub) = (capacity("L1")?, capacity("UB")?);
    let (l0a, l0b, l0c) = (capacity("L0A")?, capacity("L0B")?, capacity("L0C")?);
    let least = |parts: [u64; 5]| parts.into_iter().min().unwrap_or(0);
    let limit = least([l0a, l0b, l0c / 2, ub / 4, l1 / 4]);
    let tile = options.tile.unwrap_or_else(|| least([l0a / 2, l0b / 2, l0c / 4, ub / 8, l1 / 16]).max(1));
    if tile == 0 || tile > limit {
        return Err(OnnxError::Tile { tile, limit });
    }
    Ok((tile, Limits { ub, l1, nodes: options.max_nodes.min(crate::NODE_LIMIT) }))
}

/// Emits the program at the finest scale that keeps it within the limits.
fn emit(plan: &Plan<'_>, tile: u64, options: &OnnxOptions, limits: Limits) -> Result<(Emitter, Scale), OnnxError> {
    let too_many = OnnxError::TooManyNodes { limit: limits.nodes };
    // Every element must fit a tile; the widest has 16 bytes.
    let least = 16u64.div_ceil(tile).next_power_of_two();
    let mut bytes_per_unit = options.bytes_per_unit.unwrap_or(1).max(least);
    if options.bytes_per_unit.is_some() {
        let scale = Scale { tile, bytes_per_unit };
        return lower::lower(plan, &plan.tilings(scale), scale, limits).map(|e| (e, scale)).map_err(|_| too_many);
    }
    // A tile of this many bytes holds any tensor.
    let whole = tensor::MAX_ELEMENTS * 16;
    let mut growth = 2;
    loop {
        let scale = Scale { tile, bytes_per_unit };
        let tilings = plan.tilings(scale);
        let last = bytes_per_unit >= whole;
        if last || plan.estimate(&tilings) <= limits.nodes {
            match lower::lower(plan, &tilings, scale, limits) {
                Ok(emitter) => return Ok((emitter, scale)),
                Err(_) if last => return Err(too_many),
                // Each attempt costs as much as the result, so that there must be few.
                Err(_) => {
                    bytes_per_unit = bytes_per_unit.saturating_mul(growth).min(whole);
                    growth = growth.saturating_mul(growth).min(1 << 20);
                    continue;
                }
            }
        }
        bytes_per_unit = bytes_per_unit.saturating_mul(2).min(whole);
    }
}

/// The provenance of the graph; a struct, so that its keys keep their order.
#[derive(Serialize)]
struct Provenance<'a> {
    source: &'static str,
    graph: &'a str,
    producer: &'a str,
    hardware: &'a str,
    tile: u64,
    bytes_per_unit: u64,
    dims: &'a BTreeMap<String, u64>,
}

fn provenance(model: &proto::ModelProto, scale: Scale, options: &OnnxOptions) -> Result<String, WorkloadError> {
    let provenance = Provenance {
        source: "onnx",
        graph: model.graph.as_ref().map_or("", |g| g.name.as_str()),
        producer: &model.producer_name,
        hardware: &options.hardware.name,
        tile: scale.tile,
        bytes_per_unit: scale.bytes_per_unit,
        dims: &options.dims,
    };
    serde_json::to_string(&provenance).map_err(WorkloadError::Provenance)
}
