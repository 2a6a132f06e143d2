//! What the synthetic generators share: drawing sizes, loading, computing, ending.

use super::pressure;
use crate::cost::{LOAD, MTE2, MTE3, STORE, VECTOR};
use crate::draw::Draw;
use crate::emit::{Buf, Emitter, Frees, Op};
use crate::error::WorkloadError;
use crate::registry::Values;

/// The mean weight of a buffer; large enough that rounding a weight does not matter.
const UNIT: u64 = 1 << 16;

/// A program in the making.
pub(super) struct Program {
    pub(super) draw: Draw,
    e: Emitter,
    cache: &'static str,
    sizes: &'static str,
    nodes: u64,
    /// Per cent of the buffers that are loaded.
    backed: u64,
    loaded: u64,
    buffers: u64,
    pressure: u64,
    capacity: u64,
}

impl Program {
    /// Starts from the parameters that all families share.
    pub(super) fn new(values: &Values, seed: u64) -> Self {
        Self {
            draw: Draw::new(seed),
            e: Emitter::new(Frees::LastUse),
            cache: values.choice("cache"),
            sizes: values.choice("sizes"),
            nodes: values.get("nodes"),
            backed: values.get("backed"),
            loaded: 0,
            buffers: 0,
            pressure: values.get("pressure"),
            capacity: values.get("capacity"),
        }
    }

    /// True while `reserve` more nodes stay within the nodes that were asked for.
    pub(super) fn has_room(&self, reserve: u64) -> bool {
        self.e.node_count().saturating_add(reserve) <= self.nodes
    }

    /// The most computed buffers for which [`Program::can_compute`] holds.
    pub(super) fn room(&self, reserve: u64) -> u64 {
        let nodes = self.nodes.saturating_sub(self.e.node_count());
        let most = nodes * (100 - self.backed) / 300;
        (0..=most + 1).rev().find(|&ops| self.can_compute(ops, reserve)).unwrap_or(0)
    }

    /// True while `ops` more computed buffers, each with its share of loaded ones, and `reserve`
    /// further nodes stay within the nodes that were asked for.
    pub(super) fn can_compute(&self, ops: u64, reserve: u64) -> bool {
        // Loads are due as soon as, of all buffers with the next one, the share allows one more.
        let buffers = self.buffers - self.loaded + ops;
        let loads = (buffers * self.backed).div_ceil(100 - self.backed).saturating_sub(self.loaded);
        self.has_room(3 * (ops + loads) + reserve)
    }

    fn weight(&mut self) -> u64 {
        match self.sizes {
            "uniform" => UNIT / 4 + self.draw.below(UNIT * 3 / 2 + 1),
            "powers" => (UNIT / 4) << self.draw.below(4),
            "mixed" if self.draw.below(8) == 0 => UNIT * 8,
            _ => UNIT,
        }
    }

    fn alloc(&mut self) -> Buf {
        let weight = self.weight();
        self.buffers += 1;
        self.e.alloc(self.cache, weight)
    }

    /// True when the next buffer must be a loaded one to keep the share that was asked for.
    fn owes_load(&self) -> bool {
        (self.loaded + 1) * 100 <= self.backed * (self.buffers + 1)
    }

    fn load(&mut self) -> Buf {
        let buf = self.alloc();
        self.loaded += 1;
        self.e.op(LOAD, MTE2, 0, &[buf], &[]);
        buf
    }

    /// A buffer that depends on nothing: loaded if the share asks for it, else computed.
    pub(super) fn source(&mut self) -> Buf {
        if self.owes_load() {
            return self.load();
        }
        let buf = self.alloc();
        self.e.op("FILL", VECTOR, 0, &[buf], &[]);
        buf
    }

    /// An op on `inputs` with a new result. What the share of loaded buffers asks for is loaded
    /// just before and read with them.
    pub(super) fn compute(&mut self, name: &str, inputs: &[Buf]) -> Buf {
        let mut inputs = inputs.to_vec();
        while self.owes_load() {
            let buf = self.load();
            inputs.push(buf);
        }
        let out = self.alloc();
        self.e.op(name, VECTOR, 0, &[out], &inputs);
        out
    }

    /// An op that only reads a buffer.
    pub(super) fn read(&mut self, buf: Buf, after: Option<Op>) -> Op {
        let op = self.e.op("USE", VECTOR, 0, &[], &[buf]);
        if let Some(after) = after {
            self.e.order(after, op);
        }
        op
    }

    /// Stores a result.
    pub(super) fn store(&mut self, buf: Buf) {
        self.e.op(STORE, MTE3, 0, &[], &[buf]);
    }

    /// Fixes the sizes by the pressure.
    pub(super) fn finish(self) -> Result<Emitter, WorkloadError> {
        pressure::fit(self.e, self.pressure, self.capacity)
    }
}
