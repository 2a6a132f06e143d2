//! `transformer-block`: layer norm, attention per head, projection, residual add, layer norm, feed
//! forward, residual add (pre-norm; Vaswani et al. 2017, Xiong et al. 2020).
//!
//! Rows of tiles stand in L1 between the stages; the weights of each stage are loaded when it
//! begins. Attention is that of `flash-attention` with keys and values that are computed, not
//! loaded: spilling them costs twice.

use super::attention::{Attention, block_nodes};
use super::kernel::{GELU_NODES, Kernel, linear_nodes};
use super::{FREE, TILE, frees, sum_of_products};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "transformer-block",
    doc: "layer norm, multi-head attention and feed forward with residual adds",
    kind: FamilyKind::Operator,
    seeded: false,
    parameters: &[
        Parameter::int("rows", "row tiles of the sequence", 4, 1, 1024),
        Parameter::int("heads", "attention heads", 2, 1, 128),
        Parameter::int("head", "tiles of the dimension of a head", 1, 1, 64),
        Parameter::int("ffn", "tiles of the hidden layer of the feed forward", 4, 1, 4096),
        TILE,
        FREE,
    ],
    nodes,
    build,
};

fn nodes(values: &Values) -> u64 {
    let [rows, heads, head, ffn] = ["rows", "heads", "head", "ffn"].map(|name| values.get(name));
    let model = heads * head;
    sum_of_products(&[
        // The input, and two layer norms.
        &[3, rows, model],
        &[2, rows, 37, model],
        // Per head: weights and products of Q, K, V, all moved to L1; blocks; closing.
        &[heads, 9, model, head],
        &[heads, 3, rows, linear_nodes(model, head)],
        &[heads, 9, rows, head],
        &[heads, block_nodes(rows, rows, head)],
        &[heads, rows, 3 + 6 * head],
        // Projection with residual add, kept in L1.
        &[3, model, model],
        &[rows, linear_nodes(model, model)],
        &[rows, model, 9],
        // Feed forward with residual add, stored.
        &[6, model, ffn],
        &[rows, linear_nodes(model, ffn)],
        &[rows, ffn, GELU_NODES + 3],
        &[rows, linear_nodes(ffn, model)],
        &[rows, model, 7],
    ])
}

fn build(values: &Values, _seed: u64) -> Result<Emitter, WorkloadError> {
    let [rows, heads, head, ffn] = ["rows", "heads", "head", "ffn"].map(|name| values.get(name));
    let model = heads * head;
    let mut kernel = Kernel::new(frees(values), values.get("tile"));
    let kernel_ref = &mut kernel;
    let x = kernel_ref.load_grid(rows, model);
    let normed: Vec<_> = x.iter().map(|row| layer_norm(kernel_ref, row)).collect();
    let mut attended = vec![Vec::new(); rows as usize];
    for _ in 0..heads {
        attend(kernel_ref, &normed, head, &mut attended);
    }
    let weights = kernel_ref.load_grid(model, model);
    let mut x: Vec<Vec<_>> =
        x.into_iter().zip(&attended).map(|(x, row)| residual(kernel_ref, &x, row, &weights)).collect();
    for row in &mut x {
        row.iter_mut().for_each(|tile| *tile = kernel_ref.put_in_l1(*tile));
    }
    let normed: Vec<_> = x.iter().map(|row| layer_norm(kernel_ref, row)).collect();
    let [up, down] = [(model, ffn), (ffn, model)].map(|(inputs, outputs)| kernel_ref.load_grid(inputs, outputs));
    for (row, normed) in x.iter().zip(&normed) {
        let hidden: Vec<_> = (0..ffn as usize)
            .map(|c| {
                let product = kernel_ref.linear_column(normed, &up, c);
                let active = kernel_ref.gelu(product);
                kernel_ref.put_in_l1(active)
            })
            .collect();
        residual(kernel_ref, row, &hidden, &down).into_iter().for_each(|out| kernel_ref.store(out));
    }
    Ok(kernel.e)
}

/// One head for all rows: its outputs are appended to the rows of `attended`.
fn attend(kernel: &mut Kernel, x: &[Vec<Buf>], head: u64, attended: &mut [Vec<Buf>]) {
    let model = x.first().map_or(0, |row| row.len() as u64);
    let [q, k, v] = [(); 3].map(|()| {
        let weights = kernel.load_grid(model, head);
        let project = |row: &Vec<Buf>| {
            let tiles = kernel.linear(row, &weights);
            tiles.into_iter().map(|tile| Some(kernel.put_in_l1(tile))).collect()
        };
        x.iter().map(project).collect()
    });
    let block = kernel.tile;
    let mut attention = Attention { q, k, v, rows: x.iter().map(|_| None).collect(), block };
    for (i, out) in attended.iter_mut().enumerate() {
        (0..x.len()).for_each(|j| attention.step(kernel, i, j));
        if let Some(row) = attention.rows[i].take() {
            let tiles = row.close(kernel);
            out.extend(tiles.into_iter().map(|tile| kernel.put_in_l1(tile)));
        }
    }
}

/// `x + row · weights`, in UB: the product, and six nodes per tile.
fn residual(kernel: &mut Kernel, x: &[Buf], row: &[Buf], weights: &[Vec<Buf>]) -> Vec<Buf> {
    let add = |(c, &x): (usize, &Buf)| {
        let product = kernel.linear_column(row, weights, c);
        let x = kernel.put_in_ub(x);
        kernel.wide("ADD", &[product, x])
    };
    x.iter().enumerate().map(add).collect()
}

/// Normalises a row of tiles to mean 0 and variance 1: 37 nodes per tile.
fn layer_norm(kernel: &mut Kernel, row: &[Buf]) -> Vec<Buf> {
    let tiles: Vec<_> = row.iter().map(|&tile| kernel.put_in_ub(tile)).collect();
    let total = row_sum(kernel, &tiles);
    let mean = kernel.narrow("MUL", &[total]);
    let centred: Vec<_> = tiles.iter().map(|&tile| kernel.wide("SUB", &[tile, mean])).collect();
    let squares: Vec<_> = centred.iter().map(|&tile| kernel.wide("MUL", &[tile])).collect();
    let variance = row_sum(kernel, &squares);
    let factor = kernel.narrow("RSQRT", &[variance]);
    let scale = |&tile: &Buf| {
        let scaled = kernel.wide("MUL", &[tile, factor]);
        kernel.put_in_l1(scaled)
    };
    centred.iter().map(scale).collect()
}

/// One number per row: the sum over all tiles. Eleven nodes per tile, less three.
fn row_sum(kernel: &mut Kernel, tiles: &[Buf]) -> Buf {
    let part = |kernel: &mut Kernel, tile| {
        let spread = kernel.wide("ROWSUM", &[tile]);
        kernel.compact(spread)
    };
    let mut total = part(kernel, tiles[0]);
    for &tile in &tiles[1..] {
        let next = part(kernel, tile);
        total = kernel.narrow("ADD", &[total, next]);
    }
    total
}
