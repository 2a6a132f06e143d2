//! Packing: against brute force on small instances, and the public benchmark.

use proptest::prelude::*;
use spillbench_bounds::pack::{
    Conflict, Interval, Limits, LiveGap, PackError, Problem, Verdict, pack, verify, verify_fixed,
};
use std::path::PathBuf;

/// Tries every offset of every interval.
fn brute_force(problem: &Problem) -> bool {
    fn place(problem: &Problem, offsets: &mut Vec<u64>) -> bool {
        let n = offsets.len();
        if n == problem.intervals.len() {
            return true;
        }
        let first = Problem { intervals: problem.intervals[..=n].to_vec(), capacity: problem.capacity };
        (0..=problem.capacity).any(|offset| {
            offsets.push(offset);
            let found = verify(&first, offsets).is_ok() && place(problem, offsets);
            if !found {
                offsets.pop();
            }
            found
        })
    }
    place(problem, &mut Vec::new())
}

fn agrees_with_brute_force(problem: &Problem) -> Result<(), TestCaseError> {
    let packed = pack(problem, Limits::nodes(1_000_000)).unwrap();
    prop_assert_eq!(packed.conflict, verify_fixed(problem).err());
    match packed.verdict {
        Verdict::Packed => {
            let best = packed.best.unwrap();
            prop_assert_eq!(verify(problem, &best.offsets), Ok(()));
            prop_assert!(best.height >= packed.lower_bound);
        }
        Verdict::Infeasible => prop_assert!(!brute_force(problem)),
        Verdict::NotProven => prop_assert!(problem.intervals.iter().any(|i| i.alignment > 1), "small cases finish"),
    }
    Ok(())
}

fn plain() -> impl Strategy<Value = Interval> {
    (0i64..8, 1i64..5, 1u64..5).prop_map(|(lower, width, size)| Interval::new(lower, lower + width, size))
}

fn full() -> impl Strategy<Value = Interval> {
    let gap = (0i64..4, 1i64..3, proptest::option::of((0u64..4, 1u64..4)));
    let fixed = proptest::option::weighted(0.15, 0u64..8);
    (plain(), proptest::option::of(gap), fixed, prop_oneof![4 => Just(1u64), 1 => Just(2), 1 => Just(4)]).prop_map(
        |(mut i, gap, offset, alignment)| {
            (i.offset, i.alignment) = (offset, alignment);
            if let Some((after, width, window)) = gap {
                let (lower, upper) = ((i.lower + after).min(i.upper - 1), (i.lower + after + width).min(i.upper));
                let window = window.map(|(low, bytes)| (low.min(i.size), (low + bytes).min(i.size)));
                i.gaps.push(LiveGap { lower, upper: upper.max(lower + 1), window });
            }
            i
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn plain_intervals_agree_with_brute_force(
        intervals in proptest::collection::vec(plain(), 1..9),
        slack in 0u64..2,
    ) {
        let unbounded = Problem { intervals, capacity: 1 << 40 };
        let least = pack(&unbounded, Limits::nodes(0)).unwrap().lower_bound;
        agrees_with_brute_force(&Problem { capacity: least + slack, ..unbounded })?;
    }

    #[test]
    fn gaps_alignments_and_fixed_offsets_agree_with_brute_force(
        intervals in proptest::collection::vec(full(), 1..7),
        slack in 0u64..3,
    ) {
        let unbounded = Problem { intervals, capacity: 1 << 40 };
        let least = pack(&unbounded, Limits::nodes(0)).unwrap().lower_bound;
        agrees_with_brute_force(&Problem { capacity: least + slack, ..unbounded })?;
    }
}

fn with_gap(lower: i64, upper: i64, size: u64, window: Option<(u64, u64)>, gap: (i64, i64)) -> Interval {
    let gaps = vec![LiveGap { lower: gap.0, upper: gap.1, window }];
    Interval { gaps, ..Interval::new(lower, upper, size) }
}

#[test]
fn raised_intervals_interlock() {
    // Each is below the other at some time, so that neither floor leads to the packing.
    let a = with_gap(0, 2, 4, Some((3, 4)), (1, 2));
    let b = with_gap(0, 2, 4, Some((3, 4)), (0, 1));
    let problem = Problem { intervals: vec![a, b], capacity: 7 };
    let packed = pack(&problem, Limits::nodes(1000)).unwrap();
    assert_eq!(packed.verdict, if brute_force(&problem) { Verdict::Packed } else { Verdict::Infeasible });
    let c = with_gap(0, 3, 3, Some((1, 3)), (1, 2));
    let d = with_gap(1, 4, 3, Some((0, 1)), (1, 2));
    let problem = Problem { intervals: vec![c, d], capacity: 6 };
    assert_eq!(pack(&problem, Limits::nodes(1000)).unwrap().verdict, Verdict::Packed);
}

#[test]
fn more_live_bytes_than_there_are_need_no_search() {
    let problem = Problem { intervals: vec![Interval::new(0, 2, 3), Interval::new(1, 3, 3)], capacity: 5 };
    let packed = pack(&problem, Limits::nodes(0)).unwrap();
    assert_eq!((packed.verdict, packed.lower_bound, packed.best.unwrap().height), (Verdict::Infeasible, 6, 6));
}

#[test]
fn fixed_offsets_that_collide_are_infeasible() {
    let at = |offset| Interval { offset: Some(offset), ..Interval::new(0, 2, 3) };
    let problem = Problem { intervals: vec![at(0), at(2)], capacity: 100 };
    let packed = pack(&problem, Limits::nodes(100)).unwrap();
    assert_eq!((packed.verdict, packed.best), (Verdict::Infeasible, None));
}

#[test]
fn a_hinted_packing_is_kept() {
    let at = |lower, hint| Interval { hint: Some(hint), ..Interval::new(lower, lower + 2, 3) };
    let problem = Problem { intervals: vec![at(0, 5), at(1, 1)], capacity: 9 };
    assert_eq!(pack(&problem, Limits::nodes(0)).unwrap().best.unwrap().offsets, [5, 1]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |interval| pack(&Problem { intervals: vec![interval], capacity: 9 }, Limits::nodes(1)).unwrap_err();
    assert_eq!(refused(Interval::new(2, 2, 1)), PackError::EmptyLife { interval: 0, lower: 2, upper: 2 });
    assert_eq!(refused(Interval::new(0, 2, 0)), PackError::Zero { interval: 0 });
    assert_eq!(refused(Interval::new(0, 2, u64::MAX)), PackError::TooLarge);
    let outside = with_gap(0, 2, 3, None, (1, 3));
    assert_eq!(refused(outside), PackError::BadGap { interval: 0, lower: 1, upper: 3 });
    let window = with_gap(0, 2, 3, Some((1, 4)), (0, 1));
    assert_eq!(refused(window), PackError::BadGap { interval: 0, lower: 0, upper: 1 });
}

#[test]
fn the_verifier_names_the_rule() {
    let problem = Problem {
        intervals: vec![Interval::new(0, 2, 3), Interval { alignment: 2, ..Interval::new(1, 3, 3) }],
        capacity: 7,
    };
    assert_eq!(verify(&problem, &[0, 4]), Ok(()));
    assert_eq!(verify(&problem, &[0]), Err(Conflict::Count { offsets: 1, intervals: 2 }));
    assert_eq!(verify(&problem, &[0, 3]), Err(Conflict::Place { interval: 1, offset: 3 }));
    assert_eq!(verify(&problem, &[5, 0]), Err(Conflict::Capacity { interval: 0, offset: 5 }));
    assert_eq!(verify(&problem, &[0, 2]), Err(Conflict::Overlap { first: 0, second: 1, moment: 1 }));
}

#[test]
fn moments_and_sizes_at_the_limits_do_not_overflow() {
    let problem = Problem {
        intervals: vec![Interval::new(i64::MIN, i64::MAX, 1 << 60), Interval::new(i64::MIN, i64::MAX, 1 << 60)],
        capacity: u64::MAX,
    };
    assert_eq!(pack(&problem, Limits::nodes(10)).unwrap().verdict, Verdict::Packed);
    assert_eq!(pack(&Problem { intervals: vec![], capacity: 0 }, Limits::nodes(1)).unwrap().verdict, Verdict::Packed);
}

/// Packs public instances, where `SPILLBENCH_DATA` has them.
fn the_minimalloc_benchmark_packs(names: &[&str], nodes: u64) {
    let data = std::env::var_os("SPILLBENCH_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/external")), PathBuf::from);
    for name in names {
        let path = data.join(format!("minimalloc/{name}.1048576.csv"));
        let Ok(text) = std::fs::read_to_string(&path) else {
            println!("skipped: {} is not there", path.display());
            continue;
        };
        let interval = |line: &str| {
            let f: Vec<i64> = line.split(',').map(|f| f.parse().unwrap()).collect();
            Interval::new(f[1], f[2], f[3].unsigned_abs())
        };
        let problem = Problem { intervals: text.lines().skip(1).map(interval).collect(), capacity: 1 << 20 };
        let packed = pack(&problem, Limits::nodes(nodes)).unwrap();
        println!("{name}: {:?} after {} nodes", packed.verdict, packed.nodes);
        assert_eq!(packed.verdict, Verdict::Packed, "{name}");
        assert_eq!(verify(&problem, &packed.best.unwrap().offsets), Ok(()));
    }
}

#[test]
fn seven_of_the_minimalloc_benchmark_pack_within_ten_thousand_nodes() {
    the_minimalloc_benchmark_packs(&["B", "C", "D", "F", "G", "J", "K"], 10_000);
}

/// `cargo test --release -p spillbench-bounds --test pack -- --ignored --nocapture`; all but I together
/// take some ten seconds.
#[test]
#[ignore = "takes some minutes"]
fn all_of_the_minimalloc_benchmark_packs() {
    the_minimalloc_benchmark_packs(&["A", "B", "C", "D", "E", "F", "G", "H", "J", "K"], 400_000);
    the_minimalloc_benchmark_packs(&["I"], 10_000_000);
}
