//! Emitting a planned network, tile by tile.
//!
//! The dataflow is that of the lowered operators:
//!
//! * A tile that outlives its group stands in L1 from its producer to its last reader, so that the
//!   planner must move it out where L1 is short; nothing of it is written to main memory otherwise.
//!   Weights and inputs of the network are loaded from main memory by each group that reads them,
//!   once per tile, and are free to move out again.
//! * Cube work accumulates in L0C. Its right operand passes through L0B; the left one of a `MATMUL`
//!   through L0A, while a `CONV` reads the feature map from L1, neighbouring tiles included.
//! * Vector work reads and writes UB. A tile comes there from L1 (`COPY` on MTE1), from main memory
//!   (`COPY_IN`) or from L0C (`COPY` on FIXP), stays for its group, and goes to L1 on MTE3.
//! * An op whose operands would not fit at once becomes several that accumulate into its result.
//! * Outputs of the network are written by `COPY_OUT`, on FIXP straight from L0C where nothing else
//!   reads them.

mod cube;

use super::infer::Task;
use super::kernel::{Gather, Kernel, Stats, Vector};
use super::network::TensorIx;
use super::plan::{Plan, Scale};
use super::region::{BoxMap, Region, apply, volume};
use super::tiling::Tiling;
use crate::cost::{self, FIXP, LOAD, MTE1, MTE2, MTE3, STORE, VECTOR};
use crate::emit::{Buf, Emitter, Frees};
use std::collections::HashMap;

/// What bounds a lowering.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Capacity of UB.
    pub ub: u64,
    /// Capacity of L1.
    pub l1: u64,
    /// The most nodes.
    pub nodes: u64,
}

/// More nodes than [`Limits::nodes`].
#[derive(Debug)]
pub(super) struct TooMany;

/// Emits all groups.
pub(super) fn lower(plan: &Plan<'_>, tilings: &[Tiling], scale: Scale, limits: Limits) -> Result<Emitter, TooMany> {
    let groups = plan.groups(tilings);
    let e = Emitter::new(Frees::LastUse);
    let mut lowering =
        Lowering { plan, tilings, scale, limits, e, l1: HashMap::new(), local: Local::default(), work: 0 };
    for group in &groups {
        lowering.group(group)?;
    }
    lowering.step()?;
    Ok(lowering.e)
}

/// A tile of a stored tensor.
type Tile = (TensorIx, u64);

/// What lives for one group only.
#[derive(Default)]
struct Local {
    /// Tiles in UB.
    ub: HashMap<Tile, Buf>,
    /// Tiles loaded to L1 from main memory.
    l1: HashMap<Tile, Buf>,
    /// Statistics by their first tile.
    stats: HashMap<u64, Vec<Buf>>,
}

/// Where the result of a task stands.
#[derive(Clone, Copy)]
enum Place {
    Ub(Buf),
    L0c(Buf),
}

struct Lowering<'a> {
    plan: &'a Plan<'a>,
    tilings: &'a [Tiling],
    scale: Scale,
    limits: Limits,
    e: Emitter,
    /// Tiles that outlive their group.
    l1: HashMap<Tile, Buf>,
    local: Local,
    /// Tiles looked at: bounds the time where operands are many and nodes few.
    work: u64,
}

impl Lowering<'_> {
    fn group(&mut self, group: &[usize]) -> Result<(), TooMany> {
        let tasks = &self.plan.program.tasks;
        self.local = Local::default();
        for tile in 0..self.tilings[tasks[group[0]].output.0].count() {
            for (i, &task) in group.iter().enumerate() {
                let place = self.task(&tasks[task], tile)?;
                self.keep((tasks[task].output, tile), place, group, i + 1 < group.len());
            }
        }
        Ok(())
    }

    /// Counts a step of work and stops past the limit.
    fn step(&mut self) -> Result<(), TooMany> {
        self.work += 1;
        let over = self.e.node_count() > self.limits.nodes || self.work > self.limits.nodes.saturating_mul(16);
        if over { Err(TooMany) } else { Ok(()) }
    }

    /// The units of a box of a tensor.
    fn units(&self, tensor: TensorIx, region: &[(u64, u64)]) -> u64 {
        self.scale.units(volume(region), self.plan.width(tensor))
    }

    fn tile_units(&self, (tensor, tile): Tile) -> u64 {
        self.units(tensor, &self.tilings[tensor.0].region(tile))
    }

    fn task(&mut self, task: &Task, tile: u64) -> Result<Place, TooMany> {
        self.step()?;
        match &task.kernel {
            Kernel::Cube(cube) => self.cube(task, cube, tile),
            Kernel::Gather(gather) => self.gather(task, gather, tile),
            Kernel::Vector(vector) => self.vector(task, vector, tile),
            // Neither is ever scheduled; an empty vector op keeps the tile.
            Kernel::View | Kernel::Constant => {
                let empty = Vector { name: "COPY".to_owned(), reads: Vec::new(), stats: None };
                self.vector(task, &empty, tile)
            }
        }
    }

    /// Puts a finished tile where it is needed next.
    fn keep(&mut self, tile: Tile, place: Place, group: &[usize], goes_on: bool) {
        let stays = self.plan.is_read_outside(tile.0, group);
        let leaves = self.plan.is_output[tile.0.0];
        let size = self.tile_units(tile);
        let mut place = place;
        if let (Place::L0c(sum), true) = (place, goes_on) {
            let ub = self.e.alloc("UB", size);
            self.e.op("COPY", FIXP, cost::drain(size), &[ub], &[sum]);
            place = Place::Ub(ub);
        }
        if let Place::Ub(ub) = place {
            self.local.ub.insert(tile, ub);
        }
        if stays {
            let l1 = self.e.alloc("L1", size);
            match place {
                Place::Ub(ub) => self.e.op("COPY", MTE3, cost::exchange(size), &[l1], &[ub]),
                Place::L0c(sum) => self.e.op("COPY", FIXP, cost::drain(size), &[l1], &[sum]),
            };
            self.l1.insert(tile, l1);
        }
        if leaves {
            match place {
                Place::Ub(ub) => self.e.op(STORE, MTE3, cost::store(size), &[], &[ub]),
                Place::L0c(sum) => self.e.op(STORE, FIXP, cost::store_accumulator(size), &[], &[sum]),
            };
        }
    }

    /// The L1 buffer of a tile, loaded from main memory where it comes from there.
    fn in_l1(&mut self, tile: Tile) -> Buf {
        if let Some(&buf) = self.l1.get(&tile).or_else(|| self.local.l1.get(&tile)) {
            return buf;
        }
        let buf = self.load("L1", tile);
        self.local.l1.insert(tile, buf);
        buf
    }

    /// The UB buffer of a tile.
    fn in_ub(&mut self, tile: Tile) -> Buf {
        if let Some(&buf) = self.local.ub.get(&tile) {
            return buf;
        }
        let buf = match self.l1.get(&tile) {
            None => self.load("UB", tile),
            Some(&l1) => {
                let size = self.tile_units(tile);
                let ub = self.e.alloc("UB", size);
                self.e.op("COPY", MTE1, cost::exchange(size), &[ub], &[l1]);
                ub
            }
        };
        self.local.ub.insert(tile, buf);
        buf
    }

    fn load(&mut self, cache: &str, tile: Tile) -> Buf {
        let size = self.tile_units(tile);
        let buf = self.e.alloc(cache, size);
        self.e.op(LOAD, MTE2, cost::load(size), &[buf], &[]);
        buf
    }

    /// The stored box of an input that goes with a box of the output.
    fn stored(&self, task: &Task, place: usize, map: &BoxMap, out: &[(u64, u64)]) -> Option<(TensorIx, Region)> {
        let tensor = task.inputs.get(place).copied().flatten()?;
        let region = apply(map, out, self.plan.shape(tensor))?;
        Some(self.plan.stored(tensor, region))
    }

    /// Runs `name` over tiles in UB, as many at once as fit beside the result and `fixed`.
    fn accumulate(
        &mut self,
        name: &str,
        result: Buf,
        fixed: &[Buf],
        tiles: impl Iterator<Item = Tile>,
    ) -> Result<(), TooMany> {
        let beside: u64 = fixed.iter().chain([&result]).map(|&b| self.e.size(b)).sum();
        let room = self.limits.ub.saturating_sub(beside);
        let mut operands = fixed.to_vec();
        let (mut used, mut emitted) = (0, false);
        for tile in tiles {
            self.step()?;
            let size = self.tile_units(tile);
            if used + size > room && operands.len() > fixed.len() {
                self.vector_op(name, result, &operands);
                operands.truncate(fixed.len());
                (used, emitted) = (0, true);
            }
            let buf = self.in_ub(tile);
            if !operands.contains(&buf) {
                operands.push(buf);
                used += size;
            }
        }
        if !emitted || operands.len() > fixed.len() {
            self.vector_op(name, result, &operands);
        }
        Ok(())
    }

    fn vector_op(&mut self, name: &str, result: Buf, operands: &[Buf]) {
        let widest = operands.iter().chain([&result]).map(|&b| self.e.size(b)).max().unwrap_or(0);
        self.e.op(name, VECTOR, cost::vector(name, widest), &[result], operands);
    }

    fn vector(&mut self, task: &Task, vector: &Vector, tile: u64) -> Result<Place, TooMany> {
        let out = self.tilings[task.output.0].region(tile);
        let stats = match &vector.stats {
            None => Vec::new(),
            Some(stats) => self.stats(task, vector, stats, tile)?,
        };
        let result = self.e.alloc("UB", self.units(task.output, &out));
        let boxes = vector.reads.iter().filter_map(|(place, map)| self.stored(task, *place, map, &out));
        let boxes: Vec<_> = boxes.collect();
        let tilings = self.tilings;
        let tiles = boxes.iter().flat_map(|(t, region)| tilings[t.0].tiles(region).map(|i| (*t, i)));
        self.accumulate(&vector.name, result, &stats, tiles)?;
        Ok(Place::Ub(result))
    }

    /// The statistics of the row of a tile: each pass runs over all tiles of the row.
    fn stats(&mut self, task: &Task, vector: &Vector, stats: &Stats, tile: u64) -> Result<Vec<Buf>, TooMany> {
        let tiling = &self.tilings[task.output.0];
        let row = tiling.row(tile, &stats.axes);
        if let Some(known) = self.local.stats.get(&row) {
            return Ok(known.clone());
        }
        let mut whole_row = tiling.region(row);
        let shape = self.plan.shape(task.output).dims();
        let rows: u64 =
            (0..shape.len()).filter(|a| !stats.axes.contains(a)).map(|a| whole_row[a].1 - whole_row[a].0).product();
        stats.axes.iter().for_each(|&a| whole_row[a] = (0, shape[a]));
        // One 32-bit number per row, in any case less than a tile.
        let size = self.scale.units(rows, 4).min(self.scale.tile);
        let mut made = Vec::new();
        for pass in stats.passes {
            let result = self.e.alloc("UB", size);
            let read = vector.reads.first().and_then(|(place, map)| self.stored(task, *place, map, &whole_row));
            let tilings = self.tilings;
            let tiles = read.iter().flat_map(|(t, region)| tilings[t.0].tiles(region).map(|i| (*t, i)));
            self.accumulate(pass, result, &made, tiles)?;
            made.push(result);
        }
        self.local.stats.insert(row, made.clone());
        Ok(made)
    }

    /// Rows of a table in main memory are loaded tile by tile, where the indices say; a table on
    /// chip is read like any other operand.
    fn gather(&mut self, task: &Task, gather: &Gather, tile: u64) -> Result<Place, TooMany> {
        let (data, indices) = (&gather.data, &gather.indices);
        let table = task.inputs.get(data.0).copied().flatten();
        if !table.is_some_and(|t| self.plan.in_memory[t.0]) {
            let reads = vec![data.clone(), indices.clone()];
            return self.vector(task, &Vector { name: "GATHER".to_owned(), reads, stats: None }, tile);
        }
        let out = self.tilings[task.output.0].region(tile);
        let mut operands = Vec::new();
        let mut loaded = true;
        if let Some((tensor, region)) = self.stored(task, indices.0, &indices.1, &out) {
            loaded = self.plan.in_memory[tensor.0];
            let room = self.limits.ub / 2;
            for i in self.tilings[tensor.0].tiles(&region) {
                self.step()?;
                let buf = self.in_ub((tensor, i));
                if operands.iter().map(|&b| self.e.size(b)).sum::<u64>() + self.e.size(buf) <= room {
                    operands.push(buf);
                }
            }
        }
        let size = self.units(task.output, &out);
        let result = self.e.alloc("UB", size);
        // All operands of a COPY_IN count as backed, which indices computed on chip are not.
        let name = if loaded { LOAD } else { "GATHER" };
        self.e.op(name, MTE2, cost::load(size), &[result], &operands);
        Ok(Place::Ub(result))
    }
}
