//! The lower bounds of a study: one for each graph, schedule, level of normalising and set of
//! capacities, and one over every order for each graph and set of capacities, whatever the number of
//! cells that it serves.
//!
//! The cells of one bound stand side by side, so several threads ask for it at once and all but one
//! wait. A bound is itself computed in parallel, and a thread that waits for its parts takes up
//! other work meanwhile; were that another cell of the same bound, it would wait for itself. So
//! bounds have threads of their own, and whoever needs one sleeps until it is there.

use super::recent::Recent;
use super::{Cell, Study};
use spillbench_bounds::{BoundKind, Cover, across_orders, bound};
use spillbench_core::{Bytes, Machine, Schedule};
use std::sync::OnceLock;

/// What a bound is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    graph: usize,
    of: Of,
    capacities: Vec<Bytes>,
    reserved: Option<String>,
}

/// Which plans of a graph a bound is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Of {
    /// Those that keep what `cover` says of a schedule.
    Schedule {
        /// The schedule by number; `None` for the best one known.
        schedule: Option<usize>,
        /// The hardware, where the schedule differs by it.
        variant: usize,
        level: usize,
        cover: Cover,
    },
    /// All.
    EveryOrder,
}

/// A bound, or why there is none.
type Found = Result<(Bytes, BoundKind), String>;

/// Bounds that are kept, in a few megabytes.
const RECENT_BOUNDS: usize = 1 << 14;

/// The bounds found so far, and the threads that find them.
#[derive(Debug)]
pub(super) struct Bounds {
    known: Recent<Key, Found>,
    pool: OnceLock<Result<rayon::ThreadPool, String>>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { known: Recent::new(RECENT_BOUNDS), pool: OnceLock::new() }
    }
}

impl Bounds {
    fn get(&self, key: Key, find: impl FnOnce() -> Found + Send) -> Found {
        self.known.get(key).get_or_init(|| self.aside(find)).clone()
    }

    /// Runs `work` on the threads for bounds; this thread does nothing else until it is done.
    fn aside<T: Send>(&self, work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
        let threads = rayon::current_num_threads();
        let build = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| e.to_string());
        let pool = self.pool.get_or_init(build).as_ref().map_err(Clone::clone)?;
        // Waiting inside a thread of another pool would let it take up work of that pool.
        let done = std::thread::scope(|scope| scope.spawn(|| pool.install(work)).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Cell<'_> {
    /// True when its plan is compared with a lower bound.
    pub fn is_bounded(&self) -> bool {
        let (when, graph) = (self.study.experiment.bound, &self.graph.graph);
        if self.planning().is_some() { when.applies(graph) } else { when.limits(graph).is_some() }
    }

    /// The cover of the first bound that it is likely to ask for: a search chooses its own order.
    pub(crate) fn likely_cover(&self) -> Cover {
        if self.planning().is_some() { Cover::Schedule } else { Cover::EveryOrder }
    }

    /// No plan that `cover` describes moves less; `None` where the graph is too large for a bound of
    /// that cover.
    ///
    /// # Errors
    /// Why there is no bound, in words.
    pub fn bound(&self, machine: &Machine, cover: Cover) -> Result<Option<(Bytes, BoundKind)>, String> {
        if cover != Cover::EveryOrder {
            return self.bound_of(machine, Some(self.at[1]), &self.normalized(), cover).map(Some);
        }
        let Some(limits) = self.study.experiment.bound.limits(&self.graph.graph) else { return Ok(None) };
        self.find(machine, Of::EveryOrder, || {
            let found = across_orders(&self.graph.graph, machine, &limits).map_err(|e| e.to_string())?;
            Ok((found.value, BoundKind::Partition))
        })
        .map(Some)
    }

    /// As [`Cell::bound`], of the best schedule known; `None` when the experiment names none.
    ///
    /// # Errors
    /// Why there is no bound, in words.
    pub fn best_bound(&self, machine: &Machine, cover: Cover) -> Result<Option<Bytes>, String> {
        let (Some(best), Some(planning)) = (&self.graph.best, self.planning()) else { return Ok(None) };
        let schedule = best.on(&self.graph.graph, &self.hardware.hardware(), planning.normalize);
        self.bound_of(machine, None, &schedule, cover).map(|(value, _)| Some(value))
    }

    fn bound_of(&self, machine: &Machine, schedule: Option<usize>, normalized: &Schedule, cover: Cover) -> Found {
        let [_, _, level, hardware] = self.at;
        let entry = schedule.map_or(self.graph.best.as_ref(), |s| self.graph.schedules.get(s));
        let variant = entry.map_or(0, |entry| hardware.min(self.study.variants(entry) - 1));
        self.find(machine, Of::Schedule { schedule, variant, level, cover }, || {
            bound(&self.graph.graph, machine, normalized, cover).map(|b| (b.value, b.kind)).map_err(|e| e.to_string())
        })
    }

    /// A bound that other cells may have asked for before.
    fn find(&self, machine: &Machine, of: Of, find: impl FnOnce() -> Found + Send) -> Found {
        let capacities = self.graph.graph.caches().map(|c| machine.cache(c).capacity).collect();
        let reserved = self.hardware.base.reserved.clone();
        self.study.bounds.get(Key { graph: self.at[0], of, capacities, reserved }, find)
    }
}

impl Study {
    /// How many bounds the cells share, by schedule, level and hardware.
    pub(crate) fn bound_count(&self) -> u64 {
        let schedules: usize = self.graphs.iter().map(|g| g.schedules.len()).sum();
        (schedules * self.experiment.axes.normalize.len()) as u64 * self.hardware.len() as u64
    }
}
