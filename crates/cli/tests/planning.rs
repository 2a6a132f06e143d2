//! `plan` and `compare`: what they print, and what they refuse.

mod common;

use common::{EXAMPLE, Place, data};
use insta::assert_snapshot;
use serde_json::Value;

/// The output without the line that tells times.
fn without_times(out: &str) -> String {
    let (times, lines): (Vec<_>, Vec<_>) = out.lines().partition(|l| l.starts_with("Planned in "));
    assert_eq!(times.len(), 1, "{out}");
    lines.join("\n")
}

fn json(place: &Place, line: &str) -> Value {
    serde_json::from_str(&place.good(line)).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// The schedule of the worked example.
const SCHEDULE: &str = "0\n1\n2\n4\n5\n3\n6\n7\n";

fn worked_example() -> Place {
    let place = Place::with_example();
    place.put("s.txt", SCHEDULE);
    place
}

#[test]
fn the_worked_example_is_planned() {
    let place = worked_example();
    let out = place.good("plan example.json --schedule s.txt --capacity UB=10");
    assert_snapshot!(without_times(&out), @r"
    example on davinci with UB=10: 8 nodes, 2 buffers; life-size, single+multi+postpone, best-fit, normalize free

      cache  capacity  peak  fragmented  spills  moved  backed  generated  by capacity  by fragmentation
      UB           10     6        0.0%       2     12      12          0           12                 0
    Extra movement 12 bytes in 2 spills; peak demand 12 bytes.
    Makespan 354 cycles (literal 349), at least 344.
    Every plan that keeps this schedule moves at least 4 bytes (flow bound); this one moves 8 more (200.0%).
    4 requests for space, 2 found no hole: single 2.
    Nothing is written: --out DIR names a directory for the plan.
    ");
    let out = place.good("plan example.json --schedule s.txt --capacity UB=10 --strategies postpone-first");
    assert_snapshot!(without_times(&out), @r"
    example on davinci with UB=10: 8 nodes, 2 buffers; life-size, postpone+single+multi, best-fit, normalize free

      cache  capacity  peak  fragmented  spills  moved  backed  generated  by capacity  by fragmentation
      UB           10     6        0.0%       0      0       0          0            0                 0
    Extra movement 0 bytes in 0 spills; peak demand 6 bytes.
    Makespan 30 cycles (literal 30), at least 20.
    Optimal: no plan that keeps this order of ops moves less (flow bound).
    3 requests for space, 1 found no hole: postponed 1.
    Nothing is written: --out DIR names a directory for the plan.
    ");
}

#[test]
fn each_decision_is_logged_with_its_reason() {
    let place = worked_example();
    let ran = place.run("plan example.json --schedule s.txt --capacity UB=10 -v");
    assert_snapshot!(ran.err, @r"
    position 2 of the normalised schedule, node 2 (ALLOC): buffer 1 needs 6 bytes of UB; capacity (4 free, largest hole 4): single evicts buffer 0 (6 bytes at 0, score 12); hole of 10 at 0
    position 3 of the normalised schedule, node 4 (EXP): buffer 0 needs 6 bytes of UB; capacity (4 free, largest hole 4): single evicts buffer 1 (6 bytes at 0, score 24); hole of 10 at 0
    ");
    let ran = place.run("plan example.json --schedule s.txt --capacity UB=10 --strategies postpone-first -v");
    assert_snapshot!(ran.err, @"position 2 of the normalised schedule, node 2 (ALLOC): buffer 1 needs 6 bytes of UB; capacity (4 free, largest hole 4): postponed to after position 4");
    let ran = place.run("plan example.json --schedule s.txt --capacity UB=10 --strategies none -v");
    assert_snapshot!(ran.err, @r"
    position 2 of the normalised schedule, node 2 (ALLOC): buffer 1 needs 6 bytes of UB; capacity (4 free, largest hole 4): last resort evicts buffer 0 (6 bytes at 0); hole of 10 at 0
    position 3 of the normalised schedule, node 4 (EXP): buffer 0 needs 6 bytes of UB; capacity (4 free, largest hole 4): last resort evicts buffer 1 (6 bytes at 0); hole of 10 at 0
    ");
}

#[test]
fn comparing_logs_heuristic_by_heuristic() {
    let place = worked_example();
    let ran = place.run("compare example.json --schedule s.txt --capacity UB=10 --heuristics lru,belady -v");
    assert_eq!(ran.status, 0);
    assert_snapshot!(ran.err, @r"
    lru: position 2 of the normalised schedule, node 2 (ALLOC): buffer 1 needs 6 bytes of UB; capacity (4 free, largest hole 4): single evicts buffer 0 (6 bytes at 0, score 1); hole of 10 at 0
    lru: position 3 of the normalised schedule, node 4 (EXP): buffer 0 needs 6 bytes of UB; capacity (4 free, largest hole 4): single evicts buffer 1 (6 bytes at 0, score 1); hole of 10 at 0
    belady: position 2 of the normalised schedule, node 2 (ALLOC): buffer 1 needs 6 bytes of UB; capacity (4 free, largest hole 4): single evicts buffer 0 (6 bytes at 0, score 1); hole of 10 at 0
    belady: position 3 of the normalised schedule, node 4 (EXP): buffer 0 needs 6 bytes of UB; capacity (4 free, largest hole 4): single evicts buffer 1 (6 bytes at 0, score 2); hole of 10 at 0
    ");
    place.put("other.json", EXAMPLE);
    let ran =
        place.run("compare example.json other.json --capacity UB=10 --heuristics lru,belady -v --strategies none");
    let mut labels: Vec<_> = ran.err.lines().map(|l| l.split(": ").next().unwrap()).collect();
    labels.dedup();
    assert_eq!(labels, ["example, lru", "example, belady", "other, lru", "other, belady"]);
}

#[test]
fn only_commands_that_plan_take_v() {
    let place = worked_example();
    for command in ["inspect example.json", "check example.json", "list", "convert example.json"] {
        assert!(place.refused(&format!("{command} -v")).contains("unexpected argument '-v'"), "{command}");
    }
    assert!(place.refused("plan example.json -v -q").contains("cannot be used with"));
}

#[test]
fn the_best_scored_that_stays_is_told() {
    let place = Place::new();
    let graph = common::shipped("conv-3x2x4.json");
    let ran = place.run(&format!("plan {} -v", graph.display()));
    assert!(ran.err.contains("; best-scored that stays: buffer "), "{}", ran.err);
}

#[test]
fn json_has_stable_keys() {
    let place = worked_example();
    let planned = json(&place, "plan example.json --schedule s.txt --capacity UB=10 --json");
    for key in [
        "extra_movement",
        "spill_count",
        "makespan",
        "makespan_literal",
        "makespan_lower_bound",
        "pipe_busy",
        "peak_demand",
        "peak_residency",
        "fragmentation",
        "valid",
        "violations",
        "elapsed_ms",
    ] {
        assert!(!planned[key].is_null(), "{key}: {planned}");
    }
    assert_eq!((&planned["extra_movement"], &planned["spill_count"]), (&12.into(), &2.into()));
    assert_eq!(planned["movement"]["by_cache"]["UB"]["backed"], 12);
    assert_eq!(planned["settings"]["hardware"]["caches"]["UB"]["capacity"], 10);
}

#[test]
fn figures_without_timing_are_null() {
    let place = Place::new();
    place.put("g.json", EXAMPLE.replace("\"Cycles\":5,", ""));
    let planned = json(&place, "plan g.json --json -q");
    assert!(planned["makespan"].is_null() && planned["makespan_literal"].is_null());
    assert_eq!(planned["extra_movement"], 0);
    assert!(place.good("plan g.json").contains("Makespan unknown"));
}

#[test]
fn all_heuristics_are_compared_in_one_table() {
    let place = worked_example();
    let out = place.good("compare example.json --schedule s.txt --capacity UB=10");
    assert_eq!(out.lines().count(), 13, "{out}");
    let compared =
        json(&place, "compare example.json --schedule s.txt --capacity UB=10 --heuristics lru,belady --json");
    let rows = compared["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|r| r["heuristic"].as_str().unwrap()).collect();
    assert_eq!(names, ["lru", "belady"]);
    assert!(rows.iter().all(|r| r["makespan_lower_bound"].is_number() && r["pipe_busy"]["VECTOR"] == 10));
    assert!(rows.iter().all(|r| r["best"] == true && r["valid"] == true && r["extra_movement"] == 12));
}

#[test]
fn comparing_does_not_depend_on_threads() {
    let place = Place::with_example();
    place.put("other.json", EXAMPLE.replace("\"Size\":6", "\"Size\":7"));
    let rows = |threads: &str| {
        let ran = assert_cmd::Command::cargo_bin("spillbench")
            .unwrap()
            .env("RAYON_NUM_THREADS", threads)
            .current_dir(place.path("."))
            .args(["compare", "example.json", "other.json", "--capacity", "UB=10", "--json"])
            .output()
            .unwrap();
        let mut compared: Value = serde_json::from_slice(&ran.stdout).unwrap();
        for row in compared["rows"].as_array_mut().unwrap() {
            row["elapsed_ms"] = 0.into();
        }
        compared
    };
    assert_eq!(rows("1"), rows("4"));
}

#[test]
fn what_cannot_fit_is_refused_with_its_operands() {
    let place = Place::new();
    place.put(
        "g.json",
        EXAMPLE.replace("\"Bufs\":[0]", "\"Bufs\":[0,1]").replace("[2,3]", "[2,3],[2,1],[2,4],[1,7],[4,7]"),
    );
    assert_snapshot!(place.refused("plan g.json --capacity UB=11 -q"), @r"
    error: g.json: no plan exists on davinci with UB=11
      node 1 (COPY_IN) needs 12 bytes of UB at once, which has 11: buffer 0 (6) buffer 1 (6)
      node 4 (EXP) needs 12 bytes of UB at once, which has 11: buffer 0 (6) buffer 1 (6)
    help: the operands of an op must be in UB together: give it 12 bytes (--capacity UB=12), or split what is too large; `spillbench inspect` lists the smallest capacities that do
    ");
    assert_snapshot!(place.refused("plan g.json --capacity UB=5 -q"), @r"
    error: g.json: no plan exists on davinci with UB=5
      node 0: buffer 0 of 6 bytes is larger than UB (5 bytes)
      node 2: buffer 1 of 6 bytes is larger than UB (5 bytes)
      node 1 (COPY_IN) needs 12 bytes of UB at once, which has 5: buffer 0 (6) buffer 1 (6)
      node 4 (EXP) needs 12 bytes of UB at once, which has 5: buffer 0 (6) buffer 1 (6)
    help: the operands of an op must be in UB together: give it 12 bytes (--capacity UB=12), or split what is too large; `spillbench inspect` lists the smallest capacities that do
    ");
    place.put("g.json", EXAMPLE.replace("UB", "SRAM"));
    assert_snapshot!(place.refused("compare g.json"), @r"
    error: g.json: no plan exists on davinci
      node 0 allocates in cache SRAM, which the hardware does not have
    help: give a hardware file that has SRAM (--hardware FILE), or rename the Type in the graph
    ");
}

#[test]
fn conv_needs_3072_bytes_of_l1() {
    let Some(conv) = data("cpmcm2025a/Conv_Case0.json") else { return };
    let place = Place::new();
    let refused = place.refused(&format!("plan {} --capacity L1=2560", conv.display()));
    for part in ["node 107 (CONV_ADD) needs 3072 bytes of L1", "has 2560", "buffer 46 (1536)", "--capacity L1=3072"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let planned = json(&place, &format!("plan {} --capacity L1=3072 --json", conv.display()));
    assert_eq!(planned["valid"], true);
}

#[test]
fn arguments_that_do_not_go_together_are_refused() {
    let place = worked_example();
    assert_snapshot!(place.refused("plan example.json --heuristic beladi"), @r#"
    error: there is no heuristic "beladi"
    help: did you mean "belady"? (known: life-size, lru, belady, cost-belady, fifo, mru, lfu, random, largest, smallest, greedy-dual-size)
    "#);
    assert_snapshot!(place.refused("plan example.json --placement worst"), @r#"
    error: there is no placement "worst"
    help: did you mean "worst-fit"? (known: best-fit, first-fit, next-fit, worst-fit, two-ended, round-robin, least-recently-released, least-delay)
    "#);
    assert_snapshot!(place.refused("plan example.json --strategies single,windows"), @r#"
    error: there is no strategy or chain "windows"
    help: did you mean "window"? (known: single, multi, window, postpone, default, postpone-first, none)
    "#);
    assert_snapshot!(place.refused("plan example.json --strategies single,single"), @r"
    error: the strategy single stands twice
    help: name each strategy once
    ");
    assert_snapshot!(place.refused("compare example.json example.json --schedule s.txt"), @r"
    error: one schedule cannot belong to several graphs
    help: compare one graph at a time when --schedule is given
    ");
    assert_snapshot!(place.refused("plan example.json --capacity UB=x"), @r#"
    error: invalid value 'UB=x' for '--capacity <CACHE=BYTES>': "x" is not a whole number of bytes below 2^64, such as 3072 or 4K

    For more information, try '--help'.
    "#);
}

#[test]
fn negative_numbers_are_refused_as_such() {
    let place = worked_example();
    for option in ["--attempts", "--prefetch", "--seed"] {
        let refused = place.refused(&format!("plan example.json {option} -1"));
        assert!(refused.contains(&format!("invalid value '-1' for '{option} <")), "{refused}");
    }
}

/// The files of a plan, in the order of their names.
const FILES: [&str; 4] = ["example_memory.txt", "example_plan.json", "example_schedule.txt", "example_spill.txt"];

#[test]
fn a_plan_is_written_as_text_and_as_a_document() {
    let place = worked_example();
    let out = place.good("plan example.json --schedule s.txt --capacity UB=10 --out made/plans");
    assert!(out.ends_with("example_plan.json\n"), "{out}");
    assert_eq!(place.names("made/plans"), FILES);
    assert_eq!(place.text("made/plans/example_schedule.txt"), "0\n1\n8\n2\n10\n9\n4\n5\n11\n3\n6\n7\n");
    assert_eq!(place.text("made/plans/example_memory.txt"), "0:0\n1:0\n");
    assert_eq!(place.text("made/plans/example_spill.txt"), "0:0\n1:0\n");
    let document: Value = serde_json::from_str(&place.text("made/plans/example_plan.json")).unwrap();
    assert_eq!(document["metrics"]["extra_movement"], 12);
    assert_eq!(document["task"], "example");
    assert!(!place.text("made/plans/example_plan.json").contains("elapsed"));
}

#[test]
fn the_same_plan_is_the_same_bytes() {
    let place = worked_example();
    for dir in ["one", "two"] {
        place.good(&format!("plan example.json --capacity UB=10 --heuristic random --seed 7 --out {dir}"));
    }
    for file in FILES {
        assert_eq!(place.text(&format!("one/{file}")), place.text(&format!("two/{file}")), "{file}");
    }
}

#[test]
fn a_task_may_have_another_name() {
    let place = worked_example();
    place.good("plan example.json --task other --out . --json");
    assert!(place.names(".").contains(&"other_plan.json".to_owned()));
    let out = place.run_with("plan - --task piped --out . -q", EXAMPLE);
    assert_eq!(out.status, 0, "{}", out.err);
    assert!(place.names(".").contains(&"piped_plan.json".to_owned()));
    assert_snapshot!(place.refused("plan example.json --task ../out --out ."), @r#"
    error: "../out" is no name for a task
    help: it begins file names: give --task NAME without / and control characters
    "#);
    assert!(
        place.refused("plan example.json --task a\u{1b}b").starts_with("error: \"a\\u{1b}b\" is no name for a task")
    );
}

#[test]
fn nothing_is_left_behind_where_a_plan_cannot_be_written() {
    let place = worked_example();
    place.put("file", "");
    let scrub = |message: String| message.replace(&place.path("").display().to_string(), "");
    assert_snapshot!(scrub(place.refused("plan example.json --out file")), @r"
    error: file is not a directory
    help: nothing was written; give another --out DIR
    ");
    assert_snapshot!(scrub(place.refused("plan example.json --out file/deeper")), @r"
    error: cannot create the directory file/deeper: Not a directory (os error 20)
    help: nothing was written; give another --out DIR
    ");
    std::fs::create_dir_all(place.path("out/example_plan.json")).unwrap();
    assert_snapshot!(scrub(place.refused("plan example.json --out out")), @r"
    error: cannot write out/example_plan.json: a directory has that name
    help: nothing was written; give another --out DIR
    ");
    assert_eq!(place.names("out"), ["example_plan.json"]);
    // A graph that is refused leaves no directory behind either.
    place.refused("plan example.json --capacity UB=1 --out fresh");
    assert!(!place.path("fresh").exists());
}

#[test]
fn ids_that_leave_none_for_spills_are_refused() {
    let place = Place::new();
    let last = (i64::MAX - 1).to_string();
    place
        .put("g.json", EXAMPLE.replace("\"Id\":7", &format!("\"Id\":{last}")).replace("[6,7]", &format!("[6,{last}]")));
    assert_snapshot!(place.refused("plan g.json --capacity UB=10"), @"error: g.json: spill 1 has no id: node ids reach 9223372036854775806, and spill ids would pass 2^63-1");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_printed_is_an_error() {
    let place = Place::with_example();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_spillbench"))
        .args(["plan", "example.json"])
        .current_dir(place.path(""))
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert_snapshot!(String::from_utf8(ran.stderr).unwrap(), @"error: standard output: No space left on device (os error 28)");
}
