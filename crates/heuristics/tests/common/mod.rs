//! What the planner tests share: small graphs in a few words, and planning them by name.

#![allow(dead_code)]

pub mod random;

use spillbench_core::plan::Plan;
use spillbench_core::planner::{Decision, Observer, Outcome};
use spillbench_core::schedule::Normalize;
use spillbench_core::{
    Bytes, Graph, GraphBuilder, Hardware, Id, Machine, Placement, PlanError, PlannerConfig, Schedule, Strategy,
    Workspace,
};
use spillbench_heuristics::{Policy, heuristic};

/// Hardware with the given caches, none of which evicts last.
pub fn hardware(caches: &[(&str, u64)]) -> Hardware {
    let mut hardware = Hardware::default();
    let spec = hardware.caches["UB"].clone();
    hardware.caches.clear();
    for &(name, capacity) in caches {
        hardware.caches.insert(name.to_owned(), spec.clone());
        hardware.set_capacity(name, Bytes(capacity)).unwrap();
    }
    hardware
}

/// A graph written as a schedule: one word per node, ids from 0 in that order.
///
/// `+a6` allocates buffer a of 6 bytes in UB (`+a6@L1` in L1), `-a` frees it, `=a` loads it with a
/// `COPY_IN`, `EXP:a,b` is an op. Buffers are numbered in order of their `ALLOC`s. Each buffer's
/// nodes are chained by edges in the order in which they stand.
pub fn graph(text: &str) -> Graph {
    let mut builder = GraphBuilder::new();
    let mut buffers: Vec<(String, u64, String, Option<u64>)> = Vec::new();
    for (id, word) in text.split_whitespace().enumerate() {
        let id = id as u64;
        let find = |buffers: &Vec<(String, u64, String, Option<u64>)>, name: &str| {
            buffers.iter().position(|b| b.0 == name).unwrap_or_else(|| panic!("no buffer {name}"))
        };
        let used: Vec<usize> = if let Some(rest) = word.strip_prefix('+') {
            let (rest, cache) = rest.split_once('@').unwrap_or((rest, "UB"));
            let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap();
            let size = rest[digits..].parse().unwrap();
            builder.alloc(id, buffers.len() as u64, size, cache);
            buffers.push((rest[..digits].to_owned(), size, cache.to_owned(), None));
            vec![buffers.len() - 1]
        } else if let Some(name) = word.strip_prefix('-') {
            let b = find(&buffers, name);
            builder.free(id, b as u64, buffers[b].1, &buffers[b].2.clone());
            vec![b]
        } else {
            let (op, pipe, names) = match word.strip_prefix('=') {
                Some(names) => ("COPY_IN", "MTE2", names),
                None => word.split_once(':').map(|(op, names)| (op, "VECTOR", names)).unwrap(),
            };
            let used: Vec<usize> = names.split(',').map(|n| find(&buffers, n)).collect();
            let ids: Vec<u64> = used.iter().map(|&b| b as u64).collect();
            builder.op(id, op, pipe, 10, &ids);
            used
        };
        for b in used {
            if let Some(before) = buffers[b].3.replace(id) {
                builder.edge(before, id);
            }
        }
    }
    builder.build().unwrap().0
}

/// A policy by names: `heuristic`, a comma-separated chain, a placement rule.
pub fn policy(heuristic_name: &str, chain: &str, placement: &str) -> Policy {
    let strategies = chain.split(',').filter(|s| !s.is_empty()).map(|s| Strategy::by_name(s).unwrap()).collect();
    let placement = Placement::by_name(placement).unwrap();
    let config = PlannerConfig { strategies, placement, ..PlannerConfig::default() };
    Policy { heuristic: heuristic(heuristic_name).unwrap(), config, seed: 7 }
}

pub const DEFAULT_CHAIN: &str = "single,multi,postpone";

/// Plans `graph` in id order, every node where it stands.
pub fn plan(graph: &Graph, hardware: &Hardware, policy: &Policy) -> Result<Plan, PlanError> {
    let schedule = Schedule::default_for(graph).normalized(graph, Normalize::None);
    plan_schedule(graph, hardware, &schedule, policy)
}

pub fn plan_schedule(
    graph: &Graph,
    hardware: &Hardware,
    schedule: &Schedule,
    policy: &Policy,
) -> Result<Plan, PlanError> {
    let machine = Machine::resolve(graph, hardware).unwrap();
    policy.plan(graph, &machine, schedule, &mut Workspace::default())
}

/// The extra movement, counted from the list of spills alone.
pub fn movement(graph: &Graph, plan: &Plan) -> u64 {
    plan.spills.iter().map(|s| graph.buf(graph.buf_by_id(s.buf).unwrap()).movement().0).sum()
}

/// The spills as (buffer, offset).
pub fn spills(plan: &Plan) -> Vec<(u64, u64)> {
    plan.spills.iter().map(|s| (s.buf.0, s.offset.0)).collect()
}

/// The schedule as plain numbers.
pub fn order(plan: &Plan) -> Vec<u64> {
    plan.schedule.iter().map(|id| id.0).collect()
}

pub fn ids(numbers: &[u64]) -> Vec<Id> {
    numbers.iter().copied().map(Id).collect()
}

/// Keeps what the planner tells.
#[derive(Default)]
pub struct Log {
    /// Node, cause, outcome, victims (by id), runner-up.
    pub decisions: Vec<Entry>,
}

#[derive(Debug, PartialEq)]
pub struct Entry {
    pub pos: usize,
    pub cause: spillbench_core::plan::Cause,
    pub outcome: Outcome,
    pub victims: Vec<usize>,
    pub runner_up: Option<usize>,
    pub hole: Option<(u64, u64)>,
}

impl Observer for Log {
    fn decided(&mut self, d: &Decision<'_>) {
        self.decisions.push(Entry {
            pos: d.request.pos.index(),
            cause: d.cause,
            outcome: d.outcome,
            victims: d.victims.iter().map(|v| v.buf.index()).collect(),
            runner_up: d.runner_up.map(|r| r.0.index()),
            hole: d.hole.map(|h| (h.0.0, h.1.0)),
        });
    }
}

/// Plans in id order and returns the decisions with the plan.
pub fn observed(graph: &Graph, hardware: &Hardware, policy: &Policy) -> (Plan, Vec<Entry>) {
    let machine = Machine::resolve(graph, hardware).unwrap();
    let schedule = Schedule::default_for(graph);
    let mut log = Log::default();
    let plan = policy.plan_observed(graph, &machine, &schedule, &mut Workspace::default(), &mut log).unwrap();
    (plan, log.decisions)
}
