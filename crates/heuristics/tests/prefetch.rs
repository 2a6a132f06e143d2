//! The prefetch pass: reloads come earlier, nothing gets worse.

mod common;

use common::random::case;
use common::*;
use proptest::prelude::*;
use spillbench_core::checker::check;
use spillbench_core::metrics::measure;
use spillbench_core::planner::prefetch::prefetch;
use spillbench_core::{Machine, Workspace};

/// UB 10: c 2 at 0, a 4 at 2, then b (6) puts a out. Ops take 10 cycles; reloading a takes
/// 2·4 + 150 = 158 on MTE2.
///
/// On time: COPY_IN c 0-10 and a 10-20 on MTE2; a goes out at 20 at no cost; EXP b 20-30; b is freed
/// at 30. EXP c twice, 30-50, then COPY_IN c again 50-60. The reload stands behind that on MTE2:
/// 60-218, EXP a 218-228. One op node earlier it stands before the COPY_IN: 30-188, and EXP a and
/// that COPY_IN both run 188-198.
#[test]
fn a_reload_passes_a_load_that_holds_its_pipe() {
    let graph = graph("+c2 =c +a4 =a +b6 EXP:b -b EXP:c EXP:c =c EXP:a -a -c");
    let hardware = hardware(&[("UB", 10)]);
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    for (window, makespan, prefetched) in [(0, 228, 0), (1, 198, 1), (3, 198, 1), (100, 198, 1)] {
        let mut policy = policy("life-size", DEFAULT_CHAIN, "best-fit");
        policy.config.prefetch = window;
        let plan = plan(&graph, &hardware, &policy).unwrap();
        let metrics = measure(&graph, &machine, &plan).unwrap();
        assert_eq!(metrics.makespan.unwrap().0, makespan, "window {window}");
        assert_eq!(metrics.extra_movement.0, 4);
        assert_eq!(plan.counters.unwrap().prefetched, prefetched, "window {window}");
    }
}

/// The reload never stands before the FREE that leaves its addresses, however wide the window.
#[test]
fn a_reload_stays_behind_the_release_of_its_space() {
    let graph = graph("+c2 =c +a4 =a +b6 EXP:b -b EXP:c EXP:c =c EXP:a -a -c");
    let mut policy = policy("life-size", DEFAULT_CHAIN, "best-fit");
    policy.config.prefetch = 100;
    // 13 nodes: a goes out by 13 and comes back by 14, just after the FREE of b (6).
    let plan = plan(&graph, &hardware(&[("UB", 10)]), &policy).unwrap();
    assert_eq!(order(&plan), [0, 1, 2, 3, 13, 4, 5, 6, 14, 7, 8, 9, 10, 11, 12]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_gets_worse(case in case(10, 16), window in 1u32..20) {
        let machine = case.machine();
        let policy = policy("belady", DEFAULT_CHAIN, "best-fit");
        let plan = policy.plan(&case.graph, &machine, &case.schedule, &mut Workspace::default()).unwrap();
        let earlier = prefetch(&case.graph, &machine, &plan, window).unwrap();
        let report = check(&case.graph, &machine, &earlier);
        prop_assert!(report.is_valid(), "{:?}", report);
        let [before, after] = [&plan, &earlier].map(|p| measure(&case.graph, &machine, p).unwrap());
        prop_assert!(after.makespan <= before.makespan);
        prop_assert_eq!(after.extra_movement, before.extra_movement);
        prop_assert_eq!(&earlier.spills, &plan.spills);
        prop_assert_eq!(&earlier.memory, &plan.memory);
    }
}
