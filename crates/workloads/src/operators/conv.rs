//! `conv`: a stack of convolution layers whose feature maps stay in L1.
//!
//! A feature map is `channels` × `rows` blocks. All kernels of a layer, one per pair of output and
//! input channel block, are loaded to L1 when the layer begins. Each output block accumulates over
//! the input channel blocks in L1 and reads, of each, its own `stride` row blocks and `halo` neighbours on
//! both sides; its last step writes the block of the next feature map. Every `residual` layers the
//! input of the first of them is added (`CONV_ADD`).
//!
//! `conv(layers=20,channels=4,rows=1)` comes closest to the public Conv_Case0, a U-net: 2,576 nodes
//! (2,580 there) and 3,926 edges (3,869), 320 kernels (300), 324 loads (303), 320 convolution steps
//! (300; 40 of them `CONV_ADD`, 26 there), 4 stores (7). The differences: its layers do not all have
//! 4 channel blocks, its feature maps shrink and grow (blocks of 1 to 768 bytes, here all of 384),
//! its skip connections span many layers, and it has 8 `D2S` (depth to space) steps.

use super::kernel::Kernel;
use super::{FREE, frees, sum_of_products};
use crate::cost::{self, CUBE, MTE1};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "conv",
    doc: "a stack of convolution layers: kernels loaded per layer, halo rows, residual adds",
    kind: FamilyKind::Operator,
    seeded: false,
    parameters: &[
        Parameter::int("layers", "convolution layers", 6, 1, 65_536),
        Parameter::int("channels", "channel blocks of every feature map", 2, 1, 1024),
        Parameter::int("rows", "row blocks of every feature map", 4, 1, 4096),
        Parameter::int("halo", "neighbouring row blocks that a block reads on each side", 1, 0, 16),
        Parameter::int("taps", "taps of a kernel: 9 for 3×3", 9, 1, 121),
        Parameter::int("block", "bytes of a block of a feature map", 384, 1, 1 << 40),
        Parameter::int("residual", "layers that a residual add spans, 0 for none", 2, 0, 65_536),
        Parameter::int(
            "stride",
            "row blocks that a layer makes one of; residual adds need 1 or maps of one block",
            1,
            1,
            64,
        ),
        FREE,
    ],
    nodes,
    build,
};

fn nodes(values: &Values) -> u64 {
    let [layers, c, rows, stride] = ["layers", "channels", "rows", "stride"].map(|name| values.get(name));
    let accumulators = if c > 1 { 2 } else { 0 };
    let (mut made, mut last) = (0, rows);
    for _ in 0..layers {
        last = last.div_ceil(stride);
        made += last;
    }
    sum_of_products(&[&[layers, 3, c, c], &[made, 4, c, c], &[made, c, 2 + accumulators], &[3, c, rows], &[c, last]])
}

/// A feature map: blocks by channel block, then row block.
type Map = Vec<Vec<Buf>>;

struct Conv {
    kernel: Kernel,
    halo: usize,
    stride: usize,
    taps: u64,
    block: u64,
}

impl Conv {
    /// One layer; `skip` is the map that it adds.
    fn layer(&mut self, input: &Map, skip: Option<&Map>) -> Map {
        let channels = input.len();
        let bytes = self.taps * 16;
        let kernels: Vec<_> = (0..channels * channels).map(|_| self.kernel.load("L1", bytes)).collect();
        let block = |conv: &mut Self, o: usize, row| {
            conv.block(input, &kernels[o * channels..][..channels], skip.map(|map| map[o][row]), row)
        };
        let rows = input.first().map_or(0, Vec::len).div_ceil(self.stride);
        (0..channels).map(|o| (0..rows).map(|row| block(self, o, row)).collect()).collect()
    }

    /// One block of the next map: a step per input channel block.
    fn block(&mut self, input: &Map, kernels: &[Buf], skip: Option<Buf>, row: usize) -> Buf {
        let e = &mut self.kernel.e;
        let sum = (kernels.len() > 1).then(|| e.alloc("L1", self.block.saturating_mul(4)));
        let mut last = None;
        for (i, (&kernel, map)) in kernels.iter().zip(input).enumerate() {
            let weights = e.alloc("L0B", self.taps * 8);
            e.op("MOVE", MTE1, cost::feed_kernel(self.taps * 8), &[weights], &[kernel]);
            let first = row * self.stride;
            let near = &map[first.saturating_sub(self.halo)..(first + self.stride + self.halo).min(map.len())];
            let cycles = cost::convolve(self.taps, self.block);
            let reads = || near.iter().copied().chain([weights]);
            if i + 1 < kernels.len() {
                e.op("CONV", CUBE, cycles, sum.as_slice(), &reads().collect::<Vec<_>>());
                continue;
            }
            let out = e.alloc("L1", self.block);
            let more = if skip.is_some() { cost::convolve_add(self.block) } else { 0 };
            let name = if skip.is_some() { "CONV_ADD" } else { "CONV" };
            let reads: Vec<_> = sum.into_iter().chain(skip).chain(reads()).collect();
            e.op(name, CUBE, cycles.saturating_add(more), &[out], &reads);
            last = Some(out);
        }
        // A map has at least one channel block, so the loop has set it.
        last.unwrap_or_else(|| self.kernel.e.alloc("L1", self.block))
    }
}

fn build(values: &Values, _seed: u64) -> Result<Emitter, WorkloadError> {
    let counts = ["layers", "channels", "rows", "halo", "stride"];
    let [layers, channels, rows, halo, stride] = counts.map(|name| values.get(name) as usize);
    let [taps, block, residual] = ["taps", "block", "residual"].map(|name| values.get(name));
    let kernel = Kernel::new(frees(values), block);
    let mut conv = Conv { kernel, halo, stride, taps, block };
    let mut map: Map = (0..channels).map(|_| (0..rows).map(|_| conv.kernel.load("L1", block)).collect()).collect();
    let mut skip = map.clone();
    for layer in 1..=layers as u64 {
        let alike = skip.first().map(Vec::len) == map.first().map(|blocks| blocks.len().div_ceil(stride));
        let adds = residual > 0 && layer % residual == 0 && alike;
        map = conv.layer(&map, adds.then_some(&skip));
        if adds || !alike {
            skip.clone_from(&map);
        }
    }
    map.iter().flatten().for_each(|&out| conv.kernel.store(out));
    Ok(conv.kernel.e)
}
