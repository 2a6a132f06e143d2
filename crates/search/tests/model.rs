//! The item model on random graphs with any edges.

mod common;

use common::{graph, machine, recipes};
use proptest::prelude::*;
use spillbench_core::{NodeKind, Schedule};
use spillbench_search::{ItemIx, Model, ORDERS};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_named_order_is_a_schedule_and_keeps_its_ops(recipe in recipes(40), odd in any::<bool>()) {
        let graph = graph(&recipe, odd);
        let machine = machine(&graph, recipe.slack);
        let model = Model::new(&graph, &machine);
        for order in ORDERS.iter().filter(|o| o.name != "optimized") {
            let schedule = order.schedule(&graph, &machine);
            prop_assert!(graph.is_topological(schedule.order().raw.as_slice()), "{}", order.name);
            let items = model.order_of(&schedule);
            prop_assert!(model.is_topological(&items), "{}", order.name);
            let again = model.schedule(&items);
            // Gates are cache nodes, which normalising moves.
            let work = |items: Vec<ItemIx>| -> Vec<_> { items.into_iter().filter(|&i| !model.steps(i).is_empty()).collect() };
            prop_assert_eq!(work(model.order_of(&again)), work(items), "{}", order.name);
        }
    }

    #[test]
    fn every_op_is_in_one_item_or_floats(recipe in recipes(40), odd in any::<bool>()) {
        let graph = graph(&recipe, odd);
        let machine = machine(&graph, recipe.slack);
        let model = Model::new(&graph, &machine);
        let mut seen = vec![0; graph.node_count()];
        model.items().flat_map(|i| model.nodes(i)).for_each(|n| seen[n.index()] += 1);
        let schedule = model.schedule(&model.items().collect::<Vec<_>>());
        let place = schedule.positions();
        for n in graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op) {
            prop_assert!(seen[n.index()] <= 1);
            if seen[n.index()] == 0 {
                // A floating load stands before the first of its consumers, with nothing but loads
                // and cache nodes between.
                let first = graph.successors(n).iter().filter(|&&s| graph.kind(s) == NodeKind::Op).map(|&s| place[s]).min();
                let between = place[n].index() + 1..first.unwrap().index();
                for pos in between {
                    let other = schedule.order().raw[pos];
                    prop_assert!(graph.kind(other) != NodeKind::Op || seen[other.index()] == 0);
                }
            }
        }
        prop_assert!(Schedule::from_nodes(&graph, schedule.order().raw.clone()).is_ok());
    }
}
