//! The evaluators against slow readings of their definitions, on random graphs, orders and moves.

mod common;

use common::{graph, machine, recipes};
use proptest::prelude::*;
use spillbench_bounds::exact::exact;
use spillbench_bounds::pack::Limits;
use spillbench_bounds::{Cover, bound};
use spillbench_core::index::BufIx;
use spillbench_core::planner::{PlannerConfig, Workspace};
use spillbench_core::{Bytes, Schedule};
use spillbench_heuristics::{Policy, heuristic};
use spillbench_search::{Change, Evaluator, ItemIx, LeastMovement, Model, Objective, Peak, Residency, movement};

/// A topological order that takes ready items as `picks` says.
fn order_by(model: &Model<'_>, picks: &[u16]) -> Vec<ItemIx> {
    let mut waiting: Vec<usize> = model.items().map(|i| model.predecessors(i).len()).collect();
    let mut ready: Vec<ItemIx> = model.items().filter(|&i| waiting[i.index()] == 0).collect();
    let mut order = Vec::new();
    while !ready.is_empty() {
        let pick = picks.get(order.len() % picks.len().max(1)).copied().unwrap_or(0) as usize % ready.len();
        let item = ready.remove(pick);
        order.push(item);
        for &s in model.successors(item) {
            waiting[s.index()] -= 1;
            if waiting[s.index()] == 0 {
                ready.push(s);
            }
        }
    }
    order
}

/// All accesses in order: the item's position, the step, the access's number and the buffer.
fn accesses(model: &Model<'_>, order: &[ItemIx]) -> Vec<(usize, usize, usize, BufIx)> {
    let mut all = Vec::new();
    for (pos, &item) in order.iter().enumerate() {
        for step in model.steps(item) {
            let first = model.first_access(step);
            all.extend(model.accesses(step).iter().enumerate().map(|(i, &b)| (pos, step, first + i, b)));
        }
    }
    all
}

/// The rule of the module, written down step by step, cache after cache, with nothing kept.
fn movement_by_definition(model: &Model<'_>, order: &[ItemIx]) -> u64 {
    let graph = model.graph();
    let all = accesses(model, order);
    let mut cost = 0;
    for cache in graph.caches() {
        let capacity = model.machine().cache(cache).capacity.0;
        let (mut resident, mut known): (Vec<BufIx>, Vec<BufIx>) = (Vec::new(), Vec::new());
        // Ties are broken by first appearance among the numbered items.
        let ranks: Vec<BufIx> = accesses(model, &model.items().collect::<Vec<_>>()).iter().map(|a| a.3).collect();
        let rank = |b: BufIx| ranks.iter().position(|&r| r == b).unwrap();
        let mut at = 0;
        while at < all.len() {
            let (pos, step) = (all[at].0, all[at].1);
            let end = (at..all.len()).find(|&i| all[i].1 != step).unwrap_or(all.len());
            let operands: Vec<BufIx> =
                all[at..end].iter().map(|a| a.3).filter(|&b| graph.buf(b).cache == cache).collect();
            if operands.is_empty() {
                at = end;
                continue;
            }
            let next = |b: BufIx| all[end..].iter().find(|a| a.3 == b).map(|a| a.0);
            let bytes = |set: &[BufIx]| set.iter().map(|&b| graph.buf(b).size.0).sum::<u64>();
            let entering: Vec<BufIx> = operands.iter().copied().filter(|b| !resident.contains(b)).collect();
            cost += entering.iter().filter(|b| known.contains(b)).map(|&b| graph.buf(b).movement().0).sum::<u64>();
            let mut gone = Vec::new();
            while bytes(&resident) + bytes(&entering) > capacity {
                let missing = bytes(&resident) + bytes(&entering) - capacity;
                let score = |b: BufIx| {
                    let buf = graph.buf(b);
                    let distance = (next(b).unwrap() - pos) as u32;
                    f64::from(distance) * missing.min(buf.size.0) as f64 * (1.0 / buf.movement().0 as f64)
                };
                let free = resident.iter().copied().filter(|b| !operands.contains(b));
                let Some(worst) = free.max_by(|&a, &b| score(a).total_cmp(&score(b)).then(rank(b).cmp(&rank(a))))
                else {
                    break;
                };
                resident.retain(|&b| b != worst);
                gone.push(worst);
            }
            gone.sort_by_key(|&b| (std::cmp::Reverse(graph.buf(b).movement().0), rank(b)));
            for b in gone {
                if bytes(&resident) + bytes(&entering) + graph.buf(b).size.0 <= capacity {
                    resident.push(b);
                }
            }
            resident.extend(entering);
            known.extend(&operands);
            resident.retain(|&b| next(b).is_some());
            at = end;
        }
    }
    cost
}

/// False where buffers that odd edges hold around an op exceed their cache with its operands.
fn fits(model: &Model<'_>) -> bool {
    let graph = model.graph();
    (0..model.step_count()).all(|step| {
        graph.caches().all(|cache| {
            let here = model.accesses(step).iter().map(|&b| graph.buf(b)).filter(|b| b.cache == cache);
            here.map(|b| b.size.0).sum::<u64>() <= model.machine().cache(cache).capacity.0
        })
    })
}

/// What an order costs when its accesses hit as `hits` says; panics where that overfills a cache.
fn movement_of_hits(model: &Model<'_>, order: &[ItemIx], hits: &[bool]) -> u64 {
    let graph = model.graph();
    let all = accesses(model, order);
    let mut cost = 0;
    for (i, a) in all.iter().enumerate() {
        let before = all[..i].iter().any(|b| b.3 == a.3);
        assert!(before || hits[a.2], "a first use cannot miss");
        cost += if hits[a.2] { 0 } else { graph.buf(a.3).movement().0 };
    }
    for step in all.iter().map(|a| a.1) {
        let first = all.iter().position(|a| a.1 == step).unwrap();
        let end = first + all[first..].iter().take_while(|a| a.1 == step).count();
        for cache in graph.caches() {
            let of_cache = |b: &BufIx| graph.buf(*b).cache == cache;
            let here: Vec<BufIx> = all[first..end].iter().map(|a| a.3).filter(of_cache).collect();
            let kept = graph.bufs().filter(of_cache).filter(|b| {
                let before = all[..first].iter().any(|a| a.3 == *b);
                let after = all[end..].iter().find(|a| a.3 == *b);
                !here.contains(b) && before && after.is_some_and(|a| hits[a.2])
            });
            let bytes: u64 = kept.chain(here.iter().copied()).map(|b| graph.buf(b).size.0).sum();
            let capacity = if fits(model) { model.machine().cache(cache).capacity.0 } else { u64::MAX };
            assert!(bytes <= capacity, "step {step} holds {bytes} bytes of {capacity}");
        }
    }
    cost
}

/// The peak by definition: live from first to last use, a surplus exclusive buffer weighing all.
fn peak_by_definition(model: &Model<'_>, order: &[ItemIx]) -> u64 {
    let graph = model.graph();
    let all = accesses(model, order);
    let counted = |b: BufIx| model.machine().cache(graph.buf(b).cache).counts_in_peak;
    let sum = |bufs: Vec<BufIx>| bufs.into_iter().filter(|&b| counted(b)).map(|b| graph.buf(b).size.0).sum::<u64>();
    let weight = sum(graph.bufs().collect()).max(1);
    let at_step = |step: usize| {
        let first = all.iter().position(|a| a.1 == step).unwrap();
        let end = first + all[first..].iter().take_while(|a| a.1 == step).count();
        let used = |range: &[(usize, usize, usize, BufIx)], b| range.iter().any(|a| a.3 == b);
        let live: Vec<BufIx> = graph.bufs().filter(|&b| used(&all[..end], b) && used(&all[first..], b)).collect();
        let surplus: usize = graph
            .caches()
            .filter(|&c| model.machine().cache(c).exclusive)
            .map(|c| live.iter().filter(|&&b| graph.buf(b).cache == c).count().saturating_sub(1))
            .sum();
        sum(live) + surplus as u64 * weight
    };
    all.iter().map(|a| at_step(a.1)).max().unwrap_or(0)
}

/// Moves one item of `order` as far left as edges allow, at most `by` places.
fn pull(model: &Model<'_>, order: &[ItemIx], at: usize, by: usize) -> (usize, Vec<ItemIx>) {
    let item = order[at];
    let last = order[..at].iter().rposition(|i| model.predecessors(item).contains(i)).map_or(0, |p| p + 1);
    let first = last.max(at.saturating_sub(by));
    let mut items = vec![item];
    items.extend(&order[first..at]);
    (first, items)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_whole_order_costs_what_the_rule_says(
        recipe in recipes(30), odd in any::<bool>(), picks in prop::collection::vec(any::<u16>(), 1..20),
    ) {
        let graph = graph(&recipe, odd);
        let machine = machine(&graph, recipe.slack);
        let model = Model::new(&graph, &machine);
        let order = order_by(&model, &picks);
        prop_assert!(model.is_topological(&order));
        let mut residency = Residency::new(&model);
        prop_assert_eq!(residency.reset(&order), movement_by_definition(&model, &order));
        prop_assert_eq!(movement_of_hits(&model, &order, &residency.hits()), residency.cost());
        let mut peak = Peak::new(&model);
        peak.reset(&order);
        prop_assert_eq!(peak.peak(), peak_by_definition(&model, &order));
    }

    #[test]
    fn windows_cost_what_their_decisions_cost(
        recipe in recipes(60), odd in any::<bool>(), picks in prop::collection::vec(any::<u16>(), 1..20),
        moves in prop::collection::vec((any::<u16>(), 1usize..40, any::<bool>()), 1..40),
    ) {
        let graph = graph(&recipe, odd);
        let machine = machine(&graph, recipe.slack);
        let model = Model::new(&graph, &machine);
        let mut order = order_by(&model, &picks);
        let (mut residency, mut peak) = (Residency::new(&model), Peak::new(&model));
        residency.reset(&order);
        peak.reset(&order);
        if order.is_empty() {
            return Ok(());
        }
        for (at, by, make) in moves {
            let (first, items) = pull(&model, &order, usize::from(at) % order.len(), by);
            let change = Change { first, items: &items };
            let before = residency.cost();
            let probed = residency.probe(&order, change, u64::MAX).unwrap();
            prop_assert_eq!(residency.cost(), before, "a probe changes nothing");
            if let Some(less) = probed.checked_sub(1) {
                prop_assert_eq!(residency.probe(&order, change, less), None);
            }
            let probed_peak = peak.probe(&order, change, u64::MAX).unwrap();
            if make {
                residency.commit(&order, change);
                peak.commit(&order, change);
                order[first..first + items.len()].copy_from_slice(&items);
                prop_assert_eq!(residency.cost(), probed);
                prop_assert_eq!(movement_of_hits(&model, &order, &residency.hits()), probed);
                let mut anew = Peak::new(&model);
                prop_assert_eq!(anew.reset(&order), probed_peak);
                prop_assert_eq!(peak.cost(), probed_peak);
            }
        }
        let whole = Change { first: 0, items: &order.clone() };
        let probed = residency.probe(&order, whole, u64::MAX);
        prop_assert_eq!(probed, Some(movement_by_definition(&model, &order)), "the whole order is one window");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Where all buffers of a cache are alike, the farthest next use decides alone, and the planner
    /// without addresses takes the same: Belady's optimum.
    #[test]
    fn alike_buffers_cost_what_the_planner_moves_in_bytes(
        mut recipe in recipes(40), backed in any::<bool>(), size in 1u64..9,
        picks in prop::collection::vec(any::<u16>(), 1..20),
    ) {
        recipe.bufs.iter_mut().for_each(|b| (b.1, b.2) = (size, backed));
        let graph = graph(&recipe, false);
        let machine = machine(&graph, recipe.slack);
        let model = Model::new(&graph, &machine);
        let order = order_by(&model, &picks);
        let policy = Policy {
            heuristic: heuristic("belady").expect("a heuristic"),
            config: PlannerConfig { attempts: 0, ..PlannerConfig::default() },
            seed: 0,
        };
        let schedule = model.schedule(&order);
        let planned = policy.movement_in_bytes(&graph, &machine, &schedule, &mut Workspace::default());
        prop_assert_eq!(Ok(Bytes(Residency::new(&model).reset(&order))), planned);
    }

    /// No order costs less than what no plan of it can beat, and no plan made of it moves less than
    /// the best of its schedule.
    #[test]
    fn nothing_is_below_its_bound(
        recipe in recipes(16), picks in prop::collection::vec(any::<u16>(), 1..20),
    ) {
        let graph = graph(&recipe, false);
        let machine = machine(&graph, recipe.slack);
        let model = Model::new(&graph, &machine);
        let order = order_by(&model, &picks);
        let mut residency = Residency::new(&model);
        let cost = residency.reset(&order);
        let least = bound(&graph, &machine, &model.schedule(&order), Cover::OpOrder).expect("it fits");
        prop_assert!(cost >= least.value.0, "{} is below the flow bound {}", cost, least.value.0);
        let plan = LeastMovement.realize(&model, &order, &residency.hits(), &mut Workspace::default(), &|| false);
        let plan = plan.expect("it fits");
        let nodes = plan.schedule.iter().filter_map(|&id| graph.node_by_id(id)).collect();
        let kept = Schedule::from_nodes(&graph, nodes).expect("a plan keeps every edge");
        let best = exact(&graph, &machine, &kept, Limits::nodes(10_000)).expect("it fits");
        prop_assert!(movement(&graph, &plan) >= best.bound.0);
    }
}
