//! The search for time: plans that are valid and as fast as it says, limits that hold, results that
//! do not depend on threads, energy worked out by hand.

mod common;

use common::{graph, machine, recipes};
use proptest::prelude::*;
use spillbench_core::checker::check;
use spillbench_core::hardware::EnergySpec;
use spillbench_core::metrics::measure;
use spillbench_core::{Bytes, Graph, GraphBuilder, Hardware, Machine, Plan, Schedule};
use spillbench_search::{
    Aim, Limit, Monitor, Progress, SearchConfig, TimedError, TimedFound, Until, movement, search_front, search_time,
};

/// Checks every plan that a search reports.
struct Witness<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    values: Vec<u64>,
}

impl Monitor for Witness<'_> {
    fn improved(&mut self, plan: &Plan, progress: Progress) {
        assert!(check(self.graph, self.machine, plan).is_valid());
        assert!(self.values.last().is_none_or(|&v| progress.best < v));
        self.values.push(progress.best);
    }
}

const FOR_EVER: Until<'_> = Until { settle: &|| false, begin: &|| false, stop: &|| false };

fn run(graph: &Graph, machine: &Machine, aim: Aim, config: &SearchConfig) -> Result<TimedFound, TimedError> {
    let mut witness = Witness { graph, machine, values: Vec::new() };
    let start = Schedule::default_for(graph);
    let found = search_time(graph, machine, &start, aim, config, &FOR_EVER, &mut witness)?;
    assert_eq!(witness.values.last(), Some(&found.value));
    assert!(found.value <= found.progress.start);
    let metrics = measure(graph, machine, &found.plan).expect("a valid plan");
    assert_eq!(metrics.makespan.map(|m| m.0), Some(found.figures.makespan));
    assert_eq!(metrics.extra_movement.0, found.figures.moved);
    assert!(found.limit.is_none_or(|limit| found.figures.moved <= limit));
    Ok(found)
}

fn evaluations(n: u64) -> SearchConfig {
    SearchConfig { evaluations: Some(n), islands: 2, ..Default::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn plans_are_valid_and_threads_do_not_matter(recipe in recipes(24), odd in any::<bool>(), seed in any::<u64>()) {
        let graph = graph(&recipe, odd);
        let machine = machine(&graph, recipe.slack);
        let aims = [
            Aim::Makespan(Limit::None),
            Aim::Makespan(Limit::Percent(0.0)),
            Aim::Makespan(Limit::Percent(25.0)),
            Aim::Weighted { per_byte: 3, per_cycle: 1 },
        ];
        for aim in aims {
            let config = SearchConfig { seed, ..evaluations(800) };
            let one = run(&graph, &machine, aim, &config).expect("the least is always found");
            let two = run(&graph, &machine, aim, &SearchConfig { threads: 2, ..config }).expect("as before");
            prop_assert_eq!(&one, &two);
            if let Aim::Weighted { per_byte, per_cycle } = aim {
                prop_assert_eq!(one.value, per_byte * one.figures.moved + per_cycle * one.figures.makespan);
            }
        }
    }

    #[test]
    fn no_point_of_a_front_beats_another(recipe in recipes(24), seed in any::<u64>()) {
        let graph = graph(&recipe, false);
        let machine = machine(&graph, recipe.slack);
        let start = Schedule::default_for(&graph);
        let mut quiet = Quiet;
        let config = SearchConfig { seed, ..evaluations(1200) };
        let front = search_front(&graph, &machine, &start, &config, &FOR_EVER, &|_| false, &mut quiet).expect("a front");
        prop_assert!(!front.points.is_empty());
        for point in &front.points {
            prop_assert!(check(&graph, &machine, &point.plan).is_valid());
            prop_assert_eq!(movement(&graph, &point.plan), point.movement);
        }
        let falls = |w: &[spillbench_search::FrontPoint]| w[0].movement < w[1].movement && w[0].makespan > w[1].makespan;
        prop_assert!(front.points.windows(2).all(falls));
    }
}

struct Quiet;

impl Monitor for Quiet {
    fn improved(&mut self, _: &Plan, _: Progress) {}
}

/// Two products of loaded operands that meet in a third op: UB 10 holds two of the four operands.
fn product() -> Graph {
    let mut builder = GraphBuilder::new();
    for b in 0..3 {
        builder.alloc(b, b, 5, "UB").free(100 + b, b, 5, "UB");
        builder.op(10 + b, "COPY_IN", "MTE2", 15, &[b]).edge(b, 10 + b);
    }
    for (id, operands) in [(20, [0, 1]), (21, [1, 2]), (22, [2, 0])] {
        builder.op(id, "ADD", "VECTOR", 30, &operands);
        operands.iter().for_each(|&b| {
            builder.edge(10 + b, id);
        });
    }
    builder.edge(20, 21).edge(21, 22);
    builder.build().expect("edges go forward").0
}

fn on(graph: &Graph, energy: Option<EnergySpec>) -> Machine {
    let mut hardware = Hardware { energy, ..Hardware::default() };
    hardware.set_capacity("UB", Bytes(10)).expect("it has a UB");
    Machine::resolve(graph, &hardware).expect("every cache is known")
}

#[test]
fn a_limit_that_nothing_meets_is_an_error() {
    // The order is fixed and each op needs another pair of three: one buffer must come back, 5 bytes.
    let graph = product();
    let machine = on(&graph, None);
    let error = run(&graph, &machine, Aim::Makespan(Limit::Bytes(4)), &evaluations(400)).expect_err("5 is the least");
    assert!(matches!(error, TimedError::Limit { limit: 4, least: 5, evaluations: 1.. }), "{error}");
    let found = run(&graph, &machine, Aim::Makespan(Limit::Bytes(5)), &evaluations(400)).expect("5 is possible");
    // Two loads, 15 to 30, and the first op, to 60; the third load needs the space of 0, to 75; the
    // second op, to 105. 0 comes back into the space of 1 with 2 · 5 + 150 cycles, to 265, and the
    // third op ends at 295.
    assert_eq!((found.figures.moved, found.figures.makespan, found.least), (5, 295, 5));
}

#[test]
fn a_budget_of_evaluations_is_kept_to_the_last_one() {
    let graph = product();
    let machine = on(&graph, None);
    let aims = [Aim::Makespan(Limit::None), Aim::Weighted { per_byte: 1, per_cycle: 1 }];
    for (n, islands) in [(0, 1), (1, 4), (7, 2), (400, 3), (1200, 1), (2047, 5)] {
        let config = SearchConfig { islands, ..evaluations(n) };
        for aim in aims {
            let made = run(&graph, &machine, aim, &config).expect("a plan").progress.evaluations;
            // The half for little movement may end early, with nothing left to try.
            assert!(made <= n && made >= n - n / 2, "{made} of {n} in {islands} islands");
        }
        let start = Schedule::default_for(&graph);
        let front =
            search_front(&graph, &machine, &start, &config, &FOR_EVER, &|_| false, &mut Quiet).expect("a front");
        assert!(front.progress.evaluations <= n, "{} of {n}", front.progress.evaluations);
    }
}

#[test]
fn energy_is_counted_by_level_by_pipe_and_by_cycle() {
    let table = |list: &[(&str, u64)]| list.iter().map(|&(n, e)| (n.to_owned(), e)).collect();
    let spec = EnergySpec {
        per_cycle: 2,
        per_byte: table(&[("DRAM", 7)]),
        per_busy_cycle: table(&[("VECTOR", 10), ("MTE2", 3)]),
    };
    let graph = product();
    let machine = on(&graph, Some(spec));
    let found = run(&graph, &machine, Aim::Energy, &evaluations(400)).expect("a plan");
    // Ops: 3 · 30 · 10 + 3 · 15 · 3 = 1,035; one reload of 5 bytes: 5 · 7 + 160 · 3 = 515; and 2 for
    // each of 295 cycles.
    assert_eq!(found.value, 1035 + 515 + 590);
    assert_eq!(measure(&graph, &machine, &found.plan).expect("valid").energy, Some(found.value));
    assert!(matches!(run(&graph, &on(&graph, None), Aim::Energy, &evaluations(10)), Err(TimedError::NoEnergy)));
    assert_eq!(measure(&graph, &on(&graph, None), &found.plan).expect("valid").energy, None);
}

#[test]
fn what_cannot_be_timed_is_refused() {
    let mut builder = GraphBuilder::new();
    builder.alloc(0, 0, 1, "UB").free(2, 0, 1, "UB").op(1, "ADD", "VECTOR", u64::MAX / 2, &[0]);
    let graph = builder.build().expect("sound").0;
    let machine = Machine::resolve(&graph, &Hardware::default()).expect("every cache is known");
    let error = run(&graph, &machine, Aim::Makespan(Limit::None), &evaluations(10));
    assert!(matches!(error, Err(TimedError::Untimed(_))), "{error:?}");
}
