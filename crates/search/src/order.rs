//! Orders by name: what stands wherever a schedule is expected.

use crate::cluster::{self, Taste};
use crate::demand;
use crate::islands::{Monitor, Progress, SearchConfig, search};
use crate::model::{ItemIx, Model};
use crate::objective::LeastMovement;
use crate::ties::Ties;
use spillbench_core::{Graph, Machine, Plan, Schedule};
use std::cmp::Reverse;

/// A way to order the nodes of a graph.
#[derive(Clone, Copy)]
pub struct Order {
    /// What commands and tables call it.
    pub name: &'static str,
    /// One line on it.
    pub doc: &'static str,
    make: fn(&Graph, &Machine) -> Schedule,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Order({})", self.name)
    }
}

impl Order {
    /// The schedule of a graph whose buffers and operands fit `machine`.
    pub fn schedule(&self, graph: &Graph, machine: &Machine) -> Schedule {
        (self.make)(graph, machine)
    }
}

/// Evaluations that the order `optimized` spends.
const OPTIMIZED_EVALUATIONS: u64 = 100_000;

/// All orders.
pub static ORDERS: &[Order] = &[
    Order { name: "id", doc: "by rising id where that is topological", make: |g, _| Schedule::default_for(g) },
    Order { name: "topological", doc: "always the ready node of the smallest id", make: topological },
    Order {
        name: "depth-first",
        doc: "each result as soon as possible, with all it needs just before it",
        make: |g, m| by_items(g, m, depth_first),
    },
    Order { name: "breadth-first", doc: "by distance from the sources", make: |g, m| by_items(g, m, breadth_first) },
    Order {
        name: "demand-first",
        doc: "always the ready op that loads least and releases most",
        make: |g, m| by_items(g, m, |model| demand::order(model, &Ties::of(model), false)),
    },
    Order {
        name: "cluster",
        doc: "parts tied by generated buffers, alone or two in lockstep, by the bytes they load",
        make: |g, m| by_items(g, m, |model| cluster::order(model, &Ties::of(model), Taste::Lasting)),
    },
    Order { name: "optimized", doc: "what a search of 100,000 evaluations finds", make: optimized },
];

/// The order of that name.
pub fn order(name: &str) -> Option<&'static Order> {
    ORDERS.iter().find(|o| o.name == name)
}

/// The orders of items that a search begins from.
pub(crate) fn constructed(model: &Model<'_>, ties: &Ties) -> Vec<Vec<ItemIx>> {
    vec![
        cluster::order(model, ties, Taste::Lasting),
        cluster::order(model, ties, Taste::Plain),
        demand::order(model, ties, false),
        demand::order(model, ties, true),
        depth_first(model),
        model.items().collect(),
    ]
}

fn by_items(graph: &Graph, machine: &Machine, make: impl Fn(&Model<'_>) -> Vec<ItemIx>) -> Schedule {
    let model = Model::new(graph, machine);
    model.schedule(&make(&model))
}

fn topological(graph: &Graph, _machine: &Machine) -> Schedule {
    Schedule::from_nodes(graph, graph.topological_order()).unwrap_or_else(|_| Schedule::default_for(graph))
}

/// The items before each item without successors, in the order of those; deepest path first.
fn depth_first(model: &Model<'_>) -> Vec<ItemIx> {
    let mut order = Vec::with_capacity(model.len());
    let mut done = vec![false; model.len()];
    let mut stack = Vec::new();
    for sink in model.items().filter(|&i| model.successors(i).is_empty()) {
        stack.push((sink, false));
        while let Some((item, ready)) = stack.pop() {
            if done[item.index()] {
                continue;
            }
            if ready {
                done[item.index()] = true;
                order.push(item);
            } else {
                stack.push((item, true));
                let waiting = model.predecessors(item).iter().rev().filter(|p| !done[p.index()]);
                stack.extend(waiting.map(|&p| (p, false)));
            }
        }
    }
    order
}

/// By the length of the longest path from a source.
fn breadth_first(model: &Model<'_>) -> Vec<ItemIx> {
    let mut level = vec![0u32; model.len()];
    for item in model.items() {
        let next = level[item.index()] + 1;
        model.successors(item).iter().for_each(|s| level[s.index()] = level[s.index()].max(next));
    }
    let mut order: Vec<_> = model.items().collect();
    order.sort_by_key(|i| level[i.index()]);
    order
}

struct Silent;

impl Monitor for Silent {
    fn improved(&mut self, _plan: &Plan, _progress: Progress) {}
}

/// The schedule of the plan that a short search finds; by id where no plan exists.
fn optimized(graph: &Graph, machine: &Machine) -> Schedule {
    let start = Schedule::default_for(graph);
    let config = SearchConfig { evaluations: Some(OPTIMIZED_EVALUATIONS), ..Default::default() };
    match search(graph, machine, &start, &LeastMovement, &config, &|| false, &mut Silent) {
        Ok(found) => schedule_of(graph, &found.plan).unwrap_or(start),
        Err(_) => start,
    }
}

/// The schedule of a plan with its spills left out.
pub(crate) fn schedule_of(graph: &Graph, plan: &Plan) -> Option<Schedule> {
    let nodes = plan.schedule.iter().filter_map(|&id| graph.node_by_id(id)).collect();
    Schedule::from_nodes(graph, nodes).ok()
}

/// What has no more predecessors to wait for.
pub(crate) struct Readiness {
    waiting: Vec<u32>,
}

impl Readiness {
    pub(crate) fn of(model: &Model<'_>) -> Self {
        Self { waiting: model.items().map(|i| model.predecessors(i).len() as u32).collect() }
    }

    pub(crate) fn is_ready(&self, item: ItemIx) -> bool {
        self.waiting[item.index()] == 0
    }

    /// Counts `item` as done; calls `ready` for each item that waited for it last.
    pub(crate) fn done(&mut self, model: &Model<'_>, item: ItemIx, mut ready: impl FnMut(ItemIx)) {
        for &s in model.successors(item) {
            self.waiting[s.index()] -= 1;
            if self.waiting[s.index()] == 0 {
                ready(s);
            }
        }
    }
}

/// Orders by the larger first: for heaps that give the smallest.
pub(crate) type Smallest<T> = Reverse<T>;
