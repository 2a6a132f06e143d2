//! The flow bound against an LP solver, against every choice of gaps, and on the public graphs.

mod common;

use proptest::prelude::*;
use spillbench_bounds::model::models;
use spillbench_bounds::{CacheModel, Cover, Gap, Step, flow_bound, sensitivity};
use spillbench_core::formats::graph_json;
use spillbench_core::index::{BufIx, CacheIx, NodeIx, Pos};
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Hardware, Machine, Schedule};

/// A model made by hand: the demand of each step; per gap its first step, steps, size and rate.
fn model(capacity: u64, demands: &[u64], gaps: &[(usize, usize, u64, u64)]) -> CacheModel {
    let node = NodeIx::new;
    let steps = demands.iter().enumerate();
    let steps = steps.map(|(t, &demand)| Step { node: node(t), pos: Pos::new(t), demand: Bytes(demand) }).collect();
    let gap = |(g, &(first, steps, size, rate)): (usize, &(usize, usize, u64, u64))| {
        let first = first % demands.len();
        let end = (first + steps).min(demands.len());
        let (size, cost) = (Bytes(size), Bytes(size * rate));
        Gap { buf: BufIx::new(g), first, end, size, cost, after: node(0), before: node(0) }
    };
    let gaps = gaps.iter().enumerate().map(gap).collect();
    CacheModel { cache: CacheIx::new(0), capacity: Bytes(capacity), steps, gaps }
}

fn arbitrary_model() -> impl Strategy<Value = CacheModel> {
    let demands = prop::collection::vec(0..=40u64, 1..24);
    let gaps = prop::collection::vec((0..24usize, 1..16usize, 1..20u64, 1..=3u64), 0..40);
    (demands, gaps).prop_map(|(demands, gaps)| model(40, &demands, &gaps))
}

/// The optimum of the linear relaxation, by the simplex method.
fn by_simplex(model: &CacheModel) -> f64 {
    use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome};
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    // A variable is the part of a gap that is given up.
    let given_up: Vec<_> = model.gaps.iter().map(|g| problem.add_var(g.cost.0 as f64, (0.0, 1.0))).collect();
    for t in 0..model.steps.len() {
        let over = model.gaps.iter().zip(&given_up).filter(|(g, _)| (g.first..g.end).contains(&t));
        let bytes: u64 = over.clone().map(|(g, _)| g.size.0).sum();
        let row: Vec<_> = over.map(|(g, &v)| (v, g.size.0 as f64)).collect();
        if bytes > model.room(t).0 {
            problem.add_constraint(&row, ComparisonOp::Ge, (bytes - model.room(t).0) as f64);
        }
    }
    match problem.solve().unwrap() {
        SolveOutcome::Solution(solution) => solution.objective(),
        SolveOutcome::Interrupted(_) => panic!("no limit was set"),
    }
}

/// The least cost over all choices of gaps, each kept whole or not.
fn by_trial(model: &CacheModel) -> u64 {
    let fits = |kept: u32, t: usize| {
        let over =
            model.gaps.iter().enumerate().filter(|(g, gap)| kept >> g & 1 == 1 && (gap.first..gap.end).contains(&t));
        over.map(|(_, gap)| gap.size.0).sum::<u64>() <= model.room(t).0
    };
    let cost = |kept: u32| (0..model.gaps.len()).filter(|g| kept >> g & 1 == 0).map(|g| model.gaps[g].cost.0).sum();
    let choices = (0..1 << model.gaps.len()).filter(|&kept| (0..model.steps.len()).all(|t| fits(kept, t)));
    choices.map(cost).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_flow_bound_is_the_optimum_of_the_linear_relaxation(model in arbitrary_model()) {
        let expected = by_simplex(&model);
        let found = flow_bound(&model).value.0 as f64;
        prop_assert!((found - expected).abs() <= 1e-6 * expected.max(1.0), "flow {found}, simplex {expected}");
    }

    /// The price of a byte against the bound itself at other capacities, a byte and several away.
    #[test]
    fn the_price_of_a_byte_lies_between_what_more_saves_and_less_costs(model in arbitrary_model(), step in 1u64..9) {
        let at = |capacity: u64| flow_bound(&CacheModel { capacity: Bytes(capacity), ..model.clone() }).value.0;
        let found = sensitivity(&model, Bytes(step));
        prop_assert_eq!(found.bound.0, at(40));
        prop_assert_eq!(found.saved_by_more.0, at(40) - at(40 + step));
        prop_assert!(found.saved_by_more.0 <= step * found.price);
        let fits = model.steps.iter().all(|s| s.demand.0 <= 40 - step);
        prop_assert_eq!(found.cost_of_less.map(|c| c.0), fits.then(|| at(40 - step) - at(40)));
        prop_assert!(found.cost_of_less.is_none_or(|cost| cost.0 >= step * found.price));
        // Where a byte less costs what a byte more saves, the bound has a derivative: the price.
        let byte = sensitivity(&model, Bytes(1));
        if byte.cost_of_less == Some(byte.saved_by_more) {
            prop_assert_eq!(byte.saved_by_more.0, byte.price);
        }
    }

    #[test]
    fn no_choice_of_gaps_costs_less(mut model in arbitrary_model()) {
        model.gaps.truncate(12);
        prop_assert!(flow_bound(&model).value.0 <= by_trial(&model));
    }
}

#[test]
fn half_a_gap_may_be_kept() {
    // Both 6s stay, which leaves room for 4 bytes of the 10: the other 6 cost 18. Whole, the 10 stays.
    let model = model(10, &[0, 0], &[(0, 1, 6, 2), (1, 1, 6, 2), (0, 2, 10, 3)]);
    let bound = flow_bound(&model);
    assert_eq!(by_trial(&model), 24);
    assert_eq!(bound.value, Bytes(18));
}

#[test]
fn the_price_of_a_byte_by_hand() {
    // Two 6s and a 10 over one step of room 10 − 2: 14 bytes are given up, the 10 of rate 1 first, then
    // 4 of rate 2. A byte more saves 2, a byte less costs 2; with 13 bytes only the 10 is given up.
    let model = model(10, &[2], &[(0, 1, 6, 2), (0, 1, 6, 2), (0, 1, 10, 1)]);
    let found = sensitivity(&model, Bytes(1));
    assert_eq!((found.bound, found.price), (Bytes(18), 2));
    assert_eq!((found.saved_by_more, found.cost_of_less), (Bytes(2), Some(Bytes(2))));
    let found = sensitivity(&model, Bytes(6));
    assert_eq!((found.saved_by_more, found.cost_of_less), (Bytes(10), Some(Bytes(12))));
    assert_eq!(sensitivity(&model, Bytes(9)).cost_of_less, None, "the step needs 2 bytes itself");
    // At a kink the price lies between: 4 more bytes are worth 2 each, the next 1 each.
    let kink = sensitivity(&CacheModel { capacity: Bytes(14), ..model }, Bytes(1));
    assert!((1..=2).contains(&kink.price));
    assert_eq!((kink.saved_by_more, kink.cost_of_less), (Bytes(1), Some(Bytes(2))));
}

#[test]
fn sizes_near_the_limit_of_the_format_do_not_overflow() {
    let most = i64::MAX as u64;
    let model = model(most, &[most, 0], &[(0, 2, most, 2), (0, 1, most, 2), (0, 2, most / 2, 1)]);
    assert!(flow_bound(&model).value.0 <= by_trial(&CacheModel { gaps: model.gaps[..1].to_vec(), ..model.clone() }));
}

#[test]
fn an_empty_model_costs_nothing() {
    assert_eq!(flow_bound(&model(10, &[], &[])).value, Bytes(0));
    assert_eq!(flow_bound(&model(10, &[10, 10], &[])).value, Bytes(0));
}

#[test]
fn the_known_values_of_the_public_graphs() {
    let Some(data) = common::data() else { return };
    let known = [
        ("Matmul_Case0", Normalize::Memory, 34_944),
        ("Matmul_Case1", Normalize::Memory, 460_800),
        ("FlashAttention_Case0", Normalize::Memory, 2_680),
        ("Conv_Case0", Normalize::Memory, 52_255),
        ("Conv_Case0", Normalize::Loads, 41_742),
    ];
    for (task, level, expected) in known {
        let text = std::fs::read(data.join(format!("cpmcm2025a/{task}.json"))).unwrap();
        let graph = graph_json::read(&text).unwrap().0;
        let machine = Machine::resolve(&graph, &Hardware::default()).unwrap();
        let schedule = Schedule::default_for(&graph).normalized(&graph, level);
        for cover in [Cover::Schedule, Cover::OpOrder] {
            let models = models(&graph, &machine, &schedule, cover).unwrap();
            let found: u64 = models.iter().map(|m| flow_bound(m).value.0).sum();
            assert_eq!(found, expected, "{task} {level:?} {cover:?}");
        }
    }
}
