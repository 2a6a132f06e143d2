//! A lower bound that holds for every schedule of a graph: the partition lemma.
//!
//! Take a set `B` of buffers of one cache and strike everything else out of a plan: what is left is
//! a plan of the graph restricted to `B` (only ops that use a buffer of `B`, each after those that
//! reach it; only buffers of `B`, and for as long as it runs the other operands of an op, take room;
//! only buffers of `B` cost). The spills of a buffer may be charged to several sets, as long as its
//! shares in all of them add up to no more than what a spill costs. So
//! `cost(plan) ≥ Σ OPT(G|B_i, shares_i)`, whatever the order of the plan, and each term, over all orders
//! of a small restriction, can be found by search. When a search hits its limit, the distance of its
//! frontier is still a bound.
//!
//! Sets of one cache never prove more than all buffers of the cache do as one, with or without shares:
//! the best plan for that cache alone, restricted to each set, pays no more in all of them. What sharing
//! is good for is what one search cannot solve. And where the least movement is above 0 only because no
//! order suits all caches at once, no such sets prove anything.
//!
//! The sets are found by the program: windows of a schedule around the steps that its flow bound
//! prices, grown while their restriction can be solved; then more of them with what the first do not
//! need (`split`). Where the graph has grids of accumulations, windows ([`crate::grid`]) may prove more of
//! their buffers, and the sets are among the others. What is proven is stated by a certificate that
//! lists the sets, which [`crate::certify()`] solves again with code of its own; what that proves of a set
//! at whose search the limit came first counts, too ([`OrdersBound::confirmed`]).

mod bits;
mod grow;
mod restrict;
mod search;
mod split;

use crate::certificate::{BufferSet, Certificate, Proof};
use crate::certify::{CertifyError, certify_sets};
use crate::grid::{self, GridBound};
use crate::model::{CacheModel, Cover, ModelError, models};
use spillbench_core::index::BufIx;
use spillbench_core::schedule::Normalize;
use spillbench_core::{BufId, Bytes, Graph, Machine, Schedule};
use typed_index_collections::{TiVec, ti_vec};

/// How much work to spend, in search states, so that results do not depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// States of the search of one set; 5·10⁶ by default, a few hundred megabytes at most.
    pub states_per_set: u64,
    /// States of all searches together for sets without a common buffer; 6·10⁷ by default. A quarter of
    /// them is there once more for sets that share buffers.
    pub states: u64,
}

impl Limits {
    /// For a bound that stands beside plans and searches: some seconds at most, with a few tens of
    /// megabytes. In a large graph there are more sets to look at, and each look takes longer, so the
    /// limits fall with the square of its nodes.
    pub fn quick(graph: &Graph) -> Self {
        /// The largest graph, in nodes, with all of the limits.
        const FULL: usize = 5_000;
        let part = (graph.node_count().div_ceil(FULL).max(1) as u64).pow(2);
        Self { states_per_set: 200_000 / part, states: 2_000_000 / part }
    }
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
    /// The sets that prove it, each with a bound above 0. A buffer that is in several has shares that add
    /// up to no more than its spill costs.
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
    /// What a spill of each costs here; the whole of it where there are none.
    pub shares: Option<Vec<Bytes>>,
    /// The least movement of the restriction to them, or a lower bound on it.
    pub bound: Bytes,
    /// True when it is the least movement, capacity counted in bytes.
    pub optimal: bool,
    /// States of the search.
    pub states: u64,
}

/// What sets are looked for in.
struct Task<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    /// What windows are windows of.
    schedule: &'a Schedule,
    /// Buffers at whose ops sets are looked for, too.
    spilled: TiVec<BufIx, bool>,
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
    across_orders_near(graph, machine, limits, &[])
}

/// As [`across_orders`], looking also where ops use one of `spilled`, which may be what a good plan
/// spills: where no plan comes by without spills, something may be proven. Buffers that `graph` does not
/// have are passed over.
///
/// # Errors
/// As [`across_orders`].
pub fn across_orders_near(
    graph: &Graph,
    machine: &Machine,
    limits: &Limits,
    spilled: &[BufId],
) -> Result<OrdersBound, ModelError> {
    let schedule = Schedule::default_for(graph).normalized(graph, Normalize::Loads);
    // In an order yet unknown a reservation has no place; without it the bound is true all the same.
    let models = models(graph, &machine.without_reservations(), &schedule, Cover::OpOrder)?;
    let mut task = Task { graph, machine, schedule: &schedule, spilled: ti_vec![false; graph.buffer_count()] };
    spilled.iter().filter_map(|&id| graph.buf_by_id(id)).for_each(|b| task.spilled[b] = true);
    let grids = grid::proven(graph, machine);
    let mut left: TiVec<BufIx, u64> = graph.bufs().map(|b| graph.buf(b).movement().0).collect();
    let mut best = partition(&task, &models.raw, limits, &left);
    if !grids.is_empty() {
        grids.iter().flat_map(|g| &g.buffers).for_each(|&b| left[b] = 0);
        let beside = partition(&task, &models.raw, limits, &left);
        let (alone, states) = (value(&best.0, &[]), best.1 + beside.1);
        let grids: Vec<GridBound> = grids.into_iter().map(|g| g.bound).collect();
        if value(&beside.0, &grids) >= alone {
            return Ok(bound(beside.0, grids, states));
        }
        best.1 = states;
    }
    Ok(bound(best.0, Vec::new(), best.1))
}

/// Sets of buffers, and what of their cost is `left` to sets, with the states that finding them took.
fn partition(
    task: &Task<'_>,
    models: &[CacheModel],
    limits: &Limits,
    left: &TiVec<BufIx, u64>,
) -> (Vec<SetBound>, u64) {
    let mut sets = Vec::new();
    let (mut states, mut sharing) = (0, 0);
    for model in models {
        let budget = Limits { states: limits.states.saturating_sub(states), ..*limits };
        let grown = grow::sets(task, model, &budget, left.clone());
        states += grown.states;
        sharing += grown.sharing;
        sets.extend(grown.sets);
    }
    (sets, states + sharing)
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
    let listed = |s: &SetBound| BufferSet {
        cache: s.cache.clone(),
        buffers: s.buffers.clone(),
        shares: s.shares.clone(),
        bound: s.bound,
    };
    sets.iter().map(listed).collect()
}

fn bound(sets: Vec<SetBound>, grids: Vec<GridBound>, states: u64) -> OrdersBound {
    let value = value(&sets, &grids);
    let proof = Proof::Partition { sets: listed(&sets), grids: grids.iter().map(|g| g.grid.clone()).collect() };
    let certificate = Certificate::new(Cover::EveryOrder, value, proof);
    OrdersBound { value, sets, grids, certificate, states }
}
