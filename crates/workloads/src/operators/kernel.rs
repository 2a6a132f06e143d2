//! The vocabulary of lowered kernels: loads, feeds, products, drains, vector ops, stores.

use crate::cost::{self, CUBE, FIXP, LOAD, MTE1, MTE2, MTE3, STORE, VECTOR};
use crate::emit::{Buf, Emitter, Frees};

/// Emits instructions over square tiles of one size.
pub(super) struct Kernel {
    pub(super) e: Emitter,
    /// Bytes of a tile of 16-bit numbers.
    pub(super) tile: u64,
}

impl Kernel {
    pub(super) fn new(frees: Frees, tile: u64) -> Self {
        Self { e: Emitter::new(frees), tile }
    }

    /// Bytes of one number per row of a tile: 2 for a tile of 128, as in the public graphs.
    pub(super) fn column(&self) -> u64 {
        (self.tile / 64).max(1)
    }

    /// Brings a block of `bytes` from main memory into a new buffer of `cache`.
    pub(super) fn load(&mut self, cache: &str, bytes: u64) -> Buf {
        let buf = self.e.alloc(cache, bytes);
        self.copy_in(buf);
        buf
    }

    fn copy_in(&mut self, buf: Buf) {
        self.e.op(LOAD, MTE2, cost::load(self.e.size(buf)), &[buf], &[]);
    }

    /// A grid of blocks loaded into L1, row by row.
    pub(super) fn load_grid(&mut self, rows: u64, columns: u64) -> Vec<Vec<Buf>> {
        let tile = self.tile;
        (0..rows).map(|_| (0..columns).map(|_| self.load("L1", tile)).collect()).collect()
    }

    /// Both blocks in L1; those not there yet are reserved first, then loaded.
    pub(super) fn fetch(&mut self, a: &mut Option<Buf>, b: &mut Option<Buf>, bytes: u64) -> (Buf, Buf) {
        let fresh = [a.is_none(), b.is_none()];
        let bufs = [a, b].map(|slot| *slot.get_or_insert_with(|| self.e.alloc("L1", bytes)));
        for (buf, _) in bufs.into_iter().zip(fresh).filter(|f| f.1) {
            self.copy_in(buf);
        }
        (bufs[0], bufs[1])
    }

    /// A new accumulator in L0C: 32-bit sums of a tile.
    pub(super) fn accumulator(&mut self) -> Buf {
        self.e.alloc("L0C", self.tile.saturating_mul(2))
    }

    /// Adds the product of two L1 blocks to an accumulator; `feed` is what moving the right one to
    /// L0B costs. Seven nodes, those of the L0A and L0B buffers included.
    pub(super) fn multiply(&mut self, sum: Buf, a: Buf, b: Buf, feed: fn(u64) -> u64) {
        let tile = self.tile;
        let [left, right] = ["L0A", "L0B"].map(|cache| self.e.alloc(cache, tile));
        self.e.op("MOVE", MTE1, cost::feed(tile), &[left], &[a]);
        self.e.op("MOVE", MTE1, feed(tile), &[right], &[b]);
        self.e.op("MATMUL", CUBE, cost::multiply(tile), &[sum], &[right, left]);
    }

    /// Copies an accumulator to a new tile of UB. Three nodes.
    pub(super) fn drain(&mut self, sum: Buf) -> Buf {
        let out = self.e.alloc("UB", self.tile);
        self.e.op("COPY", FIXP, cost::drain(self.tile), &[out], &[sum]);
        out
    }

    /// A vector op on `inputs` with a new result of `bytes` in UB. Three nodes.
    pub(super) fn vector(&mut self, op: &str, bytes: u64, inputs: &[Buf]) -> Buf {
        let out = self.e.alloc("UB", bytes);
        self.e.op(op, VECTOR, cost::vector(op, bytes), &[out], inputs);
        out
    }

    /// A tile-wide vector op.
    pub(super) fn wide(&mut self, op: &str, inputs: &[Buf]) -> Buf {
        self.vector(op, self.tile, inputs)
    }

    /// A vector op on one number per row.
    pub(super) fn narrow(&mut self, op: &str, inputs: &[Buf]) -> Buf {
        self.vector(op, self.column(), inputs)
    }

    /// Packs the one number per row that a row reduction leaves spread over a tile. Five nodes,
    /// because the instruction needs a scratch buffer.
    pub(super) fn compact(&mut self, spread: Buf) -> Buf {
        let out = self.e.alloc("UB", self.column());
        let scratch = self.e.alloc("UB", (self.tile / 8).max(1));
        let cycles = cost::vector("COMPACT", self.tile);
        self.e.op("COMPACT", VECTOR, cycles, &[out, scratch], &[spread]);
        out
    }

    /// Copies a UB tile into an L1 buffer.
    pub(super) fn copy_to_l1(&mut self, l1: Buf, ub: Buf) {
        self.e.op("COPY", MTE3, cost::exchange(self.tile), &[l1], &[ub]);
    }

    /// Copies a UB tile to a new L1 block. Three nodes.
    pub(super) fn put_in_l1(&mut self, ub: Buf) -> Buf {
        let l1 = self.e.alloc("L1", self.tile);
        self.copy_to_l1(l1, ub);
        l1
    }

    /// Copies an L1 block to a new UB tile. Three nodes.
    pub(super) fn put_in_ub(&mut self, l1: Buf) -> Buf {
        let ub = self.e.alloc("UB", self.tile);
        self.e.op("COPY", MTE1, cost::exchange(self.tile), &[ub], &[l1]);
        ub
    }

    /// Stores a buffer to main memory.
    pub(super) fn store(&mut self, buf: Buf) {
        self.e.op(STORE, MTE3, cost::store(self.e.size(buf)), &[], &[buf]);
    }

    /// One row of tiles times a grid of weights, drained to UB: [`linear_nodes`] nodes.
    pub(super) fn linear(&mut self, row: &[Buf], weights: &[Vec<Buf>]) -> Vec<Buf> {
        let columns = weights.first().map_or(0, Vec::len);
        (0..columns).map(|c| self.linear_column(row, weights, c)).collect()
    }

    /// One tile of the product of [`Kernel::linear`].
    pub(super) fn linear_column(&mut self, row: &[Buf], weights: &[Vec<Buf>], column: usize) -> Buf {
        let sum = self.accumulator();
        for (&x, w) in row.iter().zip(weights) {
            self.multiply(sum, x, w[column], cost::feed);
        }
        self.drain(sum)
    }

    /// `x · σ(1.702 x)`, the usual stand-in for GELU: [`GELU_NODES`] nodes.
    pub(super) fn gelu(&mut self, x: Buf) -> Buf {
        let scaled = self.wide("MUL", &[x]);
        let power = self.wide("EXP", &[scaled]);
        let shifted = self.wide("ADD", &[power]);
        let gate = self.wide("REC", &[shifted]);
        self.wide("MUL", &[x, gate])
    }
}

/// Nodes of [`Kernel::gelu`].
pub(super) const GELU_NODES: u64 = 15;

/// Nodes of [`Kernel::linear`] for `inputs` × `outputs` tiles of weights.
pub(super) fn linear_nodes(inputs: u64, outputs: u64) -> u64 {
    super::sum_of_products(&[&[outputs, 5], &[outputs, inputs, 7]])
}
