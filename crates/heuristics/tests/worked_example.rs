//! The worked example of the specification, section 7, with its values.

mod common;

use common::*;
use spillbench_core::Schedule;
use spillbench_core::schedule::Normalize;

/// Nodes: 0 ALLOC b0(6); 1 COPY_IN b0; 2 ALLOC b1(6); 3 COPY_IN b1; 4 EXP b0; 5 FREE b0; 6 EXP b1;
/// 7 FREE b1.
const GRAPH: &str = "+a6 =a +b6 =b EXP:a -a EXP:b -b";

fn plan_order(order_in: &[u64], chain: &str) -> (Vec<u64>, Vec<(u64, u64)>, u64) {
    let graph = graph(GRAPH);
    let schedule = Schedule::from_ids(&graph, &ids(order_in)).unwrap().normalized(&graph, Normalize::Free);
    let plan =
        plan_schedule(&graph, &hardware(&[("UB", 10)]), &schedule, &policy("life-size", chain, "best-fit")).unwrap();
    (order(&plan), spills(&plan), movement(&graph, &plan))
}

#[test]
fn the_default_chain_spills_twice() {
    let (order, spills, movement) = plan_order(&[0, 1, 2, 4, 5, 3, 6, 7], DEFAULT_CHAIN);
    assert_eq!(order, [0, 1, 8, 2, 10, 9, 4, 5, 11, 3, 6, 7]);
    assert_eq!(spills, [(0, 0), (1, 0)]);
    assert_eq!(movement, 12);
}

#[test]
fn postpone_first_spills_nothing() {
    let (order, spills, movement) = plan_order(&[0, 1, 2, 4, 5, 3, 6, 7], "postpone,single,multi");
    assert_eq!(order, [0, 1, 4, 5, 2, 3, 6, 7]);
    assert_eq!((spills, movement), (vec![], 0));
}

#[test]
fn postponing_is_refused_past_the_first_use() {
    for chain in [DEFAULT_CHAIN, "postpone,single,multi"] {
        let (_, spills, movement) = plan_order(&[0, 1, 2, 3, 4, 5, 6, 7], chain);
        assert_eq!((spills.len(), movement), (2, 12), "{chain}");
    }
}
