//! The search as a whole: valid, never worse than its start, the same on any number of threads.

mod common;

use common::{graph, machine, recipes};
use proptest::prelude::*;
use spillbench_core::checker::check;
use spillbench_core::{Graph, Machine, Plan, Schedule};
use spillbench_search::{
    Found, INFEASIBLE, LeastMovement, LeastPeak, Monitor, Objective, Progress, SearchConfig, search,
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
            prop_assert_eq!(objective.value(&graph, &machine, &one.plan), Some(one.value).filter(|&v| v != INFEASIBLE));
        }
    }
}
