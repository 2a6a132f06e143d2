//! `stencil`: time steps over a grid of blocks in UB; each block reads itself and its neighbours of
//! the step before.
//!
//! In `step` order the grid is swept once per time step, so the whole grid stays live. In
//! `wavefront` order (time skewing; Wolf & Lam 1991) block (x, y) of step t is computed at wave
//! y + 2t, so that a step follows the one before as closely as its neighbours allow and only a few
//! rows of blocks per step are live.

use super::kernel::Kernel;
use super::{FREE, frees, sum_of_products};
use crate::cost::{self, VECTOR};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "stencil",
    doc: "time steps over a grid of blocks, each reading its neighbours of the step before",
    kind: FamilyKind::Operator,
    seeded: false,
    parameters: &[
        Parameter::int("width", "blocks of the grid from left to right", 6, 1, 4096),
        Parameter::int("height", "blocks of the grid from top to bottom", 6, 1, 4096),
        Parameter::int("steps", "time steps", 4, 1, 65_536),
        Parameter::int("block", "bytes of a block", 64, 1, 1 << 40),
        Parameter::choice("points", "which neighbours a block reads", &["five", "nine"]),
        Parameter::choice("order", "sweep by time step or skewed in time", &["step", "wavefront"]),
        FREE,
    ],
    nodes,
    build,
};

fn nodes(values: &Values) -> u64 {
    let [width, height, steps] = ["width", "height", "steps"].map(|name| values.get(name));
    sum_of_products(&[&[3, width, height, steps], &[4, width, height]])
}

struct Grid {
    width: usize,
    height: usize,
    nine: bool,
    /// The blocks of the last two steps by parity.
    blocks: [Vec<Option<Buf>>; 2],
}

impl Grid {
    /// Block `x`, `y` of step `t` from its neighbours of step `t - 1`.
    fn block(&mut self, kernel: &mut Kernel, bytes: u64, t: usize, x: usize, y: usize) -> Buf {
        let before = &self.blocks[(t + 1) % 2];
        let (columns, rows) =
            (x.saturating_sub(1)..(x + 2).min(self.width), y.saturating_sub(1)..(y + 2).min(self.height));
        let near = rows.flat_map(|ny| columns.clone().map(move |nx| (nx, ny)));
        let read = near.filter(|&(nx, ny)| self.nine || nx == x || ny == y);
        let inputs: Vec<_> = read.filter_map(|(nx, ny)| before[ny * self.width + nx]).collect();
        let out = kernel.e.alloc("UB", bytes);
        let cycles = cost::vector("ADD", bytes).saturating_mul(inputs.len() as u64);
        kernel.e.op("STENCIL", VECTOR, cycles, &[out], &inputs);
        self.blocks[t % 2][y * self.width + x] = Some(out);
        out
    }
}

fn build(values: &Values, _seed: u64) -> Result<Emitter, WorkloadError> {
    let [width, height, steps] = ["width", "height", "steps"].map(|name| values.get(name) as usize);
    let bytes = values.get("block");
    let mut kernel = Kernel::new(frees(values), bytes);
    let nine = values.choice("points") == "nine";
    let mut grid = Grid { width, height, nine, blocks: [vec![None; width * height], vec![None; width * height]] };
    for (t, y) in order(values.choice("order") == "wavefront", steps, height) {
        for x in 0..width {
            if t == 0 {
                grid.blocks[0][y * width + x] = Some(kernel.load("UB", bytes));
                continue;
            }
            let out = grid.block(&mut kernel, bytes, t, x, y);
            if t == steps {
                kernel.store(out);
            }
        }
    }
    Ok(kernel.e)
}

/// The rows of all steps, step 0 being the loads, in the order in which they are computed.
///
/// Row y of step t needs rows up to y + 1 of step t - 1, and overwrites in the two-step storage
/// row y of step t - 2, whose last reader is row y + 1 of step t - 1: wave y + 2t comes after all.
fn order(wavefront: bool, steps: usize, height: usize) -> Vec<(usize, usize)> {
    if !wavefront {
        return (0..=steps).flat_map(|t| (0..height).map(move |y| (t, y))).collect();
    }
    let waves = height + 2 * steps;
    let rows = |wave: usize| {
        let first = wave.saturating_sub(height - 1).div_ceil(2);
        (first..=(wave / 2).min(steps)).map(move |t| (t, wave - 2 * t))
    };
    (0..waves).flat_map(rows).collect()
}
