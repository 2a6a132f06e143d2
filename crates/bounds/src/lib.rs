//! What no plan can beat: lower bounds on extra data movement with certificates that anyone can
//! check, and exact solutions of small cases.
//!
//! Nothing here sees a victim heuristic, so that a test of a heuristic against a bound is honest;
//! `tests/no_heuristics.rs` keeps it so.

pub mod flow;
pub mod model;

pub use flow::{FlowBound, FlowStats, flow_bound};
pub use model::{CacheModel, Cover, Gap, ModelError, Step};
