//! Synthetic families: random structures whose size and memory pressure are dialled.
//!
//! A generator fixes the structure first: ops, what they read, in what order. Sizes are drawn as
//! weights and then scaled so that the peak demand in id order is `pressure` × `capacity`
//! ([`pressure`]); every buffer lives from its first use to its last. All draws are integers from
//! one portable generator, so a seed gives the same bytes everywhere.

pub(crate) mod chain;
pub(crate) mod fork_join;
pub(crate) mod layered;
mod pressure;
mod program;
pub(crate) mod series_parallel;
pub(crate) mod trace;

use crate::registry::{Parameter, Values};

const NODES: Parameter = Parameter::int("nodes", "nodes, ALLOC and FREE included; met closely", 1000, 50, 4_990_000);
const SIZES: Parameter = Parameter::choice(
    "sizes",
    "sizes: one; 1 to 7 quarters of the mean; 1, 2, 4 or 8; one in eight is 8 times larger",
    &["equal", "uniform", "powers", "mixed"],
);
const BACKED: Parameter = Parameter::int("backed", "per cent of the buffers that are loaded, not computed", 40, 0, 70);
const PRESSURE: Parameter =
    Parameter::decimal("pressure", "peak demand in id order over capacity, met within 10 %", 1500, 50, 1_000_000);
const CAPACITY: Parameter = Parameter::int("capacity", "bytes of the cache", 1024, 8, 1 << 50);
const CACHE: Parameter = Parameter::choice("cache", "the cache", &["UB", "L1"]);

/// Stopping short of the asked nodes is decided while generating.
fn nodes(values: &Values) -> u64 {
    values.get("nodes")
}
