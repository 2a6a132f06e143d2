//! Schedules: topological orders of all nodes of a graph.

mod normalize;

pub use normalize::Normalize;

use crate::graph::{Graph, NodeKind};
use crate::index::{NodeIx, Pos};
use crate::units::{BufId, Id};
use thiserror::Error;
use typed_index_collections::{TiVec, ti_vec};

/// An order of all nodes of one graph in which every edge, implied edges included, goes forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    order: TiVec<Pos, NodeIx>,
}

/// One thing that is wrong with a schedule. Positions count from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// An id that no node has.
    #[error("position {pos}: there is no node {id}")]
    UnknownNode {
        /// The id.
        id: Id,
        /// Where it stands.
        pos: usize,
    },
    /// A node that stands twice.
    #[error("node {id} stands twice, at positions {first} and {second}")]
    Repeated {
        /// The node.
        id: Id,
        /// Its first position.
        first: usize,
        /// Its second position.
        second: usize,
    },
    /// A node that does not stand in the schedule.
    #[error("node {id} is missing")]
    Missing {
        /// The node.
        id: Id,
    },
    /// An edge that goes backward.
    #[error("edge {from} -> {to} goes backward: {from} stands at position {from_pos}, {to} at {to_pos}")]
    Backward {
        /// The node that must come first.
        from: Id,
        /// The node that must follow.
        to: Id,
        /// Position of `from`.
        from_pos: usize,
        /// Position of `to`.
        to_pos: usize,
        /// The buffer whose life implies the edge; `None` when the file lists it.
        implied_by: Option<BufId>,
    },
}

/// All that is wrong with a schedule: never empty, the first hundred in full.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{total} error(s) in the schedule; the first: {}", .list[0])]
pub struct ScheduleErrors {
    /// The first hundred errors.
    pub list: Vec<ScheduleError>,
    /// How many there are in all.
    pub total: usize,
}

impl ScheduleErrors {
    /// How many errors are kept in full.
    pub const LISTED: usize = 100;

    fn push(&mut self, error: ScheduleError) {
        self.total += 1;
        if self.list.len() < Self::LISTED {
            self.list.push(error);
        }
    }
}

impl Schedule {
    /// The schedule that lists `ids` in their order.
    ///
    /// # Errors
    /// All that is wrong; edges are looked at once every node stands there exactly once.
    pub fn from_ids(graph: &Graph, ids: &[Id]) -> Result<Self, ScheduleErrors> {
        let mut errors = ScheduleErrors { list: Vec::new(), total: 0 };
        let mut place: TiVec<NodeIx, u32> = ti_vec![u32::MAX; graph.node_count()];
        let mut order = TiVec::with_capacity(graph.node_count());
        for (pos, &id) in ids.iter().enumerate() {
            match graph.node_by_id(id) {
                None => errors.push(ScheduleError::UnknownNode { id, pos }),
                Some(n) if place[n] != u32::MAX => {
                    errors.push(ScheduleError::Repeated { id, first: place[n] as usize, second: pos });
                }
                Some(n) => {
                    place[n] = pos as u32;
                    order.push(n);
                }
            }
        }
        for n in graph.nodes().filter(|&n| place[n] == u32::MAX) {
            errors.push(ScheduleError::Missing { id: graph.id(n) });
        }
        if errors.total == 0 {
            push_backward_edges(graph, &place, &order, &mut errors);
        }
        if errors.total == 0 { Ok(Self { order }) } else { Err(errors) }
    }

    /// The schedule of the nodes in `order`.
    ///
    /// # Errors
    /// As [`Schedule::from_ids`].
    pub fn from_nodes(graph: &Graph, order: Vec<NodeIx>) -> Result<Self, ScheduleErrors> {
        if order.len() == graph.node_count() {
            let mut seen: TiVec<NodeIx, bool> = ti_vec![false; graph.node_count()];
            order.iter().for_each(|&n| seen[n] = true);
            if seen.iter().all(|&s| s) && graph.is_topological(&order) {
                return Ok(Self { order: order.into() });
            }
        }
        let ids: Vec<_> = order.into_iter().map(|n| graph.id(n)).collect();
        Self::from_ids(graph, &ids)
    }

    /// The schedule taken when none is given: by rising id if that is topological, otherwise the
    /// topological order that always takes the ready node of the smallest id.
    pub fn default_for(graph: &Graph) -> Self {
        let by_id = graph.id_order();
        let order = if graph.is_topological(&by_id) { by_id } else { graph.topological_order() };
        Self { order: order.into() }
    }

    /// The nodes in order.
    pub fn order(&self) -> &TiVec<Pos, NodeIx> {
        &self.order
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True for no node; a graph has at least one.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The position of every node.
    pub fn positions(&self) -> TiVec<NodeIx, Pos> {
        let mut positions = ti_vec![Pos::new(0); self.order.len()];
        for (pos, &n) in self.order.iter_enumerated() {
            positions[n] = pos;
        }
        positions
    }

    /// The external ids in order.
    pub fn ids(&self, graph: &Graph) -> Vec<Id> {
        self.order.iter().map(|&n| graph.id(n)).collect()
    }

    /// Moves cache nodes (and loads) to where `level` says, everything else keeping its order.
    pub fn normalized(self, graph: &Graph, level: Normalize) -> Self {
        normalize::apply(self, graph, level)
    }
}

fn push_backward_edges(
    graph: &Graph,
    place: &TiVec<NodeIx, u32>,
    order: &TiVec<Pos, NodeIx>,
    errors: &mut ScheduleErrors,
) {
    for &from in order {
        let mut listed = graph.successors(from).len();
        graph.for_each_successor(from, |to| {
            // The listed edges come first; one that is implied as well is told once, as listed.
            let is_listed = listed > 0;
            listed = listed.saturating_sub(1);
            if place[from] < place[to] || (!is_listed && graph.successors(from).contains(&to)) {
                return;
            }
            let implied_by = match (graph.kind(from), graph.kind(to)) {
                (NodeKind::Alloc(b), _) | (_, NodeKind::Free(b)) if !is_listed => Some(graph.buf(b).id),
                _ => None,
            };
            let (from_pos, to_pos) = (place[from] as usize, place[to] as usize);
            let (from, to) = (graph.id(from), graph.id(to));
            errors.push(ScheduleError::Backward { from, to, from_pos, to_pos, implied_by });
        });
    }
}
