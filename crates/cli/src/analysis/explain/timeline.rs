//! Occupancy, fragmentation and spills along the schedule, by tenths of it.

use super::Mapped;
use serde::Serialize;
use spillbench_core::index::CacheIx;
use spillbench_core::metrics::{MeasureError, Step, occupancy};
use spillbench_core::units::Bytes;
use typed_index_collections::{TiVec, ti_vec};

/// Into how many parts a schedule is divided.
pub const TENTHS: usize = 10;

/// One cache along the schedule. Each list has one entry per tenth.
#[derive(Debug, Serialize)]
pub struct CacheTimeline {
    /// The cache.
    pub cache: String,
    /// Mean fragmentation over the positions of each tenth.
    pub fragmentation: [f64; TENTHS],
    /// Mean share of the cache that is resident.
    pub occupancy: [f64; TENTHS],
    /// `SPILL_OUT`s.
    pub spills: [usize; TENTHS],
    /// Bytes that their spills move.
    pub moved: [Bytes; TENTHS],
}

/// What a cache holds from one change to the next.
#[derive(Clone, Copy, Default)]
struct Running {
    since: usize,
    used: f64,
    fragmentation: f64,
    used_sum: [f64; TENTHS],
    fragmentation_sum: [f64; TENTHS],
}

/// The tenths of a schedule of `len` positions.
#[derive(Clone, Copy)]
struct Tenths {
    len: usize,
}

impl Tenths {
    fn of(self, pos: usize) -> usize {
        (pos as u128 * TENTHS as u128 / self.len.max(1) as u128) as usize
    }

    /// The first position of a tenth.
    fn start(self, tenth: usize) -> usize {
        (self.len as u128 * tenth as u128).div_ceil(TENTHS as u128) as usize
    }
}

impl Running {
    /// Lets the present values hold up to `pos`, exclusive.
    fn advance(&mut self, pos: usize, tenths: Tenths) {
        while self.since < pos {
            let tenth = tenths.of(self.since);
            let end = tenths.start(tenth + 1).min(pos);
            let weight = (end - self.since) as f64;
            self.used_sum[tenth] += self.used * weight;
            self.fragmentation_sum[tenth] += self.fragmentation * weight;
            self.since = end;
        }
    }
}

/// The timelines of all caches of the graph.
///
/// # Errors
/// When the plan is not valid.
pub fn timeline(mapped: &Mapped<'_>) -> Result<Vec<CacheTimeline>, MeasureError> {
    let (graph, machine, steps) = (mapped.graph, mapped.machine, &mapped.steps);
    let tenths = Tenths { len: steps.as_slice().len() };
    let mut running: TiVec<CacheIx, Running> = ti_vec![Running::default(); graph.cache_names().len()];
    occupancy::observe(graph, machine, steps, &mapped.segments, |pos, cache, used, fragmentation| {
        let state = &mut running[cache];
        state.advance(pos.index(), tenths);
        (state.used, state.fragmentation) = (used.0 as f64, fragmentation);
    })?;
    let mut spills: TiVec<CacheIx, [(usize, Bytes); TENTHS]> =
        ti_vec![[(0, Bytes(0)); TENTHS]; graph.cache_names().len()];
    for &out in &mapped.outs {
        if let Step::SpillOut { buf, .. } = steps.as_slice()[out] {
            let (count, moved) = &mut spills[graph.buf(buf).cache][tenths.of(out.index())];
            *count += 1;
            *moved += graph.buf(buf).movement();
        }
    }
    let width = |tenth: usize| (tenths.start(tenth + 1) - tenths.start(tenth)).max(1) as f64;
    let finish = |(cache, mut state): (CacheIx, Running)| {
        state.advance(tenths.len, tenths);
        let capacity = machine.cache(cache).capacity.0 as f64;
        CacheTimeline {
            cache: graph.cache_name(cache).to_owned(),
            fragmentation: std::array::from_fn(|t| state.fragmentation_sum[t] / width(t)),
            occupancy: std::array::from_fn(|t| state.used_sum[t] / width(t) / capacity),
            spills: spills[cache].map(|s| s.0),
            moved: spills[cache].map(|s| s.1),
        }
    };
    Ok(running.into_iter_enumerated().map(finish).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_share_out_every_position() {
        for len in [1, 7, 10, 11, 99, 1000] {
            let tenths = Tenths { len };
            let mut widths = [0; TENTHS];
            (0..len).for_each(|pos| widths[tenths.of(pos)] += 1);
            for (t, width) in widths.into_iter().enumerate() {
                assert_eq!(width, tenths.start(t + 1) - tenths.start(t), "tenth {t} of {len}");
            }
            assert_eq!(tenths.start(TENTHS), len);
        }
    }

    #[test]
    fn values_are_weighted_by_how_long_they_hold() {
        let tenths = Tenths { len: 20 };
        let mut state = Running::default();
        state.advance(3, tenths);
        state.used = 4.0;
        state.advance(20, tenths);
        // Positions 0 and 1 are the first tenth, 2 and 3 the second: 4 holds from 3 on.
        assert_eq!(state.used_sum[..3], [0.0, 4.0, 8.0]);
        assert_eq!(state.used_sum.iter().sum::<f64>(), 4.0 * 17.0);
    }
}
