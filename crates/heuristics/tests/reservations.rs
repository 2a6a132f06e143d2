//! Capacities that vary over the schedule: planned, checked and measured.

mod common;

use common::random::{Case, case};
use common::{DEFAULT_CHAIN, graph, hardware, ids, movement, order, plan, policy, spills};
use proptest::prelude::*;
use spillbench_core::checker::{Rule, check};
use spillbench_core::hardware::FitError;
use spillbench_core::metrics::{MeasureError, measure, residency};
use spillbench_core::plan::{Cause, Plan};
use spillbench_core::planner::PlanError;
use spillbench_core::{Bytes, Graph, Hardware, Id, Machine, Placement, Reservation, Workspace};
use spillbench_heuristics::{HEURISTICS, Policy};

/// UB of 10 bytes less what is reserved.
fn reserved(texts: &[&str]) -> Hardware {
    let mut hardware = hardware(&[("UB", 10)]);
    hardware.reservations = texts.iter().map(|t| t.parse().unwrap()).collect();
    hardware.validate().unwrap();
    hardware
}

/// Two buffers side by side, the one used inside the life of the other.
fn nested() -> Graph {
    graph("+a4 =a +b4 =b EXP:b -b EXP:a -a")
}

fn default_policy() -> Policy {
    policy("life-size", DEFAULT_CHAIN, "best-fit")
}

fn planned(graph: &Graph, texts: &[&str]) -> Plan {
    let hardware = reserved(texts);
    let plan = plan(graph, &hardware, &default_policy()).unwrap();
    let machine = Machine::resolve(graph, &hardware).unwrap();
    let report = check(graph, &machine, &plan);
    assert!(report.is_valid(), "{report:?}");
    measure(graph, &machine, &plan).unwrap();
    plan
}

#[test]
fn what_is_in_the_way_goes_out_when_a_reservation_begins() {
    // a lies at 0 and b at 4. Four bytes are left at node 4: b is in the way and goes out, but node 4
    // needs it, so that a goes out too; a comes back for node 6, when all is over.
    let plan = planned(&nested(), &["UB:6@4..4"]);
    assert_eq!(order(&plan), [0, 1, 2, 3, 8, 10, 9, 4, 5, 11, 6, 7]);
    assert_eq!(spills(&plan), [(1, 0), (0, 0)]);
    assert_eq!(movement(&nested(), &plan), 8);
    assert_eq!(plan.spills[0].cause, Some(Cause::Capacity), "two bytes were free, six were asked for");
    assert_eq!(plan.counters.unwrap().reserved, 1);
}

#[test]
fn what_is_not_in_the_way_stays() {
    for texts in [&["UB:2"][..], &["UB:2@2..6"], &["UB:1", "UB:1@3.."], &["UB:6@5..7"], &["UB:6@..1"]] {
        let plan = planned(&nested(), texts);
        assert_eq!((order(&plan), plan.counters.unwrap().reserved), ((0..8).collect(), 0), "{texts:?}");
    }
}

#[test]
fn reservations_stack() {
    // 3 and 3 of the same cache are 6, whichever begins first.
    let one = planned(&nested(), &["UB:6@4..4"]);
    for texts in [&["UB:3@4..4", "UB:3@4..4"][..], &["UB:1@3..4", "UB:5@4..5"]] {
        let plan = planned(&nested(), texts);
        assert_eq!(movement(&nested(), &plan), 8, "{texts:?}");
    }
    assert_eq!(planned(&nested(), &["UB:3@4..4", "UB:3@4..4"]).memory, one.memory);
}

#[test]
fn what_leaves_with_the_first_node_is_not_in_the_way() {
    // Node 7 frees a; from there on all is reserved.
    assert_eq!(order(&planned(&nested(), &["UB:10@7.."])), ids_of(8));
    // Node 5 frees b at 4..8 and a stays at 0..4.
    assert_eq!(order(&planned(&nested(), &["UB:6@5..6"])), ids_of(8));
}

fn ids_of(n: u64) -> Vec<u64> {
    (0..n).collect()
}

#[test]
fn an_order_that_turns_a_reservation_round_is_refused() {
    let turned: Reservation = "UB:6@5..3".parse().unwrap();
    let error = plan(&nested(), &reserved(&["UB:6@5..3", "UB:0@7..0"]), &default_policy()).unwrap_err();
    let expected = FitError::ReservedBackwards { reservation: turned.clone(), from: 5, to: 3 };
    assert_eq!(error, PlanError::Misfit(vec![expected]));
    // Nor is a plan one for it that was made without.
    let plan = plan(&nested(), &reserved(&[]), &default_policy()).unwrap();
    let machine = Machine::resolve(&nested(), &reserved(&["UB:6@5..3", "UB:1@6..2"])).unwrap();
    assert_eq!(check(&nested(), &machine, &plan).offenders(Rule::Bounds), 2);
    assert_eq!(
        measure(&nested(), &machine, &plan),
        Err(MeasureError::ReservedBackwards { reservation: turned, from: 5, to: 3 })
    );
}

#[test]
fn a_node_that_does_not_fit_is_told_with_its_numbers() {
    let error = plan(&nested(), &reserved(&["UB:7@4..4"]), &default_policy()).unwrap_err();
    let expected = FitError::ReservedTooMuch {
        node: Id(4),
        op: "EXP".to_owned(),
        cache: "UB".to_owned(),
        needed: Bytes(4),
        usable: Bytes(3),
        capacity: Bytes(10),
    };
    assert_eq!(error, PlanError::Misfit(vec![expected]));
    let missing = Machine::resolve(&nested(), &reserved(&["UB:1@4..99"])).unwrap_err();
    assert!(matches!(missing[..], [FitError::ReservedNode { node: Id(99), .. }]));
    // So it is in a cache that no buffer is in.
    let mut two = common::hardware(&[("UB", 10), ("L1", 10)]);
    two.reservations = vec!["L1:1@98..99".parse().unwrap(), "L1:1@0..7".parse().unwrap()];
    let missing = Machine::resolve(&nested(), &two).unwrap_err();
    assert!(matches!(
        missing[..],
        [FitError::ReservedNode { node: Id(98), .. }, FitError::ReservedNode { node: Id(99), .. }]
    ));
    let mut hardware = reserved(&[]);
    for wrong in ["L1:1", "UB:11"] {
        hardware.reservations = vec![wrong.parse().unwrap()];
        assert!(hardware.validate().is_err(), "{wrong}");
    }
}

#[test]
fn an_alloc_is_postponed_neither_into_nor_across_a_reservation() {
    // The worked example: the ALLOC of b moves behind the FREE of a at node 4.
    let graph = graph("+a6 =a +b6 EXP:a -a =b EXP:b -b");
    let moved = |texts: &[&str]| {
        let plan = plan(&graph, &reserved(texts), &policy("life-size", "postpone,single,multi", "best-fit")).unwrap();
        let machine = Machine::resolve(&graph, &reserved(texts)).unwrap();
        assert!(check(&graph, &machine, &plan).is_valid());
        (movement(&graph, &plan), plan.counters.unwrap().postponed)
    };
    assert_eq!(moved(&[]), (0, 1));
    assert_eq!(moved(&["UB:1@4..4"]), (0, 1), "there is room where it goes");
    assert_eq!(moved(&["UB:5@4..4"]), (12, 0), "there is none");
    assert_eq!(moved(&["UB:1@2..2"]), (12, 0), "the ends of a reservation stay where they are");
}

#[test]
fn a_plan_that_knows_nothing_of_a_reservation_is_refuted() {
    let graph = nested();
    let plan = plan(&graph, &reserved(&[]), &default_policy()).unwrap();
    let offenders = |texts: &[&str]| {
        let machine = Machine::resolve(&graph, &reserved(texts)).unwrap();
        let report = check(&graph, &machine, &plan);
        assert_eq!(measure(&graph, &machine, &plan).is_ok(), report.is_valid(), "{texts:?}");
        report.offenders(Rule::Bounds)
    };
    // b holds 4..8 at positions 2 to 4, a 0..4 at positions 0 to 6.
    let cases: [(&[&str], u64); 7] = [
        (&["UB:3@4..4"], 1),
        (&["UB:2@4..4"], 0),
        (&["UB:3@5.."], 0),
        (&["UB:7@5.."], 1),
        (&["UB:7@..0"], 1),
        (&["UB:7"], 2),
        (&["UB:4@0..1", "UB:3@1..2", "UB:3@7..7"], 2),
    ];
    for (texts, expected) in cases {
        assert_eq!(offenders(texts), expected, "{texts:?}");
    }
    assert_eq!(ids(&order(&plan)), plan.schedule);
}

type Draw = (prop::sample::Index, u64, Option<prop::sample::Index>, Option<prop::sample::Index>);

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let index = any::<prop::sample::Index>;
    prop::collection::vec((index(), 0u64..12, prop::option::of(index()), prop::option::of(index())), 1..4)
}

fn reservations(case: &Case, draws: &[Draw]) -> Vec<Reservation> {
    let ids = case.schedule.ids(&case.graph);
    let place = |at: &Option<prop::sample::Index>| at.as_ref().map(|at| at.index(ids.len()));
    draws
        .iter()
        .map(|(cache, bytes, from, to)| {
            let ends = [place(from), place(to)];
            // As the schedule has them; plans are free to turn them round.
            let (from, to) = match ends {
                [Some(from), Some(to)] => (Some(ids[from.min(to)]), Some(ids[from.max(to)])),
                [from, to] => (from.map(|at| ids[at]), to.map(|at| ids[at])),
            };
            let (cache, spec) = case.hardware.caches.get_index(cache.index(case.hardware.caches.len())).unwrap();
            let bytes = Bytes(*bytes).min(spec.capacity);
            Reservation { cache: cache.clone(), bytes, from, to }
        })
        .collect()
}

fn some_policies() -> impl Iterator<Item = Policy> {
    let chains = ["", DEFAULT_CHAIN, "postpone,window"];
    chains.into_iter().flat_map(|chain| Placement::ALL.iter().map(move |p| policy("belady", chain, p.1)))
}

/// How many segments of a plan meet what is reserved at one of their positions, by trying each, and
/// how many reservations the plan turns round.
fn intruders(case: &Case, free: &Machine, plan: &Plan, reservations: &[Reservation]) -> u64 {
    let segments = residency::segments(&case.graph, free, plan).unwrap();
    let at = |id: Id| plan.schedule.iter().position(|&other| other == id).unwrap();
    let usable = |cache: &str, pos: usize| {
        let holds = |r: &&Reservation| {
            let (first, last) = (r.from.map_or(0, at), r.to.map_or(plan.schedule.len(), at));
            r.cache == cache && (first..=last).contains(&pos)
        };
        let held: u64 = reservations.iter().filter(holds).map(|r| r.bytes.0).sum();
        case.hardware.caches[cache].capacity.0.saturating_sub(held)
    };
    let meets = |s: &&residency::Segment| {
        let name = case.graph.cache_name(s.cache);
        (s.from.index()..s.to.index()).any(|pos| s.offset.end(s.size).0 > usable(name, pos))
    };
    let turned = |r: &&Reservation| {
        let used = r.bytes.0 > 0 && case.graph.cache_names().contains(&r.cache);
        used && r.from.zip(r.to).is_some_and(|(from, to)| at(to) < at(from))
    };
    (segments.iter().filter(meets).count() + reservations.iter().filter(turned).count()) as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn plans_keep_out_of_what_is_reserved(mut case in case(8, 10), draws in draws(), prefetch in 0u32..3) {
        let free = case.machine();
        case.hardware.reservations = reservations(&case, &draws);
        let machine = case.machine();
        let mut dirty = Workspace::default();
        for mut policy in some_policies() {
            policy.config.prefetch = prefetch;
            policy.config.retime = prefetch == 1;
            let bare = policy.plan(&case.graph, &free, &case.schedule, &mut dirty).unwrap();
            let report = check(&case.graph, &machine, &bare);
            let found = intruders(&case, &free, &bare, &case.hardware.reservations);
            prop_assert_eq!(report.total(), found);
            prop_assert_eq!(measure(&case.graph, &machine, &bare).is_ok(), found == 0);
            let in_bytes = policy.movement_in_bytes(&case.graph, &machine, &case.schedule, &mut dirty);
            match policy.plan(&case.graph, &machine, &case.schedule, &mut dirty) {
                Err(PlanError::Misfit(misfits)) => prop_assert_eq!(in_bytes, Err(PlanError::Misfit(misfits))),
                Err(error) => prop_assert!(false, "{}", error),
                Ok(plan) => {
                    prop_assert!(in_bytes.is_ok());
                    let report = check(&case.graph, &machine, &plan);
                    prop_assert!(report.is_valid(), "{:?}\n{:?}", policy, report);
                    prop_assert_eq!(intruders(&case, &free, &plan, &case.hardware.reservations), 0);
                    prop_assert!(measure(&case.graph, &machine, &plan).is_ok());
                }
            }
        }
    }

    #[test]
    fn nothing_reserved_changes_nothing(mut case in case(8, 10), draws in draws()) {
        let free = case.machine();
        case.hardware.reservations = reservations(&case, &draws);
        case.hardware.reservations.iter_mut().for_each(|r| r.bytes = Bytes(0));
        let machine = case.machine();
        for policy in some_policies() {
            let plan = |machine| policy.plan(&case.graph, machine, &case.schedule, &mut Workspace::default()).unwrap();
            prop_assert_eq!(plan(&machine), plan(&free));
        }
    }

    #[test]
    fn reserved_throughout_is_a_smaller_cache(case in case(8, 10), bytes in 0u64..8) {
        let (mut smaller, mut reserved) = (case.clone(), case.clone());
        for cache in case.hardware.caches.keys() {
            let capacity = case.hardware.caches[cache].capacity;
            let bytes = Bytes(bytes.min(capacity.0 - 1));
            smaller.hardware.set_capacity(cache, capacity - bytes).unwrap();
            reserved.hardware.reservations.push(Reservation { cache: cache.clone(), bytes, from: None, to: None });
        }
        for heuristic in HEURISTICS {
            for mut policy in some_policies() {
                policy.heuristic = heuristic;
                let plan = |case: &Case| {
                    policy.plan(&case.graph, &case.machine(), &case.schedule, &mut Workspace::default())
                };
                let in_bytes = |case: &Case| {
                    let workspace = &mut Workspace::default();
                    policy.movement_in_bytes(&case.graph, &case.machine(), &case.schedule, workspace).ok()
                };
                prop_assert_eq!(in_bytes(&smaller), in_bytes(&reserved));
                match (plan(&smaller), plan(&reserved)) {
                    (Ok(smaller_plan), Ok(reserved_plan)) => {
                        let figures = |case: &Case, plan| measure(&case.graph, &case.machine(), plan).unwrap();
                        prop_assert_eq!(figures(&smaller, &smaller_plan), figures(&reserved, &reserved_plan));
                        prop_assert_eq!(smaller_plan, reserved_plan);
                    }
                    (Err(_), Err(PlanError::Misfit(_))) => {}
                    (a, b) => prop_assert!(false, "{:?}\n{:?}", a, b),
                }
            }
        }
    }
}
