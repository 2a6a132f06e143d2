//! Convolutions, pooling and the like: windows over the dimensions behind batch and channels.

use super::super::error::Problem;
use super::super::kernel::{Call, Cube, Kernel, LeftDim, Output, checked, same};
use super::super::region::{BoxMap, DimMap};
use super::super::tensor::{DataType, Shape, Value};

/// The windows of one operator, per spatial dimension.
struct Windows {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
    /// Padding before.
    pad: Vec<i64>,
    /// Extents of the output.
    out: Vec<u64>,
}

impl Windows {
    /// Windows of `kernel` over the spatial part of `shape`.
    fn new(call: &Call<'_>, shape: &Shape, kernel: Vec<i64>) -> Result<Self, Problem> {
        let spatial = &shape.dims()[2..];
        let (stride, dilation) = (call.steps("strides", spatial.len())?, call.steps("dilations", spatial.len())?);
        let pads = call.pads("pads", 2 * spatial.len())?;
        let mode = call.string("auto_pad");
        let round_up = call.int("ceil_mode", 0) != 0;
        let (mut pad, mut out) = (Vec::new(), Vec::new());
        for (i, &extent) in spatial.iter().enumerate() {
            let extent = extent as i128;
            let (k, s, d) = (i128::from(kernel[i]), i128::from(stride[i]), i128::from(dilation[i]));
            let span = (k - 1) * d + 1;
            let (before, after) = match mode {
                "VALID" => (0, 0),
                "SAME_UPPER" | "SAME_LOWER" => {
                    let total = (((extent + s - 1) / s - 1) * s + span - extent).max(0);
                    if mode == "SAME_UPPER" { (total / 2, total - total / 2) } else { (total - total / 2, total / 2) }
                }
                _ => (i128::from(pads[i]), i128::from(pads[i + spatial.len()])),
            };
            let room = extent + before + after - span;
            if room < 0 {
                let value = format!("{span} over {extent} elements with {before} + {after} of padding");
                return Err(Problem::Value { name: "the window", value, wanted: "larger than what it slides over" });
            }
            let mut steps = if round_up { (room + s - 1) / s } else { room / s };
            // A window that would start in the padding behind the input is left out.
            if round_up && steps * s >= extent + before {
                steps -= 1;
            }
            out.push((steps + 1) as u64);
            pad.push(before as i64);
        }
        Ok(Self { kernel, stride, dilation, pad, out })
    }

    fn shape(&self, batch: u64, channels: u64) -> Result<Shape, Problem> {
        Shape::new([batch, channels].into_iter().chain(self.out.iter().copied()).collect())
    }

    fn map(&self) -> BoxMap {
        let window = |i: usize| {
            let hi = (self.kernel[i] - 1).saturating_mul(self.dilation[i]).saturating_sub(self.pad[i]);
            DimMap::Affine { dim: i + 2, mul: self.stride[i], div: 1, lo: -self.pad[i], hi }
        };
        [DimMap::Same(0), DimMap::Same(1)].into_iter().chain((0..self.out.len()).map(window)).collect()
    }
}

/// The kernel extents of a convolution: those of its weights.
fn kernel_of(weights: &Shape) -> Vec<i64> {
    weights.dims()[2..].iter().map(|&k| k as i64).collect()
}

fn groups(call: &Call<'_>, channels: u64) -> Result<u64, Problem> {
    let group = call.int("group", 1);
    u64::try_from(group).ok().filter(|&g| g > 0 && channels.is_multiple_of(g)).ok_or_else(|| Problem::Value {
        name: "group",
        value: group.to_string(),
        wanted: "not a divisor of the number of channels",
    })
}

/// Feature map and weights, of the same rank.
fn map_and_weights<'a>(call: &Call<'a>) -> Result<(&'a Shape, &'a Shape), Problem> {
    let (x, w) = (&call.ranked(0, 3, "at least 3")?.shape, &call.ranked(1, 3, "at least 3")?.shape);
    if x.rank() != w.rank() || w.dims().contains(&0) {
        let (left, right) = (x.clone(), w.clone());
        return Err(Problem::Mismatch { left, right, why: "map and weights need the same rank and no extent of 0" });
    }
    Ok((x, w))
}

fn bias(call: &Call<'_>, channels: u64) -> Result<Option<(usize, BoxMap)>, Problem> {
    match call.optional(2) {
        None => Ok(None),
        Some(b) if b.shape.dims() == [channels] => Ok(Some((2, vec![DimMap::Same(1)]))),
        Some(b) => {
            let (left, right) = (b.shape.clone(), Shape::new(vec![channels])?);
            Err(Problem::Mismatch { left, right, why: "one bias per output channel" })
        }
    }
}

/// Convolution: weights `[outputs, inputs per group, kernel…]`.
pub(super) fn conv(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let (x, w) = map_and_weights(call)?;
    let (channels, outputs, inputs_per_group) = (x.dims()[1], w.dims()[0], w.dims()[1]);
    let group = groups(call, outputs)?;
    if inputs_per_group.checked_mul(group) != Some(channels) {
        let (left, right) = (x.clone(), w.clone());
        return Err(Problem::Mismatch { left, right, why: "the weights need the channels of the map over the groups" });
    }
    let windows = Windows::new(call, x, kernel_of(w))?;
    let shape = windows.shape(x.dims()[0], outputs)?;
    let mut right_map = vec![DimMap::Full; w.rank()];
    right_map[0] = DimMap::Same(1);
    let outputs_per_group = outputs / group;
    let mut left_map =
        vec![LeftDim::Out(DimMap::Same(0)), LeftDim::Channels { right: 1, outputs_per_group, inputs_per_group }];
    left_map.extend((0..windows.out.len()).map(|i| LeftDim::Window {
        dim: i + 2,
        right: i + 2,
        stride: windows.stride[i],
        dilation: windows.dilation[i],
        pad: windows.pad[i],
    }));
    let bias = bias(call, outputs)?;
    let cube = Cube { name: "CONV", left: 0, right: 1, right_map, left_map, bias, through_l0a: false };
    Ok(vec![Output::new(shape, call.input(0)?.data_type, Kernel::Cube(cube))])
}

/// Transposed convolution: weights `[inputs, outputs per group, kernel…]`.
pub(super) fn conv_transpose(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let (x, w) = map_and_weights(call)?;
    let spatial = x.rank() - 2;
    let (channels, outputs_per_group) = (x.dims()[1], w.dims()[1]);
    let group = groups(call, channels)?;
    if w.dims()[0] != channels {
        let (left, right) = (x.clone(), w.clone());
        return Err(Problem::Mismatch { left, right, why: "the weights need the channels of the map" });
    }
    let (stride, dilation) = (call.steps("strides", spatial)?, call.steps("dilations", spatial)?);
    let (pads, extra) = (call.pads("pads", 2 * spatial)?, call.pads("output_padding", spatial)?);
    let wanted = call.ints("output_shape").map(|s| checked("output_shape", s, spatial, 1)).transpose()?;
    let outputs = outputs_per_group.saturating_mul(group);
    let mut dims = vec![x.dims()[0], outputs];
    let mut left_map = vec![LeftDim::Out(DimMap::Same(0)), LeftDim::Right(0)];
    for i in 0..spatial {
        let (s, d, k) = (i128::from(stride[i]), i128::from(dilation[i]), i128::from(w.dims()[i + 2]));
        let full = s * (i128::from(x.dims()[i + 2]) - 1) + i128::from(extra[i]) + (k - 1) * d + 1;
        let same = matches!(call.string("auto_pad"), "SAME_UPPER" | "SAME_LOWER");
        let (pad, out) = match (&wanted, same) {
            (Some(shape), _) => ((full - i128::from(shape[i])).max(0) / 2, i128::from(shape[i])),
            (None, true) => ((full - s * i128::from(x.dims()[i + 2])).max(0) / 2, s * i128::from(x.dims()[i + 2])),
            _ => (i128::from(pads[i]), full - i128::from(pads[i]) - i128::from(pads[i + spatial])),
        };
        let out = u64::try_from(out).ok().filter(|&o| o > 0).ok_or_else(|| Problem::Value {
            name: "an extent of the output",
            value: out.to_string(),
            wanted: "out of range",
        })?;
        dims.push(out);
        let (pad, stride, dilation) = (pad as i64, stride[i], dilation[i]);
        left_map.push(LeftDim::Transposed { dim: i + 2, right: i + 2, stride, dilation, pad });
    }
    let mut right_map = vec![DimMap::Full; w.rank()];
    if group == 1 {
        right_map[1] = DimMap::Same(1);
    } else if group == channels {
        right_map[0] = DimMap::Affine { dim: 1, mul: 1, div: outputs_per_group as i64, lo: 0, hi: 0 };
    }
    let cube =
        Cube { name: "CONV", left: 0, right: 1, right_map, left_map, bias: bias(call, outputs)?, through_l0a: false };
    Ok(vec![Output::new(Shape::new(dims)?, call.input(0)?.data_type, Kernel::Cube(cube))])
}

/// Pooling; the places of the maxima are a second output.
pub(super) fn pool(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 3, "at least 3")?;
    let spatial = x.shape.rank() - 2;
    let kernel = call.ints("kernel_shape").unwrap_or_default();
    let windows = Windows::new(call, &x.shape, checked("kernel_shape", kernel, spatial, 1)?)?;
    let shape = windows.shape(x.shape.dims()[0], x.shape.dims()[1])?;
    let output = |data_type| Output::vector(shape.clone(), data_type, &call.proto.op_type, vec![(0, windows.map())]);
    Ok(vec![output(x.data_type), output(DataType::INT64)])
}

/// Pooling over all that is behind batch and channels.
pub(super) fn global_pool(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 3, "at least 3")?;
    let mut dims = vec![1; x.shape.rank()];
    dims[..2].copy_from_slice(&x.shape.dims()[..2]);
    let mut map = vec![DimMap::Full; x.shape.rank()];
    (map[0], map[1]) = (DimMap::Same(0), DimMap::Same(1));
    Ok(vec![Output::vector(Shape::new(dims)?, x.data_type, &call.proto.op_type, vec![(0, map)])])
}

/// Local response normalisation: a window over the channels.
pub(super) fn lrn(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 2, "at least 2")?;
    let size = checked("size", &[call.int("size", 0)], 1, 1)?[0];
    let mut map = same(x.shape.rank());
    map[1] = DimMap::Affine { dim: 1, mul: 1, div: 1, lo: -((size - 1) / 2), hi: size / 2 };
    Ok(vec![Output::vector(x.shape.clone(), x.data_type, "LRN", vec![(0, map)])])
}

/// `Resize` and `Upsample`: every element from its neighbours in the input.
pub(super) fn resize(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.input(0)?;
    let rank = x.shape.rank();
    let (scales, sizes) = if call.proto.op_type == "Upsample" || call.opset < 11 { (1, 3) } else { (2, 3) };
    let given = |i: usize| call.optional(i).filter(|t| t.shape.elements() > 0);
    let axes = match call.ints("axes") {
        Some(axes) => {
            axes.iter().map(|&a| super::super::kernel::axis("axes", a, rank)).collect::<Result<Vec<_>, _>>()?
        }
        None => (0..rank).collect(),
    };
    let mut dims = x.shape.dims().to_vec();
    let wrong = |name, value| Problem::Value { name, value, wanted: "not a number that each dimension can have" };
    if let Some(t) = given(sizes) {
        let sizes = t.value.as_ref().and_then(Value::ints).ok_or(Problem::NotConstant { name: "sizes" })?;
        let sizes = checked("sizes", sizes, axes.len(), 1)?;
        axes.iter().zip(sizes).for_each(|(&a, s)| dims[a] = s as u64);
    } else {
        let scales = match (given(scales), call.floats("scales")) {
            (Some(t), _) => t.value.as_ref().ok_or(Problem::NotConstant { name: "scales" })?.floats(),
            (None, Some(list)) => list.iter().map(|&s| f64::from(s)).collect(),
            (None, None) => return Err(Problem::MissingInput { index: scales }),
        };
        if scales.len() != axes.len() {
            return Err(wrong("scales", format!("a list of {}", scales.len())));
        }
        for (&a, s) in axes.iter().zip(scales) {
            let extent = (dims[a] as f64 * s).floor();
            if !(1.0..=2f64.powi(40)).contains(&extent) {
                return Err(wrong("scales", s.to_string()));
            }
            dims[a] = extent as u64;
        }
    }
    let shape = Shape::new(dims)?;
    let near = |(dim, (&i, &o)): (usize, (&u64, &u64))| match i == o {
        true => DimMap::Same(dim),
        false => DimMap::Affine { dim, mul: i as i64, div: o as i64, lo: -1, hi: 1 },
    };
    let map = x.shape.dims().iter().zip(shape.dims()).enumerate().map(near).collect();
    Ok(vec![Output::vector(shape, x.data_type, "RESIZE", vec![(0, map)])])
}

fn block_size(call: &Call<'_>) -> Result<i64, Problem> {
    Ok(checked("blocksize", &[call.int("blocksize", 0)], 1, 1)?[0])
}

/// Moves blocks of channels into space.
pub(super) fn depth_to_space(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 4, "4")?;
    let (block, d) = (block_size(call)?, x.shape.dims());
    let square = (block as u64).saturating_mul(block as u64);
    if d.len() != 4 || !d[1].is_multiple_of(square) {
        return Err(Problem::Rank { index: 0, shape: x.shape.clone(), wanted: "4 (channels a multiple of the block)" });
    }
    let [h, w] = [d[2], d[3]].map(|e| e.saturating_mul(block as u64));
    let near = |dim| DimMap::Affine { dim, mul: 1, div: block, lo: 0, hi: 0 };
    let map = vec![DimMap::Same(0), DimMap::Full, near(2), near(3)];
    let shape = Shape::new(vec![d[0], d[1] / square, h, w])?;
    Ok(vec![Output::vector(shape, x.data_type, "DEPTH_TO_SPACE", vec![(0, map)])])
}

/// Moves blocks of space into channels.
pub(super) fn space_to_depth(call: &Call<'_>) -> Result<Vec<Output>, Problem> {
    let x = call.ranked(0, 4, "4")?;
    let (block, d) = (block_size(call)?, x.shape.dims());
    if d.len() != 4 || !d[2].is_multiple_of(block as u64) || !d[3].is_multiple_of(block as u64) {
        return Err(Problem::Rank { index: 0, shape: x.shape.clone(), wanted: "4 (extents a multiple of the block)" });
    }
    let square = (block as u64).saturating_mul(block as u64);
    let near = |dim| DimMap::Affine { dim, mul: block, div: 1, lo: 0, hi: block - 1 };
    let map = vec![DimMap::Same(0), DimMap::Full, near(2), near(3)];
    let shape = Shape::new(vec![d[0], d[1].saturating_mul(square), d[2] / block as u64, d[3] / block as u64])?;
    Ok(vec![Output::vector(shape, x.data_type, "SPACE_TO_DEPTH", vec![(0, map)])])
}
