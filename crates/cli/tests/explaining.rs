//! `explain`: why a plan spills, what it costs, and what would save most.

mod common;

use common::{Place, data};
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

    Single changes, each planned: 5 of 22 changes save, the first most
      change      to                     moved  saved          spills  makespan  cycles saved
      capacity    UB=13                      0     12  100.0%       0        25           329
      capacity    UB=20                      0     12  100.0%       0        25           329
      strategies  postpone,single,multi      0     12  100.0%       0        30           324
    ");
}

#[test]
fn each_part_adds_up_to_the_whole() {
    let Some(conv) = data("cpmcm2025a/Conv_Case0.json") else { return };
    let line = format!("explain {} --all --json", conv.display());
    let told = json(&Place::new(), &line);
    let sum = |list: &str, key: &str| -> u64 {
        told[list].as_array().unwrap().iter().map(|entry| entry[key].as_u64().unwrap()).sum()
    };
    let moved = told["extra_movement"].as_u64().unwrap();
    let spills = told["spill_count"].as_u64().unwrap();
    assert!(moved > 0);
    for list in ["decisions", "by_cache", "by_op", "buffers"] {
        assert_eq!(sum(list, "moved"), moved, "{list}");
    }
    for list in ["by_cache", "by_op", "buffers"] {
        assert_eq!(sum(list, "spills"), spills, "{list}");
    }
    let decisions = told["decisions"].as_array().unwrap();
    assert_eq!(decisions.len() as u64, told["failed_requests"].as_u64().unwrap());
    let victims: usize = decisions.iter().map(|d| d["victims"].as_array().unwrap().len()).sum();
    assert_eq!(victims as u64, spills);
    let by_tenths: u64 = told["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|t| t["spills"].as_array().unwrap())
        .map(|s| s.as_u64().unwrap())
        .sum();
    assert_eq!(by_tenths, spills);
    for d in decisions {
        // Whoever held the space, held what was not free, and every victim is among them.
        let held = d["held_by"].as_array().unwrap();
        let bytes: u64 = held.iter().map(|h| h["size"].as_u64().unwrap()).sum();
        assert_eq!(bytes + d["free"].as_u64().unwrap(), 4096, "{d}");
        for v in d["victims"].as_array().unwrap() {
            assert!(held.iter().any(|h| h["buf"] == v["buf"] && h["offset"] == v["offset"]), "{d}");
        }
    }
}

#[test]
fn changes_are_what_planning_with_them_gives() {
    let Some(conv) = data("cpmcm2025a/Conv_Case0.json") else { return };
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
    let Some(conv) = data("cpmcm2025a/Conv_Case0.json") else { return };
    let place = Place::new();
    for chain in ["none", "window", "multi", "postpone-first"] {
        let line =
            format!("explain {} --strategies {chain} --capacity L1=3072 --all --no-what-if --json", conv.display());
        let told = json(&place, &line);
        for d in told["decisions"].as_array().unwrap() {
            let held = d["held_by"].as_array().unwrap();
            let victims = d["victims"].as_array().unwrap();
            assert!(victims.iter().all(|v| held.iter().any(|h| h["buf"] == v["buf"])), "{chain}: {d}");
            assert_eq!(victims.is_empty(), d["met_by"] == "postponed", "{chain}: {d}");
        }
    }
}

#[test]
fn a_plan_without_spills_has_little_to_tell() {
    assert_snapshot!(Place::with_example().good("explain example.json"), @r"
    example on davinci: 8 nodes, 2 buffers; life-size, single+multi+postpone, best-fit, normalize free
    0 bytes move in 0 spills of 0 buffers; 0 of 2 requests for space found no hole.
    ");
}
