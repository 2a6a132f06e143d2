//! `layered-dag`: layers of `width` ops; each reads its own predecessor of the layer before and
//! `fan-in` - 1 more results, of the layer before or (`reuse` per cent of them) of one of the
//! `span` layers before that. Every result is read; those of the last layer are stored.

use super::program::Program;
use super::{BACKED, CACHE, CAPACITY, NODES, PRESSURE, SIZES, nodes};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};
use std::collections::VecDeque;

pub(crate) static FAMILY: Family = Family {
    name: "layered-dag",
    doc: "random layered graph: each op reads results of the layer before and of older ones",
    kind: FamilyKind::Synthetic,
    seeded: true,
    parameters: &[
        NODES,
        Parameter::int("width", "ops of a layer", 16, 1, 65_536),
        Parameter::int("fan-in", "results that an op reads", 2, 1, 8),
        Parameter::int("reuse", "per cent of the further results that are of older layers", 25, 0, 100),
        Parameter::int("span", "how many layers older they may be", 4, 1, 64),
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
    let [width, fan_in, reuse, span] = ["width", "fan-in", "reuse", "span"].map(|name| values.get(name));
    let mut program = Program::new(values, seed);
    // Wide layers of a small graph leave room for two of them.
    let width = width.min(values.get("nodes") / 10) as usize;
    let first: Vec<_> = (0..width).map(|_| program.source()).collect();
    let mut older: VecDeque<Vec<Buf>> = VecDeque::from([first]);
    let mut last = older[0].clone();
    while program.can_compute(1, width as u64) {
        let mut layer = Vec::with_capacity(width);
        for &own in older.back().unwrap_or(&Vec::new()) {
            if !program.can_compute(1, width as u64) {
                break;
            }
            let mut inputs = vec![own];
            for _ in 1..fan_in {
                let back = if program.draw.chance(reuse) { 1 + program.draw.below(span) as usize } else { 0 };
                let from = &older[(older.len() - 1).saturating_sub(back)];
                inputs.extend(program.draw.pick(from));
            }
            let out = program.compute("ADD", &inputs);
            last[layer.len()] = out;
            layer.push(out);
        }
        older.push_back(layer);
        if older.len() > span as usize + 1 {
            older.pop_front();
        }
    }
    last.into_iter().for_each(|out| program.store(out));
    program.finish()
}
