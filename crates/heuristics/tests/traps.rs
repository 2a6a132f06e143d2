//! The traps of the specification, section 6: each with the right value worked out by hand.

mod common;

use common::*;
use spillbench_core::hardware::FitError;
use spillbench_core::plan::Cause;
use spillbench_core::planner::Outcome;
use spillbench_core::{Bytes, Machine, PlanError, Schedule, Strategy, Workspace};

/// UB 10 holds x (6), L1 10 holds the far larger-scored y (9); z (6) asks for UB. Evicting y would
/// help nothing: x goes out.
#[test]
fn the_victim_is_of_the_cache_that_is_short() {
    let graph = graph("+y9@L1 =y +x6 =x +z6 =z EXP:z -z EXP:x -x EXP:y -y");
    let plan = plan(&graph, &hardware(&[("UB", 10), ("L1", 10)]), &policy("life-size", DEFAULT_CHAIN, "best-fit"));
    assert_eq!(spills(&plan.unwrap()), [(1, 0)]);
}

/// Capacity 4, four buffers of 2, oldest out first: c's ALLOC puts a out, d's puts b out, and a and b
/// come back when c and d are gone: OUT a, OUT b, IN a, IN b interleave. Both are backed, so that
/// 2 + 2 bytes move; pairing neighbours in one list of spill operations would find no pair.
#[test]
fn interleaved_spills_are_all_counted() {
    let graph = graph("+a2 =a +b2 =b +c2 =c +d2 =d EXP:c -c EXP:d -d EXP:a EXP:b -a -b");
    let plan = plan(&graph, &hardware(&[("UB", 4)]), &policy("fifo", DEFAULT_CHAIN, "best-fit")).unwrap();
    assert_eq!(spills(&plan), [(0, 0), (1, 2)]);
    // The graph has 16 nodes: a goes out by 16 and comes back by 17, b by 18 and 19.
    let order = order(&plan);
    let places = [16, 18, 17, 19].map(|id| order.iter().position(|&n| n == id).unwrap());
    assert!(places.is_sorted(), "{order:?}");
    assert_eq!(movement(&graph, &plan), 4);
}

/// UB 10: a (6) is freed at 3; b (6) is first used at 4. The ALLOC goes to just after 3, not just
/// before it, where a would still be there.
#[test]
fn a_postponed_alloc_stands_just_after_the_free() {
    let graph = graph("+a6 =a +b6 -a =b EXP:b -b");
    let plan = plan(&graph, &hardware(&[("UB", 10)]), &policy("life-size", "postpone", "best-fit")).unwrap();
    assert_eq!(order(&plan), [0, 1, 3, 2, 4, 5, 6]);
    assert!(plan.spills.is_empty());
}

/// The same with b used before a is freed: the only FREE stands behind b's first use, so the ALLOC
/// cannot wait for it, and the last resort spills a.
#[test]
fn an_alloc_is_never_postponed_past_its_first_use() {
    let graph = graph("+a6 =a +b6 =b -a EXP:b -b");
    let plan = plan(&graph, &hardware(&[("UB", 10)]), &policy("life-size", "postpone", "best-fit")).unwrap();
    assert_eq!(plan.counters.unwrap().postponed, 0);
    assert_eq!(plan.counters.unwrap().last_resort, 2, "once for b, once to bring a back for its FREE");
    assert_eq!(movement(&graph, &plan), 12);
}

/// A buffer that is out when its FREE comes is brought back first: each SPILL_OUT has its SPILL_IN,
/// and nothing of the buffer stands between them.
#[test]
fn a_buffer_that_is_out_comes_back_before_its_free() {
    let graph = graph("+a6 =a +b6 =b EXP:b -b -a");
    let plan = plan(&graph, &hardware(&[("UB", 10)]), &policy("life-size", DEFAULT_CHAIN, "best-fit")).unwrap();
    // a goes out (7) for b, comes back (8) just before its FREE, node 6.
    assert_eq!(order(&plan), [0, 1, 7, 2, 3, 4, 5, 8, 6]);
}

/// A buffer that is out is no victim again: with room for one of three, the one resident goes out
/// each time another is needed. b's ALLOC puts a out, c's b, EXP a puts c out, EXP b a, EXP c b, and
/// FREE a brings a back in the place of c; FREE b and FREE c find the cache empty.
#[test]
fn a_buffer_that_is_out_is_not_spilled_again() {
    let graph = graph("+a6 =a +b6 =b +c6 =c EXP:a EXP:b EXP:c -a -b -c");
    let plan = plan(&graph, &hardware(&[("UB", 10)]), &policy("lru", DEFAULT_CHAIN, "best-fit")).unwrap();
    assert_eq!(spills(&plan), [(0, 0), (1, 0), (2, 0), (0, 0), (1, 0), (2, 0)]);
    // 12 nodes: spill k goes out by 12 + 2k and comes back by 13 + 2k.
    assert_eq!(order(&plan), [0, 1, 12, 2, 3, 14, 4, 5, 16, 13, 6, 18, 15, 7, 20, 17, 8, 22, 19, 9, 21, 10, 23, 11]);
}

/// Positions are those of the given schedule, whatever was inserted before. UB 4 with room for two:
/// c puts a out at 4; at 7 b was used at 6 and c at 5, so c goes for d.
#[test]
fn spills_do_not_renumber_positions() {
    let graph = graph("+a2 =a +b2 =b +c2 =c EXP:b +d2 =d EXP:d -d EXP:c -c EXP:b -b EXP:a -a");
    let (_, log) = observed(&graph, &hardware(&[("UB", 4)]), &policy("lru", DEFAULT_CHAIN, "best-fit"));
    let seen: Vec<_> = log.iter().take(2).map(|d| (d.pos, d.victims.clone())).collect();
    assert_eq!(seen, [(4, vec![0]), (7, vec![2])]);
}

/// UB 12: a 2, b 4, c 1, d 3, e 2 fill it; a, b go and coalesce to 6 at 0, d goes and leaves 3 at 7.
/// A request for 3 has its best fit at 7. First fit would take 0.
#[test]
fn best_fit_stays_best_fit_after_coalescing() {
    let graph = graph("+a2 +b4 +c1 +d3 +e2 -a -b -d +f3 -f -c -e");
    for (rule, offset) in [("best-fit", 7), ("first-fit", 0), ("worst-fit", 0)] {
        let plan = plan(&graph, &hardware(&[("UB", 12)]), &policy("lru", DEFAULT_CHAIN, rule)).unwrap();
        assert_eq!(plan.memory[5].offset.0, offset, "{rule}");
    }
}

/// UB 10: a 3 at 0, b 4 at 3, c 3 at 7. A request for 6 needs two evictions that touch. `largest`
/// takes b first, then a (the smaller id of two equals): 0 to 7 opens. `smallest` takes a, then c,
/// whose holes do not touch, then b; from the lowest score up b stays out (a and c alone do not
/// touch), c can come back (a and b give 7).
#[test]
fn several_victims_open_one_hole() {
    let graph = graph("+a3 =a +b4 =b +c3 =c +d6 =d -d EXP:a,b,c -a -b -c");
    let hardware = hardware(&[("UB", 10)]);
    for (heuristic, out) in [("largest", vec![1, 0]), ("smallest", vec![0, 1])] {
        let (_, log) = observed(&graph, &hardware, &policy(heuristic, DEFAULT_CHAIN, "best-fit"));
        assert_eq!(log[0].outcome, Outcome::Evicted(Strategy::Multi), "{heuristic}");
        assert_eq!(log[0].victims, out, "{heuristic}");
        assert_eq!(log[0].hole, Some((0, 7)), "{heuristic}");
    }
}

/// Capacity 10, best fit: a 3 at 0, b 4 at 3, c 3 at 7; a and c freed: a request for 6 finds 3 + 3.
/// It fails for fragmentation, and b goes.
#[test]
fn only_contiguous_bytes_count() {
    let graph = graph("+a3 +b4 +c3 -a -c +d6 EXP:d -d EXP:b -b");
    let (plan, log) = observed(&graph, &hardware(&[("UB", 10)]), &policy("belady", DEFAULT_CHAIN, "best-fit"));
    assert_eq!(plan.memory.iter().take(3).map(|m| m.offset.0).collect::<Vec<_>>(), [0, 3, 7]);
    assert_eq!((log[0].pos, log[0].cause, log[0].victims.as_slice()), (5, Cause::Fragmentation, &[1][..]));
    assert_eq!(plan.spills[0].cause, Some(Cause::Fragmentation));
}

/// The same with bytes counted wherever they lie: 6 are free, and nothing goes.
#[test]
fn in_bytes_nothing_is_fragmented() {
    let graph = graph("+a3 +b4 +c3 -a -c +d6 EXP:d -d EXP:b -b");
    let machine = Machine::resolve(&graph, &hardware(&[("UB", 10)])).unwrap();
    let moved = policy("belady", DEFAULT_CHAIN, "best-fit").movement_in_bytes(
        &graph,
        &machine,
        &Schedule::default_for(&graph),
        &mut Workspace::default(),
    );
    assert_eq!(moved, Ok(Bytes(0)));
}

#[test]
fn what_is_too_large_is_said_before_any_work() {
    let graph = graph("+a11 =a -a +b6 +c5 ADD:b,c -b -c");
    let error = plan(&graph, &hardware(&[("UB", 10)]), &policy("lru", DEFAULT_CHAIN, "best-fit")).unwrap_err();
    let PlanError::Misfit(list) = error else { panic!("{error}") };
    let [
        FitError::BufferTooLarge { node, size, capacity, .. },
        FitError::OperandsTooLarge { node: op, needed, operands, .. },
    ] = list.as_slice()
    else {
        panic!("{list:?}")
    };
    assert_eq!((node.0, *size, *capacity), (0, Bytes(11), Bytes(10)));
    assert_eq!((op.0, *needed, operands.len()), (5, Bytes(11), 2));
}
