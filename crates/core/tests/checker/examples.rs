//! Plans made by hand.

use spillbench_core::checker::{Absence, Act, EdgeKind, Fault, Report, Rule, check};
use spillbench_core::plan::{Placed, Plan, Spill};
use spillbench_core::{BufId, Bytes, Graph, GraphBuilder, Hardware, Id, Machine, Offset};

fn plan(schedule: &[u64], memory: &[(u64, u64)], spills: &[(u64, u64)]) -> Plan {
    Plan {
        schedule: schedule.iter().copied().map(Id).collect(),
        memory: memory.iter().map(|&(b, o)| Placed { buf: BufId(b), offset: Offset(o) }).collect(),
        spills: spills.iter().map(|&(b, o)| Spill { buf: BufId(b), offset: Offset(o), cause: None }).collect(),
        counters: None,
    }
}

/// Two buffers of 6 with a load and a use each.
fn worked_graph() -> Graph {
    let mut builder = GraphBuilder::new();
    builder.alloc(0, 0, 6, "UB").op(1, "COPY_IN", "MTE2", 10, &[0]).alloc(2, 1, 6, "UB");
    builder.op(3, "COPY_IN", "MTE2", 10, &[1]).op(4, "EXP", "VECTOR", 10, &[0]).free(5, 0, 6, "UB");
    builder.op(6, "EXP", "VECTOR", 10, &[1]).free(7, 1, 6, "UB");
    for (from, to) in [(0, 1), (1, 4), (4, 5), (2, 3), (3, 6), (6, 7)] {
        builder.edge(from, to);
    }
    builder.build().unwrap().0
}

fn checked(graph: &Graph, ub: u64, plan: &Plan) -> Report {
    let mut hardware = Hardware::default();
    hardware.set_capacity("UB", Bytes(ub)).unwrap();
    let machine = Machine::resolve(graph, &hardware).unwrap();
    check(graph, &machine, plan)
}

const WORKED: [u64; 12] = [0, 1, 8, 2, 10, 9, 4, 5, 11, 3, 6, 7];
const AT_ZERO: [(u64, u64); 2] = [(0, 0), (1, 0)];

/// The worked example with another schedule.
fn worked(schedule: &[u64]) -> Report {
    checked(&worked_graph(), 10, &plan(schedule, &AT_ZERO, &AT_ZERO))
}

#[test]
fn the_worked_example_is_valid() {
    let report = worked(&WORKED);
    assert!(report.is_valid(), "{report:?}");
    assert_eq!(report.total(), 0);
    assert!(report.violations().is_empty());
}

#[test]
fn the_worked_example_postponed_is_valid_without_spills() {
    let report = checked(&worked_graph(), 10, &plan(&[0, 1, 4, 5, 2, 3, 6, 7], &AT_ZERO, &[]));
    assert!(report.is_valid(), "{report:?}");
}

#[test]
fn without_spills_the_given_schedule_overlaps() {
    let report = checked(&worked_graph(), 12, &plan(&[0, 1, 2, 4, 5, 3, 6, 7], &[(0, 0), (1, 5)], &[]));
    assert_eq!(report.counts(), [0, 0, 0, 0, 2]);
    assert!(checked(&worked_graph(), 12, &plan(&[0, 1, 2, 4, 5, 3, 6, 7], &[(0, 0), (1, 6)], &[])).is_valid());
    let said: Vec<_> = report.violations().iter().map(ToString::to_string).collect();
    let first = "buffer 0 (offset 0, size 6, positions 0 to 4 exclusive, begun by node 0)";
    let second = "buffer 1 (offset 5, size 6, positions 2 to 7 exclusive, begun by node 2)";
    assert_eq!(said[0], format!("rule 5: in UB, {first} overlaps {second}"));
    assert_eq!(said[1], format!("rule 5: in UB, {second} overlaps {first}"));
}

#[test]
fn an_offset_may_reach_the_end_of_its_cache_and_not_pass_it() {
    let schedule = [0, 1, 4, 5, 2, 3, 6, 7];
    assert!(checked(&worked_graph(), 10, &plan(&schedule, &[(0, 4), (1, 0)], &[])).is_valid());
    let report = checked(&worked_graph(), 10, &plan(&schedule, &[(0, 5), (1, 0)], &[]));
    assert_eq!(report.counts(), [0, 0, 0, 1, 0]);
    assert_eq!(
        report.violations()[0].to_string(),
        "rule 4: buffer 0 at offset 5 with 6 bytes ends past UB of 10 bytes (begun by node 0 at position 0)"
    );
}

#[test]
fn a_use_between_out_and_in_is_told_with_all_numbers() {
    // Node 4 uses buffer 0, which comes back one position too late.
    let report = worked(&[0, 1, 8, 2, 10, 4, 9, 5, 11, 3, 6, 7]);
    assert_eq!(report.counts(), [0, 0, 1, 0, 0]);
    let absence = Absence::Out { out: Id(8), out_pos: 2, back: Id(9), back_pos: 6 };
    let expected =
        Fault::NotResident { node: Id(4), pos: 5, act: Act::Use, buf: BufId(0), cache: "UB".into(), absence };
    assert_eq!(report.of(Rule::Residency).collect::<Vec<_>>(), [&expected]);
    assert_eq!(
        report.violations()[0].to_string(),
        "rule 3: position 5: node 4 uses buffer 0 of UB, which is out: \
         node 8 at position 2 moves it out, node 9 at position 6 in"
    );
}

#[test]
fn freeing_a_buffer_that_is_out_breaks_rules_2_and_3() {
    // Buffer 0 goes out at 8 and comes back at 9, just after its FREE, 5.
    let report =
        checked(&worked_graph(), 20, &plan(&[0, 1, 4, 8, 5, 9, 2, 3, 6, 10, 11, 7], &[(0, 0), (1, 6)], &AT_ZERO));
    assert_eq!(report.counts(), [0, 1, 1, 0, 0], "{report:?}");
    let edge =
        Fault::Backward { edge: EdgeKind::Spill, from: Id(9), to: Id(5), from_pos: 5, to_pos: 4, buf: Some(BufId(0)) };
    assert_eq!(report.of(Rule::Order).next(), Some(&edge));
    assert!(matches!(report.of(Rule::Residency).next(), Some(Fault::NotResident { act: Act::Free, .. })));
}

#[test]
fn spilling_a_buffer_that_is_out_breaks_rules_2_and_3() {
    // Both spills move buffer 0; the second goes out before the first is back.
    let spills = [(0, 0), (0, 0)];
    let schedule = [0, 1, 8, 10, 9, 11, 4, 5, 2, 3, 6, 7];
    let report = checked(&worked_graph(), 10, &plan(&schedule, &AT_ZERO, &spills));
    // IN of the first after OUT of the second; then OUT and IN, each while the other is out.
    assert_eq!(report.counts(), [0, 1, 2, 0, 0], "{report:#?}");
    let valid = checked(&worked_graph(), 10, &plan(&[0, 1, 8, 9, 10, 11, 4, 5, 2, 3, 6, 7], &AT_ZERO, &spills));
    assert!(valid.is_valid(), "{valid:?}");
}

#[test]
fn life_outside_alloc_and_free_breaks_rules_2_and_3() {
    let report = checked(&worked_graph(), 20, &plan(&[0, 1, 5, 4, 3, 2, 6, 7], &[(0, 0), (1, 6)], &[]));
    assert_eq!(report.counts(), [0, 2, 2, 0, 0], "{report:#?}");
    let said: Vec<_> = report.violations().iter().map(ToString::to_string).collect();
    assert_eq!(said[0], "rule 2: edge 4 -> 5 goes backward: 4 stands at position 3, 5 at 2");
    assert_eq!(said[1], "rule 2: edge 2 -> 3 goes backward: 2 stands at position 5, 3 at 4");
    assert_eq!(said[2], "rule 3: position 3: node 4 uses buffer 0 of UB, which was freed by node 5 at position 2");
    assert_eq!(
        said[3],
        "rule 3: position 4: node 3 uses buffer 1 of UB, which is allocated later, by node 2 at position 5"
    );
}

#[test]
fn implied_edges_count_where_the_graph_lists_none() {
    let mut builder = GraphBuilder::new();
    builder.alloc(0, 7, 4, "UB").op(1, "EXP", "VECTOR", 1, &[7]).free(2, 7, 4, "UB");
    builder.alloc(3, 8, 4, "UB").free(4, 8, 4, "UB");
    let graph = builder.build().unwrap().0;
    let report = checked(&graph, 10, &plan(&[1, 2, 0, 4, 3], &[(7, 0), (8, 0)], &[]));
    // 0 → 1, 0 → 2 and 3 → 4, which no user stands between.
    assert_eq!(report.counts(), [0, 3, 1, 0, 0], "{report:#?}");
    assert!(report.of(Rule::Order).all(|f| matches!(f, Fault::Backward { edge: EdgeKind::Implied, .. })));
    assert_eq!(
        report.violations()[0].to_string(),
        "rule 2: implied edge 0 -> 1 goes backward: 0 stands at position 2, 1 at 0"
    );
}

#[test]
fn rule_1_tells_missing_repeated_and_foreign_ids() {
    let report = worked(&[0, 1, 8, 2, 10, 4, 5, 11, 3, 3, 99, 7]);
    assert_eq!(report.counts(), [4, 0, 0, 0, 0], "{report:#?}");
    let said: Vec<_> = report.violations().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "rule 1: position 9: node 3 stands already at position 8",
            "rule 1: position 10: no node and no spill has the id 99",
            "rule 1: node 6 is missing from the schedule",
            "rule 1: node 9, which moves in buffer 0 for spill 1, is missing from the schedule",
        ]
    );
}

#[test]
fn an_empty_plan_lacks_everything() {
    let report = checked(&worked_graph(), 10, &plan(&[], &[], &[]));
    assert_eq!(report.counts(), [8, 0, 0, 2, 0]);
    assert_eq!(
        report.of(Rule::Bounds).map(ToString::to_string).collect::<Vec<_>>(),
        ["buffer 0 of UB (node 0) has no initial offset", "buffer 1 of UB (node 2) has no initial offset"]
    );
}

#[test]
fn memory_entries_are_told_by_line() {
    let schedule = [0, 1, 4, 5, 2, 3, 6, 7];
    let report = checked(&worked_graph(), 10, &plan(&schedule, &[(1, 0), (0, 0), (1, 3), (5, 0)], &[]));
    assert_eq!(report.counts(), [0, 0, 0, 2, 0]);
    assert_eq!(
        report.of(Rule::Bounds).map(ToString::to_string).collect::<Vec<_>>(),
        [
            "memory entry 3 places buffer 1 at 3; entry 1 places it already, at 0",
            "memory entry 4 places buffer 5, which the graph does not have",
        ]
    );
}

#[test]
fn spill_ids_stop_at_the_largest_id() {
    const LAST: u64 = i64::MAX as u64;
    let mut builder = GraphBuilder::new();
    builder.alloc(LAST - 4, 0, 4, "UB").op(LAST - 3, "EXP", "VECTOR", 1, &[0]).free(LAST - 2, 0, 4, "UB");
    let graph = builder.build().unwrap().0;
    let one = plan(&[LAST - 4, LAST - 1, LAST, LAST - 3, LAST - 2], &[(0, 0)], &[(0, 0)]);
    assert!(checked(&graph, 4, &one).is_valid());
    let ids = [LAST - 4, LAST - 1, LAST, LAST + 1, LAST + 2, LAST - 3, LAST - 2];
    let report = checked(&graph, 4, &plan(&ids, &[(0, 0)], &[(0, 0), (0, 1)]));
    // The ids at positions 3 and 4 are nobody's, and the second spill has none.
    assert_eq!(report.counts(), [3, 0, 0, 1, 0], "{report:#?}");
    assert_eq!(
        report.of(Rule::Presence).last().map(ToString::to_string).as_deref(),
        Some("the node ids of spill 2 (buffer 0) pass the largest id 9223372036854775807")
    );
    assert_eq!(
        report.of(Rule::Bounds).map(ToString::to_string).collect::<Vec<_>>(),
        ["buffer 0 at offset 1 with 4 bytes ends past UB of 4 bytes (begun by a spill without ids)"]
    );
}

#[test]
fn caches_do_not_mix() {
    let mut builder = GraphBuilder::new();
    builder.alloc(0, 0, 6, "UB").alloc(1, 1, 6, "L1").op(2, "EXP", "VECTOR", 1, &[0, 1]);
    builder.free(3, 0, 6, "UB").free(4, 1, 6, "L1");
    let graph = builder.build().unwrap().0;
    assert!(checked(&graph, 6, &plan(&[0, 1, 2, 3, 4], &AT_ZERO, &[])).is_valid());
}

#[test]
fn a_violation_is_one_flat_json_object() {
    let report = worked(&[0, 1, 8, 2, 10, 4, 9, 5, 11, 3, 6, 7]);
    let json = serde_json::to_value(&report).unwrap();
    let expected = serde_json::json!({
        "offenders": [0, 0, 1, 0, 0],
        "violations": [{
            "rule": 3, "kind": "not-resident", "node": 4, "pos": 5, "act": "use", "buf": 0, "cache": "UB",
            "because": "out", "out": 8, "out_pos": 2, "back": 9, "back_pos": 6,
        }],
    });
    assert_eq!(json, expected);
}
