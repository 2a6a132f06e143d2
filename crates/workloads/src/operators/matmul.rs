//! `matmul`: C = A·B over m×k and k×n tiles.
//!
//! Each tile of A and B is loaded to L1 once, at its first use, and stays live to its last; each
//! product feeds copies of its two tiles to L0A and L0B; each tile of C accumulates over k in L0C
//! and is stored from there. `matmul(m=8,n=8,k=8)` has the nodes and edges of the public
//! Matmul_Case0, `matmul(m=16,n=16,k=16)` those of Matmul_Case1; with `free=end` their ids agree,
//! too. `order` is the order in which the tiles of C are computed:
//!
//! * `row`: row by row, each from left to right: A stays, B is swept once per row;
//! * `zigzag`: row by row, every other one from right to left, which meets the tiles of B that the
//!   row before used last;
//! * `column`: column by column;
//! * `outer`: k outermost, all tiles of C open at once (a sum of outer products).

use super::kernel::Kernel;
use super::{FREE, TILE, frees, sum_of_products};
use crate::cost::{self, FIXP, STORE};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "matmul",
    doc: "matrix product over tiles: L1 to L0A and L0B, accumulated in L0C",
    kind: FamilyKind::Operator,
    seeded: false,
    parameters: &[
        Parameter::int("m", "tiles of A and C from top to bottom", 8, 1, 4096),
        Parameter::int("n", "tiles of B and C from left to right", 8, 1, 4096),
        Parameter::int("k", "tiles of A from left to right", 8, 1, 4096),
        TILE,
        Parameter::choice("order", "the order of the products", &["row", "zigzag", "column", "outer"]),
        FREE,
    ],
    nodes,
    build,
};

fn nodes(values: &Values) -> u64 {
    let [m, n, k] = ["m", "n", "k"].map(|name| values.get(name));
    sum_of_products(&[&[3, m, k], &[3, k, n], &[3, m, n], &[7, m, n, k]])
}

struct Matmul {
    kernel: Kernel,
    n: usize,
    k: usize,
    a: Vec<Option<Buf>>,
    b: Vec<Option<Buf>>,
    c: Vec<Option<Buf>>,
}

impl Matmul {
    /// Adds product `l` to the tile of C at row `i`, column `j`; the last one stores it.
    fn step(&mut self, i: usize, j: usize, l: usize) {
        let kernel = &mut self.kernel;
        let sum = *self.c[i * self.n + j].get_or_insert_with(|| kernel.accumulator());
        let (a, b) = (&mut self.a[i * self.k + l], &mut self.b[l * self.n + j]);
        let (a, b) = kernel.fetch(a, b, kernel.tile);
        kernel.multiply(sum, a, b, cost::feed);
        if l + 1 == self.k {
            let cycles = cost::store_accumulator(kernel.e.size(sum));
            kernel.e.op(STORE, FIXP, cycles, &[], &[sum]);
        }
    }
}

fn build(values: &Values, _seed: u64) -> Result<Emitter, WorkloadError> {
    let [m, n, k] = ["m", "n", "k"].map(|name| values.get(name) as usize);
    let kernel = Kernel::new(frees(values), values.get("tile"));
    let mut matmul = Matmul { kernel, n, k, a: vec![None; m * k], b: vec![None; k * n], c: vec![None; m * n] };
    let order = values.choice("order");
    if order == "outer" {
        for l in 0..k {
            (0..m * n).for_each(|at| matmul.step(at / n, at % n, l));
        }
        return Ok(matmul.kernel.e);
    }
    for at in 0..m * n {
        let (i, j) = match order {
            "column" => (at % m, at / m),
            "zigzag" if (at / n) % 2 == 1 => (at / n, n - 1 - at % n),
            _ => (at / n, at % n),
        };
        (0..k).for_each(|l| matmul.step(i, j, l));
    }
    Ok(matmul.kernel.e)
}
