//! Bounds beside plans: no heuristic passes what covers it, and what rows say of bounds adds up.

mod common;

use common::{csv, run, study};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};
use spillbench_bounds::attribution::cover_of;
use spillbench_bounds::exact::exact;
use spillbench_bounds::{Cover, bound, pack};
use spillbench_core::checker::check;
use spillbench_core::graph::NodeKind;
use spillbench_core::hardware::smallest_capacities;
use spillbench_core::metrics::measure;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Graph, Hardware, Machine, PlannerConfig, Schedule, Strategy as Step, Workspace};
use spillbench_harness::figure;
use spillbench_harness::sweep::Options;
use spillbench_heuristics::{HEURISTICS, Policy};
use std::cell::Cell;

/// A small graph on caches that hold `slack` quarters more than its neediest op.
fn instance(spec: &str, slack: u64) -> (Graph, Machine) {
    let graph = spillbench_workloads::generate(&spec.parse().unwrap()).unwrap();
    let mut hardware = Hardware::default();
    for (cache, &(least, _)) in smallest_capacities(&graph).iter_enumerated() {
        let capacity = Bytes(least.0 + least.0 * slack / 4);
        hardware.set_capacity(graph.cache_name(cache), capacity).unwrap();
    }
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    (graph, machine)
}

fn specs() -> impl Strategy<Value = String> {
    let family = prop::sample::select(vec!["layered-dag", "series-parallel", "chain", "fork-join"]);
    let sizes = prop::sample::select(vec!["equal", "uniform", "powers", "mixed"]);
    (family, sizes, 50..80u32, 2..5u32, any::<u32>()).prop_map(|(family, sizes, nodes, width, seed)| {
        format!("{family}(nodes={nodes},width={width},sizes={sizes},pressure=0.5,capacity=64,seed={seed})")
    })
}

/// The order by id, with each `ALLOC` that may stand up to `by` nodes earlier, so that some can wait.
fn hoisted(graph: &Graph, by: usize) -> Schedule {
    let order = Schedule::default_for(graph).order().iter().copied().collect::<Vec<_>>();
    let mut keyed: Vec<_> = order.into_iter().enumerate().collect();
    keyed.sort_by_key(|&(at, node)| {
        let mut free = matches!(graph.kind(node), NodeKind::Alloc(_));
        graph.for_each_predecessor(node, |_| free = false);
        if free { at.saturating_sub(by) } else { at }
    });
    Schedule::from_nodes(graph, keyed.into_iter().map(|(_, node)| node).collect()).unwrap()
}

/// Flow bound ≤ bound of the exact search ≤ its plan, and the least movement ≤ every heuristic, each
/// compared with the bound that covers what its plan moved.
#[test]
fn bounds_and_optima_are_below_every_heuristic() {
    let chains = vec![Step::DEFAULT_CHAIN, Step::POSTPONE_FIRST, &[Step::Window][..]];
    let picks = (specs(), 0..4u64, (0..4usize, 0..16usize), prop::sample::select(chains), prop::bool::ANY);
    let (optimal, met, moved) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let config = Config { failure_persistence: None, ..Config::with_cases(80) };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(Default::default()));
    let run = runner.run(&picks, |(spec, slack, (level, by), chain, postpones)| {
        let (graph, machine) = instance(&spec, slack);
        let schedule = hoisted(&graph, by).normalized(&graph, Normalize::ALL[level].0);
        let flow = |cover| bound(&graph, &machine, &schedule, cover).unwrap().value;
        let (pinned, free) = (flow(Cover::Schedule), flow(Cover::OpOrder));
        let best = exact(&graph, &machine, &schedule, pack::Limits::nodes(2000)).unwrap();
        prop_assert!(free <= pinned && pinned <= best.bound && best.bound <= best.movement);
        prop_assert!(check(&graph, &machine, &best.plan).is_valid());
        prop_assert_eq!(measure(&graph, &machine, &best.plan).unwrap().extra_movement, best.movement);
        optimal.set(optimal.get() + u32::from(best.is_optimal() && best.movement.0 > 0));
        let attempts = if postpones { PlannerConfig::DEFAULT_ATTEMPTS } else { 0 };
        let config = PlannerConfig { strategies: chain.to_vec(), attempts, ..PlannerConfig::default() };
        let mut workspace = Workspace::default();
        for heuristic in HEURISTICS {
            let policy = Policy { heuristic, config: config.clone(), seed: 1 };
            let plan = policy.plan(&graph, &machine, &schedule, &mut workspace).unwrap();
            let movement = measure(&graph, &machine, &plan).unwrap().extra_movement;
            let least = match cover_of(&graph, &schedule, &plan) {
                Cover::Schedule => best.bound,
                Cover::OpOrder => free,
                Cover::EveryOrder => Bytes(0),
            };
            prop_assert!(least <= movement, "{}: {least} > {movement}", heuristic.name);
            let in_bytes = policy.movement_in_bytes(&graph, &machine, &schedule, &mut workspace).unwrap();
            let least_in_bytes = if postpones { free } else { pinned };
            prop_assert!(least_in_bytes <= in_bytes, "{} in bytes: {least_in_bytes} > {in_bytes}", heuristic.name);
            met.set(met.get() + u32::from(least == movement && least.0 > 0));
            moved.set(moved.get() + u32::from(cover_of(&graph, &schedule, &plan) == Cover::OpOrder));
        }
        Ok(())
    });
    run.unwrap();
    let counts = (optimal.get(), met.get(), moved.get());
    assert!(counts.0 > 20 && counts.1 > 20 && counts.2 > 20, "the instances show too little: {counts:?}");
}

const BOUNDED: &str = r#"
name = "bounded"
attribution = true
best_order = "id"
[axes]
graphs = ["conv(layers=2,rows=2)", "matmul(m=3,n=3,k=3)"]
normalize = ["free", "memory"]
heuristics = ["life-size", "lru", "random"]
strategies = ["default", "postpone-first"]
[capacities]
L1 = [1024, 3072, 4096]
"#;

#[test]
fn rows_of_bounds_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let swept = run(&study(BOUNDED), folder.path(), &Options::default(), 4);
    let (mut above, mut covers) = (0, std::collections::BTreeSet::new());
    for row in swept.runs.rows().filter(|row| row.text("status") == "ok") {
        let number = |column: &str| row.number(column).unwrap_or_else(|| panic!("{column} is empty"));
        let moved = number("extra_movement");
        assert!(number("bound") <= moved);
        assert_eq!(number("bound") + number("gap"), moved);
        let parts = ["capacity", "order", "victims", "fragmentation"].map(|part| number(&format!("excess_{part}")));
        assert_eq!(parts.iter().sum::<f64>(), moved);
        assert_eq!(parts[1], 0.0, "the best order named is the order planned");
        assert_eq!(number("movement_in_bytes"), moved - parts[3]);
        match number("bound") {
            0.0 => assert!(moved == 0.0 || row.text("over_bound").is_empty()),
            bound => assert_eq!(number("over_bound"), moved / bound),
        }
        assert_eq!(row.text("bound_kind"), "flow");
        covers.insert(row.text("bound_cover").to_owned());
        above += usize::from(number("gap") > 0.0);
    }
    assert!(above > 5 && covers.contains("schedule"), "{above} {covers:?}");
}

#[test]
fn bounds_change_neither_plans_nor_seeds_and_threads_do_not_change_bounds() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let never = BOUNDED.replace("attribution = true\nbest_order = \"id\"", "bound = \"never\"");
    let one = run(&study(BOUNDED), folders[0].path(), &Options::default(), 1);
    let four = run(&study(BOUNDED), folders[1].path(), &Options::default(), 4);
    assert_eq!(csv(&one), csv(&four));
    let without = run(&study(&never), folders[2].path(), &Options::default(), 4);
    for (a, b) in one.runs.rows().zip(without.runs.rows()) {
        for column in ["seed", "extra_movement", "makespan", "scores"] {
            assert_eq!(a.text(column), b.text(column));
        }
        assert_eq!(b.text("bound"), "");
        // A row with bounds is not one without.
        assert_ne!(a.text("cell"), b.text("cell"));
    }
}

#[test]
fn a_resumed_run_with_bounds_is_the_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let whole = run(&study(BOUNDED), folder.path(), &Options::default(), 2);
    let options = Options { resume: true, ..Options::default() };
    let again = run(&study(BOUNDED), folder.path(), &options, 2);
    assert_eq!((again.resumed, csv(&again)), (whole.runs.len() as u64, csv(&whole)));
}

#[test]
fn what_makes_no_sense_of_bounds_is_refused() {
    let refused = |text: &str| common::try_study(text, std::path::Path::new(".")).unwrap_err().to_string();
    let text = |keys: &str| BOUNDED.replace("attribution = true\nbest_order = \"id\"", keys);
    assert!(refused(&text("bound = \"often\"")).contains("auto, always, never"));
    assert!(refused(&text("bound = \"never\"\nattribution = true")).contains("`attribution` means nothing"));
    assert!(refused(&text("best_order = \"id\"")).contains("`best_order` means nothing"));
    assert!(refused(&text("attribution = true\nbest_order = \"absent.txt\"")).contains("absent.txt"));
    let figure = "\n[[figures]]\nname = \"f\"\nkind = \"over-bound\"\n";
    assert!(refused(&(text("bound = \"never\"") + figure)).contains("shows lower bounds"));
}

#[test]
fn a_figure_shows_movement_over_its_bound() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let with = study(&(BOUNDED.to_owned() + "\n[[figures]]\nname = \"f\"\nkind = \"over-bound\"\nfacet = \"graph\"\n"));
    let spec = &with.experiment.figures[0];
    let swept = run(&with, folders[0].path(), &Options::default(), 2);
    let scene = figure::of_rows(&swept.runs, spec).unwrap();
    for (graph, heuristic) in [("matmul(m=3,n=3,k=3)", "lru"), ("conv(layers=2,rows=2)", "life-size")] {
        let line = format!("{graph}; heuristic={heuristic}: geometric mean ");
        assert!(scene.description.contains(&line), "{}", scene.description);
    }
    assert_eq!(scene.misplaced_labels(), Vec::<String>::new());
    let never = study(&BOUNDED.replace("attribution = true\nbest_order = \"id\"", "bound = \"never\""));
    let swept = run(&never, folders[1].path(), &Options::default(), 2);
    assert!(figure::of_rows(&swept.runs, spec).is_none(), "rows without bounds show nothing");
}
