//! A floor under the makespan: no pipe can begin before its earliest step, and after its last step
//! something must still follow.

use super::links::LinkKind;
use super::network::{Ends, TimedPlan};
use crate::graph::{Graph, NodeKind};
use crate::index::{NodeIx, PipeIx, StepIx};
use crate::metrics::MeasureError;
use crate::units::Cycles;
use typed_index_collections::{TiVec, ti_vec};

/// The largest of the longest path over graph, implied and spill edges and, over every pipe, of
/// the earliest start of any of its work + all of its work + the shortest tail behind any of it.
/// It holds for every order and all addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// Cycles that no plan with the same spills can beat.
    pub cycles: Cycles,
    /// The pipe that gives it; `None` when the longest path does.
    pub pipe: Option<PipeIx>,
    /// Cycles before that pipe can begin.
    pub head: Cycles,
    /// Cycles that it works.
    pub work: Cycles,
    /// Cycles that follow at least.
    pub tail: Cycles,
}

/// Head, work and tail of one pipe as they are found.
#[derive(Clone, Copy)]
struct PipeFloor {
    head: u64,
    work: u64,
    tail: u64,
}

/// Gathers what each pipe must do.
struct Gather {
    pipes: TiVec<PipeIx, PipeFloor>,
    longest: u64,
}

impl Gather {
    fn new(pipes: usize) -> Self {
        Self { pipes: ti_vec![PipeFloor { head: u64::MAX, work: 0, tail: u64::MAX }; pipes], longest: 0 }
    }

    /// Takes a piece of work that cannot start before `head` and has at least `tail` behind it.
    fn add(&mut self, pipe: PipeIx, cycles: Cycles, head: Cycles, tail: Cycles) -> Option<()> {
        let path = head.0.checked_add(cycles.0)?.checked_add(tail.0)?;
        self.longest = self.longest.max(path);
        if cycles > Cycles(0) {
            let floor = &mut self.pipes[pipe];
            floor.head = floor.head.min(head.0);
            floor.tail = floor.tail.min(tail.0);
            floor.work = floor.work.checked_add(cycles.0)?;
        }
        Some(())
    }

    fn floor(self) -> Option<Floor> {
        let mut best = Floor { cycles: Cycles(self.longest), ..Floor::default() };
        for (pipe, f) in self.pipes.iter_enumerated().filter(|(_, f)| f.work > 0) {
            let cycles = Cycles(f.head.checked_add(f.work)?.checked_add(f.tail)?);
            if cycles > best.cycles || (cycles == best.cycles && best.pipe.is_none()) {
                let (head, work, tail) = (Cycles(f.head), Cycles(f.work), Cycles(f.tail));
                best = Floor { cycles, pipe: Some(pipe), head, work, tail };
            }
        }
        Some(best)
    }
}

impl TimedPlan<'_> {
    /// The floor under every plan of the same graph with the same spills.
    pub fn floor(&self) -> Floor {
        self.floor_over(|kind| !matches!(kind, LinkKind::Pipe | LinkKind::Address))
    }

    /// The floor under every order of the pipes of this very plan, its addresses and the order in
    /// which they are taken being as they are.
    pub fn address_floor(&self) -> Floor {
        self.floor_over(|kind| kind != LinkKind::Pipe)
    }

    /// The floor that links of the kinds that `follows` accepts give.
    fn floor_over(&self, follows: impl Fn(LinkKind) -> bool) -> Floor {
        let mut heads: TiVec<StepIx, Cycles> = ti_vec![Cycles(0); self.order.len()];
        for &step in &self.order {
            let mut head = Cycles(0);
            self.for_each_precedence(step, |l| {
                if follows(l.kind) {
                    head = head.max(heads[l.from] + self.cycles[l.from]);
                }
            });
            heads[step] = head;
        }
        let mut tails: TiVec<StepIx, Cycles> = ti_vec![Cycles(0); self.order.len()];
        let mut gather = Gather::new(self.machine.pipe_names().len());
        for &step in self.order.iter().rev() {
            let behind = tails[step] + self.cycles[step];
            self.for_each_precedence(step, |l| {
                if follows(l.kind) {
                    tails[l.from] = tails[l.from].max(behind);
                }
            });
            if let Some(pipe) = self.pipes[step] {
                // All cycles together are a number, so no path passes it.
                let _ = gather.add(pipe, self.cycles[step], heads[step], tails[step]);
            }
        }
        gather.floor().unwrap_or_default()
    }

    /// True for a `SPILL_OUT` or a `SPILL_IN`.
    pub fn is_spill(&self, step: StepIx) -> bool {
        !matches!(self.ends_of(step), Ends::Node(_))
    }
}

/// The floor under every plan of a graph, whatever it spills; `None` when some op has no pipe or no
/// cycles.
///
/// # Errors
/// When a sum of cycles passes 2⁶⁴ − 1.
pub fn graph_floor(graph: &Graph) -> Result<Option<Floor>, MeasureError> {
    if !graph.has_timing() {
        return Ok(None);
    }
    let order = graph.topological_order();
    floor_along(graph, &order).map(Some).ok_or(MeasureError::Overflow { what: "cycles" })
}

fn floor_along(graph: &Graph, order: &[NodeIx]) -> Option<Floor> {
    let cycles = |n: NodeIx| graph.cycles(n).unwrap_or_default();
    let mut heads: TiVec<NodeIx, u64> = ti_vec![0; graph.node_count()];
    for &n in order {
        let ready = heads[n].checked_add(cycles(n).0)?;
        graph.for_each_successor(n, |s| heads[s] = heads[s].max(ready));
    }
    let mut tails: TiVec<NodeIx, u64> = ti_vec![0; graph.node_count()];
    let mut gather = Gather::new(graph.pipe_names().len());
    for &n in order.iter().rev() {
        let behind = tails[n].checked_add(cycles(n).0)?;
        graph.for_each_predecessor(n, |p| tails[p] = tails[p].max(behind));
        if let (NodeKind::Op, Some(pipe)) = (graph.kind(n), graph.pipe(n)) {
            gather.add(pipe, cycles(n), Cycles(heads[n]), Cycles(tails[n]))?;
        }
    }
    gather.floor()
}
