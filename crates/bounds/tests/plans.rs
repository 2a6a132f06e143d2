//! No plan of the planner moves less than the bound that covers it, whatever its victims.

mod common;

use common::{CAPACITY, Shape, graph};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use spillbench_bounds::attribution::cover_of;
use spillbench_bounds::exact::exact;
use spillbench_bounds::pack::Limits as PackLimits;
use spillbench_bounds::{Cover, Limits, across_orders, bound, certify};
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::BufIx;
use spillbench_core::planner::{PlannerConfig, Strategy as Chain, Workspace, plan};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Graph, Hardware, Machine, Plan, Reservation, Schedule, VictimHeuristic};
use std::cell::Cell;

const SHAPE: Shape =
    Shape { ops: 16, buffers: 9, operands: 1, smallest: 2, one_cache: true, edges: 8, cache_edges: false };

/// Victims without any sense, so that the planner goes everywhere.
struct Arbitrary(u64);

impl VictimHeuristic for Arbitrary {
    fn score(&self, _: View<'_>, request: &Request, buf: BufIx) -> f64 {
        let mixed =
            (self.0 ^ (buf.index() as u64) << 32 ^ request.pos.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as f64
    }
}

fn movement(graph: &Graph, plan: &Plan) -> u64 {
    let bufs = plan.spills.iter().filter_map(|s| graph.buf_by_id(s.buf));
    bufs.map(|b| graph.buf(b).movement().0).sum()
}

#[test]
fn every_plan_moves_at_least_the_bound_that_covers_it() {
    let chains = [Chain::DEFAULT_CHAIN, Chain::POSTPONE_FIRST, &[Chain::Window]];
    let levels = [Normalize::None, Normalize::Free, Normalize::Memory];
    let picks = (any::<u64>(), prop::sample::select(chains.to_vec()), prop::sample::select(levels.to_vec()), 0..3u32);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) };
    let rng = proptest::test_runner::TestRng::deterministic_rng(Default::default());
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(config, rng);
    // Plans per cover, and those that move just the bound.
    let (pinned, moved, met) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let run = runner.run(&(graph(SHAPE), picks), |((graph, machine), (seed, chain, level, attempts))| {
        let schedule = Schedule::default_for(&graph).normalized(&graph, level);
        let config = PlannerConfig { strategies: chain.to_vec(), attempts, ..PlannerConfig::default() };
        let made = plan(&graph, &machine, &schedule, &config, &mut Arbitrary(seed), &mut Workspace::default()).unwrap();
        let moves = movement(&graph, &made);
        let cover = cover_of(&graph, &schedule, &made);
        let least = bound(&graph, &machine, &schedule, cover).unwrap().value.0;
        prop_assert!(least <= moves, "{cover:?}: bound {least}, plan {moves}");
        prop_assert!(across_orders(&graph, &machine, &Limits::default()).unwrap().value.0 <= moves);
        let count = if cover == Cover::Schedule { &pinned } else { &moved };
        count.set(count.get() + 1);
        met.set(met.get() + u32::from(least == moves && least > 0));
        Ok(())
    });
    run.unwrap();
    assert!(pinned.get() > 500 && moved.get() > 50 && met.get() > 20, "{} {} {}", pinned.get(), moved.get(), met.get());
}

#[test]
fn a_bound_with_reservations_is_kept_by_every_plan_and_proven_by_its_certificate() {
    let span = || prop::option::of(any::<prop::sample::Index>());
    let reservations = prop::collection::vec((1..4u64, span(), span()), 1..4);
    let levels = prop::sample::select(vec![Normalize::None, Normalize::Free, Normalize::Memory]);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) };
    let rng = proptest::test_runner::TestRng::deterministic_rng(Default::default());
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(config, rng);
    let (planned, raised, met) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let run = runner.run(&(graph(SHAPE), reservations, any::<u64>(), levels), |((graph, free), drawn, seed, level)| {
        let schedule = Schedule::default_for(&graph).normalized(&graph, level);
        let ids = schedule.ids(&graph);
        let place = |at: &Option<prop::sample::Index>| at.as_ref().map(|at| at.index(ids.len()));
        let reservation = |(bytes, a, b): &(u64, Option<prop::sample::Index>, Option<prop::sample::Index>)| {
            let (from, to) = match (place(a), place(b)) {
                (Some(a), Some(b)) => (Some(a.min(b)), Some(a.max(b))),
                ends => ends,
            };
            let id = |at: Option<usize>| at.map(|at| ids[at]);
            Reservation { cache: "UB".to_owned(), bytes: Bytes(*bytes), from: id(from), to: id(to) }
        };
        let mut hardware = Hardware::default();
        hardware.set_capacity("UB", Bytes(CAPACITY)).unwrap();
        hardware.reservations = drawn.iter().map(reservation).collect();
        let machine = Machine::resolve(&graph, &hardware).unwrap();
        let (config, mut victim) = (PlannerConfig::default(), Arbitrary(seed));
        let made = plan(&graph, &machine, &schedule, &config, &mut victim, &mut Workspace::default());
        // Where too little is left for a node there is no plan, and nothing to bound.
        let Ok(made) = made else { return Ok(()) };
        let moves = movement(&graph, &made);
        let cover = cover_of(&graph, &schedule, &made);
        for cover in [cover, Cover::OpOrder] {
            let found = bound(&graph, &machine, &schedule, cover).unwrap();
            prop_assert!(found.value.0 <= moves, "{cover:?}: bound {}, plan {moves}", found.value);
            let proven = certify(&graph, &machine, Some(&schedule), &found.certificate).unwrap();
            prop_assert_eq!(proven.bound, found.value, "{:?}", cover);
            let without = bound(&graph, &free, &schedule, cover).unwrap();
            prop_assert!(without.value <= found.value);
            raised.set(raised.get() + u32::from(without.value < found.value));
            met.set(met.get() + u32::from(found.value.0 == moves && without.value < found.value));
        }
        prop_assert!(exact(&graph, &machine, &schedule, PackLimits::nodes(1)).is_err());
        planned.set(planned.get() + 1);
        Ok(())
    });
    run.unwrap();
    let counts = (planned.get(), raised.get(), met.get());
    assert!(counts.0 > 300 && counts.1 > 50 && counts.2 > 10, "{counts:?}");
}

#[test]
fn what_a_plan_moved_decides_which_bound_covers_it() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (graph, _) = graph(SHAPE).new_tree(&mut runner).unwrap().current();
    let schedule = Schedule::default_for(&graph);
    let of =
        |schedule: &Schedule| Plan { schedule: schedule.ids(&graph), memory: vec![], spills: vec![], counters: None };
    assert_eq!(cover_of(&graph, &schedule, &of(&schedule)), Cover::Schedule);
    let moved = schedule.clone().normalized(&graph, Normalize::Memory);
    assert_eq!(cover_of(&graph, &schedule, &of(&moved)), Cover::OpOrder);
    let mut swapped = of(&schedule);
    let ops = graph.buffer_count()..graph.buffer_count() + 2;
    swapped.schedule.swap(ops.start, ops.end - 1);
    assert_eq!(cover_of(&graph, &schedule, &swapped), Cover::EveryOrder);
}
