//! Victim heuristics and named policies for the planner, with one registry.
//!
//! Adding a heuristic is one file in `victim/` and one line in `registry.rs`.

pub mod policy;
pub mod registry;
pub mod victim;

pub use policy::{CHAINS, NamedChain, Policy};
pub use registry::{HEURISTICS, Heuristic, heuristic};
