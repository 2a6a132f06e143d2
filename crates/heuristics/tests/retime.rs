//! Retiming plans of the planner: reloads hide behind compute, nothing gets worse.

mod common;

use common::random::case;
use common::*;
use proptest::prelude::*;
use spillbench_core::checker::check;
use spillbench_core::metrics::measure;
use spillbench_core::planner::retime::retime;
use spillbench_core::{Cycles, Machine, Workspace};

/// The case of the prefetch tests: UB 10, c 2 at 0, a 4 at 2, then b (6) puts a out.
///
/// As planned it takes 228 cycles. COPY_IN a 0-10, EXP b 10-20, the reload of a 20-178 behind the FREE
/// of b and EXP a 178-188 wait for each other by data and addresses alone, so that no order is faster
/// than 188.
#[test]
fn a_reload_passes_a_load_that_holds_its_pipe() {
    let graph = graph("+c2 =c +a4 =a +b6 EXP:b -b EXP:c EXP:c =c EXP:a -a -c");
    let hardware = hardware(&[("UB", 10)]);
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    let mut policy = policy("life-size", DEFAULT_CHAIN, "best-fit");
    let planned = plan(&graph, &hardware, &policy).unwrap();
    let retimed = retime(&graph, &machine, &planned).unwrap().unwrap();
    assert_eq!((retimed.before, retimed.after, retimed.saved()), (Cycles(228), Cycles(188), Cycles(40)));
    // As an option of the planner it gives the same plan.
    policy.config.retime = true;
    let at_once = plan(&graph, &hardware, &policy).unwrap();
    assert_eq!(at_once, retimed.plan);
    assert_eq!(at_once.counters.unwrap().cycles_saved, 40);
    // Retimed again, it stays as it is.
    let again = retime(&graph, &machine, &at_once).unwrap().unwrap();
    assert_eq!((again.saved(), again.plan), (Cycles(0), at_once));
}

/// A generated buffer that is not used again until the end leaves as soon as it is idle.
#[test]
fn a_spill_out_leaves_while_the_vector_works() {
    // UB 10. EXP b 0-10; c (4) is worked on; then d (6) needs the space of b.
    let graph = graph("+b6 EXP:b +c4 EXP:c EXP:c EXP:c =c +d6 EXP:d -d EXP:b -b -c");
    let hardware = hardware(&[("UB", 10)]);
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    let planned = plan(&graph, &hardware, &policy("belady", DEFAULT_CHAIN, "best-fit")).unwrap();
    let retimed = retime(&graph, &machine, &planned).unwrap().unwrap();
    // EXP b 0-10, out 10-172, EXP d 172-182, back 182-344, EXP b 344-354: data and addresses alone.
    assert_eq!(retimed.after, Cycles(354));
    assert!(check(&graph, &machine, &retimed.plan).is_valid());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_gets_worse(case in case(10, 16), prefetch in 0u32..6, heuristic in 0usize..11) {
        let machine = case.machine();
        let name = spillbench_heuristics::HEURISTICS[heuristic].name;
        let mut policy = policy(name, DEFAULT_CHAIN, "best-fit");
        policy.config.prefetch = prefetch;
        let plan = policy.plan(&case.graph, &machine, &case.schedule, &mut Workspace::default()).unwrap();
        let retimed = retime(&case.graph, &machine, &plan).unwrap().unwrap();
        let report = check(&case.graph, &machine, &retimed.plan);
        prop_assert!(report.is_valid(), "{:?}", report);
        let [before, after] = [&plan, &retimed.plan].map(|p| measure(&case.graph, &machine, p).unwrap());
        prop_assert_eq!((Some(retimed.before), Some(retimed.after)), (before.makespan, after.makespan));
        prop_assert!(retimed.after <= retimed.before);
        prop_assert_eq!(after.extra_movement, before.extra_movement);
        prop_assert_eq!(&retimed.plan.spills, &plan.spills);
        prop_assert_eq!(&retimed.plan.memory, &plan.memory);
        policy.config.retime = true;
        let at_once = policy.plan(&case.graph, &machine, &case.schedule, &mut Workspace::default()).unwrap();
        prop_assert_eq!(at_once, retimed.plan);
    }
}
