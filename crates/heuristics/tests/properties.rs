//! Properties of every combination of heuristic, strategy chain and placement on random graphs.

mod common;

use common::random::{Case, case, equal_case};
use common::{movement, policy};
use proptest::prelude::*;
use spillbench_core::checker::check;
use spillbench_core::metrics::measure;
use spillbench_core::plan::{Plan, SpillIds};
use spillbench_core::schedule::Normalize;
use spillbench_core::{NodeKind, Placement, Strategy as Step, Workspace};
use spillbench_heuristics::{HEURISTICS, Policy};
use std::collections::BTreeMap;

/// Chains of every shape: empty (the last resort alone), single strategies, named and mixed ones.
const CHAINS: &[&str] = &[
    "",
    "single",
    "multi",
    "window",
    "postpone",
    "single,multi,postpone",
    "postpone,single,multi",
    "window,postpone",
    "postpone,window,single,multi",
];

fn policies() -> impl Iterator<Item = Policy> {
    HEURISTICS.iter().flat_map(|h| {
        CHAINS.iter().flat_map(move |chain| Placement::ALL.iter().map(move |p| policy(h.name, chain, p.1)))
    })
}

/// The extra movement, recounted from the schedule alone: each id past the graph's own is a spill
/// node, every second one a SPILL_OUT, and the buffer is looked up in the list.
fn recount(case: &Case, plan: &Plan) -> u64 {
    let spill_ids = SpillIds::after(case.graph.max_id());
    let mut outs = BTreeMap::new();
    for id in &plan.schedule {
        if case.graph.node_by_id(*id).is_none() {
            let k = ((id.0 - case.graph.max_id().0 - 1) / 2) as usize;
            if spill_ids.out(k) == Some(*id) {
                assert!(outs.insert(k, plan.spills[k].buf).is_none());
            }
        }
    }
    let bytes = |buf| {
        let b = case.graph.buf_by_id(buf).unwrap();
        let loads = case.graph.users(b).iter().any(|&n| case.graph.op_name(n) == "COPY_IN");
        case.graph.buf(b).size.0 * if loads { 1 } else { 2 }
    };
    outs.into_values().map(bytes).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// One workspace goes dirty from plan to plan; a fresh one must give the same plan.
    #[test]
    fn every_combination_gives_a_valid_plan(case in case(8, 10), level in 0usize..4) {
        let machine = case.machine();
        let schedule = case.schedule.clone().normalized(&case.graph, Normalize::ALL[level].0);
        let mut dirty = Workspace::default();
        for policy in policies() {
            let plan = policy.plan(&case.graph, &machine, &schedule, &mut dirty).unwrap();
            let report = check(&case.graph, &machine, &plan);
            prop_assert!(report.is_valid(), "{policy:?}\n{report:?}");
            let metrics = measure(&case.graph, &machine, &plan).unwrap();
            prop_assert_eq!(metrics.extra_movement.0, recount(&case, &plan));
            prop_assert_eq!(metrics.extra_movement.0, movement(&case.graph, &plan));
            let again = policy.plan(&case.graph, &machine, &schedule, &mut Workspace::default()).unwrap();
            prop_assert_eq!(&again, &plan, "{:?}", policy);
            for spill in &plan.spills {
                prop_assert!(spill.cause.is_some());
            }
        }
    }

    /// Where buffers are of one size, free bytes always lie together, and counting them alone makes no
    /// difference. The window strategy breaks ties by address and is left out.
    #[test]
    fn in_bytes_equal_buffers_move_as_in_place(case in equal_case(8, 12, 3), level in 0usize..4) {
        let machine = case.machine();
        let schedule = case.schedule.clone().normalized(&case.graph, Normalize::ALL[level].0);
        let mut dirty = Workspace::default();
        for policy in policies().filter(|p| !p.config.strategies.contains(&Step::Window)) {
            let plan = policy.plan(&case.graph, &machine, &schedule, &mut dirty).unwrap();
            let moved = policy.movement_in_bytes(&case.graph, &machine, &schedule, &mut dirty).unwrap();
            prop_assert_eq!(moved.0, movement(&case.graph, &plan), "{:?}", policy);
        }
    }

    /// In bytes every combination finds room, the same from a dirty workspace.
    #[test]
    fn in_bytes_every_combination_finds_room(case in case(8, 10), level in 0usize..4) {
        let machine = case.machine();
        let schedule = case.schedule.clone().normalized(&case.graph, Normalize::ALL[level].0);
        let mut dirty = Workspace::default();
        for policy in policies() {
            let moved = policy.movement_in_bytes(&case.graph, &machine, &schedule, &mut dirty).unwrap();
            policy.plan(&case.graph, &machine, &schedule, &mut dirty).unwrap();
            let again = policy.movement_in_bytes(&case.graph, &machine, &schedule, &mut Workspace::default());
            prop_assert_eq!(again, Ok(moved), "{:?}", policy);
        }
    }

    /// With as much room as first fit ever reaches, first fit places as without limits.
    #[test]
    fn the_height_of_first_fit_is_enough(case in case(12, 10), level in 0usize..4) {
        let schedule = case.schedule.clone().normalized(&case.graph, Normalize::ALL[level].0);
        let policy = policy("life-size", "single,multi,postpone", "first-fit");
        let mut unbounded = case.clone();
        unbounded.hardware = case.unbounded();
        let free = policy.plan(&case.graph, &unbounded.machine(), &schedule, &mut Workspace::default()).unwrap();
        prop_assert!(free.spills.is_empty());
        let mut bounded = case.clone();
        for cache in case.graph.caches() {
            let ends = case.graph.bufs().zip(&free.memory).filter(|(b, _)| case.graph.buf(*b).cache == cache);
            let height = ends.map(|(b, placed)| placed.offset.end(case.graph.buf(b).size).0).max().unwrap_or(1);
            bounded.hardware.set_capacity(case.graph.cache_name(cache), spillbench_core::Bytes(height)).unwrap();
        }
        let plan = policy.plan(&case.graph, &bounded.machine(), &schedule, &mut Workspace::default()).unwrap();
        prop_assert_eq!(plan.schedule, free.schedule);
        prop_assert_eq!(plan.memory, free.memory);
        prop_assert!(plan.spills.is_empty());
    }

    /// Normalising keeps a schedule a schedule, and moves nothing but what its level says.
    #[test]
    fn normalising_moves_only_what_it_may(case in case(12, 12)) {
        for &(level, _, _) in Normalize::ALL {
            let schedule = case.schedule.clone().normalized(&case.graph, level);
            prop_assert!(case.graph.is_topological(schedule.order().as_ref()));
            let stays = |n: &&spillbench_core::index::NodeIx| match case.graph.kind(**n) {
                NodeKind::Alloc(_) => matches!(level, Normalize::None | Normalize::Free),
                NodeKind::Free(_) => level == Normalize::None,
                NodeKind::Op => level != Normalize::Loads || case.graph.op_name(**n) != "COPY_IN",
            };
            let before: Vec<_> = case.schedule.order().iter().filter(stays).collect();
            let after: Vec<_> = schedule.order().iter().filter(stays).collect();
            prop_assert_eq!(before, after);
        }
    }
}

/// The generator reaches every way in which a request can be met; one too tame would hide bugs.
#[test]
fn the_random_cases_reach_every_outcome() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = case(8, 10);
    let mut met = [0; 6];
    for _ in 0..200 {
        let case = proptest::strategy::ValueTree::current(&strategy.new_tree(&mut runner).unwrap());
        for chain in CHAINS {
            let policy = policy("life-size", chain, "best-fit");
            let plan = policy.plan(&case.graph, &case.machine(), &case.schedule, &mut Workspace::default()).unwrap();
            let c = plan.counters.unwrap();
            let now = [c.single, c.multi, c.window, c.postponed, c.last_resort, c.repacks];
            (0..6).for_each(|i| met[i] += now[i]);
        }
    }
    assert!(met.iter().all(|&m| m >= 20), "single, multi, window, postponed, last resort, repacks: {met:?}");
}
