//! `fork-join`: stage after stage, one result forks into `width` branches of `depth` ops, which
//! advance in turn and are joined in pairs. `reuse` per cent of the ops inside a branch read the
//! forked result again.

use super::program::Program;
use super::{BACKED, CACHE, CAPACITY, NODES, PRESSURE, SIZES, nodes};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};

pub(crate) static FAMILY: Family = Family {
    name: "fork-join",
    doc: "stages that fork one result into branches and join them again",
    kind: FamilyKind::Synthetic,
    seeded: true,
    parameters: &[
        NODES,
        Parameter::int("width", "branches of a stage", 12, 1, 65_536),
        Parameter::int("depth", "ops of a branch", 3, 1, 1024),
        Parameter::int("reuse", "per cent of the ops of a branch that read the forked result again", 25, 0, 100),
        SIZES,
        BACKED,
        PRESSURE,
        CAPACITY,
        CACHE,
    ],
    nodes,
    build,
};

fn build(values: &Values, seed: u64) -> Result<Emitter, WorkloadError> {
    let [width, depth, reuse] = ["width", "depth", "reuse"].map(|name| values.get(name));
    let mut program = Program::new(values, seed);
    let mut state = program.source();
    while program.can_compute(1, 1) {
        let mut branches: Vec<Buf> = Vec::with_capacity(width as usize);
        for at in 0..width * depth {
            let branch = (at % width) as usize;
            // What is open must be joined, too: an op less than there are branches.
            if !program.can_compute(branches.len().max(branch + 1) as u64, 1) {
                break;
            }
            let mut inputs = vec![branches.get(branch).copied().unwrap_or(state)];
            if inputs[0] != state && program.draw.chance(reuse) {
                inputs.push(state);
            }
            let out = program.compute("EXP", &inputs);
            match branches.get_mut(branch) {
                Some(end) => *end = out,
                None => branches.push(out),
            }
        }
        while branches.len() > 1 {
            let join = |pair: &[Buf]| if let [a, b] = *pair { program.compute("ADD", &[a, b]) } else { pair[0] };
            branches = branches.chunks(2).map(join).collect();
        }
        state = branches[0];
    }
    program.store(state);
    program.finish()
}
