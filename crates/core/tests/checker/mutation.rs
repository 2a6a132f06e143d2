//! Breaks valid plans, one rule at a time, and asks whether the right rule is reported, with the
//! right place, and no other.

use crate::generate::{Case, Seg, case, recipe};
use crate::reference;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use spillbench_core::checker::{Absence, Act, EdgeKind, Fault, Report, Rule, check};
use spillbench_core::graph::NodeKind;
use spillbench_core::plan::{Placed, Plan, Spill, SpillIds};
use spillbench_core::{BufId, Id, Offset};
use std::cell::Cell;

/// A plan with one fault.
struct Broken {
    plan: Plan,
    rule: Rule,
    /// How many offenders the rule must have; `None` when that depends on the case.
    count: Option<u64>,
    /// Other rules that the fault may offend as well.
    also: &'static [Rule],
    /// Recognises the fault in the list.
    fault: Box<dyn Fn(&Fault) -> bool>,
}

/// Applies a mutation to many generated cases; it must apply to at least a tenth of them.
fn mutate(mutation: impl Fn(&Case, [Index; 3]) -> Option<Broken>) {
    let (cases, applied) = (256, Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() });
    let outcome = runner.run(&(case(), any::<[Index; 3]>()), |(case, choice)| {
        let before = check(&case.graph, &case.machine, &case.plan);
        prop_assert!(before.is_valid(), "{:?}", before);
        let Some(broken) = mutation(&case, choice) else { return Ok(()) };
        applied.set(applied.get() + 1);
        let report = check(&case.graph, &case.machine, &broken.plan);
        prop_assert!(report.of(broken.rule).any(|f| (broken.fault)(f)), "{:#?}\n{:?}", report, broken.plan);
        if let Some(count) = broken.count {
            prop_assert_eq!(report.offenders(broken.rule), count, "{:#?}", report);
        }
        for rule in Rule::ALL.into_iter().filter(|r| *r != broken.rule && !broken.also.contains(r)) {
            prop_assert_eq!(report.offenders(rule), 0, "{}: {:#?}\n{:?}", rule, report, broken.plan);
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(applied.get() >= cases / 10, "applied to {} of {cases} cases", applied.get());
}

fn pick<T: Copy>(index: Index, items: &[T]) -> Option<T> {
    (!items.is_empty()).then(|| items[index.index(items.len())])
}

/// Moves the entry at `from` so that it stands just before the one that stood at `to`.
fn shift<T: Copy>(items: &mut Vec<T>, from: usize, to: usize) {
    let item = items.remove(from);
    items.insert(if from < to { to - 1 } else { to }, item);
}

impl Case {
    fn at(&self, id: Id) -> usize {
        self.plan.schedule.iter().position(|&i| i == id).unwrap()
    }

    fn spill_ids(&self, k: usize) -> (Id, Id) {
        let ids = SpillIds::after(self.graph.max_id());
        (ids.out(k).unwrap(), ids.back(k).unwrap())
    }

    fn unused_id(&self) -> Id {
        Id(self.graph.max_id().0 + 2 * self.plan.spills.len() as u64 + 1)
    }

    fn unused_buf(&self) -> BufId {
        BufId(self.graph.buffer_count() as u64)
    }

    /// What stands next to `pos` among the nodes that touch a buffer: the closest before or after.
    fn touches(&self, buf: usize) -> Vec<usize> {
        let ix = self.graph.buf_by_id(BufId(buf as u64)).unwrap();
        let of_spill = |id: Id| {
            (0..self.plan.spills.len()).any(|k| {
                let (out, back) = self.spill_ids(k);
                self.plan.spills[k].buf.0 == buf as u64 && (id == out || id == back)
            })
        };
        let touches = |id: Id| match self.graph.node_by_id(id) {
            Some(node) => self.graph.operands(node).contains(&ix),
            None => of_spill(id),
        };
        (0..self.plan.schedule.len()).filter(|&p| touches(self.plan.schedule[p])).collect()
    }

    fn is_op(&self, pos: usize) -> bool {
        let node = self.graph.node_by_id(self.plan.schedule[pos]);
        node.is_some_and(|n| self.graph.kind(n) == NodeKind::Op)
    }

    /// All spills, each with the positions of its ends.
    fn spills(&self) -> Vec<(usize, usize, usize)> {
        let ends = |k| {
            let (out, back) = self.spill_ids(k);
            (k, self.at(out), self.at(back))
        };
        (0..self.plan.spills.len()).map(ends).collect()
    }
}

const NONE: &[Rule] = &[];

#[test]
fn a_dropped_node_breaks_rule_1() {
    mutate(|case, [i, ..]| {
        let mut plan = case.plan.clone();
        let gone = plan.schedule.remove(i.index(plan.schedule.len()));
        let fault = move |f: &Fault| matches!(f, Fault::MissingNode { node } | Fault::MissingSpillNode { node, .. } if *node == gone);
        // What follows from the missing node is not reported again.
        Some(Broken { plan, rule: Rule::Presence, count: Some(1), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn a_repeated_node_breaks_rule_1() {
    mutate(|case, [i, j, _]| {
        let mut plan = case.plan.clone();
        let first = i.index(plan.schedule.len());
        let again = first + 1 + j.index(plan.schedule.len() - first);
        let id = plan.schedule[first];
        plan.schedule.insert(again, id);
        let fault = move |f: &Fault| *f == Fault::Repeated { node: id, pos: again, first_pos: first };
        Some(Broken { plan, rule: Rule::Presence, count: Some(1), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn a_reused_id_breaks_rule_1_twice() {
    mutate(|case, [i, j, _]| {
        let mut plan = case.plan.clone();
        let first = i.index(plan.schedule.len() - 1);
        let again = first + 1 + j.index(plan.schedule.len() - first - 1);
        let lost = plan.schedule[again];
        plan.schedule[again] = plan.schedule[first];
        let fault = move |f: &Fault| matches!(f, Fault::MissingNode { node } | Fault::MissingSpillNode { node, .. } if *node == lost);
        Some(Broken { plan, rule: Rule::Presence, count: Some(2), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn a_foreign_id_breaks_rule_1() {
    mutate(|case, [i, ..]| {
        let mut plan = case.plan.clone();
        let (pos, node) = (i.index(plan.schedule.len() + 1), case.unused_id());
        plan.schedule.insert(pos, node);
        let fault = move |f: &Fault| *f == Fault::UnknownId { node, pos };
        Some(Broken { plan, rule: Rule::Presence, count: Some(1), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn a_dropped_spill_line_breaks_rule_1_twice() {
    mutate(|case, _| {
        let mut plan = case.plan.clone();
        plan.spills.pop()?;
        let (node, _) = case.spill_ids(plan.spills.len());
        let pos = case.at(node);
        let fault = move |f: &Fault| *f == Fault::UnknownId { node, pos };
        Some(Broken { plan, rule: Rule::Presence, count: Some(2), also: &[Rule::Overlap], fault: Box::new(fault) })
    });
}

#[test]
fn an_added_spill_line_breaks_rule_1_twice() {
    mutate(|case, [i, ..]| {
        let mut plan = case.plan.clone();
        let Placed { buf, offset } = plan.memory[i.index(plan.memory.len())];
        plan.spills.push(Spill { buf, offset, cause: None });
        let spill = plan.spills.len();
        let node = case.spill_ids(spill - 1).1;
        let fault = move |f: &Fault| *f == Fault::MissingSpillNode { node, act: Act::SpillIn, spill, buf };
        Some(Broken { plan, rule: Rule::Presence, count: Some(2), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn a_spill_of_an_unknown_buffer_breaks_rule_1() {
    mutate(|case, [i, ..]| {
        let mut plan = case.plan.clone();
        let (k, ..) = pick(i, &case.spills())?;
        let buf = case.unused_buf();
        plan.spills[k].buf = buf;
        let fault = move |f: &Fault| *f == Fault::SpillOfUnknownBuffer { spill: k + 1, buf };
        Some(Broken { plan, rule: Rule::Presence, count: Some(1), also: &[Rule::Overlap], fault: Box::new(fault) })
    });
}

/// `from → to` is no longer kept: `to` moves to just before `from`.
fn reverse(case: &Case, from: Id, to: Id, edge: EdgeKind, also: &'static [Rule]) -> Broken {
    let mut plan = case.plan.clone();
    let (from_pos, to_pos) = (case.at(from), case.at(to));
    shift(&mut plan.schedule, to_pos, from_pos);
    let fault = move |f: &Fault| match *f {
        Fault::Backward { edge: e, from: f, to: t, from_pos: fp, to_pos: tp, buf } => {
            (e, f, t) == (edge, from, to)
                && (fp, tp) == (from_pos + 1, from_pos)
                && buf.is_none() == (e == EdgeKind::Graph)
        }
        _ => false,
    };
    Broken { plan, rule: Rule::Order, count: None, also, fault: Box::new(fault) }
}

#[test]
fn ops_swapped_across_an_edge_break_rule_2() {
    mutate(|case, [i, ..]| {
        let graph = &case.graph;
        let ops = graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op);
        let edges = ops.flat_map(|f| graph.successors(f).iter().map(move |&t| (f, t)));
        let edges: Vec<_> = edges.filter(|&(_, t)| graph.kind(t) == NodeKind::Op).collect();
        let (from, to) = pick(i, &edges)?;
        // On its way, `to` may leave the life of its buffers, or fall into a spill.
        Some(reverse(case, graph.id(from), graph.id(to), EdgeKind::Graph, &[Rule::Residency]))
    });
}

#[test]
fn neighbours_swapped_across_an_edge_break_rule_2_once_and_no_other() {
    mutate(|case, [i, ..]| {
        let graph = &case.graph;
        let linked = |&p: &usize| {
            let pair = [p, p + 1].map(|q| graph.node_by_id(case.plan.schedule[q]));
            let [Some(from), Some(to)] = pair else { return false };
            graph.kind(from) == NodeKind::Op && graph.kind(to) == NodeKind::Op && graph.successors(from).contains(&to)
        };
        let pairs: Vec<_> = (0..case.plan.schedule.len() - 1).filter(linked).collect();
        let at = pick(i, &pairs)?;
        let (from, to) = (case.plan.schedule[at], case.plan.schedule[at + 1]);
        Some(Broken { count: Some(1), ..reverse(case, from, to, EdgeKind::Graph, NONE) })
    });
}

#[test]
fn a_use_before_the_alloc_breaks_rule_2() {
    mutate(|case, [i, j, _]| {
        let graph = &case.graph;
        let used: Vec<_> = graph.bufs().filter(|&b| !graph.users(b).is_empty()).collect();
        let buf = pick(i, &used)?;
        let user = pick(j, graph.users(buf))?;
        let (alloc, listed) = (graph.buf(buf).alloc, graph.successors(graph.buf(buf).alloc).contains(&user));
        let edge = if listed { EdgeKind::Graph } else { EdgeKind::Implied };
        let broken = reverse(case, graph.id(alloc), graph.id(user), edge, &[Rule::Residency]);
        let report = check(graph, &case.machine, &broken.plan);
        let unborn = |f: &Fault| {
            matches!(*f, Fault::NotResident { node, buf: b, absence: Absence::BeforeAlloc { .. }, .. }
                if node == graph.id(user) && b == graph.buf(buf).id)
        };
        assert!(report.of(Rule::Residency).any(unborn), "{report:#?}");
        Some(broken)
    });
}

#[test]
fn a_use_after_the_free_breaks_rule_2() {
    mutate(|case, [i, j, _]| {
        let graph = &case.graph;
        let used: Vec<_> = graph.bufs().filter(|&b| !graph.users(b).is_empty()).collect();
        let buf = pick(i, &used)?;
        let user = pick(j, graph.users(buf))?;
        let mut plan = case.plan.clone();
        let (from, to) = (graph.id(user), graph.id(graph.buf(buf).free));
        shift(&mut plan.schedule, case.at(from), case.at(to) + 1);
        let also = &[Rule::Residency];
        let fault = move |f: &Fault| matches!(*f, Fault::Backward { from: a, to: b, .. } if (a, b) == (from, to));
        Some(Broken { plan, rule: Rule::Order, count: None, also, fault: Box::new(fault) })
    });
}

#[test]
fn a_spill_turned_round_breaks_rule_2() {
    mutate(|case, [i, ..]| {
        let (k, out, back) = pick(i, &case.spills())?;
        let mut plan = case.plan.clone();
        plan.schedule.swap(out, back);
        let (from, to) = case.spill_ids(k);
        let buf = Some(plan.spills[k].buf);
        let expected = Fault::Backward { edge: EdgeKind::Spill, from, to, from_pos: back, to_pos: out, buf };
        let also = &[Rule::Residency, Rule::Overlap];
        Some(Broken { plan, rule: Rule::Order, count: Some(1), also, fault: Box::new(move |f| *f == expected) })
    });
}

#[test]
fn spills_of_one_buffer_listed_in_the_wrong_order_break_rule_2() {
    mutate(|case, [i, ..]| {
        let spills = &case.plan.spills;
        let again = |&k: &usize| spills[..k].iter().any(|s| s.buf == spills[k].buf);
        let second = pick(i, &(0..spills.len()).filter(again).collect::<Vec<_>>())?;
        let first = spills[..second].iter().rposition(|s| s.buf == spills[second].buf)?;
        let mut plan = case.plan.clone();
        // The nodes change places pair by pair, so that the numbers run against the schedule.
        let ((a, b), (c, d)) = (case.spill_ids(first), case.spill_ids(second));
        plan.schedule.swap(case.at(a), case.at(c));
        plan.schedule.swap(case.at(b), case.at(d));
        let fault = move |f: &Fault| matches!(*f, Fault::Backward { from, to, .. } if (from, to) == (b, c));
        Some(Broken { plan, rule: Rule::Order, count: None, also: &[Rule::Overlap], fault: Box::new(fault) })
    });
}

#[test]
fn a_return_after_the_use_breaks_rule_3_once_and_no_other() {
    mutate(|case, [i, ..]| {
        let next_use = |&(k, _, back): &(usize, usize, usize)| {
            let touches = case.touches(case.plan.spills[k].buf.0 as usize);
            touches.into_iter().find(|&p| p > back).filter(|&p| case.is_op(p)).map(|user| (k, back, user))
        };
        let candidates: Vec<_> = case.spills().iter().filter_map(next_use).collect();
        let (k, back, user) = pick(i, &candidates)?;
        let mut plan = case.plan.clone();
        shift(&mut plan.schedule, back, user + 1);
        Some(used_while_out(case, plan, k, case.plan.schedule[user], user - 1))
    });
}

#[test]
fn moving_out_before_the_use_breaks_rule_3_once_and_no_other() {
    mutate(|case, [i, ..]| {
        let last_use = |&(k, out, _): &(usize, usize, usize)| {
            let touches = case.touches(case.plan.spills[k].buf.0 as usize);
            touches.into_iter().rfind(|&p| p < out).filter(|&p| case.is_op(p)).map(|user| (k, out, user))
        };
        let candidates: Vec<_> = case.spills().iter().filter_map(last_use).collect();
        let (k, out, user) = pick(i, &candidates)?;
        let mut plan = case.plan.clone();
        shift(&mut plan.schedule, out, user);
        Some(used_while_out(case, plan, k, case.plan.schedule[user], user + 1))
    });
}

fn used_while_out(case: &Case, plan: Plan, k: usize, user: Id, at: usize) -> Broken {
    let (buf, (spill_out, spill_in)) = (plan.spills[k].buf, case.spill_ids(k));
    let fault = move |f: &Fault| match *f {
        Fault::NotResident { node, pos, act, buf: b, absence: Absence::Out { out, back, .. }, .. } => {
            (node, pos, act, b, out, back) == (user, at, Act::Use, buf, spill_out, spill_in)
        }
        _ => false,
    };
    Broken { plan, rule: Rule::Residency, count: Some(1), also: NONE, fault: Box::new(fault) }
}

#[test]
fn a_free_while_out_breaks_rule_3() {
    mutate(|case, [i, ..]| {
        let then_freed = |&(k, _, back): &(usize, usize, usize)| {
            let touches = case.touches(case.plan.spills[k].buf.0 as usize);
            let next = touches.into_iter().find(|&p| p > back)?;
            (!case.is_op(next) && case.graph.node_by_id(case.plan.schedule[next]).is_some()).then_some((k, back, next))
        };
        let candidates: Vec<_> = case.spills().iter().filter_map(then_freed).collect();
        let (_, back, free) = pick(i, &candidates)?;
        let mut plan = case.plan.clone();
        plan.schedule.swap(back, free);
        let freed = case.plan.schedule[free];
        let fault = move |f: &Fault| matches!(*f, Fault::NotResident { node, act: Act::Free, .. } if node == freed);
        let also = &[Rule::Order, Rule::Overlap];
        Some(Broken { plan, rule: Rule::Residency, count: Some(1), also, fault: Box::new(fault) })
    });
}

#[test]
fn an_offset_one_past_the_end_breaks_rule_4() {
    mutate(|case, [i, ..]| {
        let segment = pick(i, &case.segments)?;
        let mut plan = case.plan.clone();
        let buf = case.graph.buf_by_id(BufId(segment.buf as u64))?;
        let capacity = case.machine.cache(case.graph.buf(buf).cache).capacity;
        let low = Offset(capacity.0 - segment.size + 1);
        place(&mut plan, &segment, low);
        let fault = move |f: &Fault| {
            matches!(f, Fault::OutOfBounds { buf, offset, pos: Some(pos), .. }
                if buf.0 as usize == segment.buf && *offset == low && *pos == segment.start)
        };
        Some(Broken { plan, rule: Rule::Bounds, count: Some(1), also: &[Rule::Overlap], fault: Box::new(fault) })
    });
}

#[test]
fn an_offset_that_wraps_round_breaks_rule_4_and_no_other() {
    mutate(|case, [i, j, _]| {
        let segment = pick(i, &case.segments)?;
        let mut plan = case.plan.clone();
        let low = Offset(u64::MAX - j.index(segment.size as usize + 1) as u64);
        place(&mut plan, &segment, low);
        let fault = move |f: &Fault| matches!(f, Fault::OutOfBounds { offset, .. } if *offset == low);
        Some(Broken { plan, rule: Rule::Bounds, count: Some(1), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn a_buffer_without_offset_breaks_rule_4() {
    mutate(|case, [i, ..]| {
        let mut plan = case.plan.clone();
        let gone = plan.memory.remove(i.index(plan.memory.len())).buf;
        let fault = move |f: &Fault| matches!(f, Fault::NoOffset { buf, .. } if *buf == gone);
        Some(Broken { plan, rule: Rule::Bounds, count: Some(1), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn a_buffer_placed_twice_breaks_rule_4() {
    mutate(|case, [i, j, _]| {
        let mut plan = case.plan.clone();
        let entry = i.index(plan.memory.len());
        let again = entry + 1 + j.index(plan.memory.len() - entry);
        plan.memory.insert(again, plan.memory[entry]);
        let fault = move |f: &Fault| matches!(f, Fault::OffsetRepeated { entry: e, first_entry, .. } if (*e, *first_entry) == (again + 1, entry + 1));
        Some(Broken { plan, rule: Rule::Bounds, count: Some(1), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn an_offset_of_an_unknown_buffer_breaks_rule_4() {
    mutate(|case, [i, ..]| {
        let mut plan = case.plan.clone();
        let (at, buf) = (i.index(plan.memory.len() + 1), case.unused_buf());
        plan.memory.insert(at, Placed { buf, offset: Offset(0) });
        let fault = move |f: &Fault| *f == Fault::OffsetOfUnknownBuffer { entry: at + 1, buf };
        Some(Broken { plan, rule: Rule::Bounds, count: Some(1), also: NONE, fault: Box::new(fault) })
    });
}

#[test]
fn an_offset_shifted_by_one_into_a_neighbour_breaks_rule_5_and_no_other() {
    mutate(|case, [i, j, _]| {
        let all = &case.segments;
        let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b)));
        let touching = |(a, b): &(Seg, Seg)| a.meets_in_time(b) && a.high() == b.low;
        let (below, above) = pick(i, &pairs.filter(touching).collect::<Vec<_>>())?;
        let mut plan = case.plan.clone();
        if j.index(2) == 0 {
            place(&mut plan, &below, Offset(below.low + 1));
        } else {
            place(&mut plan, &above, Offset(above.low - 1));
        }
        let fault = move |f: &Fault| match f {
            Fault::Overlap { segment, .. } => segment.buf.0 as usize == below.buf && segment.start == below.start,
            _ => false,
        };
        Some(Broken { plan, rule: Rule::Overlap, count: None, also: NONE, fault: Box::new(fault) })
    });
}

fn place(plan: &mut Plan, segment: &Seg, low: Offset) {
    match segment.spill {
        Some(k) => plan.spills[k].offset = low,
        None => plan.memory[segment.buf].offset = low,
    }
}

/// One of several changes that leave rule 1 whole.
#[derive(Clone, Debug)]
enum Change {
    Move(Index, Index),
    Place(Index, u64),
    PlaceReturn(Index, u64),
    Reassign(Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    let offset = || prop_oneof![0u64..40, Just(u64::MAX), Just(u64::MAX - 3)];
    prop_oneof![
        any::<(Index, Index)>().prop_map(|(from, to)| Change::Move(from, to)),
        (any::<Index>(), offset()).prop_map(|(i, o)| Change::Place(i, o)),
        (any::<Index>(), offset()).prop_map(|(i, o)| Change::PlaceReturn(i, o)),
        any::<(Index, Index)>().prop_map(|(k, b)| Change::Reassign(k, b)),
    ]
}

fn apply(plan: &mut Plan, change: &Change) {
    match change {
        Change::Move(from, to) => {
            let length = plan.schedule.len();
            shift(&mut plan.schedule, from.index(length), to.index(length));
        }
        Change::Place(i, offset) => {
            let at = i.index(plan.memory.len());
            plan.memory[at].offset = Offset(*offset);
        }
        Change::PlaceReturn(i, offset) if !plan.spills.is_empty() => {
            let at = i.index(plan.spills.len());
            plan.spills[at].offset = Offset(*offset);
        }
        Change::Reassign(k, buf) if !plan.spills.is_empty() => {
            let at = k.index(plan.spills.len());
            plan.spills[at].buf = plan.memory[buf.index(plan.memory.len())].buf;
        }
        Change::PlaceReturn(..) | Change::Reassign(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn counts_agree_with_a_second_reading_of_the_rules(
        recipe in recipe(),
        changes in prop::collection::vec(change(), 0..6),
    ) {
        let Case { graph, machine, mut plan, .. } = recipe.make();
        changes.iter().for_each(|c| apply(&mut plan, c));
        let report: Report = check(&graph, &machine, &plan);
        prop_assert_eq!(report.counts(), reference::counts(&graph, &machine, &plan), "{:#?}\n{:?}", report, plan);
    }
}
