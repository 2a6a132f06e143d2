//! A lower bound that holds for every schedule of a graph: the partition lemma.
//!
//! Take a set `B` of buffers of one cache and strike everything else out of a plan: what is left is
//! a plan of the graph restricted to `B` (only ops that use a buffer of `B`, each after those that
//! reach it; only buffers of `B` take room and cost). So for disjoint sets
//! `cost(plan) ≥ Σ OPT(G|B_i)`, whatever the order of the plan, and each term, over all orders of a
//! small restriction, can be found by search. When a search hits its limit, the distance of its
//! frontier is still a bound.
//!
//! The sets are found by the program: windows of a schedule around the steps that its flow bound
//! prices, grown while their restriction can be solved. Where the graph has grids of accumulations,
//! windows ([`crate::grid`]) may prove more of their buffers, and the sets are among the others. What is proven is stated by a certificate that
//! lists the sets, which [`crate::certify()`] solves again with code of its own; what that proves of a set
//! at whose search the limit came first counts, too ([`OrdersBound::confirmed`]).

mod bits;
mod grow;
mod restrict;
mod search;

use crate::certificate::{BufferSet, Certificate, Proof};
use crate::certify::{CertifyError, certify_sets};
use crate::grid::{self, GridBound};
use crate::model::{CacheModel, Cover, ModelError, models};
use restrict::{Order, Restriction};
use spillbench_core::index::BufIx;
use spillbench_core::schedule::Normalize;
use spillbench_core::{BufId, Bytes, Graph, Machine, Schedule};
use typed_index_collections::{TiVec, ti_vec};

/// How much work to spend, in search states, so that results do not depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// States of the search of one set; 5·10⁶ by default, a few hundred megabytes at most.
    pub states_per_set: u64,
    /// States of all searches together; 6·10⁷ by default.
    pub states: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states_per_set: 5_000_000, states: 60_000_000 }
    }
}

/// The lower bound over all orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrdersBound {
    /// No plan of the graph moves less.
    pub value: Bytes,
    /// The sets that prove it, disjoint, each with a bound above 0.
    pub sets: Vec<SetBound>,
    /// The grids that prove it, without a buffer of the sets, each with a bound above 0.
    pub grids: Vec<GridBound>,
    /// What proves it.
    pub certificate: Certificate,
    /// States of all searches together.
    pub states: u64,
}

/// What one set of buffers proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetBound {
    /// Name of the cache.
    pub cache: String,
    /// The buffers.
    pub buffers: Vec<BufId>,
    /// The least movement of the restriction to them, or a lower bound on it.
    pub bound: Bytes,
    /// True when it is the least movement, capacity counted in bytes.
    pub optimal: bool,
    /// States of the search.
    pub states: u64,
}

/// Looks for sets of buffers, and grids ([`crate::grid`]), that prove a high bound over all orders of
/// `graph`.
///
/// Where there are grids, the sets are looked for twice, among all buffers and among those that no
/// grid has, and what proves more is taken.
///
/// # Errors
/// When no plan exists at all, or `machine` is of another graph.
pub fn across_orders(graph: &Graph, machine: &Machine, limits: &Limits) -> Result<OrdersBound, ModelError> {
    let schedule = Schedule::default_for(graph).normalized(graph, Normalize::Loads);
    // In an order yet unknown a reservation has no place; without it the bound is true all the same.
    let models = models(graph, &machine.without_reservations(), &schedule, Cover::OpOrder)?;
    let grids = grid::proven(graph, machine);
    let mut taken = ti_vec![false; graph.buffer_count()];
    let mut best = partition(graph, machine, &schedule, &models.raw, limits, taken.clone());
    if !grids.is_empty() {
        grids.iter().flat_map(|g| &g.buffers).for_each(|&b| taken[b] = true);
        let beside = partition(graph, machine, &schedule, &models.raw, limits, taken);
        let (alone, states) = (value(&best.0, &[]), best.1 + beside.1);
        let grids: Vec<GridBound> = grids.into_iter().map(|g| g.bound).collect();
        if value(&beside.0, &grids) >= alone {
            return Ok(bound(beside.0, grids, states));
        }
        best.1 = states;
    }
    Ok(bound(best.0, Vec::new(), best.1))
}

/// Disjoint sets of the buffers that are not `taken`, with the states that finding them took.
fn partition(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    models: &[CacheModel],
    limits: &Limits,
    taken: TiVec<BufIx, bool>,
) -> (Vec<SetBound>, u64) {
    let mut sets = Vec::new();
    let mut states = 0;
    for model in models {
        let budget = Limits { states: limits.states.saturating_sub(states), ..*limits };
        let grown = grow::sets(graph, machine, schedule, model, &budget, taken.clone());
        states += grown.states;
        sets.extend(grown.sets);
    }
    (sets, states)
}

fn value(sets: &[SetBound], grids: &[GridBound]) -> Bytes {
    let bounds = sets.iter().map(|s| s.bound.0).chain(grids.iter().map(|g| g.grid.bound.0));
    Bytes(bounds.fold(0, u64::saturating_add))
}

impl OrdersBound {
    /// The same bound when the checker has looked at it, too. Where the states of a search run out, what
    /// it proves depends on where it went, and the checker, which goes other ways and further, may prove
    /// more of the same set: each set has the larger of two bounds. With as many `states`,
    /// [`crate::certify::certify_within`] proves no more than what is claimed then.
    ///
    /// # Errors
    /// When the checker refuses the sets, which it does for another graph.
    pub fn confirmed(mut self, graph: &Graph, machine: &Machine, states: u64) -> Result<Self, CertifyError> {
        if self.sets.iter().all(|s| s.optimal) {
            return Ok(self);
        }
        let proven = certify_sets(graph, machine, &listed(&self.sets), states)?;
        for (set, proven) in self.sets.iter_mut().zip(proven) {
            set.bound = set.bound.max(proven);
        }
        Ok(bound(self.sets, self.grids, self.states))
    }
}

/// Sets as a certificate lists them.
fn listed(sets: &[SetBound]) -> Vec<BufferSet> {
    let listed = |s: &SetBound| BufferSet { cache: s.cache.clone(), buffers: s.buffers.clone(), bound: s.bound };
    sets.iter().map(listed).collect()
}

fn bound(sets: Vec<SetBound>, grids: Vec<GridBound>, states: u64) -> OrdersBound {
    let value = value(&sets, &grids);
    let proof = Proof::Partition { sets: listed(&sets), grids: grids.iter().map(|g| g.grid.clone()).collect() };
    let certificate = Certificate::new(Cover::EveryOrder, value, proof);
    OrdersBound { value, sets, grids, certificate, states }
}

/// The least movement over all orders of `graph` restricted to `buffers`, which are of one cache,
/// each once; a lower bound on it when `limit` states do not suffice.
fn solve(graph: &Graph, machine: &Machine, order: &Order, buffers: &[BufIx], limit: u64) -> search::Found {
    search::least_movement(&Restriction::new(graph, machine, order, buffers), limit)
}
