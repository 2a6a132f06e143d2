//! Cube work: convolutions and matrix products, accumulated in L0C.

use super::super::infer::Task;
use super::super::kernel::Cube;
use super::super::network::TensorIx;
use super::super::region::{Region, apply, intersect, volume};
use super::{Lowering, Place, TooMany};
use crate::cost::{self, CUBE, MTE1};
use crate::emit::Buf;

impl Lowering<'_> {
    /// One tile of the output: a new sum in L0C.
    pub(super) fn cube(&mut self, task: &Task, cube: &Cube, tile: u64) -> Result<Place, TooMany> {
        let out = self.tilings[task.output.0].region(tile);
        let size = self.units(task.output, &out);
        let sum = self.e.alloc("L0C", size.saturating_mul(2));
        let mut step = CubeStep { sum, size, added: self.bias(task, cube, &out)?, emitted: false };
        let right = task.inputs.get(cube.right).copied().flatten();
        let left = task.inputs.get(cube.left).copied().flatten();
        if let (Some(right), Some(left)) = (right, left) {
            self.products(cube, &out, left, right, &mut step)?;
        }
        if !step.emitted {
            // A tile that lies in the padding: nothing is multiplied, but the bias is added.
            self.e.op(cube.name, CUBE, cost::convolve(1, size), &[sum], &step.added);
        }
        Ok(Place::L0c(sum))
    }

    /// What is added once: as many tiles as L1 holds beside the other operands.
    fn bias(&mut self, task: &Task, cube: &Cube, out: &[(u64, u64)]) -> Result<Vec<Buf>, TooMany> {
        let mut added = Vec::new();
        let region = cube.bias.as_ref().and_then(|(place, map)| self.stored(task, *place, map, out));
        let Some((tensor, region)) = region else { return Ok(added) };
        let mut used = 0;
        for i in self.tilings[tensor.0].tiles(&region) {
            self.step()?;
            used += self.tile_units((tensor, i));
            if used <= self.limits.l1 / 4 {
                added.push(self.in_l1((tensor, i)));
            }
        }
        Ok(added)
    }

    /// Multiplies the tiles of the right operand, one by one, with what goes with them.
    fn products(
        &mut self,
        cube: &Cube,
        out: &[(u64, u64)],
        left: TensorIx,
        right: TensorIx,
        step: &mut CubeStep,
    ) -> Result<(), TooMany> {
        let Some(needed) = apply(&cube.right_map, out, self.plan.shape(right)) else { return Ok(()) };
        let right_tiling = &self.tilings[right.0];
        for part in right_tiling.tiles(&needed) {
            self.step()?;
            let Some(part) = intersect(&right_tiling.region(part), &needed) else { continue };
            let dims = cube.left_map.iter().zip(self.plan.shape(left).dims());
            let region = dims.map(|(m, &extent)| m.apply(out, &part, extent)).collect::<Option<Region>>();
            let Some(region) = region else { continue };
            let weights = self.feed(cube, right, part.clone())?;
            let taps = part.get(2..).map_or(1, volume);
            let (base, region) = self.plan.stored(left, region);
            match cube.through_l0a {
                true => self.matmul(cube, base, &region, weights, step)?,
                false => self.conv(cube, base, &region, weights, taps, step)?,
            }
        }
        Ok(())
    }

    /// Moves a box of the right operand to L0B.
    fn feed(&mut self, cube: &Cube, right: TensorIx, part: Region) -> Result<Buf, TooMany> {
        let size = self.units(right, &part).min(self.scale.tile);
        let (base, region) = self.plan.stored(right, part);
        let mut sources = Vec::new();
        let mut used = 0;
        for i in self.tilings[base.0].tiles(&region) {
            self.step()?;
            used += self.tile_units((base, i));
            if used <= self.limits.l1 / 2 || sources.is_empty() {
                sources.push(self.in_l1((base, i)));
            }
        }
        let weights = self.e.alloc("L0B", size);
        let cycles = if cube.through_l0a { cost::feed(size) } else { cost::feed_kernel(size) };
        self.e.op("MOVE", MTE1, cycles, &[weights], &sources);
        Ok(weights)
    }

    /// One `MATMUL` per tile of the left operand, each through L0A.
    fn matmul(
        &mut self,
        cube: &Cube,
        left: TensorIx,
        region: &[(u64, u64)],
        weights: Buf,
        step: &mut CubeStep,
    ) -> Result<(), TooMany> {
        let tiling = &self.tilings[left.0];
        for i in tiling.tiles(region) {
            self.step()?;
            let Some(part) = intersect(&tiling.region(i), region) else { continue };
            let size = self.units(left, &part);
            let source = self.in_l1((left, i));
            let operand = self.e.alloc("L0A", size);
            self.e.op("MOVE", MTE1, cost::feed(size), &[operand], &[source]);
            let [a, b, c] = [size, self.e.size(weights), step.size].map(u128::from);
            let side = cube_root(a.saturating_mul(b).saturating_mul(c));
            let mut reads = vec![weights, operand];
            reads.append(&mut step.added);
            self.e.op(cube.name, CUBE, cost::multiply(side), &[step.sum], &reads);
            step.emitted = true;
        }
        Ok(())
    }

    /// `CONV` over the tiles of the feature map that the window touches, as many at once as fit.
    fn conv(
        &mut self,
        cube: &Cube,
        left: TensorIx,
        region: &[(u64, u64)],
        weights: Buf,
        taps: u64,
        step: &mut CubeStep,
    ) -> Result<(), TooMany> {
        let room = self.limits.l1 / 2;
        let tiling = &self.tilings[left.0];
        let (mut reads, mut used, mut touched) = (vec![weights], 0, 0);
        let mut tiles = tiling.tiles(region).peekable();
        while let Some(i) = tiles.next() {
            self.step()?;
            touched += intersect(&tiling.region(i), region).map_or(0, |part| self.units(left, &part));
            used += self.tile_units((left, i));
            reads.push(self.in_l1((left, i)));
            let next = tiles.peek().map(|&n| self.tile_units((left, n)));
            if next.is_none_or(|next| used + next > room) {
                reads.append(&mut step.added);
                self.e.op(cube.name, CUBE, cost::convolve(taps, touched), &[step.sum], &reads);
                step.emitted = true;
                reads.truncate(1);
                (used, touched) = (0, 0);
            }
        }
        Ok(())
    }
}

/// The state of one accumulation.
struct CubeStep {
    sum: Buf,
    /// Units of the result.
    size: u64,
    /// What the next op adds: the bias, for the first.
    added: Vec<Buf>,
    emitted: bool,
}

/// The largest whole number whose cube is at most `x`, for `x` below 2⁹⁶.
fn cube_root(x: u128) -> u64 {
    let (mut low, mut high) = (0u64, 1 << 32);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if u128::from(middle).pow(3) <= x { low = middle } else { high = middle }
    }
    low
}
