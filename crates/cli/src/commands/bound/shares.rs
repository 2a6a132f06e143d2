//! What `bound` found, as its outputs show it.

use crate::analysis::least::Least;
use crate::resolve::Task;
use serde::Serialize;
use spillbench_bounds::certificate::Certificate;
use spillbench_bounds::{Bound, BoundKind, Cover, GridBound, OrdersBound};
use spillbench_core::{Bytes, Hardware};

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Bounded<'a> {
    task: &'a str,
    hardware: &'a Hardware,
    bound: Bytes,
    bound_kind: &'static str,
    bound_cover: &'static str,
    per_cache: Vec<CacheShare<'a>>,
    /// The sets of a bound over every order.
    sets: Option<Vec<SetShare<'a>>>,
    /// The grids of a bound over every order.
    grids: Option<Vec<GridShare<'a>>>,
    /// What `--exact` found.
    exact: Option<ExactShare<'a>>,
    elapsed_ms: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct CacheShare<'a> {
    pub(super) cache: &'a str,
    pub(super) bound: Bytes,
    pub(super) steps: Option<usize>,
    pub(super) gaps: Option<usize>,
    pub(super) contended_gaps: Option<usize>,
}

#[derive(Debug, Serialize)]
struct SetShare<'a> {
    cache: &'a str,
    buffers: usize,
    /// Whether a spill costs less here than in all, since other sets have the rest.
    shared: bool,
    bound: Bytes,
    optimal: bool,
    states: u64,
}

#[derive(Debug, Serialize)]
struct GridShare<'a> {
    cache: &'a str,
    buffers: usize,
    products: usize,
    bound: Bytes,
}

#[derive(Debug, Serialize)]
struct ExactShare<'a> {
    extra_movement: Bytes,
    bound: Bytes,
    optimal: bool,
    nodes: u64,
    /// The heuristic whose plan it is; null for one that the search found.
    heuristic: Option<&'static str>,
    per_cache: Vec<ExactCacheShare<'a>>,
}

#[derive(Debug, Serialize)]
struct ExactCacheShare<'a> {
    cache: &'a str,
    extra_movement: Bytes,
    bound: Bytes,
}

/// A bound of either kind.
pub(super) enum Found {
    Flow(Bound),
    Orders(OrdersBound),
}

impl Found {
    pub(super) fn value(&self) -> Bytes {
        match self {
            Self::Flow(bound) => bound.value,
            Self::Orders(bound) => bound.value,
        }
    }

    pub(super) fn kind(&self) -> BoundKind {
        match self {
            Self::Flow(bound) => bound.kind,
            Self::Orders(_) => BoundKind::Partition,
        }
    }

    pub(super) fn certificate(&self) -> &Certificate {
        match self {
            Self::Flow(bound) => &bound.certificate,
            Self::Orders(bound) => &bound.certificate,
        }
    }

    pub(super) fn per_cache<'a>(&'a self, task: &'a Task) -> Vec<CacheShare<'a>> {
        match self {
            Self::Flow(bound) => {
                let share = |c: &'a spillbench_bounds::CacheBound| CacheShare {
                    cache: &c.cache,
                    bound: c.value,
                    steps: Some(c.steps),
                    gaps: Some(c.gaps),
                    contended_gaps: Some(c.stats.contended_gaps),
                };
                bound.per_cache.iter().map(share).collect()
            }
            Self::Orders(bound) => {
                let share = |cache: &'a String| {
                    let sets = bound.sets.iter().filter(|s| s.cache == *cache).map(|s| s.bound.0);
                    let grids = bound.grids.iter().filter(|g| grid_cache(task, g) == cache).map(|g| g.grid.bound.0);
                    let value = sets.chain(grids).fold(0u64, u64::saturating_add);
                    CacheShare { cache, bound: Bytes(value), steps: None, gaps: None, contended_gaps: None }
                };
                task.graph.cache_names().iter().map(share).collect()
            }
        }
    }
}

/// The cache of the accumulators of a grid, where what the grid proves is counted.
pub(super) fn grid_cache<'a>(task: &'a Task, grid: &GridBound) -> &'a str {
    let first = grid.grid.accumulators.first().and_then(|&b| task.graph.buf_by_id(b));
    first.map_or("", |b| task.graph.cache_name(task.graph.buf(b).cache))
}

impl<'a> Bounded<'a> {
    /// What is printed of a bound, and of the least movement where it was searched.
    pub(super) fn new(
        (task, hardware, cover): (&'a Task, &'a Hardware, Cover),
        found: &'a Found,
        least: Option<&'a Least>,
        elapsed_ms: f64,
    ) -> Self {
        let sets = match found {
            Found::Flow(_) => None,
            Found::Orders(bound) => {
                let share = |s: &'a spillbench_bounds::SetBound| SetShare {
                    cache: &s.cache,
                    buffers: s.buffers.len(),
                    shared: s.shares.is_some(),
                    bound: s.bound,
                    optimal: s.optimal,
                    states: s.states,
                };
                Some(bound.sets.iter().map(share).collect())
            }
        };
        let grids = match found {
            Found::Flow(_) => None,
            Found::Orders(bound) => {
                let share = |g: &GridBound| GridShare {
                    cache: grid_cache(task, g),
                    buffers: g.buffers.len(),
                    products: g.products,
                    bound: g.grid.bound,
                };
                Some(bound.grids.iter().map(share).collect())
            }
        };
        let exact = least.map(|least| ExactShare {
            extra_movement: least.movement,
            bound: least.bound,
            optimal: least.is_optimal(),
            nodes: least.nodes,
            heuristic: least.heuristic,
            per_cache: least
                .per_cache
                .iter()
                .map(|c| ExactCacheShare { cache: &c.cache, extra_movement: c.movement, bound: c.bound })
                .collect(),
        });
        Self {
            task: &task.name,
            hardware,
            bound: found.value(),
            bound_kind: found.kind().name(),
            bound_cover: cover.name(),
            per_cache: found.per_cache(task),
            sets,
            grids,
            exact,
            elapsed_ms,
        }
    }
}
