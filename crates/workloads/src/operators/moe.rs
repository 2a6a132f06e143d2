//! `moe`: a mixture of experts; each row of tokens goes to the few experts that its router picks.
//!
//! The routing is drawn from the seed, with popularity falling as rank^-skew. An expert's weights
//! are loaded when its turn comes, and only if some row picked it; its outputs are scaled by the
//! gate and added to the row's sum, which waits in UB between experts.

use super::kernel::{GELU_NODES, Kernel, linear_nodes};
use super::{FREE, TILE, frees, sum_of_products};
use crate::draw::{Draw, Zipf};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "moe",
    doc: "mixture of experts: routed rows, weights of the picked experts, gated sums",
    kind: FamilyKind::Operator,
    seeded: true,
    parameters: &[
        Parameter::int("rows", "row tiles of tokens", 4, 1, 4096),
        Parameter::int("experts", "experts", 4, 1, 1024),
        Parameter::int("active", "experts per row, at most all", 2, 1, 1024),
        Parameter::decimal("skew", "popularity of experts falls as rank^-skew", 500, 0, 4000),
        Parameter::int("width", "tiles of a row", 2, 1, 1024),
        Parameter::int("hidden", "tiles of the hidden layer of an expert", 2, 1, 1024),
        TILE,
        FREE,
    ],
    nodes,
    build,
};

/// An upper bound: experts that no row picks are not loaded.
fn nodes(values: &Values) -> u64 {
    let names = ["rows", "experts", "active", "width", "hidden"];
    let [rows, experts, active, width, hidden] = names.map(|name| values.get(name));
    let active = active.min(experts);
    sum_of_products(&[
        // The input, the router's weights, product, softmax and choice, and the stores.
        &[3, rows, width],
        &[3, width],
        &[rows, linear_nodes(width, 1)],
        &[rows, 18],
        &[rows, width],
        // The weights of the experts, and per visit both products, activation, gating and adding.
        &[experts.min(rows * active), 6, width, hidden],
        &[rows, active, linear_nodes(width, hidden)],
        &[rows, active, hidden, GELU_NODES + 3],
        &[rows, active, linear_nodes(hidden, width)],
        &[rows, active, width, 3],
        &[rows, active - 1, width, 3],
    ])
}

/// The rows of each expert.
fn route(rows: usize, experts: usize, active: usize, skew: u64, seed: u64) -> Vec<Vec<usize>> {
    let (mut draw, zipf) = (Draw::new(seed), Zipf::new(experts as u64, skew));
    let mut routed = vec![Vec::new(); experts];
    for row in 0..rows {
        let mut picked = 0;
        for _ in 0..active {
            // After a collision the next free expert is taken, so that the draw always ends.
            let first = zipf.draw(&mut draw) as usize;
            let expert = (0..experts).map(|i| (first + i) % experts).find(|&e| routed[e].last() != Some(&row));
            picked += expert.map_or(0, |e| {
                routed[e].push(row);
                1
            });
        }
        debug_assert_eq!(picked, active);
    }
    routed
}

struct Moe {
    kernel: Kernel,
    x: Vec<Vec<Buf>>,
    gates: Vec<Buf>,
    sums: Vec<Vec<Buf>>,
}

impl Moe {
    /// Softmax over the experts and the choice of the best: the gates of a row. Eighteen nodes, the
    /// product left out.
    fn gate(kernel: &mut Kernel, row: &[Buf], router: &[Vec<Buf>]) -> Buf {
        let scores = kernel.linear_column(row, router, 0);
        let spread = kernel.wide("ROWMAX", &[scores]);
        let shifted = kernel.wide("SUB", &[scores, spread]);
        let powers = kernel.wide("EXP", &[shifted]);
        let sum = kernel.wide("ROWSUM", &[powers]);
        let share = kernel.wide("DIV", &[powers, sum]);
        kernel.wide("TOPK", &[share])
    }

    fn expert(&mut self, rows: &[usize], width: u64, hidden: u64) {
        let kernel = &mut self.kernel;
        let [up, down] = [(width, hidden), (hidden, width)].map(|(i, o)| kernel.load_grid(i, o));
        for &row in rows {
            let tiles: Vec<_> = (0..hidden as usize)
                .map(|c| {
                    let product = kernel.linear_column(&self.x[row], &up, c);
                    let active = kernel.gelu(product);
                    kernel.put_in_l1(active)
                })
                .collect();
            for c in 0..width as usize {
                let out = kernel.linear_column(&tiles, &down, c);
                let gated = kernel.wide("MUL", &[out, self.gates[row]]);
                match self.sums[row].get_mut(c) {
                    Some(sum) => *sum = kernel.wide("ADD", &[*sum, gated]),
                    None => self.sums[row].push(gated),
                }
            }
        }
    }
}

fn build(values: &Values, seed: u64) -> Result<Emitter, WorkloadError> {
    let [rows, experts, active] = ["rows", "experts", "active"].map(|name| values.get(name) as usize);
    let [width, hidden, skew] = ["width", "hidden", "skew"].map(|name| values.get(name));
    let mut kernel = Kernel::new(frees(values), values.get("tile"));
    let x = kernel.load_grid(rows as u64, width);
    let router = kernel.load_grid(width, 1);
    let gates = x.iter().map(|row| Moe::gate(&mut kernel, row, &router)).collect();
    let mut moe = Moe { kernel, x, gates, sums: vec![Vec::new(); rows] };
    for visitors in route(rows, experts, active.min(experts), skew, seed).iter().filter(|v| !v.is_empty()) {
        moe.expert(visitors, width, hidden);
    }
    moe.sums.iter().flatten().for_each(|&sum| moe.kernel.store(sum));
    Ok(moe.kernel.e)
}
