//! `flash-attention`: softmax(Q·Kᵀ)·V over blocks, with running maximum and sum (Dao et al. 2022).
//!
//! For each block row of Q and each block row of K and V: the scores accumulate over the head
//! dimension in L0C and are drained to UB; row maximum and row sum of the block update the running
//! ones; the probabilities go back to L1 as the left operand of the product with V, whose result
//! is added to the output so far, both rescaled. After its last block a row of Q is divided by its
//! sum and stored with its maximum and sum.
//!
//! The defaults, `flash-attention(q=4,kv=4,d=2)`, have the 1,716 nodes and 2,712 edges, buffers,
//! pipes and operations of the public FlashAttention_Case0. `order` is `kv-outer` there: each
//! block of K and V is loaded once and meets all rows of Q, whose outputs stay open. `q-outer`
//! finishes one row of Q after the other, so that K and V stay live or are swept.
//!
//! Measured difference to FlashAttention_Case0: none in counts of nodes, edges, operations,
//! buffers by cache and size, and cycles by operation; see the test `public.rs`.

use super::kernel::Kernel;
use super::{FREE, TILE, frees, sum_of_products};
use crate::cost;
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "flash-attention",
    doc: "attention over blocks with online softmax: running maximum and sum, rescaled outputs",
    kind: FamilyKind::Operator,
    seeded: false,
    parameters: &[
        Parameter::int("q", "blocks of queries", 4, 1, 4096),
        Parameter::int("kv", "blocks of keys and values", 4, 1, 4096),
        Parameter::int("d", "tiles of the head dimension", 2, 1, 256),
        TILE,
        Parameter::choice("order", "which loop is outside", &["kv-outer", "q-outer"]),
        FREE,
    ],
    nodes,
    build,
};

fn nodes(values: &Values) -> u64 {
    let [q, kv, d] = ["q", "kv", "d"].map(|name| values.get(name));
    sum_of_products(&[&[block_nodes(q, kv, d)], &[3, d, q], &[6, d, kv], &[q, 5 + 4 * d]])
}

/// Nodes of all blocks, loads and the closing of rows left out.
pub(super) fn block_nodes(q: u64, kv: u64, d: u64) -> u64 {
    sum_of_products(&[&[q, kv, 30 + 19 * d], &[q, kv - 1, 24 + 9 * d]])
}

fn build(values: &Values, _seed: u64) -> Result<Emitter, WorkloadError> {
    let [q, kv, d] = ["q", "kv", "d"].map(|name| values.get(name) as usize);
    let mut kernel = Kernel::new(frees(values), values.get("tile"));
    // The public graphs keep blocks of twice the tile in L1.
    let block = kernel.tile.saturating_mul(2);
    let grid = |rows| vec![vec![None; d]; rows];
    let mut attention = Attention { q: grid(q), k: grid(kv), v: grid(kv), rows: (0..q).map(|_| None).collect(), block };
    for at in 0..q * kv {
        let (i, j) = if values.choice("order") == "q-outer" { (at / kv, at % kv) } else { (at % q, at / q) };
        attention.step(&mut kernel, i, j);
        if j + 1 == kv
            && let Some(row) = attention.rows[i].take()
        {
            let [max, sum] = [row.max, row.sum];
            row.close(&mut kernel).into_iter().for_each(|out| kernel.store(out));
            [sum, max].into_iter().for_each(|stat| kernel.store(stat));
        }
    }
    Ok(kernel.e)
}

/// What one row of Q holds between blocks: one number per row of maximum and sum, and the output.
pub(super) struct Row {
    max: Buf,
    sum: Buf,
    out: Vec<Buf>,
}

impl Row {
    /// Divides the output by the sum. Three nodes, and three per tile.
    pub(super) fn close(self, kernel: &mut Kernel) -> Vec<Buf> {
        let factor = kernel.narrow("REC", &[self.sum]);
        self.out.iter().map(|&out| kernel.wide("MUL", &[out, factor])).collect()
    }
}

/// The blocks in L1, loaded where they are not there yet, and the open rows.
pub(super) struct Attention {
    pub(super) q: Vec<Vec<Option<Buf>>>,
    pub(super) k: Vec<Vec<Option<Buf>>>,
    pub(super) v: Vec<Vec<Option<Buf>>>,
    pub(super) rows: Vec<Option<Row>>,
    /// Bytes of a block in L1.
    pub(super) block: u64,
}

/// One block of probabilities with its own row maximum and sum.
struct Scores {
    max: Buf,
    sum: Buf,
    probabilities: Buf,
}

impl Attention {
    /// Block `j` of keys and values for row `i` of queries.
    pub(super) fn step(&mut self, kernel: &mut Kernel, i: usize, j: usize) {
        let scores = self.scores(kernel, i, j);
        let row = match self.rows[i].take() {
            None => {
                let sums = self.weighted(kernel, j, scores.probabilities);
                let out = sums.into_iter().map(|s| kernel.drain(s)).collect();
                Row { max: scores.max, sum: scores.sum, out }
            }
            Some(row) => self.merge(kernel, j, row, &scores),
        };
        self.rows[i] = Some(row);
    }

    fn scores(&mut self, kernel: &mut Kernel, i: usize, j: usize) -> Scores {
        let product = kernel.accumulator();
        for d in 0..self.q[i].len() {
            let (q, k) = kernel.fetch(&mut self.q[i][d], &mut self.k[j][d], self.block);
            kernel.multiply(product, q, k, cost::feed_transposed);
        }
        let scores = kernel.drain(product);
        let spread = kernel.wide("ROWMAX", &[scores]);
        let max = kernel.compact(spread);
        let shifted = kernel.wide("SUB", &[scores, spread]);
        let probabilities = kernel.wide("EXP", &[shifted]);
        let spread = kernel.wide("ROWSUM", &[probabilities]);
        let sum = kernel.compact(spread);
        Scores { max, sum, probabilities }
    }

    /// The products of the probabilities with the tiles of V, one accumulator each.
    fn weighted(&mut self, kernel: &mut Kernel, j: usize, probabilities: Buf) -> Vec<Buf> {
        let mut left = None;
        let mut sums = Vec::with_capacity(self.v[j].len());
        for slot in &mut self.v[j] {
            let sum = kernel.accumulator();
            let p = *left.get_or_insert_with(|| {
                let l1 = kernel.e.alloc("L1", self.block);
                kernel.copy_to_l1(l1, probabilities);
                l1
            });
            let (_, v) = kernel.fetch(&mut Some(p), slot, self.block);
            kernel.multiply(sum, p, v, cost::feed_transposed);
            sums.push(sum);
        }
        sums
    }

    /// Rescales the row so far and the new block to their common maximum and adds them.
    fn merge(&mut self, kernel: &mut Kernel, j: usize, row: Row, new: &Scores) -> Row {
        let max = kernel.narrow("MAX", &[row.max, new.max]);
        let [old_factor, new_factor] = [row.max, new.max].map(|own| {
            let shift = kernel.narrow("SUB", &[own, max]);
            kernel.narrow("EXP", &[shift])
        });
        let new_sum = kernel.narrow("MUL", &[new_factor, new.sum]);
        let old_sum = kernel.narrow("MUL", &[old_factor, row.sum]);
        let sum = kernel.narrow("ADD", &[old_sum, new_sum]);
        let sums = self.weighted(kernel, j, new.probabilities);
        let scale = |kernel: &mut Kernel, tile, factor| kernel.wide("MUL", &[tile, factor]);
        let news: Vec<_> = sums
            .into_iter()
            .map(|s| {
                let tile = kernel.drain(s);
                scale(kernel, tile, new_factor)
            })
            .collect();
        let olds: Vec<_> = row.out.iter().map(|&tile| scale(kernel, tile, old_factor)).collect();
        let out = olds.iter().zip(&news).map(|(&old, &new)| kernel.wide("ADD", &[old, new])).collect();
        Row { max, sum, out }
    }
}
