//! Retiming random plans that no planner made: never invalid, never slower, never more movement.

mod random;

use proptest::prelude::*;
use random::{CACHES, CAPACITY, cases, random_plan};
use spillbench_core::metrics::measure;
use spillbench_core::planner::retime::{Effort, retime, retime_with};
use spillbench_core::{Bytes, Hardware, Machine, checker};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_strangers_plan_gets_no_worse(
        case in cases(true),
        dice in prop::collection::vec(any::<u32>(), 20..80),
        rounds in 0usize..5,
        swaps in 0usize..40,
    ) {
        let mut hardware = Hardware::default();
        CACHES.iter().for_each(|c| hardware.set_capacity(c, Bytes(CAPACITY)).unwrap());
        let machine = Machine::resolve(&case.graph, &hardware).unwrap();
        let plan = random_plan(&case, &dice);
        let effort = Effort { rounds, swaps };
        let retimed = retime_with(&case.graph, &machine, &plan, effort).unwrap().unwrap();
        let report = checker::check(&case.graph, &machine, &retimed.plan);
        prop_assert!(report.is_valid(), "{:?}", report);
        let [before, after] = [&plan, &retimed.plan].map(|p| measure(&case.graph, &machine, p).unwrap());
        prop_assert_eq!((Some(retimed.before), Some(retimed.after)), (before.makespan, after.makespan));
        prop_assert!(retimed.after < retimed.before || retimed.plan == plan);
        prop_assert_eq!(&retimed.plan.spills, &plan.spills);
        prop_assert_eq!(&retimed.plan.memory, &plan.memory);
        prop_assert_eq!(after.extra_movement, before.extra_movement);
        prop_assert_eq!(retime_with(&case.graph, &machine, &plan, effort).unwrap().unwrap(), retimed);
    }

    #[test]
    fn a_graph_without_timing_has_nothing_to_retime(
        case in cases(false),
        dice in prop::collection::vec(any::<u32>(), 20..80),
    ) {
        let mut hardware = Hardware::default();
        CACHES.iter().for_each(|c| hardware.set_capacity(c, Bytes(CAPACITY)).unwrap());
        let machine = Machine::resolve(&case.graph, &hardware).unwrap();
        let retimed = retime(&case.graph, &machine, &random_plan(&case, &dice)).unwrap();
        prop_assert_eq!(retimed.is_some(), case.graph.has_timing());
    }
}
