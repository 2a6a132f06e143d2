//! The domain of spillbench: graphs over software-managed memories, schedules, the spilling
//! planner, plans, the independent checker and the metrics.
//!
//! Data flows one way: a [`Graph`] and a [`Schedule`] go into the planner, a [`Plan`] comes out,
//! the checker and the metrics read the plan. See `ARCHITECTURE.md` for the map.

pub mod address_space;
pub mod checker;
pub mod formats;
pub mod graph;
pub mod hardware;
pub mod heuristic;
pub mod index;
pub mod metrics;
pub mod names;
pub mod plan;
pub mod planner;
pub mod reservation;
pub mod schedule;
pub mod units;

pub use graph::{Graph, GraphBuilder, NodeKind};
pub use hardware::{Hardware, Machine};
pub use heuristic::VictimHeuristic;
pub use names::Shown;
pub use plan::Plan;
pub use planner::{Placement, PlanError, PlannerConfig, Strategy, Workspace, plan};
pub use reservation::Reservation;
pub use schedule::Schedule;
pub use units::{BufId, Bytes, Cycles, Id, Offset};
