//! What a bound says of a plan: which bound covers it, how far it is, and where the excess is.

use crate::model::Cover;
use crate::orders::Limits;
use serde::{Deserialize, Serialize};
use spillbench_core::graph::NodeKind;
use spillbench_core::index::NodeIx;
use spillbench_core::{Bytes, Graph, Plan, Schedule};

/// When a bound is computed beside a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Whatever it takes.
    Always,
    /// Not at all.
    Never,
    /// For graphs of at most [`When::AUTO_GAPS`] gaps: a limit on the size, not on the time, so that
    /// tables do not depend on the machine.
    #[default]
    Auto,
}

impl When {
    /// The most gaps, as [`crate::model::gap_limit`] counts them, for which `auto` bounds.
    pub const AUTO_GAPS: usize = 200_000;

    /// The most nodes for which `auto` bounds over every order: beyond, that takes longer than most
    /// searches.
    pub const AUTO_NODES: usize = 100_000;

    /// All choices with their names and one line each.
    pub const ALL: &[(Self, &'static str, &'static str)] = &[
        (Self::Auto, "auto", "bound graphs of up to 200,000 gaps"),
        (Self::Always, "always", "bound every graph"),
        (Self::Never, "never", "compute no bound"),
    ];

    /// Whether `graph` is to be bounded.
    pub fn applies(self, graph: &Graph) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => crate::model::gap_limit(graph) <= Self::AUTO_GAPS,
        }
    }

    /// The limits of a bound of `graph` over every order; `None` where there is to be none.
    pub fn limits(self, graph: &Graph) -> Option<Limits> {
        let fits = self != Self::Auto || graph.node_count() <= Self::AUTO_NODES;
        (fits && self.applies(graph)).then(|| Limits::quick(graph))
    }
}

/// The narrowest cover of a bound for `schedule` that speaks of `plan` too: what the plan moved
/// decides. Spill nodes do not count, and neither do ids that the graph does not have.
pub fn cover_of(graph: &Graph, schedule: &Schedule, plan: &Plan) -> Cover {
    let is_op = |&n: &NodeIx| graph.kind(n) == NodeKind::Op;
    let planned = || plan.schedule.iter().filter_map(|&id| graph.node_by_id(id));
    let given = || schedule.order().iter().copied();
    if planned().eq(given()) {
        Cover::Schedule
    } else if planned().filter(is_op).eq(given().filter(is_op)) {
        Cover::OpOrder
    } else {
        Cover::EveryOrder
    }
}

/// Where the movement of a plan comes from, in bytes. The parts add up to the movement; all but
/// `capacity` may be negative, as heuristics are lucky at times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// What the capacities force: the bound of the best known order, or of this one when no other
    /// is known.
    pub capacity: i128,
    /// What this order forces beyond that: its bound less the bound of the best known order. `None`
    /// when no other order is known.
    pub order: Option<i128>,
    /// What the choice of victims costs: the movement of the policy, capacity counted in bytes, less
    /// the bound of this order; with the fragmentation in it when that is not known.
    pub victims: i128,
    /// What contiguous addresses cost: the movement of the plan less that of the same policy,
    /// capacity counted in bytes. `None` when the policy was not run so.
    pub fragmentation: Option<i128>,
}

/// Splits the movement of a plan into its causes.
///
/// `bound` is the lower bound of the order that was planned and `best_order` that of the best known
/// order, both of one cover; `in_bytes` is the movement of the same policy when a request fails only
/// for want of bytes.
pub fn attribute(movement: Bytes, in_bytes: Option<Bytes>, bound: Bytes, best_order: Option<Bytes>) -> Attribution {
    let wide = |bytes: Bytes| i128::from(bytes.0);
    let unfragmented = in_bytes.unwrap_or(movement);
    Attribution {
        capacity: wide(best_order.unwrap_or(bound)),
        order: best_order.map(|best| wide(bound) - wide(best)),
        victims: wide(unfragmented) - wide(bound),
        fragmentation: in_bytes.map(|bytes| wide(movement) - wide(bytes)),
    }
}

impl Attribution {
    /// The movement that was split.
    pub fn movement(&self) -> i128 {
        self.capacity + self.order.unwrap_or(0) + self.victims + self.fragmentation.unwrap_or(0)
    }
}

/// How far a movement is above its bound, in bytes; 0 when it is not above, which for a bound that
/// covers the plan means optimal.
pub fn gap(movement: Bytes, bound: Bytes) -> Bytes {
    movement.saturating_sub(bound)
}

/// A movement as a multiple of its bound: 1 when both are 0, `None` when only the bound is.
pub fn over_bound(movement: Bytes, bound: Bytes) -> Option<f64> {
    match (movement.0, bound.0) {
        (0, 0) => Some(1.0),
        (_, 0) => None,
        (movement, bound) => Some(movement as f64 / bound as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_add_up_to_the_movement() {
        let b = Bytes;
        let split = attribute(b(100), Some(b(90)), b(70), Some(b(40)));
        assert_eq!(split, Attribution { capacity: 40, order: Some(30), victims: 20, fragmentation: Some(10) });
        for in_bytes in [None, Some(b(120)), Some(b(60))] {
            for best in [None, Some(b(0)), Some(b(90))] {
                assert_eq!(attribute(b(100), in_bytes, b(70), best).movement(), 100);
            }
        }
        assert_eq!(attribute(b(u64::MAX), Some(b(0)), b(u64::MAX), None).movement(), i128::from(u64::MAX));
    }

    #[test]
    fn ratios_and_gaps_at_the_edges() {
        assert_eq!(over_bound(Bytes(0), Bytes(0)), Some(1.0));
        assert_eq!(over_bound(Bytes(3), Bytes(0)), None);
        assert_eq!(over_bound(Bytes(3), Bytes(2)), Some(1.5));
        assert_eq!((gap(Bytes(3), Bytes(5)), gap(Bytes(5), Bytes(3))), (Bytes(0), Bytes(2)));
    }
}
