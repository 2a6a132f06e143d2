//! Plans that mean harm: garbage, and plans built to make a careless checker quadratic.

use crate::generate::case;
use proptest::prelude::*;
use spillbench_core::checker::{Report, Rule, check};
use spillbench_core::plan::{Placed, Plan, Spill};
use spillbench_core::{BufId, Graph, GraphBuilder, Hardware, Id, Machine, Offset};

fn machine(graph: &Graph) -> Machine {
    let hardware = Hardware::preset("davinci-unbounded").unwrap();
    Machine::resolve(graph, &hardware).unwrap()
}

fn near(limit: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..limit,
        1 => any::<u64>(),
        1 => (0u64..4).prop_map(|d| u64::MAX - d),
        1 => (0u64..4).prop_map(|d| i64::MAX as u64 - 1 + d),
    ]
}

fn garbage() -> impl Strategy<Value = Plan> {
    let pairs = |n| prop::collection::vec((near(12), near(80)), 0..n);
    (prop::collection::vec(near(80), 0..100), pairs(20), pairs(20)).prop_map(|(schedule, memory, spills)| Plan {
        schedule: schedule.into_iter().map(Id).collect(),
        memory: memory.into_iter().map(|(b, o)| Placed { buf: BufId(b), offset: Offset(o) }).collect(),
        spills: spills.into_iter().map(|(b, o)| Spill { buf: BufId(b), offset: Offset(o), cause: None }).collect(),
        counters: None,
    })
}

/// Whatever a plan holds, its report is sound.
fn assert_sound(report: &Report) {
    for rule in Rule::ALL {
        let listed = report.of(rule).count() as u64;
        assert_eq!(listed, report.offenders(rule).min(Report::LISTED), "{rule}");
    }
    assert!(report.violations().is_sorted_by_key(|v| v.rule));
    assert_eq!(report.is_valid(), report.violations().is_empty());
    for violation in report.violations() {
        assert!(violation.to_string().starts_with(&format!("rule {}: ", violation.rule.number())));
    }
    serde_json::to_string(report).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn garbage_never_panics(case in case(), garbage in garbage()) {
        assert_sound(&check(&case.graph, &case.machine, &garbage));
    }

    #[test]
    fn damaged_plans_never_panic(
        case in case(),
        holes in prop::collection::vec((any::<prop::sample::Index>(), near(80)), 1..12),
    ) {
        let mut plan = case.plan;
        for (i, (at, value)) in holes.into_iter().enumerate() {
            match i % 4 {
                0 if !plan.schedule.is_empty() => {
                    let at = at.index(plan.schedule.len());
                    plan.schedule[at] = Id(value);
                }
                1 if !plan.spills.is_empty() => {
                    let at = at.index(plan.spills.len());
                    plan.spills[at].buf = BufId(value);
                }
                2 => {
                    plan.schedule.remove(at.index(plan.schedule.len()));
                }
                _ => plan.memory.push(Placed { buf: BufId(value), offset: Offset(value) }),
            }
            if plan.schedule.is_empty() {
                break;
            }
        }
        assert_sound(&check(&case.graph, &case.machine, &plan));
    }
}

const MANY: u64 = 100_000;

/// `MANY` buffers of size 4, all live at once: ids 0.. are the `ALLOC`s, `MANY`.. the `FREE`s.
fn all_live() -> (Graph, Vec<Id>) {
    let mut builder = GraphBuilder::new();
    for b in 0..MANY {
        builder.alloc(b, b, 4, "UB").free(MANY + b, b, 4, "UB");
    }
    (builder.build().unwrap().0, (0..2 * MANY).map(Id).collect())
}

fn placed(offset: impl Fn(u64) -> u64) -> Vec<Placed> {
    (0..MANY).map(|b| Placed { buf: BufId(b), offset: Offset(offset(b)) }).collect()
}

#[test]
fn a_hundred_thousand_segments_at_one_address_are_all_in_conflict() {
    let (graph, schedule) = all_live();
    let plan = Plan { schedule, memory: placed(|_| 16), spills: Vec::new(), counters: None };
    let report = check(&graph, &machine(&graph), &plan);
    assert_eq!(report.counts(), [0, 0, 0, 0, MANY]);
    assert_sound(&report);
}

#[test]
fn a_hundred_thousand_segments_each_into_the_next_are_all_in_conflict() {
    let (graph, schedule) = all_live();
    let plan = Plan { schedule: schedule.clone(), memory: placed(|b| 3 * b), spills: Vec::new(), counters: None };
    assert_eq!(check(&graph, &machine(&graph), &plan).counts(), [0, 0, 0, 0, MANY]);
    let apart = Plan { schedule, memory: placed(|b| 4 * b), spills: Vec::new(), counters: None };
    assert!(check(&graph, &machine(&graph), &apart).is_valid());
}

#[test]
fn one_buffer_with_a_hundred_thousand_users_turned_round_costs_linear_time() {
    let mut builder = GraphBuilder::new();
    builder.alloc(0, 0, 4, "UB");
    for o in 1..=MANY {
        builder.op(o, "EXP", "VECTOR", 1, &[0]).edge(0, o).edge(o, MANY + 1);
    }
    builder.free(MANY + 1, 0, 4, "UB");
    let graph = builder.build().unwrap().0;
    let schedule = (0..=MANY + 1).rev().map(Id).collect();
    let memory = vec![Placed { buf: BufId(0), offset: Offset(0) }];
    let report = check(&graph, &machine(&graph), &Plan { schedule, memory, spills: Vec::new(), counters: None });
    // Every listed edge, ALLOC → FREE, and every use.
    assert_eq!(report.counts(), [0, 2 * MANY + 1, MANY, 0, 0]);
    assert_sound(&report);
}

#[test]
fn one_buffer_spilled_a_hundred_thousand_times_costs_linear_time() {
    let mut builder = GraphBuilder::new();
    builder.alloc(0, 0, 4, "UB").op(1, "EXP", "VECTOR", 1, &[0]).free(2, 0, 4, "UB");
    let graph = builder.build().unwrap().0;
    let spill_nodes = 3..3 + 2 * MANY;
    let spills = vec![Spill { buf: BufId(0), offset: Offset(0), cause: None }; MANY as usize];
    let memory = vec![Placed { buf: BufId(0), offset: Offset(0) }];
    let plan = |spill_nodes: Vec<u64>| Plan {
        schedule: [0].into_iter().chain(spill_nodes).chain([1, 2]).map(Id).collect(),
        memory: memory.clone(),
        spills: spills.clone(),
        counters: None,
    };
    let machine = machine(&graph);
    assert!(check(&graph, &machine, &plan(spill_nodes.clone().collect())).is_valid());
    let report = check(&graph, &machine, &plan(spill_nodes.rev().collect()));
    // Backward are all links of the chain but ALLOC → OUT₁ and IN → FREE; after the last OUT in the
    // schedule the buffer stays out, for the op and the FREE.
    assert_eq!(report.counts(), [0, 2 * MANY - 1, MANY + 1, 0, 0]);
}

#[test]
fn ids_that_repeat_a_hundred_thousand_times_are_counted_and_a_thousand_listed() {
    let (graph, _) = all_live();
    let schedule = vec![Id(7); MANY as usize];
    let plan = Plan { schedule, memory: placed(|_| u64::MAX), spills: Vec::new(), counters: None };
    let report = check(&graph, &machine(&graph), &plan);
    assert_eq!(report.counts(), [MANY - 1 + 2 * MANY - 1, 0, 0, MANY, 0]);
    assert_eq!(report.of(Rule::Presence).count() as u64, Report::LISTED);
    assert_sound(&report);
    let wide = Plan { memory: vec![Placed { buf: BufId(7), offset: Offset(0) }; 9], ..plan };
    assert_eq!(check(&graph, &machine(&graph), &wide).offenders(Rule::Bounds), 8 + MANY - 1);
}
