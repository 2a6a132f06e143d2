//! What no plan can beat: lower bounds on extra data movement with certificates that anyone can
//! check, and exact solutions of small cases.
//!
//! Nothing here sees a victim heuristic, so that a test of a heuristic against a bound is honest;
//! `tests/no_heuristics.rs` keeps it so.

pub mod attribution;
mod bound;
pub mod certificate;
pub mod certify;
pub mod exact;
pub mod flow;
pub mod grid;
mod held;
pub mod model;
pub mod orders;
pub mod pack;
pub mod sensitivity;

pub use attribution::{Attribution, When, attribute, cover_of};
pub use bound::{Bound, BoundKind, CacheBound, bound};
pub use certificate::{Certificate, CertificateError, Subject};
pub use certify::{Certified, CertifyError, certify, certify_within};
pub use flow::{FlowBound, FlowStats, flow_bound};
pub use grid::{GridBound, grids};
pub use held::is_fixed;
pub use model::{CacheModel, Cover, Gap, ModelError, Step};
pub use orders::{Limits, OrdersBound, SetBound, across_orders, across_orders_near};
pub use sensitivity::{Sensitivity, sensitivity};
