//! What reservations keep from buffers at each position of a schedule.

use crate::model::Cover;
use spillbench_core::graph::NodeKind;
use spillbench_core::hardware::FitError;
use spillbench_core::index::{CacheIx, NodeIx, Pos};
use spillbench_core::reservation::Reserved;
use spillbench_core::{Bytes, Graph, Machine, Schedule};
use typed_index_collections::{TiVec, ti_vec};

/// Bytes held of every cache by position; nothing of caches without a reservation.
#[derive(Debug)]
pub(crate) struct Held {
    at: TiVec<CacheIx, Vec<u64>>,
    /// Less those whose reservation begins just there.
    before: TiVec<CacheIx, Vec<u64>>,
}

/// True for a reservation whose place is fixed in all plans under a cover: one that ends at an `ALLOC`
/// or `FREE` may move with that unless these stay where they are. In every order nothing is fixed but
/// what holds throughout.
pub fn is_fixed(graph: &Graph, reserved: &Reserved, cover: Cover) -> bool {
    let ends = [reserved.from, reserved.to];
    match cover {
        Cover::Schedule => true,
        Cover::OpOrder => ends.iter().flatten().all(|&n| graph.kind(n) == NodeKind::Op),
        Cover::EveryOrder => false,
    }
}

impl Held {
    /// # Errors
    /// The reservations that the schedule turns round: no plan keeps to them.
    pub(crate) fn new(
        graph: &Graph,
        machine: &Machine,
        schedule: &Schedule,
        cover: Cover,
    ) -> Result<Self, Vec<FitError>> {
        let nothing: TiVec<CacheIx, Vec<u64>> = ti_vec![Vec::new(); machine.cache_count()];
        let mut held = Self { at: nothing.clone(), before: nothing };
        let fixed = |r: &&Reserved| r.bytes.0 > 0 && is_fixed(graph, r, cover);
        if !machine.reservations().iter().any(|r| fixed(&r)) {
            return Ok(held);
        }
        let places = schedule.positions();
        let place = |n: NodeIx| places[n].index();
        let mut turned = Vec::new();
        // Where sums change, and by how much.
        let mut changes: TiVec<CacheIx, [Vec<(usize, i128)>; 2]> = ti_vec![Default::default(); machine.cache_count()];
        for r in machine.reservations().iter().filter(fixed) {
            let (from, to) = (r.from.map_or(0, place), r.to.map_or(schedule.len(), place));
            if r.from.is_some() && r.to.is_some() && to < from {
                turned.push(FitError::ReservedBackwards { reservation: r.stated(graph), from, to });
            }
            for (begin, list) in [from, from + 1].into_iter().zip(&mut changes[r.cache]) {
                list.extend([(begin, i128::from(r.bytes.0)), (to + 1, -i128::from(r.bytes.0))]);
            }
        }
        if !turned.is_empty() {
            return Err(turned);
        }
        for (cache, [at, before]) in changes.into_iter_enumerated().filter(|(_, c)| !c[0].is_empty()) {
            held.at[cache] = sums(at, schedule.len());
            held.before[cache] = sums(before, schedule.len());
        }
        Ok(held)
    }

    /// The bytes that kept buffers cannot have at a node that takes `demand` itself. What a `FREE` takes
    /// is given back before a reservation that begins with it holds.
    pub(crate) fn taken(&self, graph: &Graph, node: NodeIx, pos: Pos, cache: CacheIx, demand: Bytes) -> Bytes {
        let of = |list: &TiVec<CacheIx, Vec<u64>>| Bytes(list[cache].get(pos.index()).copied().unwrap_or(0));
        let sum = |held: Bytes| Bytes(held.0.saturating_add(demand.0));
        match graph.kind(node) {
            NodeKind::Free(_) => sum(of(&self.before)).max(of(&self.at)),
            _ => sum(of(&self.at)),
        }
    }
}

/// The sums by position of what changes them.
fn sums(mut changes: Vec<(usize, i128)>, len: usize) -> Vec<u64> {
    changes.sort_unstable();
    let mut next = changes.into_iter().peekable();
    let mut sum = 0i128;
    let at = |pos| {
        while let Some((_, change)) = next.next_if(|c| c.0 <= pos) {
            sum += change;
        }
        u64::try_from(sum).unwrap_or(if sum < 0 { 0 } else { u64::MAX })
    };
    (0..len).map(at).collect()
}
