//! Moves on random graphs: whatever is drawn, no edge goes backward and no item is lost.

#[path = "../../tests/common/mod.rs"]
mod common;

use super::Neighbourhood;
use crate::draw::Draw;
use crate::evaluator::{Change, Evaluator};
use crate::model::{ItemIx, Model};
use crate::residency::Residency;
use crate::ties::Ties;
use common::{graph, machine, recipes};
use proptest::prelude::*;
use spillbench_core::{Hardware, Machine};
use spillbench_workloads::generate;

/// Makes every move that `propose` draws, and checks the order after each. Returns how many changed it.
fn walk<'a>(
    model: &'a Model<'a>,
    ties: &'a Ties,
    seed: u64,
    steps: usize,
    propose: impl Fn(&mut Neighbourhood<'a>, &Residency<'a>, &mut Draw) -> bool,
) -> Result<usize, TestCaseError> {
    let order: Vec<ItemIx> = model.items().collect();
    let mut evaluator = Residency::new(model);
    evaluator.reset(&order);
    let mut hood = Neighbourhood::new(model, ties, order);
    let mut draw = Draw::new(seed, 0);
    let mut made = 0;
    for _ in 0..steps {
        if !propose(&mut hood, &evaluator, &mut draw) {
            continue;
        }
        made += 1;
        let (first, items) = hood.proposal();
        prop_assert_ne!(&hood.order()[first..first + items.len()], items, "a proposal changes something");
        let change = Change { first, items };
        let probed = evaluator.probe(hood.order(), change, u64::MAX);
        evaluator.commit(hood.order(), change);
        prop_assert_eq!(probed, Some(evaluator.cost()));
        hood.accept();
        prop_assert!(model.is_topological(hood.order()));
    }
    Ok(made)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn moves_never_break_an_edge(recipe in recipes(40), odd in any::<bool>(), seed in any::<u64>()) {
        let graph = graph(&recipe, odd);
        let machine = machine(&graph, recipe.slack);
        let model = Model::new(&graph, &machine);
        let ties = Ties::of(&model);
        walk(&model, &ties, seed, 200, |hood, evaluator, draw| hood.propose(evaluator, draw))?;
    }
}

#[test]
fn blocks_of_a_product_move() {
    let graph = generate(&"matmul(m=4,n=4,k=3)".parse().expect("a family")).expect("a graph");
    let machine = Machine::resolve(&graph, &Hardware::default()).expect("caches of the hardware");
    let model = Model::new(&graph, &machine);
    let ties = Ties::of(&model);
    let blocks = |hood: &mut Neighbourhood<'_>, _: &Residency<'_>, draw: &mut Draw| {
        hood.stamp += 1;
        hood.blocks(draw).is_some() && hood.trim()
    };
    let made = walk(&model, &ties, 1, 500, blocks).expect("every order is topological");
    assert!(made > 100, "{made} of 500 moves change something");
}
