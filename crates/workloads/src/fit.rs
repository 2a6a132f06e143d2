//! Sizing a workload to a hardware description: the largest tile that its caches take.

use crate::error::WorkloadError;
use crate::generate;
use crate::registry::Domain;
use crate::spec::WorkloadSpec;
use spillbench_core::{Graph, Hardware, Machine};

/// The parameter that scales every buffer of a lowered operator.
const TILE: &str = "tile";

/// The spec and its graph with its `tile` at the largest power of two with which the graph fits `hardware`, that
/// is, with which the operands of each op fit their caches; at the smallest where none does. A spec
/// without a `tile` stays as it is.
///
/// Tiles scale every buffer of an operator and no edge, so that a tile that fits means every smaller
/// one does: the largest is found by bisection, with a graph made for each trial.
///
/// # Errors
/// As [`generate`].
pub fn fit_tile(spec: &WorkloadSpec, hardware: &Hardware) -> Result<(WorkloadSpec, Graph), WorkloadError> {
    let domain = spec.values().iter().find(|(p, _)| p.name == TILE).map(|(p, _)| p.domain);
    let Some(Domain::Int { min, max, .. }) = domain else {
        return Ok((spec.clone(), generate(spec)?));
    };
    let largest = hardware.caches.values().map(|c| c.capacity.0).max().unwrap_or(min);
    let tiles: Vec<u64> = (0..u64::BITS).map(|e| 1 << e).filter(|t| (min..=max.min(largest)).contains(t)).collect();
    // All before `low` fit, none from `high` on does; `best` is of the last before `low`.
    let (mut low, mut high) = (0, tiles.len());
    let mut best = None;
    while low < high {
        let middle = low + (high - low) / 2;
        let tried = with_tile(spec, tiles[middle])?;
        if fits(&tried.1, hardware) {
            (low, best) = (middle + 1, Some(tried));
        } else {
            high = middle;
        }
    }
    best.map_or_else(|| with_tile(spec, min), Ok)
}

fn with_tile(spec: &WorkloadSpec, tile: u64) -> Result<(WorkloadSpec, Graph), WorkloadError> {
    let spec = spec.with(TILE, tile);
    let graph = generate(&spec)?;
    Ok((spec, graph))
}

fn fits(graph: &Graph, hardware: &Hardware) -> bool {
    Machine::resolve(graph, hardware).is_ok_and(|machine| machine.misfits(graph).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillbench_core::Bytes;

    fn fitted(spec: &str, capacities: &[(&str, u64)]) -> String {
        let mut hardware = Hardware::default();
        for &(cache, capacity) in capacities {
            hardware.set_capacity(cache, Bytes(capacity)).unwrap();
        }
        let (spec, graph) = fit_tile(&spec.parse().unwrap(), &hardware).unwrap();
        assert_eq!(graph, generate(&spec).unwrap());
        spec.to_string()
    }

    /// davinci: L0A and L0B hold 256 bytes, one tile each; L0C holds 512, one accumulator of two
    /// tiles. So 256 fits and 512 does not; half the L0C leaves 128, the default.
    #[test]
    fn the_scarcest_cache_decides() {
        assert_eq!(fitted("matmul(m=2,n=2,k=2)", &[]), "matmul(m=2,n=2,k=2,tile=256)");
        assert_eq!(fitted("matmul(m=2,n=2,k=2)", &[("L0C", 256)]), "matmul(m=2,n=2,k=2)");
        assert_eq!(fitted("matmul(m=2,n=2,k=2)", &[("L0A", 100)]), "matmul(m=2,n=2,k=2,tile=64)");
    }

    #[test]
    fn what_has_no_tile_stays() {
        assert_eq!(fitted("chain(nodes=300)", &[("L0A", 1)]), "chain(nodes=300)");
    }

    #[test]
    fn where_nothing_fits_the_smallest_is_left() {
        assert_eq!(fitted("matmul(m=2,n=2,k=2)", &[("L0A", 1)]), "matmul(m=2,n=2,k=2,tile=2)");
    }
}
