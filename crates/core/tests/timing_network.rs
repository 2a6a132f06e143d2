//! The timing network: the same times as the plain pass, and after every change of the order the
//! same as a plan that is read anew.

mod random;

use proptest::prelude::*;
use proptest::sample::Index;
use random::{CACHES, CAPACITY, cases, random_plan};
use spillbench_core::checker;
use spillbench_core::index::{PipeIx, Pos, StepIx, indices};
use spillbench_core::metrics::timing::{self, IdleCause, LinkKind, TimedPlan, graph_floor};
use spillbench_core::{Bytes, Cycles, Graph, Hardware, Machine, Plan};

fn hardware() -> Hardware {
    let mut hardware = Hardware::default();
    CACHES.iter().for_each(|c| hardware.set_capacity(c, Bytes(CAPACITY)).unwrap());
    hardware
}

/// Two networks of one order know the same.
fn same(a: &TimedPlan<'_>, b: &TimedPlan<'_>) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.order(), b.order());
    prop_assert_eq!(a.makespan(), b.makespan());
    for &step in a.order() {
        prop_assert_eq!(a.span(step), b.span(step), "{:?}", a.step(step));
        let links = |t: &TimedPlan<'_>| {
            let mut links = Vec::new();
            t.for_each_link(step, |l| links.push((l.kind, l.from)));
            links.sort();
            links.dedup();
            links
        };
        prop_assert_eq!(links(a), links(b), "{:?}", a.step(step));
    }
    Ok(())
}

/// The steps of a stretch in a random order that keeps every link but those of pipes.
fn shuffled(timed: &TimedPlan<'_>, from: usize, to: usize, dice: &mut impl Iterator<Item = u32>) -> Vec<StepIx> {
    let mut left: Vec<StepIx> = timed.order().raw[from..to].to_vec();
    let mut out = Vec::new();
    while !left.is_empty() {
        let free = |&i: &usize| {
            let mut is_free = true;
            timed.for_each_precedence(left[i], |l| is_free &= !left.contains(&l.from));
            is_free
        };
        let ready: Vec<usize> = (0..left.len()).filter(free).collect();
        out.push(left.remove(ready[dice.next().unwrap() as usize % ready.len()]));
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn times_are_those_of_the_plain_pass(case in cases(true), dice in prop::collection::vec(any::<u32>(), 20..80)) {
        let machine = Machine::resolve(&case.graph, &hardware()).unwrap();
        let plan = random_plan(&case, &dice);
        let plain = timing::segment(&case.graph, &machine, &plan).unwrap().unwrap();
        let timed = TimedPlan::new(&case.graph, &machine, &plan).unwrap().unwrap();
        prop_assert_eq!(timed.makespan(), plain.makespan);
        let spans: Vec<_> = timed.order().iter().map(|&s| timed.span(s)).collect();
        prop_assert_eq!(&spans, &plain.spans.raw);
        prop_assert_eq!(timed.schedule(), plan.schedule);
    }

    #[test]
    fn a_changed_order_equals_a_plan_read_anew(
        case in cases(true),
        dice in prop::collection::vec(any::<u32>(), 20..80),
        moves in prop::collection::vec((any::<Index>(), any::<Index>(), 0u8..4), 1..12),
    ) {
        let graph = &case.graph;
        let machine = Machine::resolve(graph, &hardware()).unwrap();
        let mut plan = random_plan(&case, &dice);
        let mut timed = TimedPlan::new(graph, &machine, &plan).unwrap().unwrap();
        let mut dice = dice.iter().copied().cycle();
        for (i, j, how) in moves {
            let n = plan.schedule.len();
            let (from, to) = (i.index(n).min(j.index(n)), i.index(n).max(j.index(n)) + 1);
            let mut steps: Vec<StepIx> = timed.order().raw[from..to].to_vec();
            match how {
                0 => steps.rotate_left(1),
                1 => steps.rotate_right(1),
                2 => {
                    let last = steps.len() - 1;
                    steps.swap(0, last);
                }
                _ => steps = shuffled(&timed, from, to, &mut dice),
            }
            let ids: Vec<_> = steps.iter().map(|&s| timed.id(s)).collect();
            let mut changed = plan.clone();
            changed.schedule[from..to].copy_from_slice(&ids);
            let valid = checker::check(graph, &machine, &changed).is_valid();
            let result = timed.reorder(Pos::new(from), &steps);
            prop_assert_eq!(result.is_ok(), valid, "{:?}", result);
            prop_assert!(how < 3 || valid);
            if valid {
                plan = changed;
            }
            let anew = TimedPlan::new(graph, &machine, &plan).unwrap().unwrap();
            same(&timed, &anew)?;
        }
    }

    #[test]
    fn idle_time_and_the_critical_path_add_up(
        case in cases(true),
        dice in prop::collection::vec(any::<u32>(), 20..80),
    ) {
        let machine = Machine::resolve(&case.graph, &hardware()).unwrap();
        let plan = random_plan(&case, &dice);
        let timed = TimedPlan::new(&case.graph, &machine, &plan).unwrap().unwrap();
        let makespan = timed.makespan();
        for pipe in indices(machine.pipe_names()) {
            let used = timed.pipe_use(pipe);
            let idle: Cycles = IdleCause::ALL.iter().map(|&c| used.idle(c)).sum();
            prop_assert_eq!(used.busy + idle, makespan);
            check_gaps(&timed, pipe)?;
        }
        let path = timed.critical_path();
        let waited: Cycles = path.by_kind.iter().map(|k| k.cycles).sum();
        prop_assert_eq!(waited + path.last, makespan);
        for pair in path.steps.windows(2) {
            prop_assert_eq!(timed.end(pair[0].step), timed.start(pair[1].step));
            let mut kinds = Vec::new();
            timed.for_each_link(pair[1].step, |l| kinds.extend((l.from == pair[0].step).then_some(l.kind)));
            prop_assert!(pair[1].link.is_some_and(|k| kinds.contains(&k)));
        }
        check_floor(&timed, &case.graph, &machine, &plan)?;
    }
}

/// Gaps are in order, do not touch work, and their causes hold.
fn check_gaps(timed: &TimedPlan<'_>, pipe: PipeIx) -> Result<(), TestCaseError> {
    let steps = timed.on_pipe(pipe);
    let gaps = timed.gaps(pipe);
    prop_assert!(gaps.windows(2).all(|g| g[0].to <= g[1].from));
    let works = |s: &&StepIx| timed.cycles(**s) > Cycles(0);
    for gap in gaps {
        prop_assert!(steps.iter().filter(works).all(|&s| timed.end(s) <= gap.from || timed.start(s) >= gap.to));
        match (gap.cause, gap.next, gap.other) {
            // Something that stands behind could have run all along.
            (IdleCause::Order, Some(next), Some(other)) => {
                prop_assert!(timed.ready(other) <= gap.from && timed.place(other) > timed.place(next));
            }
            (IdleCause::Data | IdleCause::Address, Some(next), Some(other)) => {
                prop_assert_eq!(timed.end(other), timed.start(next));
                let behind = steps.iter().filter(works).filter(|&&s| timed.place(s) > timed.place(next));
                prop_assert!(behind.into_iter().all(|&s| timed.ready(s) >= gap.to));
            }
            (IdleCause::Head, ..) => prop_assert_eq!(gap.from, Cycles(0)),
            (IdleCause::Tail, None, None) => prop_assert_eq!(gap.to, timed.makespan()),
            other => prop_assert!(false, "{:?}", other),
        }
    }
    Ok(())
}

/// The floor lies between the plain lower bound and the makespan.
fn check_floor(timed: &TimedPlan<'_>, graph: &Graph, machine: &Machine, plan: &Plan) -> Result<(), TestCaseError> {
    let floor = timed.floor();
    let metrics = spillbench_core::metrics::measure(graph, machine, plan).unwrap();
    prop_assert!(floor.cycles >= metrics.makespan_lower_bound.unwrap());
    prop_assert!(floor.cycles <= timed.makespan());
    let bare = graph_floor(graph).unwrap().unwrap();
    prop_assert!(bare.cycles <= floor.cycles);
    if let Some(pipe) = floor.pipe {
        prop_assert_eq!(floor.work, metrics.pipe_busy.unwrap()[&machine.pipe_names()[pipe]]);
        prop_assert_eq!(floor.head + floor.work + floor.tail, floor.cycles);
    }
    Ok(())
}

#[test]
fn kinds_are_named_in_order() {
    assert!(LinkKind::ALL.is_sorted());
    assert_eq!(LinkKind::ALL.map(LinkKind::name), ["graph", "implied", "spill", "pipe", "address"]);
}
