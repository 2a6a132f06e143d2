//! Placement for time: double buffering appears by itself, at no movement.

use spillbench_core::metrics::measure;
use spillbench_core::{Bytes, Cycles, Graph, GraphBuilder, Hardware, Machine, Placement, Schedule, Workspace};
use spillbench_heuristics::Policy;

/// Loads of 4 bytes, each used by one op and freed before the next begins.
fn stream(loads: u64) -> Graph {
    let mut b = GraphBuilder::new();
    for i in 0..loads {
        b.alloc(4 * i, i, 4, "UB").op(4 * i + 1, "COPY_IN", "MTE2", 10, &[i]);
        b.op(4 * i + 2, "EXP", "VECTOR", 10, &[i]).free(4 * i + 3, i, 4, "UB");
        b.edge(4 * i, 4 * i + 1).edge(4 * i + 1, 4 * i + 2).edge(4 * i + 2, 4 * i + 3);
    }
    b.build().unwrap().0
}

fn planned(graph: &Graph, capacity: u64, placement: Placement) -> (Vec<u64>, Bytes, Option<Cycles>) {
    let mut hardware = Hardware::default();
    hardware.set_capacity("UB", Bytes(capacity)).unwrap();
    let machine = Machine::resolve(graph, &hardware).unwrap();
    let mut policy = Policy::default();
    policy.config.placement = placement;
    let plan = policy.plan(graph, &machine, &Schedule::default_for(graph), &mut Workspace::default()).unwrap();
    let metrics = measure(graph, &machine, &plan).unwrap();
    (plan.memory.iter().map(|m| m.offset.0).collect(), metrics.extra_movement, metrics.makespan)
}

#[test]
fn two_buffers_take_turns() {
    let graph = stream(4);
    // All at 0: each load waits until the op before it has left the addresses, 4 · (10 + 10) cycles.
    assert_eq!(planned(&graph, 10, Placement::BestFit), (vec![0; 4], Bytes(0), Some(Cycles(80))));
    // Two places in turn: load i + 1 runs beside op i, 10 cycles for the first load and 10 an op.
    for placement in [Placement::RoundRobin, Placement::LeastRecentlyReleased, Placement::LeastDelay] {
        let expected = (vec![0, 6, 0, 6], Bytes(0), Some(Cycles(50)));
        assert_eq!(planned(&graph, 10, placement), expected, "{placement}");
    }
}

#[test]
fn no_rule_helps_without_a_second_place() {
    for &(placement, ..) in Placement::ALL {
        assert_eq!(planned(&stream(4), 7, placement).2, Some(Cycles(80)), "{placement}");
    }
}
