//! What a plan needs while it is made, kept from run to run so that storage is reused.

use super::released::Released;
use super::{Placement, PlannerConfig};
use crate::address_space::{AddressSpace, Addressing, BlockIx};
use crate::graph::{Graph, NodeKind};
use crate::hardware::Machine;
use crate::heuristic::BufferState;
use crate::index::{BufIx, CacheIx, NodeIx, Pos};
use crate::schedule::Schedule;
use std::collections::BTreeMap;
use typed_index_collections::TiVec;

/// Where a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before its `ALLOC` or after its `FREE`.
    Nowhere,
    /// In its cache.
    Resident(BlockIx),
    /// Out, by the spill of that number.
    Out(u32),
}

/// Reusable storage of the planner: one per thread. Its contents between two runs do not matter.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(super) states: TiVec<BufIx, BufferState>,
    pub(super) places: TiVec<BufIx, Place>,
    /// Postponements left per buffer.
    pub(super) attempts: TiVec<BufIx, u32>,
    /// Position of the first successor of each buffer's `ALLOC`.
    pub(super) first_successor: TiVec<BufIx, Pos>,
    /// The last op that pinned each buffer, as position + 1.
    pub(super) pinned_by: TiVec<BufIx, u32>,
    pub(super) spaces: TiVec<CacheIx, AddressSpace>,
    /// Where the last placement in each cache ended, for next fit.
    pub(super) cursors: TiVec<CacheIx, crate::units::Offset>,
    /// When free addresses were released; empty unless the placement rule asks.
    pub(super) released: TiVec<CacheIx, Released>,
    /// Size from which a buffer of each cache counts as large, for two-ended placement.
    pub(super) large_from: TiVec<CacheIx, crate::units::Bytes>,
    /// `ALLOC`s that wait for the `FREE` at a position.
    pub(super) waiting: BTreeMap<Pos, Vec<NodeIx>>,
    use_starts: TiVec<BufIx, u32>,
    uses: Vec<Pos>,
}

impl Workspace {
    /// Makes ready for one run.
    pub(super) fn prepare(
        &mut self,
        graph: &Graph,
        machine: &Machine,
        schedule: &Schedule,
        config: &PlannerConfig,
        addressing: Addressing,
    ) {
        let buffers = graph.buffer_count();
        refill(&mut self.places, buffers, Place::Nowhere);
        refill(&mut self.attempts, buffers, config.attempts);
        refill(&mut self.pinned_by, buffers, 0);
        self.waiting.clear();
        self.prepare_spaces(graph, machine, addressing);
        self.prepare_released(config.placement, addressing);
        self.prepare_states(graph, schedule);
    }

    fn prepare_spaces(&mut self, graph: &Graph, machine: &Machine, addressing: Addressing) {
        self.spaces.resize_with(graph.cache_names().len(), AddressSpace::default);
        refill(&mut self.cursors, self.spaces.len(), Default::default());
        let mut totals: TiVec<CacheIx, (u128, u128)> = vec![(0, 0); self.spaces.len()].into();
        for buf in graph.bufs().map(|b| graph.buf(b)) {
            let (bytes, count) = &mut totals[buf.cache];
            *bytes += u128::from(buf.size.0);
            *count += 1;
        }
        self.large_from.clear();
        for (cache, &(bytes, count)) in totals.iter_enumerated() {
            self.spaces[cache].reset(machine.cache(cache).capacity, addressing);
            self.large_from.push(crate::units::Bytes(bytes.div_ceil(count.max(1)) as u64));
        }
    }

    fn prepare_released(&mut self, placement: Placement, addressing: Addressing) {
        let asks = matches!(placement, Placement::LeastRecentlyReleased | Placement::LeastDelay);
        if !asks || addressing == Addressing::Bytes {
            self.released.clear();
            return;
        }
        self.released.resize_with(self.spaces.len(), Released::default);
        for (cache, released) in self.released.iter_mut_enumerated() {
            released.reset(self.spaces[cache].capacity());
        }
    }

    /// Positions of `ALLOC`, uses and `FREE` of every buffer, by one pass over the schedule.
    fn prepare_states(&mut self, graph: &Graph, schedule: &Schedule) {
        let buffers = graph.buffer_count();
        let zero = Pos::new(0);
        let blank =
            BufferState { alloc: zero, free: zero, last_use: zero, next_use: zero, uses: 0, segment_start: zero };
        refill(&mut self.states, buffers, blank);
        self.use_starts.clear();
        let mut total = 0;
        for b in graph.bufs() {
            self.use_starts.push(total);
            total += graph.users(b).len() as u32;
        }
        self.uses.clear();
        self.uses.resize(total as usize, zero);
        // `uses` counts the places filled until the pass is over.
        for (pos, &node) in schedule.order().iter_enumerated() {
            match graph.kind(node) {
                NodeKind::Alloc(b) => self.states[b].alloc = pos,
                NodeKind::Free(b) => self.states[b].free = pos,
                NodeKind::Op => {
                    for &b in graph.operands(node) {
                        let state = &mut self.states[b];
                        self.uses[(self.use_starts[b] + state.uses) as usize] = pos;
                        state.uses += 1;
                    }
                }
            }
        }
        for b in graph.bufs() {
            self.states[b].uses = 0;
            self.states[b].last_use = self.states[b].alloc;
            self.states[b].next_use = self.upcoming_use(graph, b);
        }
        self.prepare_successors(graph, schedule);
    }

    fn prepare_successors(&mut self, graph: &Graph, schedule: &Schedule) {
        let positions = schedule.positions();
        self.first_successor.clear();
        for b in graph.bufs() {
            // Uses and FREE are among the successors; their positions are known already.
            let own = self.states[b].next_use.min(self.states[b].free);
            let listed = graph.successors(graph.buf(b).alloc).iter().map(|&s| positions[s]);
            self.first_successor.push(listed.fold(own, Pos::min));
        }
    }

    /// The position of the first use of `b`, or of its `FREE`.
    pub(super) fn first_use(&self, graph: &Graph, b: BufIx) -> Pos {
        if graph.users(b).is_empty() { self.states[b].free } else { self.uses[self.use_starts[b] as usize] }
    }

    /// The position of the first use not yet counted in the state of `b`, or of its `FREE`.
    #[inline]
    pub(super) fn upcoming_use(&self, graph: &Graph, b: BufIx) -> Pos {
        let done = self.states[b].uses;
        if (done as usize) < graph.users(b).len() {
            self.uses[(self.use_starts[b] + done) as usize]
        } else {
            self.states[b].free
        }
    }
}

fn refill<K, V: Clone>(vec: &mut TiVec<K, V>, len: usize, value: V) {
    vec.clear();
    vec.resize(len, value);
}
