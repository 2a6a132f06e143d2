//! Energy: what moving a byte and keeping a pipe busy for a cycle take.
//!
//! The model is linear, as those of accelerator studies are (Horowitz, ISSCC 2014; Sze et al.,
//! Proc. IEEE 2017): picojoules per byte that crosses to or from a level, per busy cycle of a pipe,
//! and per cycle that the plan lasts. Loads and stores of the graph itself are ops: their energy is
//! that of the cycles of their pipes.

use super::Hardware;
use crate::graph::{Graph, NodeKind};
use crate::index::{BufIx, CacheIx, NodeIx, PipeIx};
use crate::units::Cycles;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

/// The `[energy]` table of a hardware file, in picojoules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergySpec {
    /// For each cycle of the makespan: leakage and clocks.
    pub per_cycle: u64,
    /// For each byte that a spill moves, by the level it goes to or comes from (`next` of a cache).
    /// A level that is not named takes [`EnergySpec::PER_BYTE`].
    pub per_byte: IndexMap<String, u64>,
    /// For each busy cycle, by pipe. A pipe that is not named takes none.
    pub per_busy_cycle: IndexMap<String, u64>,
}

impl EnergySpec {
    /// Picojoules a byte of a level that is not named: DRAM at 20 pJ a bit.
    pub const PER_BYTE: u64 = 160;

    /// The energies of the preset `davinci-energy`: orders of magnitude for a 16-bit matrix unit of
    /// 4,096 multipliers, a 128-lane vector unit, and on-chip copies.
    pub(super) fn davinci() -> Self {
        let table = |list: &[(&str, u64)]| list.iter().map(|&(name, pj)| (name.to_owned(), pj)).collect();
        let busy = [("MTE2", 40), ("MTE1", 60), ("CUBE", 1600), ("FIXP", 80), ("VECTOR", 200), ("MTE3", 40)];
        Self { per_cycle: 100, per_byte: table(&[("DRAM", Self::PER_BYTE)]), per_busy_cycle: table(&busy) }
    }
}

/// The energy model of a machine, by the graph's caches and pipes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Energy {
    per_cycle: u64,
    per_byte: TiVec<CacheIx, u64>,
    per_busy_cycle: TiVec<PipeIx, u64>,
}

impl Energy {
    pub(super) fn resolve(graph: &Graph, hardware: &Hardware, pipes: &TiVec<PipeIx, String>) -> Option<Self> {
        let spec = hardware.energy.as_ref()?;
        let per_byte = graph.caches().map(|c| {
            let level = hardware.caches.get(graph.cache_name(c)).map(|cache| cache.next.as_str());
            level.and_then(|l| spec.per_byte.get(l)).copied().unwrap_or(EnergySpec::PER_BYTE)
        });
        let per_busy_cycle = pipes.iter().map(|p| spec.per_busy_cycle.get(p).copied().unwrap_or(0));
        Some(Self { per_cycle: spec.per_cycle, per_byte: per_byte.collect(), per_busy_cycle: per_busy_cycle.collect() })
    }

    /// Picojoules for each cycle that a plan lasts.
    pub fn per_cycle(&self) -> u64 {
        self.per_cycle
    }

    /// Picojoules of an op, saturating; 0 for cache nodes and ops without timing.
    pub fn op(&self, graph: &Graph, node: NodeIx) -> u64 {
        match (graph.kind(node), graph.pipe(node), graph.cycles(node)) {
            (NodeKind::Op, Some(pipe), Some(cycles)) => self.busy(pipe, cycles),
            _ => 0,
        }
    }

    /// Picojoules of one spill of a buffer, out and back, saturating: the bytes that it moves and the
    /// cycles of its pipes. Moving a backed buffer out takes none of either.
    pub fn spill(&self, graph: &Graph, machine: &super::Machine, buf: BufIx) -> u64 {
        let buffer = graph.buf(buf);
        let cache = machine.cache(buffer.cache);
        let cycles = machine.spill_cost().cycles(buffer.size);
        let out = if buffer.backed { 0 } else { self.busy(cache.spill_out_pipe, cycles) };
        let bytes = self.per_byte[buffer.cache].saturating_mul(buffer.movement().0);
        bytes.saturating_add(out).saturating_add(self.busy(cache.spill_in_pipe, cycles))
    }

    fn busy(&self, pipe: PipeIx, cycles: Cycles) -> u64 {
        self.per_busy_cycle[pipe].saturating_mul(cycles.0)
    }
}
