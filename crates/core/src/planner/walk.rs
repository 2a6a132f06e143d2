//! The walk over the schedule: emits nodes and spill nodes, keeps every buffer's state.

use super::clock::Clock;
use super::reserve::Reservations;
use super::workspace::{Place, Workspace};
use super::{Observer, Placement, PlanError, PlannerConfig, Strategy, runs::Runs};
use crate::address_space::{Addressing, BlockIx, Hole};
use crate::graph::{Graph, NodeKind};
use crate::hardware::Machine;
use crate::heuristic::{Event, VictimHeuristic, View};
use crate::index::{BufIx, CacheIx, NodeIx, Pos};
use crate::plan::{Cause, Counters, Placed, Plan, Spill, SpillIds};
use crate::schedule::Schedule;
use crate::units::{Bytes, Id, Offset};
use typed_index_collections::{TiVec, ti_vec};

/// One run of the planner.
pub(super) struct Walk<'a> {
    pub(super) graph: &'a Graph,
    schedule: &'a Schedule,
    placement: Placement,
    /// The chain, and the chain for caches that evict last.
    pub(super) chain: Vec<Strategy>,
    pub(super) chain_evict_last: Vec<Strategy>,
    /// Which caches evict last.
    pub(super) evict_last: TiVec<CacheIx, bool>,
    pub(super) victim: &'a mut dyn VictimHeuristic,
    observes: bool,
    pub(super) ws: &'a mut Workspace,
    pub(super) runs: Runs,
    pub(super) observer: Option<&'a mut dyn Observer>,
    pub(super) counters: Counters,
    /// The node being walked and its position.
    pub(super) node: NodeIx,
    pub(super) pos: Pos,
    spill_ids: SpillIds,
    moved: Bytes,
    pub(super) reserved: Reservations,
    /// The time, where the placement rule asks and the graph tells.
    clock: Option<Clock<'a>>,
    pub(super) emitted: Vec<Id>,
    spills: Vec<Spill>,
    offsets: TiVec<BufIx, Offset>,
}

/// How a request for space ended.
pub(super) enum Room {
    /// There is a hole.
    Hole(Hole),
    /// The `ALLOC` was put behind a later `FREE`.
    Postponed,
    /// All operands of that cache were reloaded; the one that asked is resident.
    Repacked,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        machine: &'a Machine,
        schedule: &'a Schedule,
        config: &PlannerConfig,
        victim: &'a mut dyn VictimHeuristic,
        ws: &'a mut Workspace,
        observer: Option<&'a mut dyn Observer>,
    ) -> Self {
        let chain = config.strategies.clone();
        let mut chain_evict_last = chain.clone();
        if config.attempts > 0 {
            chain_evict_last.retain(|&s| s != Strategy::Postpone);
            chain_evict_last.insert(0, Strategy::Postpone);
        }
        Self {
            graph,
            schedule,
            placement: config.placement,
            chain,
            chain_evict_last,
            evict_last: graph.caches().map(|c| machine.cache(c).evict_last).collect(),
            observes: victim.observes(),
            victim,
            ws,
            runs: Runs::default(),
            observer,
            counters: Counters::default(),
            node: NodeIx::new(0),
            pos: Pos::new(0),
            spill_ids: SpillIds::after(graph.max_id()),
            moved: Bytes(0),
            reserved: Reservations::new(machine, schedule),
            clock: Clock::new(graph, machine).filter(|_| config.placement == Placement::LeastDelay),
            emitted: Vec::with_capacity(graph.node_count()),
            spills: Vec::new(),
            offsets: ti_vec![Offset(0); graph.buffer_count()],
        }
    }

    /// The plan.
    pub(super) fn run(mut self) -> Result<Plan, PlanError> {
        self.walk()?;
        let graph = self.graph;
        let memory = graph.bufs().map(|b| Placed { buf: graph.buf(b).id, offset: self.offsets[b] }).collect();
        Ok(Plan { schedule: self.emitted, memory, spills: self.spills, counters: Some(self.counters) })
    }

    /// The movement of the plan, for spaces whose offsets mean nothing.
    pub(super) fn movement(mut self) -> Result<Bytes, PlanError> {
        self.walk()?;
        Ok(self.moved)
    }

    fn walk(&mut self) -> Result<(), PlanError> {
        let schedule = self.schedule;
        for (pos, &node) in schedule.order().iter_enumerated() {
            (self.pos, self.node) = (pos, node);
            match self.graph.kind(node) {
                NodeKind::Free(b) => {
                    self.clear_reserved(Some(b))?;
                    self.free(node, b)?;
                    self.begin_reserved();
                    self.end_reserved();
                    self.retry_waiting()?;
                    continue;
                }
                NodeKind::Alloc(b) => {
                    self.clear_reserved(None)?;
                    self.begin_reserved();
                    self.alloc(node, b)?;
                }
                NodeKind::Op => {
                    self.clear_reserved(None)?;
                    self.begin_reserved();
                    self.op(node)?;
                }
            }
            self.end_reserved();
        }
        Ok(())
    }

    fn alloc(&mut self, node: NodeIx, b: BufIx) -> Result<(), PlanError> {
        match self.make_room(b, true)? {
            Room::Hole(hole) => {
                self.offsets[b] = hole.offset;
                let released = self.acquire(b, hole);
                if let Some(clock) = &mut self.clock {
                    clock.alloc(b, released);
                }
                self.emit(node);
            }
            Room::Postponed | Room::Repacked => {}
        }
        Ok(())
    }

    fn op(&mut self, node: NodeIx) -> Result<(), PlanError> {
        let operands = self.graph.operands(node);
        let stamp = self.pin_stamp();
        operands.iter().for_each(|&b| self.ws.pinned_by[b] = stamp);
        for &b in operands {
            self.bring_back(b)?;
        }
        self.emit(node);
        if let Some(clock) = &mut self.clock {
            clock.op(node);
        }
        for &b in operands {
            self.ws.states[b].last_use = self.pos;
            self.ws.states[b].uses += 1;
            self.ws.states[b].next_use = self.ws.upcoming_use(self.graph, b);
            self.tell(Event::Used, b);
        }
        Ok(())
    }

    fn free(&mut self, node: NodeIx, b: BufIx) -> Result<(), PlanError> {
        self.bring_back(b)?;
        self.emit(node);
        let moment = self.clock.as_mut().map(|clock| clock.free(b));
        if let Place::Resident(block) = self.ws.places[b] {
            self.release(self.graph.buf(b).cache, block, moment);
        }
        self.ws.places[b] = Place::Nowhere;
        Ok(())
    }

    /// Tries again the `ALLOC`s that were put behind the `FREE` just walked.
    fn retry_waiting(&mut self) -> Result<(), PlanError> {
        if self.ws.waiting.is_empty() {
            return Ok(());
        }
        for node in self.ws.waiting.remove(&self.pos).unwrap_or_default() {
            if let NodeKind::Alloc(b) = self.graph.kind(node) {
                self.node = node;
                self.alloc(node, b)?;
            }
        }
        Ok(())
    }

    /// Reloads `b` if it is out.
    fn bring_back(&mut self, b: BufIx) -> Result<(), PlanError> {
        if matches!(self.ws.places[b], Place::Out(_))
            && let Room::Hole(hole) = self.make_room(b, false)?
        {
            self.reload(b, hole);
        }
        Ok(())
    }

    /// Emits the `SPILL_IN` of `b`, which is out.
    pub(super) fn reload(&mut self, b: BufIx, hole: Hole) {
        if let Place::Out(k) = self.ws.places[b] {
            self.spills[k as usize].offset = hole.offset;
            self.emitted.extend(self.spill_ids.back(k as usize));
            let released = self.acquire(b, hole);
            if let Some(clock) = &mut self.clock {
                clock.spill_in(b, released);
            }
        }
    }

    /// Emits the `SPILL_OUT` of `b`, which is resident.
    pub(super) fn evict(&mut self, b: BufIx, cause: Cause) -> Result<(), PlanError> {
        let Place::Resident(block) = self.ws.places[b] else { return Ok(()) };
        let (k, buf) = (self.spills.len(), self.graph.buf(b));
        let no_id = PlanError::NoSpillId { spill: k + 1, max_id: self.graph.max_id() };
        self.emitted.push(self.spill_ids.out(k).ok_or(no_id)?);
        let moved = self.moved.checked_add(buf.movement());
        self.moved = moved.ok_or(PlanError::MovementOverflow { spill: k + 1 })?;
        // The offset it comes back to is filled in by `reload`.
        self.spills.push(Spill { buf: buf.id, offset: Offset(0), cause: Some(cause) });
        let moment = self.clock.as_mut().map(|clock| clock.spill_out(b));
        self.release(buf.cache, block, moment);
        self.ws.places[b] = Place::Out(k as u32);
        self.tell(Event::Evicted, b);
        Ok(())
    }

    /// Puts `b` into `hole`; when its addresses were released, where that is known, else 0.
    fn acquire(&mut self, b: BufIx, hole: Hole) -> u64 {
        let (cache, size) = (self.graph.buf(b).cache, self.graph.buf(b).size);
        let moment = self.ws.released.get_mut(cache).map_or(0, |released| released.take(hole.offset, size));
        let block = self.ws.spaces[cache].take(hole, size, b);
        self.ws.cursors[cache] = hole.offset.end(size);
        self.ws.places[b] = Place::Resident(block);
        self.ws.states[b].segment_start = self.pos;
        self.tell(Event::Acquired, b);
        moment
    }

    /// What moment it is just after the node emitted last: as given, where times are kept, otherwise the
    /// number of nodes emitted.
    pub(super) fn moment(&self, given: Option<u64>) -> u64 {
        given.unwrap_or(self.emitted.len() as u64)
    }

    /// When the node at hand, emitted, ended, where times are kept.
    pub(super) fn ended(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock.end(self.node))
    }

    /// Ends the residency of `block`, just after the node emitted last.
    fn release(&mut self, cache: CacheIx, block: BlockIx, moment: Option<u64>) {
        let moment = self.moment(moment);
        let space = &mut self.ws.spaces[cache];
        if let Some(released) = self.ws.released.get_mut(cache) {
            released.release(space.start(block), space.size(block), moment);
        }
        space.release(block);
    }

    /// The hole that the placement rule chooses for `b`, if any is large enough.
    pub(super) fn find_hole(&self, b: BufIx) -> Option<Hole> {
        let (cache, size) = (self.graph.buf(b).cache, self.graph.buf(b).size);
        let space = &self.ws.spaces[cache];
        match self.placement {
            _ if space.addressing() == Addressing::Bytes => space.last_fit(size),
            Placement::BestFit => space.best_fit(size),
            Placement::FirstFit => space.first_fit(size),
            Placement::NextFit => space.next_fit(size, self.ws.cursors[cache]),
            Placement::WorstFit => space.worst_fit(size),
            Placement::TwoEnded if size >= self.ws.large_from[cache] => space.first_fit(size),
            Placement::TwoEnded => space.last_fit(size),
            Placement::RoundRobin => space.best_fit_in_turn(size, self.ws.cursors[cache]),
            Placement::LeastRecentlyReleased => {
                self.ws.released[cache].place(size).and_then(|offset| space.hole_at(offset, size))
            }
            Placement::LeastDelay => {
                let place = self.ws.released[cache].place_by(size, self.may_wait(b));
                place.and_then(|offset| space.hole_at(offset, size))
            }
        }
    }

    /// Until when `b` may wait for its addresses and hold nothing up.
    fn may_wait(&self, b: BufIx) -> u64 {
        let Some(clock) = &self.clock else { return u64::MAX };
        match self.ws.places[b] {
            Place::Out(_) => clock.reload_may_wait(b),
            _ => clock.alloc_may_wait(self.graph.buf(b).alloc, self.schedule.order()[self.ws.first_use(self.graph, b)]),
        }
    }

    fn emit(&mut self, node: NodeIx) {
        self.emitted.push(self.graph.id(node));
    }

    /// What `Workspace::pinned_by` holds for the operands of the op being walked.
    pub(super) fn pin_stamp(&self) -> u32 {
        self.pos.index() as u32 + 1
    }

    pub(super) fn view(&self) -> View<'_> {
        View::new(self.graph, &self.ws.states)
    }

    fn tell(&mut self, event: Event, b: BufIx) {
        if self.observes {
            self.victim.observe(View::new(self.graph, &self.ws.states), event, b);
        }
    }
}
