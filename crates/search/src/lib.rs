//! Better schedules for a graph: constructive orders and local search.
//!
//! A [`Model`] turns a graph into items and the edges between them; every topological order of the
//! items is a schedule. An [`Objective`] supplies an [`Evaluator`] that follows an order under local
//! changes. [`search`] anneals on several islands and turns what it finds into checked plans.
//! [`ORDERS`] are the constructive orders by name.
//!
//! ```no_run
//! use spillbench_core::{Graph, Machine, Plan, Schedule};
//! use spillbench_search::{LeastMovement, Monitor, Progress, SearchConfig, search};
//!
//! struct Quiet;
//! impl Monitor for Quiet {
//!     fn improved(&mut self, _: &Plan, _: Progress) {}
//! }
//!
//! fn best(graph: &Graph, machine: &Machine) -> Option<Plan> {
//!     let start = Schedule::default_for(graph);
//!     let config = SearchConfig { evaluations: Some(100_000), ..Default::default() };
//!     search(graph, machine, &start, &LeastMovement, &config, &|| false, &mut Quiet).ok().map(|f| f.plan)
//! }
//! ```

mod anneal;
mod cluster;
mod demand;
mod draw;
mod effort;
mod evaluator;
mod islands;
mod median;
mod model;
mod moves;
mod objective;
mod order;
mod pack;
mod peak;
mod realize;
mod residency;
mod ties;
mod timed;

pub use evaluator::{Change, Evaluator, Gap};
pub use islands::{Found, INFEASIBLE, Monitor, Progress, SearchConfig, Start, search};
pub use model::{ItemIx, Model};
pub use objective::{LeastMovement, LeastPeak, OBJECTIVES, Objective, objective};
pub use order::{ORDERS, Order, order};
pub use peak::Peak;
pub use realize::movement;
pub use residency::Residency;
pub use timed::{
    Aim, AimSyntax, FRONT_STEPS, Figures, Front, FrontPoint, Limit, TIMED_OBJECTIVES, TimedError, TimedFound, Until,
    Untimed, Weights, least_makespan, search_front, search_time,
};
