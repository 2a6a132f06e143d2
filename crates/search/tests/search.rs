//! The search as a whole: valid, never worse than its start, the same on any number of threads, and
//! optimal where all orders can be tried.

mod common;

use common::{graph, machine, recipes};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use spillbench_core::checker::check;
use spillbench_core::{Graph, Machine, NodeKind, Plan, Schedule};
use spillbench_search::{
    Evaluator, Found, ItemIx, LeastMovement, LeastPeak, Model, Monitor, Objective, Progress, Residency, SearchConfig,
    movement, search,
};

/// Checks every plan that a search reports, and that each is better than the one before.
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

fn run(graph: &Graph, machine: &Machine, objective: &dyn Objective, config: &SearchConfig) -> Found {
    let mut witness = Witness { graph, machine, values: Vec::new() };
    let start = Schedule::default_for(graph);
    let found = search(graph, machine, &start, objective, config, &|| false, &mut witness).expect("it fits");
    assert_eq!(witness.values.last(), Some(&found.value));
    assert!(found.value <= found.progress.start);
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn every_reported_plan_is_valid_and_threads_do_not_matter(
        recipe in recipes(30), odd in any::<bool>(), seed in any::<u64>(),
    ) {
        let graph = graph(&recipe, odd);
        let machine = machine(&graph, recipe.slack);
        for objective in [&LeastMovement as &dyn Objective, &LeastPeak] {
            let config = SearchConfig { seed, islands: 3, evaluations: Some(3000), ..Default::default() };
            let one = run(&graph, &machine, objective, &config);
            let three = run(&graph, &machine, objective, &SearchConfig { threads: 3, ..config });
            prop_assert_eq!(&one, &three);
            prop_assert_eq!(objective.value(&graph, &machine, &one.plan), Some(one.value).filter(|&v| v != u64::MAX));
        }
    }
}

/// The least capacity-only movement over all topological orders of the items; `None` past `limit`
/// orders.
fn least_over_all_orders(model: &Model<'_>, limit: usize) -> Option<u64> {
    fn extend(
        model: &Model<'_>,
        order: &mut Vec<ItemIx>,
        evaluator: &mut Residency<'_>,
        seen: &mut (usize, u64),
        limit: usize,
    ) -> Option<()> {
        if order.len() == model.len() {
            *seen = (seen.0 + 1, seen.1.min(evaluator.reset(order)));
            return (seen.0 <= limit).then_some(());
        }
        for item in model.items() {
            if !order.contains(&item) && model.predecessors(item).iter().all(|p| order.contains(p)) {
                order.push(item);
                extend(model, order, evaluator, seen, limit)?;
                order.pop();
            }
        }
        Some(())
    }
    let mut seen = (0, u64::MAX);
    extend(model, &mut Vec::new(), &mut Residency::new(model), &mut seen, limit)?;
    Some(seen.1)
}

#[test]
fn small_graphs_are_solved() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = recipes(9);
    let (mut cases, mut solved, mut gaps) = (0, 0, Vec::new());
    while cases < 200 {
        let recipe = strategy.new_tree(&mut runner).expect("a recipe").current();
        let graph = graph(&recipe, false);
        let machine = machine(&graph, recipe.slack);
        let model = Model::new(&graph, &machine);
        let ops = graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op).count();
        let Some(least) = (ops > 2).then(|| least_over_all_orders(&model, 5000)).flatten() else { continue };
        cases += 1;
        let config = SearchConfig { evaluations: Some(4096), target: Some(least), ..Default::default() };
        let found = run(&graph, &machine, &LeastMovement, &config);
        assert_eq!(found.value, movement(&graph, &found.plan));
        if found.value <= least {
            solved += 1;
        } else {
            gaps.push((least, found.value));
        }
    }
    println!("{solved} of {cases} solved; least and found of the others: {gaps:?}");
    assert!(solved * 100 >= cases * 95, "{solved} of {cases}: {gaps:?}");
}
