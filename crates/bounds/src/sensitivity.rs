//! What one byte more of a cache is worth, by the flow bound.
//!
//! Let `V(C)` be the flow bound of one cache as a function of its capacity `C`, all else fixed: the
//! optimum of a linear program that is minimised, with `C` on the right of every capacity row. `V` is
//! convex, piecewise linear and never rises. The sum of the prices of all steps, `Σ_t y_t`, tells how
//! it falls: since any prices prove a bound at any capacity, `V(C′) ≥ V(C) − (C′ − C)·Σ_t y_t` for all
//! `C′` that have a model. So `−Σ_t y_t` is a subgradient of `V` at `C`: it lies between the left and
//! the right derivative, and is the derivative where `V` has one. Hence
//!
//! `V(C) − V(C+1) ≤ Σ_t y_t ≤ V(C−1) − V(C)`
//!
//! and a byte more never saves more of the bound than the price says, a byte less never costs less.

use crate::flow::flow_bound;
use crate::model::CacheModel;
use spillbench_core::Bytes;

/// What the capacity of one cache is worth at the margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sensitivity {
    /// The flow bound at the capacity of the model, `V(C)`.
    pub bound: Bytes,
    /// The sum of the prices of all steps: bytes of movement per byte of capacity. `−price` is a
    /// subgradient of `V` at `C`. Saturates at 2⁶⁴ − 1.
    pub price: u64,
    /// What `step` bytes more save of the bound, `V(C) − V(C + step)`: at most `step · price`.
    pub saved_by_more: Bytes,
    /// What `step` bytes less cost, `V(C − step) − V(C)`: at least `step · price`; `None` where some
    /// node would not fit.
    pub cost_of_less: Option<Bytes>,
}

/// What `step` bytes more or less of the cache of a model do to its flow bound.
pub fn sensitivity(model: &CacheModel, step: Bytes) -> Sensitivity {
    let flow = flow_bound(model);
    let at = |capacity: u64| flow_bound(&CacheModel { capacity: Bytes(capacity), ..model.clone() }).value;
    let most = model.steps.iter().map(|s| s.demand).max().unwrap_or_default();
    let less = model.capacity.0.checked_sub(step.0).filter(|&less| less >= most.0);
    Sensitivity {
        bound: flow.value,
        price: flow.prices.iter().fold(0, |sum, &price| price.saturating_add(sum)),
        saved_by_more: flow.value.saturating_sub(at(model.capacity.0.saturating_add(step.0))),
        cost_of_less: less.map(|less| at(less).saturating_sub(flow.value)),
    }
}
