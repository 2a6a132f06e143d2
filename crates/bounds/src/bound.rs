//! The lower bound of a schedule: all caches together, with the certificate.

use crate::certificate::{CachePrices, Certificate, Proof};
use crate::flow::{FlowBound, FlowStats, flow_bound};
use crate::model::{CacheModel, Cover, ModelError, models};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use spillbench_core::{Bytes, Graph, Machine, Schedule};

/// How a bound was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundKind {
    /// Minimum-cost flow over the gaps of a given order.
    Flow,
    /// Sets of buffers that share out what spills cost, each solved over all orders.
    Partition,
}

impl BoundKind {
    /// The name that tables use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Partition => "partition",
        }
    }
}

/// A lower bound on extra data movement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// How it was found.
    pub kind: BoundKind,
    /// Of which plans it speaks.
    pub cover: Cover,
    /// No such plan moves less; saturates at 2⁶⁴ − 1.
    pub value: Bytes,
    /// The share of every cache of the graph, in its order.
    pub per_cache: Vec<CacheBound>,
    /// What proves it.
    pub certificate: Certificate,
}

/// The share of one cache in a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheBound {
    /// Name of the cache.
    pub cache: String,
    /// Its share.
    pub value: Bytes,
    /// Steps of its model.
    pub steps: usize,
    /// Gaps of its model.
    pub gaps: usize,
    /// What the solver did.
    pub stats: FlowStats,
}

/// The flow bound for plans that keep `schedule` ([`Cover::Schedule`]) or its order of ops
/// ([`Cover::OpOrder`]). Caches are solved in parallel; the result does not depend on the number of
/// threads.
///
/// # Errors
/// As [`models`].
pub fn bound(graph: &Graph, machine: &Machine, schedule: &Schedule, cover: Cover) -> Result<Bound, ModelError> {
    let models = models(graph, machine, schedule, cover)?;
    let solved: Vec<FlowBound> = models.raw.par_iter().map(flow_bound).collect();
    let value = Bytes(solved.iter().fold(0, |sum, s| s.value.0.saturating_add(sum)));
    let caches = models.iter().zip(&solved).map(|(model, flow)| prices(graph, model, flow)).collect();
    let certificate = Certificate::new(cover, value, Proof::Prices { scale: 1, caches });
    let share = |(model, flow): (&CacheModel, &FlowBound)| CacheBound {
        cache: graph.cache_name(model.cache).to_owned(),
        value: flow.value,
        steps: model.steps.len(),
        gaps: model.gaps.len(),
        stats: flow.stats,
    };
    let per_cache = models.iter().zip(&solved).map(share).collect();
    Ok(Bound { kind: BoundKind::Flow, cover, value, per_cache, certificate })
}

fn prices(graph: &Graph, model: &CacheModel, flow: &FlowBound) -> CachePrices {
    let priced = model.steps.iter().zip(&flow.prices).filter(|&(_, &price)| price > 0);
    CachePrices {
        cache: graph.cache_name(model.cache).to_owned(),
        prices: priced.map(|(step, &price)| (graph.id(step.node), price)).collect(),
    }
}
