//! `series-parallel`: results composed in series or, with a chance of `parallel` per cent, in up to
//! `width` branches that read the same result and whose own results are joined in pairs; each part
//! is split again down to single ops. Branches are computed one after the other, so that finished
//! ones wait.

use super::program::Program;
use super::{BACKED, CACHE, CAPACITY, NODES, PRESSURE, SIZES, nodes};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "series-parallel",
    doc: "nested series and parallel composition, branches computed one after the other",
    kind: FamilyKind::Synthetic,
    seeded: true,
    parameters: &[
        NODES,
        Parameter::int("width", "branches of a parallel part, at most", 8, 2, 4096),
        Parameter::int("parallel", "per cent of the parts that are parallel", 60, 0, 100),
        SIZES,
        BACKED,
        PRESSURE,
        CAPACITY,
        CACHE,
    ],
    nodes,
    build,
};

struct SeriesParallel {
    program: Program,
    width: u64,
    parallel: u64,
}

impl SeriesParallel {
    /// A part of `ops` ops between `input` and its result. Every split leaves at most three
    /// quarters of the ops (or one op less) to a part, so the depth is logarithmic.
    fn part(&mut self, input: Buf, ops: u64) -> Buf {
        if ops <= 1 {
            return self.program.compute("EXP", &[input]);
        }
        if ops >= 6 && self.program.draw.chance(self.parallel) {
            let most = self.width.min(ops / 3);
            let branches = 2 + self.program.draw.below(most - 1);
            return self.fork(input, ops, branches);
        }
        let first = (ops / 4 + self.program.draw.below(ops / 2 + 1)).max(1);
        let middle = self.part(input, first);
        self.part(middle, ops - first)
    }

    fn fork(&mut self, input: Buf, ops: u64, branches: u64) -> Buf {
        // Joining takes an op less than there are branches.
        let share = (ops + 1 - branches) / branches;
        let results: Vec<_> = (0..branches).map(|_| self.part(input, share)).collect();
        let mut open = results;
        while open.len() > 1 {
            let join = |pair: &[Buf]| if let [a, b] = *pair { self.program.compute("ADD", &[a, b]) } else { pair[0] };
            open = open.chunks(2).map(join).collect();
        }
        open[0]
    }
}

fn build(values: &Values, seed: u64) -> Result<Emitter, WorkloadError> {
    let [width, parallel] = ["width", "parallel"].map(|name| values.get(name));
    let mut whole = SeriesParallel { program: Program::new(values, seed), width, parallel };
    let mut at = whole.program.source();
    while whole.program.can_compute(1, 1) {
        let ops = whole.program.room(1);
        at = whole.part(at, ops);
    }
    whole.program.store(at);
    whole.program.finish()
}
