//! `reduction-tree`: many loaded blocks reduced to one, `arity` at a time.
//!
//! In `depth` order a subtree is reduced as soon as its leaves are there (the register-optimal
//! order of Sethi & Ullman 1970 for equal subtrees); in `breadth` order all leaves are loaded
//! first and each level follows the one before.

use super::kernel::Kernel;
use super::{FREE, frees};
use crate::emit::{Buf, Emitter};
use crate::error::WorkloadError;
use crate::registry::{Family, FamilyKind, Parameter, Values};
use std::collections::VecDeque;

pub(crate) static FAMILY: Family = Family {
    name: "reduction-tree",
    doc: "many loaded blocks reduced to one by a tree of vector adds",
    kind: FamilyKind::Operator,
    seeded: false,
    parameters: &[
        Parameter::int("leaves", "blocks to reduce", 64, 1, 1 << 22),
        Parameter::int("arity", "blocks that one op reduces", 2, 2, 64),
        Parameter::int("block", "bytes of a block", 64, 1, 1 << 40),
        Parameter::choice("order", "subtree by subtree or level by level", &["depth", "breadth"]),
        FREE,
    ],
    nodes,
    build,
};

fn nodes(values: &Values) -> u64 {
    let (mut level, arity) = (values.get("leaves"), values.get("arity"));
    let mut nodes = 3 * level + 1;
    while level > 1 {
        // A single block left over at the end of a level rises by itself.
        nodes += 3 * (level / arity + u64::from(level % arity > 1));
        level = level.div_ceil(arity);
    }
    nodes
}

fn build(values: &Values, _seed: u64) -> Result<Emitter, WorkloadError> {
    let [leaves, arity] = ["leaves", "arity"].map(|name| values.get(name) as usize);
    let block = values.get("block");
    let mut kernel = Kernel::new(frees(values), block);
    let depth_first = values.choice("order") == "depth";
    // The open blocks of each level, the leaves below.
    let mut levels = vec![VecDeque::new()];
    for _ in 0..leaves {
        levels[0].push_back(kernel.load("UB", block));
        let mut at = 0;
        while depth_first && levels[at].len() == arity {
            rise(&mut kernel, &mut levels, at, arity);
            at += 1;
        }
    }
    // What is left over, level by level; the top is reached when a single block is open.
    let mut at = 0;
    while at + 1 < levels.len() || levels[at].len() > 1 {
        while !levels[at].is_empty() {
            rise(&mut kernel, &mut levels, at, arity);
        }
        at += 1;
    }
    levels[at].iter().for_each(|&root| kernel.store(root));
    Ok(kernel.e)
}

/// Reduces the first open blocks of a level to one of the next; a single one rises by itself.
fn rise(kernel: &mut Kernel, levels: &mut Vec<VecDeque<Buf>>, at: usize, arity: usize) {
    if at + 1 == levels.len() {
        levels.push(VecDeque::new());
    }
    let count = levels[at].len().min(arity);
    let group: Vec<_> = levels[at].drain(..count).collect();
    let out = if let [single] = group[..] { single } else { kernel.wide("ADD", &group) };
    levels[at + 1].push_back(out);
}
