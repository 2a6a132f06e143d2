//! Graphs to plan: lowered operators, synthetic families, and importers for graphs people have.

pub mod emit;
mod error;

pub use emit::{Buf, Emitter, Frees, NODE_LIMIT, Op};
pub use error::WorkloadError;
