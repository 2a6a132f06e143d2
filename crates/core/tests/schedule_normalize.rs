//! Normalising a schedule: each level on orders worked out by hand, and on random graphs that the
//! result is a schedule in which every moved node stands where its level says.

mod random;

use proptest::prelude::*;
use random::cases;
use spillbench_core::index::{NodeIx, Pos};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Graph, GraphBuilder, Id, NodeKind, Schedule};
use typed_index_collections::TiVec;

fn normalized(graph: &Graph, order: &[u64], level: Normalize) -> Vec<u64> {
    let ids: Vec<_> = order.iter().copied().map(Id).collect();
    let schedule = Schedule::from_ids(graph, &ids).unwrap().normalized(graph, level);
    let ids = schedule.ids(graph);
    assert!(Schedule::from_ids(graph, &ids).is_ok(), "{ids:?}");
    ids.into_iter().map(|id| id.0).collect()
}

/// Two loads of buffers 0 and 1, an ADD of both into buffer 2, and its store.
fn add() -> Graph {
    let mut g = GraphBuilder::new();
    for b in 0..3 {
        g.alloc(b, b, 4, "UB");
    }
    g.op(10, "COPY_IN", "MTE2", 1, &[0]).op(11, "COPY_IN", "MTE2", 1, &[1]);
    g.op(12, "ADD", "VECTOR", 1, &[0, 1, 2]).op(13, "COPY_OUT", "MTE3", 1, &[2]);
    for b in 0..3 {
        g.free(20 + b, b, 4, "UB");
    }
    g.edge(0, 10).edge(1, 11).edge(10, 12).edge(11, 12).edge(12, 13);
    g.build().unwrap().0
}

#[test]
fn none_keeps_every_node() {
    let order = [2, 1, 0, 10, 11, 12, 13, 22, 20, 21];
    assert_eq!(normalized(&add(), &order, Normalize::None), order);
}

#[test]
fn free_raises_each_free_to_its_last_use() {
    // 20 and 21 rise behind 12, where they keep their order; 22 stays behind 13.
    let order = [0, 1, 2, 10, 11, 12, 13, 22, 21, 20];
    assert_eq!(normalized(&add(), &order, Normalize::Free), [0, 1, 2, 10, 11, 12, 21, 20, 13, 22]);
}

#[test]
fn memory_also_sinks_each_alloc_to_its_first_use() {
    let order = [2, 0, 1, 10, 11, 12, 13, 20, 21, 22];
    assert_eq!(normalized(&add(), &order, Normalize::Memory), [0, 10, 1, 11, 2, 12, 20, 21, 13, 22]);
}

#[test]
fn loads_also_sinks_each_load_to_its_first_consumer() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").alloc(1, 1, 4, "UB");
    g.op(10, "COPY_IN", "MTE2", 1, &[0]).op(11, "COPY_IN", "MTE2", 1, &[1]);
    g.op(12, "EXP", "VECTOR", 1, &[0]).op(13, "EXP", "VECTOR", 1, &[1]).op(14, "NOP", "VECTOR", 1, &[]);
    g.free(20, 0, 4, "UB").free(21, 1, 4, "UB");
    g.edge(10, 12).edge(11, 13).edge(12, 14).edge(14, 13);
    let graph = g.build().unwrap().0;
    let order = [0, 1, 10, 11, 12, 14, 13, 20, 21];
    // 11 waits for 13, and its ALLOC with it; 10 stands before its consumer already.
    assert_eq!(normalized(&graph, &order, Normalize::Loads), [0, 10, 12, 20, 14, 1, 11, 13, 21]);
    assert_eq!(normalized(&graph, &order, Normalize::Memory), [0, 10, 1, 11, 12, 20, 14, 13, 21]);
}

#[test]
fn a_load_that_waits_for_more_than_allocs_stays() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").op(9, "NOP", "VECTOR", 1, &[]).op(10, "COPY_IN", "MTE2", 1, &[0]);
    g.op(11, "NOP", "VECTOR", 1, &[]).op(12, "EXP", "VECTOR", 1, &[0]).free(20, 0, 4, "UB");
    g.edge(9, 10).edge(10, 12).edge(11, 12);
    let graph = g.build().unwrap().0;
    assert_eq!(normalized(&graph, &[0, 9, 10, 11, 12, 20], Normalize::Loads), [9, 0, 10, 11, 12, 20]);
}

#[test]
fn a_user_of_the_buffer_is_a_consumer_without_any_edge() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").op(10, "COPY_IN", "MTE2", 1, &[0]).op(11, "NOP", "V", 1, &[]);
    g.op(12, "EXP", "V", 1, &[0]).free(20, 0, 4, "UB");
    let graph = g.build().unwrap().0;
    assert_eq!(normalized(&graph, &[0, 10, 11, 12, 20], Normalize::Loads), [11, 0, 10, 12, 20]);
}

#[test]
fn a_load_without_a_consumer_stays() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").op(10, "COPY_IN", "MTE2", 1, &[0]).op(11, "NOP", "V", 1, &[]).free(20, 0, 4, "UB");
    let graph = g.build().unwrap().0;
    assert_eq!(normalized(&graph, &[0, 10, 11, 20], Normalize::Loads), [0, 10, 20, 11]);
}

#[test]
fn loads_that_feed_loads_sink_together() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").op(10, "COPY_IN", "MTE2", 1, &[0]).op(11, "COPY_IN", "MTE2", 1, &[0]);
    g.op(12, "NOP", "V", 1, &[]).op(13, "EXP", "V", 1, &[0]).free(20, 0, 4, "UB");
    let graph = g.build().unwrap().0;
    assert_eq!(normalized(&graph, &[0, 10, 11, 12, 13, 20], Normalize::Loads), [12, 0, 10, 11, 13, 20]);
}

#[test]
fn a_load_never_passes_the_free_of_its_buffer_or_what_waits_for_that() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").op(10, "COPY_IN", "MTE2", 1, &[0]).free(20, 0, 4, "UB");
    g.op(11, "NOP", "V", 1, &[]).op(12, "EXP", "V", 1, &[]).edge(10, 12).edge(20, 11);
    let graph = g.build().unwrap().0;
    // Its consumer 12 stands behind 11, which waits for 20, which waits for 10.
    assert_eq!(normalized(&graph, &[0, 10, 20, 11, 12], Normalize::Loads), [0, 10, 20, 11, 12]);
}

/// The load is the only user of its buffer, and its consumer is known by an edge: where its FREE
/// stood before makes no difference.
#[test]
fn a_load_takes_the_free_of_its_buffer_along() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 1, "UB").op(1, "COPY_IN", "MTE2", 1, &[0]).op(2, "X", "V", 1, &[]).op(3, "Y", "V", 1, &[]);
    g.free(4, 0, 1, "UB").edge(1, 3);
    let graph = g.build().unwrap().0;
    for order in [[0, 1, 2, 3, 4], [0, 1, 4, 2, 3]] {
        assert_eq!(normalized(&graph, &order, Normalize::Loads), [2, 0, 1, 4, 3]);
    }
}

#[test]
fn other_edges_of_cache_nodes_hold() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").op(10, "EXP", "V", 1, &[0]).free(20, 0, 4, "UB");
    g.alloc(1, 1, 4, "UB").op(11, "EXP", "V", 1, &[1]).free(21, 1, 4, "UB");
    g.op(12, "NOP", "V", 1, &[]);
    // FREE 20 also waits for 12, and ALLOC 1 stands before 10 by an edge.
    g.edge(12, 20).edge(1, 10);
    let graph = g.build().unwrap().0;
    let order = [1, 0, 10, 11, 12, 20, 21];
    assert_eq!(normalized(&graph, &order, Normalize::Free), [1, 0, 10, 11, 21, 12, 20]);
    assert_eq!(normalized(&graph, &order, Normalize::Memory), [1, 0, 10, 11, 21, 12, 20]);
}

#[test]
fn a_buffer_without_users_lives_for_nothing() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 4, "UB").op(10, "NOP", "V", 1, &[]).free(20, 0, 4, "UB");
    let graph = g.build().unwrap().0;
    assert_eq!(normalized(&graph, &[0, 10, 20], Normalize::Free), [0, 20, 10]);
    assert_eq!(normalized(&graph, &[0, 10, 20], Normalize::Memory), [0, 20, 10]);
}

/// True when only nodes that `passes` stand between two positions.
fn only_between(order: &TiVec<Pos, NodeIx>, from: Pos, to: Pos, passes: impl Fn(NodeIx) -> bool) -> bool {
    (from.index() + 1..to.index()).all(|i| passes(order[Pos::new(i)]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_level_gives_a_schedule_with_each_node_in_its_place(case in cases(false)) {
        let graph = &case.graph;
        let given = Schedule::from_ids(graph, &case.order).unwrap();
        let ops = |s: &Schedule| s.order().iter().copied().filter(|&n| graph.kind(n) == NodeKind::Op).collect::<Vec<_>>();
        for &(level, ..) in Normalize::ALL {
            let schedule = given.clone().normalized(graph, level);
            prop_assert!(Schedule::from_ids(graph, &schedule.ids(graph)).is_ok());
            if level == Normalize::Free {
                prop_assert_eq!(&schedule.clone().normalized(graph, level), &schedule);
            }
            prop_assert!(level == Normalize::Loads || ops(&schedule) == ops(&given));
            let (order, place) = (schedule.order(), schedule.positions());
            let kind = |n: NodeIx| graph.kind(n);
            for n in graph.nodes() {
                if matches!(kind(n), NodeKind::Free(_)) && level != Normalize::None {
                    let mut last = Pos::new(0);
                    graph.for_each_predecessor(n, |p| last = last.max(place[p]));
                    // ALLOCs sink later, behind raised FREEs.
                    prop_assert!(only_between(order, last, place[n], |m| kind(m) != NodeKind::Op));
                }
                if matches!(kind(n), NodeKind::Alloc(_)) && matches!(level, Normalize::Memory | Normalize::Loads) {
                    let mut first = Pos::new(order.len());
                    graph.for_each_successor(n, |s| first = first.min(place[s]));
                    prop_assert!(only_between(order, place[n], first, |m| matches!(kind(m), NodeKind::Alloc(_))));
                }
            }
        }
    }
}
