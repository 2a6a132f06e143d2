//! How to split a fixed number of bytes among caches for least movement.
//!
//! Once a schedule is given, no cache knows of the others: a plan's movement is a sum of one term per
//! cache, each a function of that cache's capacity alone. So [`curves`] measures these functions, all
//! caches at once, and [`split`] picks one capacity of each by dynamic programming over the bytes used.
//! Nothing is assumed of the curves: under a heuristic more room may move more, and a split may leave
//! bytes unused. What could couple caches (a heuristic that remembers across them, a strategy yet to be
//! written) shows when the split is planned as a whole, which is for the caller to do.

use rayon::prelude::*;
use spillbench_core::hardware::{FitError, Hardware, Machine, smallest_capacities};
use spillbench_core::index::CacheIx;
use spillbench_core::metrics::{MeasureError, Movement};
use spillbench_core::planner::{PlanError, Workspace};
use spillbench_core::{Bytes, Graph, Schedule};
use spillbench_heuristics::Policy;
use thiserror::Error;

/// The most capacities of one cache that are tried.
pub const MOST_POINTS: u64 = 4096;

/// What one cache moves under each of several capacities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// The cache.
    pub cache: CacheIx,
    /// Capacities, rising, with the movement of the cache under each.
    pub points: Vec<(Bytes, Bytes)>,
}

/// Why there is no split.
#[derive(Debug, Error)]
pub enum PartitionError {
    /// The smallest capacities that the operands of single nodes ask for exceed the total.
    #[error("the caches need {needed} bytes at least, for the operands of single nodes, and {total} are to be split")]
    TooFew {
        /// Sum of the smallest capacities.
        needed: u128,
        /// Bytes to be split.
        total: Bytes,
    },
    /// More capacities than can be tried.
    #[error("a granularity of {granularity} bytes gives {points} capacities of one cache; at most {MOST_POINTS}")]
    TooFine {
        /// The granularity.
        granularity: Bytes,
        /// How many capacities it gives.
        points: u64,
    },
    /// The hardware lacks a cache of the graph.
    #[error("{}", .0[0])]
    Machine(Vec<FitError>),
    /// There is no plan at some capacities, though the operands of every node fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The movement of a plan passes 64 bits.
    #[error(transparent)]
    Measure(#[from] MeasureError),
}

/// The capacities that each of `caches` may have of `total` bytes: the smallest that its operands
/// allow, every multiple of `granularity` above, and those of `also`, as far as the others find room.
///
/// # Errors
/// When the smallest capacities exceed the total, or there are too many.
pub fn capacities(
    graph: &Graph,
    caches: &[CacheIx],
    total: Bytes,
    granularity: Bytes,
    also: &[Vec<Bytes>],
) -> Result<Vec<Vec<Bytes>>, PartitionError> {
    let smallest = smallest_capacities(graph);
    // A cache has a byte at least.
    let floors: Vec<u64> = caches.iter().map(|&c| smallest[c].0.0.max(1)).collect();
    let needed: u128 = floors.iter().map(|&f| u128::from(f)).sum();
    let spare = u128::from(total.0).checked_sub(needed).ok_or(PartitionError::TooFew { needed, total })? as u64;
    let step = granularity.0.max(1);
    let mut all = Vec::new();
    for (k, &floor) in floors.iter().enumerate() {
        let most = floor + spare;
        let points = most / step - floor / step + 1;
        if points > MOST_POINTS {
            return Err(PartitionError::TooFine { granularity, points });
        }
        let multiples = (floor / step + 1..=most / step).map(|n| n * step);
        let wanted = also.iter().filter_map(|split| split.get(k)).map(|b| b.0).filter(|b| (floor..=most).contains(b));
        let mut values: Vec<_> = [floor].into_iter().chain(multiples).chain(wanted).map(Bytes).collect();
        values.sort_unstable();
        values.dedup();
        all.push(values);
    }
    Ok(all)
}

/// What each of `caches` moves under each of its `capacities` when `schedule` is planned by `policy`,
/// all other caches as `hardware` has them. Runs in parallel; the result does not depend on how many
/// threads there are.
///
/// # Errors
/// When some plan cannot be made or measured.
pub fn curves(
    graph: &Graph,
    hardware: &Hardware,
    schedule: &Schedule,
    policy: &Policy,
    caches: &[CacheIx],
    capacities: &[Vec<Bytes>],
) -> Result<Vec<Curve>, PartitionError> {
    let runs = capacities.iter().map(Vec::len).max().unwrap_or(0);
    // Run k gives every cache its k-th capacity, or its last: caches are independent.
    let moved = |workspace: &mut Workspace, k: usize| -> Result<Vec<Bytes>, PartitionError> {
        let chosen: Vec<_> = capacities.iter().map(|list| list[k.min(list.len() - 1)]).collect();
        movement(graph, &with_capacities(graph, hardware, caches, &chosen), schedule, policy, caches, workspace)
    };
    let moved: Vec<Vec<Bytes>> =
        (0..runs).into_par_iter().map_init(Workspace::default, moved).collect::<Result<_, _>>()?;
    let curve = |(c, (&cache, list)): (usize, (&CacheIx, &Vec<Bytes>))| Curve {
        cache,
        points: list.iter().enumerate().map(|(k, &capacity)| (capacity, moved[k][c])).collect(),
    };
    Ok(caches.iter().zip(capacities).enumerate().map(curve).collect())
}

/// The hardware with other capacities of some caches of the graph.
pub fn with_capacities(graph: &Graph, hardware: &Hardware, caches: &[CacheIx], capacities: &[Bytes]) -> Hardware {
    let mut hardware = hardware.clone();
    for (&cache, &capacity) in caches.iter().zip(capacities) {
        if let Some(spec) = hardware.caches.get_mut(graph.cache_name(cache)) {
            spec.capacity = capacity;
        }
    }
    hardware
}

fn movement(
    graph: &Graph,
    hardware: &Hardware,
    schedule: &Schedule,
    policy: &Policy,
    caches: &[CacheIx],
    workspace: &mut Workspace,
) -> Result<Vec<Bytes>, PartitionError> {
    let machine = Machine::resolve(graph, hardware).map_err(PartitionError::Machine)?;
    let plan = policy.plan(graph, &machine, schedule, workspace)?;
    let moved = Movement::of(graph, &plan)?;
    let of = |&c: &CacheIx| moved.by_cache.get(graph.cache_name(c)).map(|split| split.bytes()).unwrap_or_default();
    Ok(caches.iter().map(of).collect())
}

/// One way to spend bytes on the caches seen so far.
#[derive(Clone, Copy)]
struct Spent {
    bytes: u64,
    moved: u128,
    /// The way to spend on the caches before, by place, and the point of this cache.
    before: usize,
    point: usize,
}

/// The point of each curve that together move least of all that use no more than `total` bytes; of
/// these, those that use fewest. `None` when even the first points use more.
pub fn split(curves: &[Curve], total: Bytes) -> Option<Vec<usize>> {
    let floor = |curve: &Curve| curve.points.first().map_or(u64::MAX, |p| p.0.0);
    // What the caches from the k-th on need at least.
    let mut reserve: Vec<u64> = vec![0];
    for curve in curves.iter().rev() {
        reserve.push(reserve[reserve.len() - 1].saturating_add(floor(curve)));
    }
    reserve.reverse();
    let mut layers = vec![vec![Spent { bytes: 0, moved: 0, before: 0, point: 0 }]];
    for (k, curve) in curves.iter().enumerate() {
        let budget = total.0.checked_sub(reserve[k + 1])?;
        let mut next = Vec::new();
        for (before, spent) in layers[k].iter().enumerate() {
            let affordable = curve.points.iter().take_while(|p| p.0.0 <= budget.saturating_sub(spent.bytes));
            next.extend(affordable.enumerate().map(|(point, &(capacity, moved))| Spent {
                bytes: spent.bytes + capacity.0,
                moved: spent.moved + u128::from(moved.0),
                before,
                point,
            }));
        }
        next.sort_unstable_by_key(|s| (s.bytes, s.moved, s.before, s.point));
        // More bytes are worth their place only if they move less.
        let mut least = u128::MAX;
        next.retain(|s| {
            s.moved < least && {
                least = s.moved;
                true
            }
        });
        layers.push(next);
    }
    let mut at = layers.last()?.len().checked_sub(1)?;
    let mut chosen = Vec::with_capacity(curves.len());
    for layer in layers[1..].iter().rev() {
        chosen.push(layer[at].point);
        at = layer[at].before;
    }
    chosen.reverse();
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u64, u64)]) -> Curve {
        let points = points.iter().map(|&(c, m)| (Bytes(c), Bytes(m))).collect();
        Curve { cache: CacheIx::new(0), points }
    }

    #[test]
    fn the_split_moves_least() {
        // The second curve is not monotone: 4 bytes move less than 5.
        let curves = [curve(&[(2, 50), (4, 20), (6, 0)]), curve(&[(1, 40), (4, 10), (5, 15), (8, 0)])];
        let chosen = |total| split(&curves, Bytes(total));
        assert_eq!(chosen(2), None);
        assert_eq!(chosen(3), Some(vec![0, 0]), "90");
        assert_eq!(chosen(7), Some(vec![2, 0]), "0 + 40 beats 50 + 10 and 20 + 40");
        assert_eq!(chosen(8), Some(vec![1, 1]), "30 with all 8");
        assert_eq!(chosen(11), Some(vec![2, 1]), "10 bytes are enough for 10");
        assert_eq!(chosen(u64::MAX), Some(vec![2, 3]));
    }

    #[test]
    fn the_split_agrees_with_trying_all() {
        // Curves by a fixed rule, rugged on purpose.
        let rugged = |k: u64| {
            let points: Vec<_> =
                (0..7u64).map(|i| (i + 1 + k % 3, (i * 7919 + k * 104_729) % 97 + (6 - i) * 9)).collect();
            curve(&points)
        };
        for k in 0..20 {
            let curves = [rugged(k), rugged(3 * k + 1), rugged(7 * k + 2)];
            for total in 0..24 {
                let tried = every_choice().filter_map(|p| {
                    let picked = [0, 1, 2].map(|c| curves[c].points[p[c]]);
                    let bytes: u64 = picked.iter().map(|p| p.0.0).sum();
                    (bytes <= total).then(|| (picked.iter().map(|p| p.1.0).sum::<u64>(), bytes))
                });
                let found = split(&curves, Bytes(total)).map(|p| {
                    let picked = [0, 1, 2].map(|c| curves[c].points[p[c]]);
                    (picked.iter().map(|p| p.1.0).sum::<u64>(), picked.iter().map(|p| p.0.0).sum::<u64>())
                });
                assert_eq!(found, tried.min(), "{k} {total}");
            }
        }
    }

    fn every_choice() -> impl Iterator<Item = [usize; 3]> {
        (0..343).map(|n| [n % 7, n / 7 % 7, n / 49])
    }
}
