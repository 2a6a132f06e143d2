//! `mlp`: layers of matrix product, bias and activation over rows of tiles.
//!
//! The activations between layers go from UB back to L1; the weights of a layer are loaded to L1
//! when it begins and serve all rows.

use super::kernel::{GELU_NODES, Kernel, linear_nodes};
use super::{FREE, TILE, frees, sum_of_products};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "mlp",
    doc: "layers of matrix product, bias and activation, with activations kept on chip",
    kind: FamilyKind::Operator,
    seeded: false,
    parameters: &[
        Parameter::int("layers", "layers; the last has no activation", 3, 1, 4096),
        Parameter::int("rows", "row tiles of the batch", 2, 1, 4096),
        Parameter::int("width", "tiles of the input and of every other layer's output", 2, 1, 1024),
        Parameter::int("hidden", "tiles of the outputs in between", 4, 1, 1024),
        TILE,
        Parameter::choice("activation", "what follows all layers but the last", &["relu", "gelu"]),
        FREE,
    ],
    nodes,
    build,
};

/// Tiles into and out of a layer counted from 0: from `width` to `hidden`, then back.
fn shape(layer: u64, width: u64, hidden: u64) -> (u64, u64) {
    if layer.is_multiple_of(2) { (width, hidden) } else { (hidden, width) }
}

fn nodes(values: &Values) -> u64 {
    let [layers, rows, width, hidden] = ["layers", "rows", "width", "hidden"].map(|name| values.get(name));
    let activation = if values.choice("activation") == "gelu" { GELU_NODES } else { 3 };
    let layer = |l: u64| {
        let (inputs, outputs) = shape(l, width, hidden);
        // Weights and biases, products, bias adds, and either activation and copy or the store.
        let tail = if l + 1 == layers { 1 } else { activation + 3 };
        sum_of_products(&[
            &[3, inputs, outputs],
            &[3, outputs],
            &[rows, linear_nodes(inputs, outputs)],
            &[rows, outputs, 3 + tail],
        ])
    };
    (0..layers).map(layer).fold(sum_of_products(&[&[3, rows, width]]), u64::saturating_add)
}

fn build(values: &Values, _seed: u64) -> Result<Emitter, WorkloadError> {
    let [layers, rows, width, hidden] = ["layers", "rows", "width", "hidden"].map(|name| values.get(name));
    let gelu = values.choice("activation") == "gelu";
    let mut kernel = Kernel::new(frees(values), values.get("tile"));
    let mut x = kernel.load_grid(rows, width);
    for l in 0..layers {
        let (inputs, outputs) = shape(l, width, hidden);
        let weights = kernel.load_grid(inputs, outputs);
        let bias: Vec<_> = (0..outputs).map(|_| kernel.load("UB", kernel.column())).collect();
        let mut layer = |row: &Vec<Buf>| -> Vec<Buf> {
            let column = |c: usize| {
                let product = kernel.linear_column(row, &weights, c);
                let sum = kernel.wide("ADD", &[product, bias[c]]);
                if l + 1 == layers {
                    kernel.store(sum);
                    return sum;
                }
                let out = if gelu { kernel.gelu(sum) } else { kernel.wide("RELU", &[sum]) };
                kernel.put_in_l1(out)
            };
            (0..outputs as usize).map(column).collect()
        };
        x = x.iter().map(&mut layer).collect();
    }
    Ok(kernel.e)
}
