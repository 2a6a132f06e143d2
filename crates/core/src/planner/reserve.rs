//! Reservations while a schedule is walked: what is in the way goes out, the space shrinks and grows.

use super::walk::Walk;
use super::{Clearing, PlanError, Victim, Workspace};
use crate::address_space::Addressing;
use crate::graph::{Graph, NodeKind};
use crate::hardware::{FitError, Machine, OperandDemand};
use crate::heuristic::Request;
use crate::index::{BufIx, CacheIx, NodeIx, Pos};
use crate::metrics;
use crate::plan::{Cause, Plan};
use crate::reservation::{Profile, Usable, backwards};
use crate::schedule::Schedule;
use crate::units::{BufId, Bytes, Offset};
use std::collections::BTreeSet;

/// The reservations of one run.
#[derive(Debug)]
pub(super) struct Reservations {
    usable: Usable,
    profile: Profile,
    /// Nodes that begin or end a reservation: they are never postponed, so that what the plan keeps
    /// free is what the schedule asked for.
    bounds: BTreeSet<NodeIx>,
    /// Spaces that shrink as soon as the node at hand allows.
    shrinking: Vec<(CacheIx, Bytes)>,
}

impl Reservations {
    pub(super) fn new(machine: &Machine, schedule: &Schedule) -> Self {
        if machine.reservations().is_empty() {
            let (usable, profile) = Default::default();
            return Self { usable, profile, bounds: BTreeSet::new(), shrinking: Vec::new() };
        }
        let positions = schedule.positions();
        let usable = Usable::along(machine, schedule.len(), |node| positions[node].index());
        let profile = Profile::of(&usable);
        let held = machine.reservations().iter().filter(|r| r.bytes.0 > 0);
        let bounds = held.flat_map(|r| [r.from, r.to]).flatten().collect();
        Self { usable, profile, bounds, shrinking: Vec::new() }
    }

    /// Whether `bytes` of a cache may be taken just behind the node at `pos`.
    pub(super) fn allow(&self, cache: CacheIx, bytes: Bytes, pos: Pos) -> bool {
        self.profile.at(cache, pos.index()).is_none_or(|usable| bytes <= usable)
    }

    /// Whether a node begins or ends a reservation.
    pub(super) fn bound(&self, node: NodeIx) -> bool {
        self.bounds.contains(&node)
    }
}

/// The reservations that the schedule turns round or, where there are none, what needs more than
/// reservations leave it where it stands; empty when the schedule can be planned.
pub(super) fn misfits(graph: &Graph, machine: &Machine, schedule: &Schedule) -> Vec<FitError> {
    if machine.reservations().is_empty() {
        return Vec::new();
    }
    let positions = schedule.positions();
    let turned = backwards(machine, |node| positions[node].index());
    let turned: Vec<_> =
        turned.map(|(r, from, to)| FitError::ReservedBackwards { reservation: r.stated(graph), from, to }).collect();
    if !turned.is_empty() {
        return turned;
    }
    let reservations = Reservations::new(machine, schedule);
    if reservations.usable.is_everything() {
        return Vec::new();
    }
    let mut demand = OperandDemand::new(graph);
    let mut errors = Vec::new();
    for (pos, &node) in schedule.order().iter_enumerated() {
        // A FREE at which a reservation begins leaves before it holds.
        let is_free = matches!(graph.kind(node), NodeKind::Free(_));
        for &(cache, needed) in demand.of(graph, node) {
            let profile = &reservations.profile;
            let usable = if is_free { profile.before(cache, pos.index()) } else { profile.at(cache, pos.index()) };
            if let Some(usable) = usable.filter(|&usable| needed > usable) {
                let (op, cache_name) = (graph.op_name(node).to_owned(), graph.cache_name(cache).to_owned());
                let capacity = machine.cache(cache).capacity;
                let (node, cache) = (graph.id(node), cache_name);
                errors.push(FitError::ReservedTooMuch { node, op, cache, needed, usable, capacity });
            }
        }
    }
    errors
}

/// True unless a segment of a plan that is valid otherwise lies in what is reserved: for passes that
/// give a plan another order.
pub(super) fn keeps(graph: &Graph, machine: &Machine, plan: &Plan) -> bool {
    machine.reservations().is_empty() || metrics::measure(graph, machine, plan).is_ok()
}

impl Walk<'_> {
    /// Moves out what lies where the reservations that begin at this position will, but for the buffer
    /// that the node frees.
    pub(super) fn clear_reserved(&mut self, leaving: Option<BufIx>) -> Result<(), PlanError> {
        while let Some((cache, usable)) = self.reserved.usable.begin(self.pos.index()) {
            let space = &self.ws.spaces[cache];
            let asked = space.capacity().saturating_sub(usable);
            let in_the_way = match space.addressing() {
                Addressing::Bytes => self.superfluous(cache, asked, leaving),
                Addressing::Contiguous => space
                    .blocks()
                    .filter(|b| b.start.end(b.size).0 > usable.0)
                    .filter_map(|b| b.occupant.filter(|&buf| Some(buf) != leaving))
                    .collect(),
            };
            let cause = if space.free_bytes() < asked { Cause::Capacity } else { Cause::Fragmentation };
            self.counters.reserved += in_the_way.len() as u64;
            let victims: Vec<Victim> = match self.observer {
                Some(_) => in_the_way.iter().filter_map(|&buf| self.as_victim(buf, f64::NAN)).collect(),
                None => Vec::new(),
            };
            for buf in in_the_way {
                self.evict(buf, cause)?;
            }
            if let Some(observer) = self.observer.as_deref_mut().filter(|_| !victims.is_empty()) {
                observer.cleared(&Clearing { node: self.node, cache, usable, cause, victims: &victims });
            }
            self.reserved.shrinking.push((cache, usable));
        }
        Ok(())
    }

    /// Without addresses: who goes, the best victim first, until `asked` bytes are free.
    fn superfluous(&self, cache: CacheIx, asked: Bytes, leaving: Option<BufIx>) -> Vec<BufIx> {
        let space = &self.ws.spaces[cache];
        let residents = || space.blocks().filter_map(|b| b.occupant);
        let leaves: Bytes = residents().filter(|&b| Some(b) == leaving).map(|b| self.graph.buf(b).size).sum();
        let mut free = space.free_bytes() + leaves;
        let missing = asked.saturating_sub(free).max(Bytes(1));
        let request = Request { cache, pos: self.pos, needed: asked, missing };
        let score = |b: BufIx| (self.victim.score(self.view(), &request, b), self.graph.buf(b).id, b);
        let mut victims: Vec<_> = residents().filter(|&b| Some(b) != leaving).map(score).collect();
        victims.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let goes = |&(_, _, b): &(f64, BufId, BufIx)| {
            let goes = free < asked;
            free += self.graph.buf(b).size;
            goes.then_some(b)
        };
        victims.iter().map_while(goes).collect()
    }

    /// Takes the reserved bytes away, which nothing holds any more.
    pub(super) fn begin_reserved(&mut self) {
        for (cache, usable) in std::mem::take(&mut self.reserved.shrinking) {
            self.resize(cache, usable);
        }
    }

    /// Gives back what was reserved up to this position.
    pub(super) fn end_reserved(&mut self) {
        while let Some((cache, usable)) = self.reserved.usable.end(self.pos.index()) {
            self.resize(cache, usable);
        }
    }

    fn resize(&mut self, cache: CacheIx, usable: Bytes) {
        // What grows was reserved until the node at hand ended.
        let moment = self.moment(self.ended());
        let Workspace { spaces, released, .. } = &mut *self.ws;
        let before = spaces[cache].capacity();
        spaces[cache].resize(usable);
        if let Some(released) = released.get_mut(cache) {
            if usable < before {
                released.take(Offset(usable.0), before - usable);
            } else {
                released.release(Offset(before.0), usable - before, moment);
            }
        }
    }
}
