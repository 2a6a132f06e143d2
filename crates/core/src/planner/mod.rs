//! The spilling planner: walks a schedule, gives every buffer an address, and spills where space
//! runs out.

mod placement;
mod strategy;

pub use placement::Placement;
pub use strategy::Strategy;
