//! `explain`: why a plan spills, what it costs, and what would save most.

mod common;

use common::{Place, all_shipped, data, shipped};
use insta::assert_snapshot;
use serde_json::Value;

fn json(place: &Place, line: &str) -> Value {
    serde_json::from_str(&place.good(line)).unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn worked_example() -> Place {
    let place = Place::with_example();
    place.put("s.txt", "0\n1\n2\n4\n5\n3\n6\n7\n");
    place
}

#[test]
fn the_worked_example_is_explained() {
    let out = worked_example().good("explain example.json --schedule s.txt --capacity UB=10 --top 3");
    assert_snapshot!(out, @r"
    example on davinci with UB=10: 8 nodes, 2 buffers; life-size, single+multi+postpone, best-fit, normalize free
    12 bytes move in 2 spills of 2 buffers; 2 of 4 requests for space found no hole.

    Requests that found no hole, by cache
      cache  failed  postponed  spills  moved  by capacity  by fragmentation
      UB          2          0       2     12           12                 0

    By what the space was for
      op       request  cache  failed  postponed  spills  moved  by capacity  by fragmentation
      COPY_IN  alloc    UB          1          0       1      6            6                 0
      EXP      reload   UB          1          0       1      6            6                 0

    The dearest requests (2 of 2)
      position 2, node 2 (ALLOC): buffer 1 needs 6 bytes of UB; capacity (4 free, largest hole 4)
        single moves 6 bytes: buffer 0 (6 at 0, score 12, next use in 4)
        held by 1 buffer, 6 bytes: 0 (6, next use in 4)
      position 4, node 4 (EXP): buffer 0 needs 6 bytes of UB; capacity (4 free, largest hole 4)
        single moves 6 bytes: buffer 1 (6 at 0, score 24, next use in 5)
        held by 1 buffer, 6 bytes: 1 (6, next use in 5)

    The dearest buffers (2 of 2)
      buffer 0 of UB: 6 bytes, backed; moves 6 bytes in 1 spill; 2 uses, longest gap 5
        alloc 0, use 1, out 2, back 5, use 6, free 7
      buffer 1 of UB: 6 bytes, backed; moves 6 bytes in 1 spill; 2 uses, longest gap 6
        alloc 3, out 4, back 8, use 9, use 10, free 11

    Along the schedule, by tenths
      cache                1   2    3   4    5    6    7    8    9  10
      UB     full        60%  0%  60%  0%  60%  30%  60%  60%  60%  0%
      UB     fragmented   0%  0%   0%  0%   0%   0%   0%   0%   0%  0%
      UB     spills        0   1    0   1    0    0    0    0    0   0
      UB     moved         0   6    0   6    0    0    0    0    0   0

    Every plan that keeps this schedule moves at least 4 bytes (flow bound); this one moves 8 more (200.0%).

    Where the movement comes from
      cause          moved
      capacity           4  the bound of this order
      victims            8  by the same policy without addresses, beyond that
      fragmentation      0  this plan, beyond that

    Single changes, each planned: 5 of 25 changes save, the first most
      change      to                     moved  saved          spills  makespan  cycles saved
      capacity    UB=13                      0     12  100.0%       0        25           329
      capacity    UB=20                      0     12  100.0%       0        25           329
      strategies  postpone,single,multi      0     12  100.0%       0        30           324
    ");
}

#[test]
fn each_part_adds_up_to_the_whole() {
    let place = Place::new();
    for graph in all_shipped().into_iter().chain(data("cpmcm2025a/Conv_Case0.json")) {
        let line = format!("explain {} --all --no-what-if --json", graph.display());
        let told = json(&place, &line);
        assert_sums(&told);
        let caches = &told["settings"]["hardware"]["caches"];
        for decision in told["decisions"].as_array().unwrap() {
            assert_holders(decision, caches);
        }
    }
}

/// What each list tells sums up to the figures of the plan.
fn assert_sums(told: &Value) {
    let entries = |list: &str| told[list].as_array().unwrap();
    let sum = |list: &str, key: &str| -> u64 { entries(list).iter().map(|entry| entry[key].as_u64().unwrap()).sum() };
    let (moved, spills) = (told["extra_movement"].as_u64().unwrap(), told["spill_count"].as_u64().unwrap());
    for list in ["decisions", "by_cache", "by_op", "buffers"] {
        assert_eq!(sum(list, "moved"), moved, "{list} of {}", told["task"]);
    }
    for list in ["by_cache", "by_op", "buffers"] {
        assert_eq!(sum(list, "spills"), spills, "{list} of {}", told["task"]);
    }
    assert_eq!(entries("decisions").len() as u64, told["failed_requests"].as_u64().unwrap());
    let tenths = entries("timeline").iter().flat_map(|t| t["spills"].as_array().unwrap());
    assert_eq!(tenths.map(|s| s.as_u64().unwrap()).sum::<u64>(), spills);
}

/// Whoever held the space, held what was not free, and every victim is among them.
fn assert_holders(decision: &Value, caches: &Value) {
    let (held, victims) = (decision["held_by"].as_array().unwrap(), decision["victims"].as_array().unwrap());
    assert_eq!(victims.is_empty(), decision["met_by"] == "postponed", "{decision}");
    if victims.is_empty() {
        return;
    }
    let bytes: u64 = held.iter().map(|h| h["size"].as_u64().unwrap()).sum();
    let capacity = &caches[decision["cache"].as_str().unwrap()]["capacity"];
    assert_eq!(bytes + decision["free"].as_u64().unwrap(), capacity.as_u64().unwrap(), "{decision}");
    for v in victims {
        assert!(held.iter().any(|h| h["buf"] == v["buf"] && h["offset"] == v["offset"]), "{decision}");
    }
}

#[test]
fn changes_are_what_planning_with_them_gives() {
    let conv = shipped("conv-3x2x4.json");
    let place = Place::new();
    let told = json(&place, &format!("explain {} --json", conv.display()));
    let changes = told["what_if"].as_array().unwrap();
    let saved = |c: &Value| c["saved"].as_i64().unwrap();
    assert!(changes.windows(2).all(|w| saved(&w[0]) >= saved(&w[1])));
    let mut kinds = std::collections::BTreeSet::new();
    for change in changes {
        let (option, value) = (change["change"].as_str().unwrap(), change["value"].as_str().unwrap());
        kinds.insert(option);
        let planned = json(&place, &format!("plan {} --{option} {value} --json", conv.display()));
        for key in ["extra_movement", "spill_count", "makespan"] {
            assert_eq!(planned[key], change[key], "--{option} {value}: {key}");
        }
        let whole = told["extra_movement"].as_i64().unwrap();
        assert_eq!(saved(change), whole - planned["extra_movement"].as_i64().unwrap());
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["capacity", "heuristic", "normalize", "placement", "strategies"]
    );
}

#[test]
fn every_chain_and_the_last_resort_are_explained() {
    let place = Place::new();
    let graphs = ["conv-3x2x4.json", "fork-join-600.json", "trace-phases-600.json"].map(shipped);
    for graph in graphs.into_iter().chain(data("cpmcm2025a/Conv_Case0.json")) {
        let shortest = json(&place, &format!("inspect {} --json", graph.display()));
        let needed = |c: &Value| format!(" --capacity {}={}", c["cache"].as_str().unwrap(), c["smallest_capacity"]);
        let tight: String = shortest["caches"].as_array().unwrap().iter().map(needed).collect();
        for chain in ["none", "window", "multi", "postpone-first"] {
            let options = format!("--strategies {chain}{tight} --all --no-what-if --json");
            let told = json(&place, &format!("explain {} {options}", graph.display()));
            assert_sums(&told);
            let caches = &told["settings"]["hardware"]["caches"];
            told["decisions"].as_array().unwrap().iter().for_each(|d| assert_holders(d, caches));
        }
    }
}

#[test]
fn a_plan_without_spills_has_little_to_tell() {
    assert_snapshot!(Place::with_example().good("explain example.json"), @r"
    example on davinci: 8 nodes, 2 buffers; life-size, single+multi+postpone, best-fit, normalize free
    0 bytes move in 0 spills of 0 buffers; 0 of 2 requests for space found no hole.
    Optimal: no plan that keeps this schedule moves less (flow bound).
    ");
}

#[test]
fn what_a_reservation_forces_out_is_told_as_such() {
    let place = worked_example();
    // Both buffers fit until node 5 frees the first: then a byte of the place of the second is reserved.
    let line = "explain example.json --capacity UB=12 --reserve UB:1@5.. --no-what-if --bound never";
    let out = place.good(line);
    assert!(out.contains("0 of 3 requests for space found no hole."), "{out}");
    let told = out.split_once("\n\n").unwrap().1;
    assert_snapshot!(told, @r"
    Forced by reservations: 1 spill of 6 bytes, out of their way
      position 5, node 5 (FREE): leaves 11 bytes of UB; capacity
        moves 6 bytes: buffer 1 (6 at 6, next use in 3)
    ");
    let ran = place.run(&format!("{line} -v"));
    assert!(ran.err.contains("a reservation leaves 11 bytes of UB"), "{}", ran.err);
    // Where requests fail, too, positions are those of the right spills.
    let place = worked_example();
    let found = json(
        &place,
        "explain example.json --schedule s.txt --capacity UB=10 --reserve UB:4@1..1 --reserve UB:4@4..5 --json",
    );
    let moved: u64 = ["decisions", "reservations"]
        .iter()
        .flat_map(|key| found[key].as_array().unwrap())
        .map(|story| story["moved"].as_u64().unwrap())
        .sum();
    assert_eq!(Some(moved), found["extra_movement"].as_u64());
    assert!(found["what_if"].as_array().is_some_and(|changes| !changes.is_empty()));
}
