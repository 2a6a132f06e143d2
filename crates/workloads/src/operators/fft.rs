//! `fft`: butterflies over 2^`stages` blocks (Cooley & Tukey 1965).
//!
//! A butterfly reads two blocks and a twiddle factor and leaves two new blocks. The twiddle
//! factors are a shared table, each loaded at its first use. In `breadth` order stage after stage
//! is swept over all blocks; in `depth` order (the recursive algorithm, cache-oblivious: Frigo et
//! al. 1999) each half is finished before the other begins, so that small transforms stay local.

use super::kernel::Kernel;
use super::{FREE, frees, sum_of_products};
use crate::cost::{self, VECTOR};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "fft",
    doc: "fast Fourier transform: butterflies over 2^stages blocks with a shared table of twiddles",
    kind: FamilyKind::Operator,
    seeded: false,
    parameters: &[
        Parameter::int("stages", "stages; there are 2^stages blocks", 5, 1, 24),
        Parameter::int("block", "bytes of a block of points", 64, 1, 1 << 40),
        Parameter::int("twiddle", "bytes of a block of twiddle factors", 32, 1, 1 << 40),
        Parameter::choice("order", "stage by stage or recursively", &["breadth", "depth"]),
        FREE,
    ],
    nodes,
    build,
};

fn nodes(values: &Values) -> u64 {
    let stages = values.get("stages");
    let half = 1 << (stages - 1);
    // Loads and stores of blocks, the table, and five nodes per butterfly.
    sum_of_products(&[&[2, half, 4], &[half, 3], &[half, stages, 5]])
}

struct Fft {
    kernel: Kernel,
    blocks: Vec<Option<Buf>>,
    twiddles: Vec<Option<Buf>>,
    block: u64,
    twiddle: u64,
}

impl Fft {
    fn block(&mut self, at: usize) -> Buf {
        *self.blocks[at].get_or_insert_with(|| self.kernel.load("UB", self.block))
    }

    /// Butterfly `at` of those that join the blocks from `first` on, `span` apart.
    fn butterfly(&mut self, first: usize, span: usize, at: usize) {
        let (low, high) = (first + at, first + at + span);
        let inputs = [self.block(low), self.block(high)];
        let index = at * (self.twiddles.len() / span);
        let twiddle = *self.twiddles[index].get_or_insert_with(|| self.kernel.load("UB", self.twiddle));
        let e = &mut self.kernel.e;
        let out = [(); 2].map(|()| e.alloc("UB", self.block));
        let cycles = ["MUL", "ADD", "SUB"].iter().map(|op| cost::vector(op, self.block)).fold(0, u64::saturating_add);
        e.op("BUTTERFLY", VECTOR, cycles, &out, &[inputs[0], inputs[1], twiddle]);
        self.blocks[low] = Some(out[0]);
        self.blocks[high] = Some(out[1]);
    }

    /// All stages of the `length` blocks from `first` on, the halves one after the other.
    fn transform(&mut self, first: usize, length: usize) {
        if length > 1 {
            let span = length / 2;
            self.transform(first, span);
            self.transform(first + span, span);
            (0..span).for_each(|at| self.butterfly(first, span, at));
        }
    }

    /// All stages, each over all blocks.
    fn sweep(&mut self) {
        let length = self.blocks.len();
        (0..length).for_each(|at| _ = self.block(at));
        let spans = std::iter::successors(Some(1), |span| Some(span * 2)).take_while(|&span| span < length);
        for span in spans {
            for first in (0..length).step_by(2 * span) {
                (0..span).for_each(|at| self.butterfly(first, span, at));
            }
        }
    }
}

fn build(values: &Values, _seed: u64) -> Result<Emitter, WorkloadError> {
    let [stages, block, twiddle] = ["stages", "block", "twiddle"].map(|name| values.get(name));
    let length = 1usize << stages;
    let kernel = Kernel::new(frees(values), block);
    let mut fft = Fft { kernel, blocks: vec![None; length], twiddles: vec![None; length / 2], block, twiddle };
    if values.choice("order") == "depth" {
        fft.transform(0, length)
    } else {
        fft.sweep()
    }
    (0..length).for_each(|at| {
        let out = fft.block(at);
        fft.kernel.store(out);
    });
    Ok(fft.kernel.e)
}
