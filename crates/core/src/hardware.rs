//! Hardware: named caches with capacities, where their spills go, and what a spill costs in cycles.
//!
//! [`Hardware`] is what a TOML file says; [`Machine`] is the same seen from one graph, indexed by
//! the graph's caches and pipes.

mod energy;

pub use energy::{Energy, EnergySpec};

use crate::graph::Graph;
use crate::index::{CacheIx, NodeIx, PipeIx};
use crate::names::Shown;
use crate::reservation::{Reservation, Reserved};
use crate::units::{BufId, Bytes, Cycles, Id};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use typed_index_collections::{TiVec, ti_vec};

/// When a buffer of a cache may be evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evict {
    /// As the strategy chain says.
    #[default]
    Normal,
    /// Postponing an `ALLOC` is tried first, whatever the chain.
    Last,
}

/// One cache of a hardware description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Bytes it holds, at least 1.
    pub capacity: Bytes,
    /// Name of the level that spills go to.
    #[serde(default = "main_memory")]
    pub next: String,
    /// The pipe that `SPILL_IN` runs on.
    #[serde(default = "mte2")]
    pub spill_in_pipe: String,
    /// The pipe that `SPILL_OUT` runs on.
    #[serde(default = "mte3")]
    pub spill_out_pipe: String,
    /// When its buffers may be evicted.
    #[serde(default)]
    pub evict: Evict,
    /// True when its bytes count in `peak_demand`.
    #[serde(default)]
    pub counts_in_peak: bool,
    /// True when at most one of its buffers may be live at a time under the objective `peak`.
    #[serde(default)]
    pub exclusive: bool,
}

fn main_memory() -> String {
    "DRAM".to_owned()
}

fn mte2() -> String {
    "MTE2".to_owned()
}

fn mte3() -> String {
    "MTE3".to_owned()
}

/// What moving a buffer costs in cycles. `SPILL_OUT` of a backed buffer is free under every model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SpillCost {
    /// `cycles_per_byte · size + overhead_cycles`.
    Affine {
        /// Cycles per byte; 2 by default.
        #[serde(default = "two")]
        cycles_per_byte: u64,
        /// Cycles on top; 150 by default.
        #[serde(default = "davinci_overhead")]
        overhead_cycles: u64,
    },
    /// `ceil(size / bytes_per_cycle) + overhead_cycles`.
    Bandwidth {
        /// Bytes per cycle, at least 1; 512 by default.
        #[serde(default = "davinci_bandwidth")]
        bytes_per_cycle: u64,
        /// Cycles on top; 0 by default.
        #[serde(default)]
        overhead_cycles: u64,
    },
}

fn two() -> u64 {
    2
}

fn davinci_overhead() -> u64 {
    150
}

fn davinci_bandwidth() -> u64 {
    512
}

impl Default for SpillCost {
    fn default() -> Self {
        Self::Affine { cycles_per_byte: two(), overhead_cycles: davinci_overhead() }
    }
}

impl SpillCost {
    /// The second model of the specification: 512 bytes per cycle, no overhead.
    pub fn bandwidth() -> Self {
        Self::Bandwidth { bytes_per_cycle: davinci_bandwidth(), overhead_cycles: 0 }
    }

    /// The cycles to move `size` bytes one way, saturating at 2⁶⁴ − 1.
    pub fn cycles(&self, size: Bytes) -> Cycles {
        Cycles(match *self {
            Self::Affine { cycles_per_byte, overhead_cycles } => {
                size.0.saturating_mul(cycles_per_byte).saturating_add(overhead_cycles)
            }
            Self::Bandwidth { bytes_per_cycle, overhead_cycles } => {
                size.0.div_ceil(bytes_per_cycle.max(1)).saturating_add(overhead_cycles)
            }
        })
    }
}

/// A hardware description: caches in a fixed order, and the spill cost model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// Its name, for tables.
    #[serde(default = "unnamed")]
    pub name: String,
    /// Pipes in the order in which tables and timelines show them. A pipe needs no declaration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipes: Vec<String>,
    /// What a spill costs in cycles.
    #[serde(default)]
    pub spill_cost: SpillCost,
    /// The caches by name.
    pub caches: IndexMap<String, CacheSpec>,
    /// Bytes kept from buffers, throughout or between two nodes of the graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<Reservation>,
    /// What moving and computing take; without it no energy is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergySpec>,
}

fn unnamed() -> String {
    "custom".to_owned()
}

/// What is wrong with a hardware description beyond its syntax.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HardwareError {
    /// No cache at all.
    #[error("the hardware declares no cache")]
    NoCache,
    /// A cache of capacity 0.
    #[error("cache {} has capacity 0", Shown(.cache))]
    ZeroCapacity {
        /// The cache.
        cache: String,
    },
    /// A cache or a pipe without a name.
    #[error("the name of {what} is empty")]
    EmptyName {
        /// What has no name: `a cache`, or a pipe with where it stands.
        what: String,
    },
    /// A bandwidth of 0 bytes per cycle.
    #[error("spill_cost.bytes_per_cycle is 0")]
    ZeroBandwidth,
    /// A capacity or a reservation given for a cache that the hardware does not have.
    #[error("there is no cache {} (the hardware {} has {})", Shown(.cache), Shown(.hardware), .known)]
    UnknownCache {
        /// The cache asked for.
        cache: String,
        /// Name of the hardware.
        hardware: String,
        /// The caches that it has, comma-separated.
        known: String,
    },
    /// An energy per byte of a level that no cache spills to.
    #[error("energy.per_byte: there is no level {} (caches spill to {})", Shown(.level), .known)]
    UnknownLevel {
        /// The level named.
        level: String,
        /// The levels that caches spill to, comma-separated.
        known: String,
    },
    /// More bytes reserved than a cache has.
    #[error("{reservation} reserves more than the {capacity} bytes of its cache")]
    ReservesTooMuch {
        /// The reservation.
        reservation: Reservation,
        /// Bytes the cache has.
        capacity: Bytes,
    },
}

/// A hardware description that comes with spillbench.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// What `--hardware` calls it.
    pub name: &'static str,
    /// One line on it.
    pub doc: &'static str,
    make: fn() -> Hardware,
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "davinci",
        doc: "L1 4096, UB 1024, L0A 256, L0B 256, L0C 512; a spill moves 2 cycles a byte + 150",
        make: davinci,
    },
    Preset {
        name: "davinci-unbounded",
        doc: "the caches of davinci without limits: what a schedule would need",
        make: davinci_unbounded,
    },
    Preset {
        name: "davinci-energy",
        doc: "davinci with an energy model: 160 pJ a byte to DRAM, pJ per busy cycle of each pipe",
        make: davinci_energy,
    },
];

fn davinci() -> Hardware {
    let cache = |capacity, compute: bool| CacheSpec {
        capacity: Bytes(capacity),
        next: main_memory(),
        spill_in_pipe: mte2(),
        spill_out_pipe: mte3(),
        evict: if compute { Evict::Last } else { Evict::Normal },
        counts_in_peak: !compute,
        exclusive: compute,
    };
    let caches = [("L1", 4096, false), ("UB", 1024, false), ("L0A", 256, true), ("L0B", 256, true), ("L0C", 512, true)];
    Hardware {
        name: "davinci".to_owned(),
        pipes: ["MTE2", "MTE1", "CUBE", "FIXP", "VECTOR", "MTE3"].map(str::to_owned).to_vec(),
        spill_cost: SpillCost::default(),
        caches: caches.into_iter().map(|(name, size, compute)| (name.to_owned(), cache(size, compute))).collect(),
        reservations: Vec::new(),
        energy: None,
    }
}

fn davinci_energy() -> Hardware {
    Hardware { name: "davinci-energy".to_owned(), energy: Some(EnergySpec::davinci()), ..davinci() }
}

fn davinci_unbounded() -> Hardware {
    let mut hardware = davinci();
    hardware.name = "davinci-unbounded".to_owned();
    hardware.caches.values_mut().for_each(|c| c.capacity = Hardware::UNBOUNDED);
    hardware
}

impl Default for Hardware {
    fn default() -> Self {
        davinci()
    }
}

impl Hardware {
    /// The capacity that stands for no limit: 2⁶³ − 1.
    pub const UNBOUNDED: Bytes = Bytes(i64::MAX as u64);

    /// The preset of that name.
    pub fn preset(name: &str) -> Option<Self> {
        PRESETS.iter().find(|p| p.name == name).map(|p| (p.make)())
    }

    /// Checks what the syntax of a file cannot.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), HardwareError> {
        if self.caches.is_empty() {
            return Err(HardwareError::NoCache);
        }
        if let Some((cache, _)) = self.caches.iter().find(|(_, c)| c.capacity.0 == 0) {
            return Err(HardwareError::ZeroCapacity { cache: cache.clone() });
        }
        self.validate_names()?;
        if matches!(self.spill_cost, SpillCost::Bandwidth { bytes_per_cycle: 0, .. }) {
            return Err(HardwareError::ZeroBandwidth);
        }
        self.validate_energy()?;
        self.validate_reservations()
    }

    fn validate_energy(&self) -> Result<(), HardwareError> {
        let mut levels: Vec<_> = self.caches.values().map(|c| c.next.as_str()).collect();
        levels.sort_unstable();
        levels.dedup();
        let named = self.energy.iter().flat_map(|e| e.per_byte.keys());
        let unknown = named.into_iter().find(|level| !levels.contains(&level.as_str()));
        unknown.map_or(Ok(()), |level| {
            let known = levels.iter().map(|l| Shown(l).to_string()).collect::<Vec<_>>().join(", ");
            Err(HardwareError::UnknownLevel { level: level.clone(), known })
        })
    }

    fn validate_reservations(&self) -> Result<(), HardwareError> {
        for reservation in &self.reservations {
            let spec = self.caches.get(&reservation.cache).ok_or_else(|| self.unknown_cache(&reservation.cache))?;
            if reservation.bytes > spec.capacity {
                let (reservation, capacity) = (reservation.clone(), spec.capacity);
                return Err(HardwareError::ReservesTooMuch { reservation, capacity });
            }
        }
        Ok(())
    }

    fn unknown_cache(&self, cache: &str) -> HardwareError {
        let known = self.caches.keys().map(|c| Shown(c).to_string()).collect::<Vec<_>>().join(", ");
        HardwareError::UnknownCache { cache: cache.to_owned(), hardware: self.name.clone(), known }
    }

    /// Refuses empty names, which no table could show.
    fn validate_names(&self) -> Result<(), HardwareError> {
        let empty = |what: String| Err(HardwareError::EmptyName { what });
        if self.caches.contains_key("") {
            return empty("a cache".to_owned());
        }
        if let Some(place) = self.pipes.iter().position(String::is_empty) {
            return empty(format!("pipes[{place}]"));
        }
        for (cache, spec) in &self.caches {
            let names = [
                ("next", &spec.next),
                ("spill_in_pipe", &spec.spill_in_pipe),
                ("spill_out_pipe", &spec.spill_out_pipe),
            ];
            if let Some((key, _)) = names.iter().find(|n| n.1.is_empty()) {
                return empty(format!("{key} of cache {}", Shown(cache)));
            }
        }
        Ok(())
    }

    /// Sets the capacity of one cache.
    ///
    /// # Errors
    /// When there is no such cache, or the capacity is 0.
    pub fn set_capacity(&mut self, cache: &str, capacity: Bytes) -> Result<(), HardwareError> {
        let Some(spec) = self.caches.get_mut(cache) else { return Err(self.unknown_cache(cache)) };
        spec.capacity = capacity;
        self.validate()
    }
}

/// One cache as a graph sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCache {
    /// Bytes it holds.
    pub capacity: Bytes,
    /// True when postponing goes before evicting, whatever the chain.
    pub evict_last: bool,
    /// True when its bytes count in `peak_demand`.
    pub counts_in_peak: bool,
    /// True when at most one buffer may be live under the objective `peak`.
    pub exclusive: bool,
    /// The pipe of `SPILL_IN`.
    pub spill_in_pipe: PipeIx,
    /// The pipe of `SPILL_OUT`.
    pub spill_out_pipe: PipeIx,
}

/// A hardware description resolved for one graph: capacities by cache index, pipes by pipe index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    caches: TiVec<CacheIx, MachineCache>,
    pipe_names: TiVec<PipeIx, String>,
    spill_cost: SpillCost,
    reservations: Vec<Reserved>,
    energy: Option<Energy>,
}

/// Why no plan of a graph exists on a hardware.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FitError {
    /// The graph names a cache that the hardware does not have.
    #[error("node {node} allocates in cache {}, which the hardware does not have", Shown(.cache))]
    UnknownCache {
        /// The first `ALLOC` in that cache.
        node: Id,
        /// The cache.
        cache: String,
    },
    /// A buffer larger than its cache.
    #[error("node {node}: buffer {buf} of {} is larger than {} ({})", .size.in_words(), Shown(.cache), .capacity.in_words())]
    BufferTooLarge {
        /// Its `ALLOC`.
        node: Id,
        /// The buffer.
        buf: BufId,
        /// Its size.
        size: Bytes,
        /// Its cache.
        cache: String,
        /// The size of that.
        capacity: Bytes,
    },
    /// The operands of one op exceed their cache.
    #[error("node {node} ({}) needs {} of {} at once, which has {capacity}", Shown(.op), .needed.in_words(), Shown(.cache))]
    OperandsTooLarge {
        /// The op.
        node: Id,
        /// Its operation.
        op: String,
        /// The cache.
        cache: String,
        /// Bytes of all its operands there.
        needed: Bytes,
        /// Bytes the cache has.
        capacity: Bytes,
        /// Each operand there with its size.
        operands: Vec<(BufId, Bytes)>,
    },
    /// A node needs more bytes of a cache than reservations leave it where it stands.
    #[error("node {node} ({}) needs {needed} bytes of {} at once; reservations leave it {usable} of {capacity} there",
        Shown(.op), Shown(.cache))]
    ReservedTooMuch {
        /// The node.
        node: Id,
        /// Its operation.
        op: String,
        /// The cache.
        cache: String,
        /// Bytes of all its operands there.
        needed: Bytes,
        /// Bytes that reservations leave.
        usable: Bytes,
        /// Bytes the cache has.
        capacity: Bytes,
    },
    /// A reservation whose last node the schedule has before its first.
    #[error(
        "{reservation} cannot be reserved: in the schedule its last node stands at position {to}, before its first, \
        at position {from}"
    )]
    ReservedBackwards {
        /// The reservation.
        reservation: Reservation,
        /// Position of its first node in the normalised schedule, from 0.
        from: usize,
        /// Position of its last.
        to: usize,
    },
    /// A reservation begins or ends with a node that the graph does not have.
    #[error("{reservation} is reserved from or to node {node}, which the graph does not have")]
    ReservedNode {
        /// The reservation.
        reservation: Reservation,
        /// The node.
        node: Id,
    },
}

impl Machine {
    /// Resolves a hardware description for a graph. Whether the graph fits is asked by
    /// [`Machine::misfits`].
    ///
    /// # Errors
    /// One [`FitError::UnknownCache`] per cache that the hardware does not have, one
    /// [`FitError::ReservedNode`] per end of a reservation that the graph does not have.
    pub fn resolve(graph: &Graph, hardware: &Hardware) -> Result<Self, Vec<FitError>> {
        let mut pipe_names = graph.pipe_names().to_owned();
        let mut pipe = |name: &str| match pipe_names.position(|p| p == name) {
            Some(ix) => ix,
            None => pipe_names.push_and_get_key(name.to_owned()),
        };
        let mut caches = TiVec::new();
        let mut unknown = Vec::new();
        for cache in graph.caches() {
            let name = graph.cache_name(cache);
            match hardware.caches.get(name) {
                Some(spec) => caches.push(MachineCache {
                    capacity: spec.capacity,
                    evict_last: spec.evict == Evict::Last,
                    counts_in_peak: spec.counts_in_peak,
                    exclusive: spec.exclusive,
                    spill_in_pipe: pipe(&spec.spill_in_pipe),
                    spill_out_pipe: pipe(&spec.spill_out_pipe),
                }),
                None => unknown.extend(
                    graph
                        .bufs()
                        .map(|b| graph.buf(b))
                        .find(|b| b.cache == cache)
                        .map(|b| FitError::UnknownCache { node: graph.id(b.alloc), cache: name.to_owned() }),
                ),
            }
        }
        let reservations = reserved(graph, hardware, &mut unknown);
        let spill_cost = hardware.spill_cost;
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let energy = Energy::resolve(graph, hardware, &pipe_names);
        Ok(Self { caches, pipe_names, spill_cost, reservations, energy })
    }

    /// What is kept from buffers, in caches that the graph names.
    pub fn reservations(&self) -> &[Reserved] {
        &self.reservations
    }

    /// The same machine, with nothing kept from buffers.
    #[must_use]
    pub fn without_reservations(&self) -> Self {
        Self { reservations: Vec::new(), ..self.clone() }
    }

    /// A cache.
    #[inline]
    pub fn cache(&self, cache: CacheIx) -> &MachineCache {
        &self.caches[cache]
    }

    /// The number of caches: those that the graph names.
    pub fn cache_count(&self) -> usize {
        self.caches.len()
    }

    /// All pipes: those of the graph, under the same indices, then spill pipes it does not name.
    pub fn pipe_names(&self) -> &TiVec<PipeIx, String> {
        &self.pipe_names
    }

    /// The spill cost model.
    pub fn spill_cost(&self) -> SpillCost {
        self.spill_cost
    }

    /// The energy model, where the hardware states one.
    pub fn energy(&self) -> Option<&Energy> {
        self.energy.as_ref()
    }

    /// What of the graph cannot fit at all, however it is scheduled; empty when a plan exists.
    pub fn misfits(&self, graph: &Graph) -> Vec<FitError> {
        let mut errors = Vec::new();
        for buf in graph.bufs().map(|b| graph.buf(b)) {
            let capacity = self.caches[buf.cache].capacity;
            if buf.size > capacity {
                let (node, cache) = (graph.id(buf.alloc), graph.cache_name(buf.cache).to_owned());
                errors.push(FitError::BufferTooLarge { node, buf: buf.id, size: buf.size, cache, capacity });
            }
        }
        let mut demand = OperandDemand::new(graph);
        for node in graph.nodes() {
            for &(cache, needed) in demand.of(graph, node) {
                let capacity = self.caches[cache].capacity;
                let operands = || graph.operands(node).iter().map(|&b| graph.buf(b)).filter(|b| b.cache == cache);
                // A single operand that is too large has been said already.
                if needed > capacity && operands().count() > 1 {
                    errors.push(FitError::OperandsTooLarge {
                        node: graph.id(node),
                        op: graph.op_name(node).to_owned(),
                        cache: graph.cache_name(cache).to_owned(),
                        needed,
                        capacity,
                        operands: operands().map(|b| (b.id, b.size)).collect(),
                    });
                }
            }
        }
        errors
    }
}

/// The reservations of caches that the graph names, with its nodes.
fn reserved(graph: &Graph, hardware: &Hardware, unknown: &mut Vec<FitError>) -> Vec<Reserved> {
    let mut all = Vec::new();
    for reservation in &hardware.reservations {
        let mut node = |id: Option<Id>| {
            let found = id.and_then(|id| graph.node_by_id(id));
            if let (Some(node), None) = (id, found) {
                unknown.push(FitError::ReservedNode { reservation: reservation.clone(), node });
            }
            found
        };
        let (from, to) = (node(reservation.from), node(reservation.to));
        // Of a cache that no buffer is in nothing need be kept.
        if let Some(cache) = graph.cache_names().position(|name| *name == reservation.cache) {
            all.push(Reserved { cache, bytes: reservation.bytes, from, to });
        }
    }
    all
}

/// Sums the operands of a node per cache, reusing its storage from node to node.
pub(crate) struct OperandDemand {
    sums: TiVec<CacheIx, Bytes>,
    touched: Vec<(CacheIx, Bytes)>,
}

impl OperandDemand {
    pub(crate) fn new(graph: &Graph) -> Self {
        Self { sums: ti_vec![Bytes(0); graph.cache_names().len()], touched: Vec::new() }
    }

    /// The bytes of each cache that `node` needs at once.
    pub(crate) fn of(&mut self, graph: &Graph, node: NodeIx) -> &[(CacheIx, Bytes)] {
        for (cache, _) in self.touched.drain(..) {
            self.sums[cache] = Bytes(0);
        }
        for buf in graph.operands(node).iter().map(|&b| graph.buf(b)) {
            if self.sums[buf.cache].0 == 0 {
                self.touched.push((buf.cache, Bytes(0)));
            }
            self.sums[buf.cache] += buf.size;
        }
        for (cache, sum) in &mut self.touched {
            *sum = self.sums[*cache];
        }
        &self.touched
    }
}

/// The smallest capacities under which any plan of a graph exists, with a node that needs them:
/// the largest operand demand of one node.
pub fn smallest_capacities(graph: &Graph) -> TiVec<CacheIx, (Bytes, NodeIx)> {
    let mut least = ti_vec![(Bytes(0), NodeIx::new(0)); graph.cache_names().len()];
    let mut demand = OperandDemand::new(graph);
    for node in graph.nodes() {
        for &(cache, needed) in demand.of(graph, node) {
            if needed > least[cache].0 {
                least[cache] = (needed, node);
            }
        }
    }
    least
}
