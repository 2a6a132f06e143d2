//! The search for time: orders judged by the makespan and the movement of their plans.

mod aim;
mod anneal;
mod clock;
mod decode;
mod emit;
mod evaluator;
mod front;
mod goal;
mod islands;
mod path;
mod program;
mod rules;
mod search;
mod space;
#[cfg(test)]
mod testing;

pub use aim::{AimSyntax, TIMED_OBJECTIVES, Weights};
pub use front::{FRONT_STEPS, Front, FrontPoint, search_front};
pub use goal::Figures;
pub use program::Untimed;
pub use search::{Aim, Limit, TimedError, TimedFound, Until, least_makespan, search_time};
