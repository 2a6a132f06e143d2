//! `chain`: `width` chains of ops side by side, one op of each in turn; `reuse` per cent of the ops
//! read an older result of their chain again, up to `span` ops back.

use super::program::Program;
use super::{BACKED, CACHE, CAPACITY, NODES, PRESSURE, SIZES, nodes};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};
use std::collections::VecDeque;

pub(crate) static FAMILY: Family = Family {
    name: "chain",
    doc: "chains of ops side by side, with skips back to older results",
    kind: FamilyKind::Synthetic,
    seeded: true,
    parameters: &[
        NODES,
        Parameter::int("width", "chains side by side", 8, 1, 65_536),
        Parameter::int("reuse", "per cent of the ops that read an older result again", 25, 0, 100),
        Parameter::int("span", "how many ops back that is, at most", 8, 1, 1024),
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
    let [width, reuse, span] = ["width", "reuse", "span"].map(|name| values.get(name));
    let mut program = Program::new(values, seed);
    let width = width.min(values.get("nodes") / 10) as usize;
    let mut chains: Vec<VecDeque<Buf>> = (0..width).map(|_| VecDeque::from([program.source()])).collect();
    for at in (0..width).cycle() {
        if !program.can_compute(1, width as u64) {
            break;
        }
        let chain = &mut chains[at];
        let mut inputs: Vec<_> = chain.back().copied().into_iter().collect();
        if chain.len() > 1 && program.draw.chance(reuse) {
            let back = 1 + program.draw.below(chain.len() as u64 - 1) as usize;
            inputs.push(chain[chain.len() - 1 - back]);
        }
        chain.push_back(program.compute("MUL", &inputs));
        if chain.len() > span as usize + 1 {
            chain.pop_front();
        }
    }
    for chain in &chains {
        chain.back().into_iter().for_each(|&out| program.store(out));
    }
    program.finish()
}
