//! The least extra movement of a given schedule, with the plan that attains it.
//!
//! Every node stays where it stands, spills come between ([`Cover::Schedule`]). Residing longer than
//! from one event of a buffer to another only takes room, so a plan is told by which stretches
//! between consecutive events it keeps: a spill goes out just behind the one event and comes back
//! just before the other. Kept stretches join to segments, and a plan exists if and only if the
//! segments of each cache can be packed ([`crate::pack`]). A stretch over no step may be spilled too:
//! it takes no room, but the buffer comes back elsewhere.
//!
//! Branch and bound over the stretches, best bound first. A node is bounded by the flow bound
//! ([`crate::flow`]) in the room that its kept stretches leave and whole ones can fill, then by the
//! cheapest choice of whole stretches, which dynamic programming over the steps finds. That choice is
//! packed: if it packs, the node is solved. What packing alone forbids enters as *no-goods*, sets of
//! stretches that cannot all be kept (the idea of logic-based Benders decomposition, Hooker and
//! Ottosson, 2003). Where packing takes long, it is gone on with in turn with a search for plans among
//! choices that leave room.

mod emit;
mod packing;
mod relax;
mod search;
mod select;
mod squeeze;
mod stretches;
mod tighten;

use crate::model::{Cover, ModelError, models};
use crate::pack::{Budget, Limits};
use search::{Search, Solved};
use spillbench_core::{Bytes, Graph, Machine, Plan, Schedule};
use stretches::Stretches;
use thiserror::Error;

/// The result of [`exact`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The best plan found.
    pub plan: Plan,
    /// Its extra movement.
    pub movement: Bytes,
    /// No plan that keeps the schedule moves less. Equal to `movement` if and only if that is proven
    /// optimal.
    pub bound: Bytes,
    /// The share of every cache of the graph, in its order.
    pub per_cache: Vec<ExactCache>,
    /// Search nodes used, those of packing included; 32 states of choosing stretches count as one.
    pub nodes: u64,
}

impl Exact {
    /// True when no plan that keeps the schedule moves less.
    pub fn is_optimal(&self) -> bool {
        self.movement == self.bound
    }

    /// Of which plans [`Exact::bound`] speaks.
    pub fn cover(&self) -> Cover {
        Cover::Schedule
    }
}

/// The share of one cache in an exact solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactCache {
    /// Name of the cache.
    pub cache: String,
    /// What its spills move.
    pub movement: Bytes,
    /// No plan moves less in it.
    pub bound: Bytes,
    /// The flow bound before any branching, with the room left out that whole gaps cannot fill.
    pub flow: Bytes,
    /// Stretches between consecutive events.
    pub stretches: usize,
    /// Sets of stretches found that cannot all be kept.
    pub no_goods: usize,
}

/// Why there is no exact solution.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExactError {
    /// No plan, or not of this schedule.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Reservations, to which the search does not keep.
    #[error("an exact search does not keep to reservations, and the hardware has {count}")]
    Reservations {
        /// How many there are of caches of the graph.
        count: usize,
    },
    /// The ids of spill nodes would pass 2⁶³ − 1.
    #[error("{spills} spills have no ids: spill ids would pass 2^63-1")]
    NoSpillId {
        /// How many spills there are.
        spills: usize,
    },
}

/// Finds the least extra movement of `schedule`, or the best plan and bound within `limits`, which
/// the caches use up one after the other. The same limits in nodes give the same result on every
/// machine.
///
/// # Errors
/// As [`models`], where something is reserved, and at the limits of the file format.
pub fn exact(graph: &Graph, machine: &Machine, schedule: &Schedule, limits: Limits) -> Result<Exact, ExactError> {
    let count = machine.reservations().iter().filter(|r| r.bytes.0 > 0).count();
    if count > 0 {
        return Err(ExactError::Reservations { count });
    }
    let models = models(graph, machine, schedule, Cover::Schedule)?;
    let mut budget = Budget::new(limits);
    let stretches: Vec<_> = models.iter().map(|model| Stretches::new(graph, schedule, model)).collect();
    let mut searches: Vec<_> = stretches.iter().map(Search::new).collect();
    share_out(&mut searches, &mut budget);
    let results: Vec<_> = searches.into_iter().map(Search::finish).collect();
    let solved: Vec<(Stretches, Solved)> = stretches.into_iter().zip(results).collect();
    let sum = |of: fn(&Solved) -> u64| Bytes(solved.iter().fold(0, |s, (_, r)| of(r).saturating_add(s)));
    let share = |(stretches, result): &(Stretches, Solved)| ExactCache {
        cache: graph.cache_name(stretches.cache).to_owned(),
        movement: Bytes(result.cost),
        bound: Bytes(result.bound),
        flow: Bytes(result.flow),
        stretches: stretches.list.len(),
        no_goods: result.no_goods,
    };
    Ok(Exact {
        movement: sum(|r| r.cost),
        bound: sum(|r| r.bound),
        per_cache: solved.iter().map(share).collect(),
        nodes: budget.used,
        plan: emit::plan(graph, schedule, &solved)?,
    })
}

/// Runs the searches one after the other, in rounds, each with an even share of what is left, so that
/// a hard cache leaves something to the others and gets what easy ones leave.
fn share_out(searches: &mut [Search<'_>], budget: &mut Budget) {
    let mut open: Vec<_> = searches.iter_mut().collect();
    // The last of a round has all that is left, so that each round closes a search or the budget.
    while !open.is_empty() && !budget.spent() {
        let parts = open.len();
        for (done, search) in open.iter_mut().enumerate() {
            let mut part = budget.share(parts - done);
            search.run(&mut part);
            budget.give_back(&part);
        }
        open.retain(|search| search.is_open());
    }
}
