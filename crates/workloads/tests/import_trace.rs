//! Traces become graphs in which spilling is caching: on objects of one size, the spills of a
//! heuristic are the misses of the cache policy of that name, less the first load of each object.

use proptest::prelude::*;
use spillbench_core::planner::Workspace;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Hardware, Machine, checker, metrics};
use spillbench_heuristics::{Policy, heuristic};
use spillbench_workloads::import::trace::{TraceNotice, TraceOptions, import, read};
use std::collections::HashMap;

/// Misses of a cache of `room` objects that drops an object behind its last access.
fn misses(policy: &str, trace: &[u64], room: usize) -> usize {
    let later = |from: usize, id: u64| trace[from..].iter().position(|&x| x == id);
    let mut loads = 0;
    // For each object held: when it came, when it was used last, how often it was used.
    let mut held: HashMap<u64, (usize, usize)> = HashMap::new();
    for (now, &id) in trace.iter().enumerate() {
        if !held.contains_key(&id) {
            loads += 1;
            if held.len() == room {
                let victim = held.iter().max_by_key(|&(&id, &(came, used))| match policy {
                    "lru" => now - used,
                    "fifo" => now - came,
                    "mru" => trace.len() - (now - used),
                    _ => later(now, id).expect("an object that is held is used again"),
                });
                let victim = *victim.expect("a full cache holds something").0;
                held.remove(&victim);
            }
            held.insert(id, (now, now));
        }
        held.entry(id).and_modify(|times| times.1 = now);
        if later(now + 1, id).is_none() {
            held.remove(&id);
        }
    }
    loads
}

/// Spills of a heuristic where the cache holds `room` objects of `size`.
fn spills(name: &str, trace: &[u64], room: usize, size: u64) -> usize {
    let line = |(i, id): (usize, &u64)| format!("{i} {id} {size}\n");
    let text: String = trace.iter().enumerate().map(line).collect();
    let (graph, schedule, notices) = import(text.as_bytes(), &TraceOptions::default()).unwrap();
    assert_eq!(notices, []);
    let mut hardware = Hardware::default();
    hardware.caches["UB"].capacity = Bytes(room as u64 * size);
    let machine = Machine::resolve(&graph, &hardware).unwrap();
    for (level, ..) in Normalize::ALL {
        assert_eq!(schedule.clone().normalized(&graph, *level), schedule);
    }
    let policy = Policy { heuristic: heuristic(name).unwrap(), ..Policy::default() };
    let plan = policy.plan(&graph, &machine, &schedule, &mut Workspace::default()).unwrap();
    assert!(checker::check(&graph, &machine, &plan).is_valid());
    let metrics = metrics::measure(&graph, &machine, &plan).unwrap();
    assert_eq!(metrics.extra_movement.0, plan.spills.len() as u64 * size);
    plan.spills.len()
}

fn distinct(trace: &[u64]) -> usize {
    trace.iter().collect::<std::collections::HashSet<_>>().len()
}

#[test]
fn a_loop_over_three_objects_in_a_cache_of_two() {
    let trace = [0, 1, 2, 0, 1, 2];
    // Loads: five and four, three of which are the first of their object.
    assert_eq!((misses("lru", &trace, 2), spills("lru", &trace, 2, 1)), (5, 2));
    assert_eq!((misses("belady", &trace, 2), spills("belady", &trace, 2, 1)), (4, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn spills_are_the_misses_of_a_cache(
        trace in prop::collection::vec(0u64..12, 1..120), room in 1usize..8, size in 1u64..5,
    ) {
        for policy in ["lru", "fifo", "mru", "belady"] {
            let expected = misses(policy, &trace, room) - distinct(&trace);
            prop_assert_eq!(spills(policy, &trace, room, size), expected, "{}", policy);
        }
    }
}

#[test]
fn separators_headers_and_the_next_column_are_read() {
    let plain = read(b"0 5 8\n1 6 8\n2 5 8\n").unwrap();
    for text in [
        "\u{feff}time,id,size\r\n0,5,8\r\n1,6,8\r\n2,5,8\r\n\r\n",
        "0\t5\t8\t2\n1 6 8 -1\n2, 5, 8, 9223372036854775807\n",
        "Time Id Size Next\n0 5 8 2\n1 6 8 -1\n2 5 8 -1",
    ] {
        assert_eq!(read(text.as_bytes()).unwrap(), plain, "{text:?}");
    }
}

#[test]
fn odd_traces_are_told() {
    let (graph, _, notices) = import(b"5 1 8\n4 1 9\n6 18446744073709551615 3\n", &TraceOptions::default()).unwrap();
    assert_eq!(
        notices,
        [
            TraceNotice::TimeGoesBack { accesses: 1, line: 2 },
            TraceNotice::SizeChanges { objects: 1, first: 1 },
            TraceNotice::Numbered { first: u64::MAX },
        ]
    );
    let bufs: Vec<_> = graph.bufs().map(|b| (graph.buf(b).id.0, graph.buf(b).size.0)).collect();
    assert_eq!(bufs, [(0, 9), (1, 3)]);
}

#[test]
fn wrong_lines_are_named() {
    let error = |text: &str| import(text.as_bytes(), &TraceOptions::default()).unwrap_err().to_string();
    assert_eq!(error(" \n"), "the file holds no rows");
    assert_eq!(error("time id size\n"), "the file holds no rows");
    assert_eq!(error("0 1 1\n\n1 1 1\n"), "line 2: 0 field(s), not three or four: time id size [next]");
    assert_eq!(error("0 1 1 2 3\n"), "line 1: 5 field(s), not three or four: time id size [next]");
    assert_eq!(error("soon 1 1\n"), "line 1: time is \"soon\", not a number");
    assert_eq!(error("0 -1 1\n"), "line 1: id is \"-1\", not a whole number from 0 to 2^64-1");
    assert_eq!(error("0 1 0\n"), "line 1: size is \"0\", not a whole number from 1 to 2^62");
    assert_eq!(error("0 1 1 never\n"), "line 1: next is \"never\", not a number");
}
