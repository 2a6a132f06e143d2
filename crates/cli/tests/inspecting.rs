//! `inspect`, `list` and `completions`: what they print.

mod common;

use common::{EXAMPLE, Place, data};
use insta::assert_snapshot;
use std::process::{Command, Stdio};

#[test]
fn a_small_graph_is_inspected() {
    assert_snapshot!(Place::with_example().good("inspect example.json"), @r"
    example: 8 nodes, 6 edges, 2 buffers

    Caches on davinci
      cache  capacity  buffers  backed  bytes  peak demand  of capacity  at node
      UB        1,024        2       2     12           12         1.2%        2

    Operands: the smallest capacities under which any plan exists
      cache  bytes  at node  op     most operands of one op
      UB         6        0  ALLOC                        1

    Buffer sizes
      cache  size  buffers  bytes
      UB        6        2     12

    Ops
      op       pipe    nodes  cycles
      ALLOC    -           2       -
      COPY_IN  MTE2        2      20
      EXP      VECTOR      2      10
      FREE     -           2       -

    Most used buffers
      buffer  cache  size  kind    uses  life
           0  UB        6  backed     2     5
           1  UB        6  backed     2     5

    Longest-lived buffers
      buffer  cache  size  kind    uses  life
           0  UB        6  backed     2     5
           1  UB        6  backed     2     5

    The default policy plans it without a spill.
    A plan exists on davinci.
    ");
}

#[test]
fn what_does_not_fit_is_named() {
    let out = Place::with_example().good("inspect example.json --capacity UB=5");
    assert_snapshot!(out.lines().skip_while(|l| !l.starts_with("No plan")).collect::<Vec<_>>().join("\n"), @r"
    No plan exists on davinci with UB=5:
      node 0: buffer 0 of 6 bytes is larger than UB (5 bytes)
      node 2: buffer 1 of 6 bytes is larger than UB (5 bytes)
    ");
}

#[test]
fn a_cache_that_the_hardware_lacks_is_named() {
    let place = Place::new();
    place.put("g.json", EXAMPLE.replace("UB", "SRAM"));
    let json: serde_json::Value = serde_json::from_str(&place.good("inspect g.json --json")).unwrap();
    assert_eq!(json["fits"], false);
    assert_eq!(json["misfits"][0], "node 0 allocates in cache SRAM, which the hardware does not have");
    assert!(json["caches"][0]["capacity"].is_null());
}

#[test]
fn notices_are_told_unless_quiet() {
    let place = Place::new();
    place.put("g.json", EXAMPLE.replace("\"Cycles\":5,", "").replacen("\"Id\":0", "\"Color\":7,\"Id\":0", 1));
    let ran = place.run("inspect g.json");
    assert_eq!(ran.status, 0);
    assert_snapshot!(ran.err, @r#"
    note: g.json: the key "Color" is unknown and ignored (seen once)
    note: g.json: 2 ops have no Pipe or no Cycles (the first is node 4): timing figures are null
    "#);
    assert_eq!(place.run("inspect g.json -q").err, "");
}

#[test]
fn notices_count_in_words_that_fit() {
    let place = Place::new();
    place.put("g.json", EXAMPLE.replacen("\"Cycles\":5,", "", 1).replacen("\"Id\":1,", "\"Id\":1,\"Size\":3,", 1));
    assert_snapshot!(place.run("inspect g.json").err, @r"
    note: g.json: Size means nothing on an op and is ignored on node 1
    note: g.json: 1 op has no Pipe or no Cycles (the first is node 4): timing figures are null
    ");
}

#[test]
fn ids_that_are_no_order_are_noted() {
    let place = Place::new();
    // The first two nodes, which an edge orders, trade their ids.
    let swapped =
        EXAMPLE.replace("\"Id\":0", "\"Id\":9").replace("\"Id\":1,", "\"Id\":0,").replace("[0,1],[1,4]", "[9,0],[0,4]");
    place.put("g.json", swapped);
    let note = "note: g.json: some edge goes from a larger to a smaller id, so nodes do not simply go by id: each time the \
                smallest id whose predecessors are done comes next\n";
    for line in ["inspect g.json", "plan g.json", "explain g.json", "compare g.json"] {
        assert_eq!(place.run(line).err, note, "{line}");
    }
    place.put("s.txt", "2\n3\n9\n0\n4\n5\n6\n7\n");
    assert_eq!(place.run("inspect g.json --schedule s.txt").err, "");
}

#[test]
fn the_smallest_capacities_of_conv_are_found() {
    let Some(conv) = data("cpmcm2025a/Conv_Case0.json") else { return };
    let line = format!("inspect {} --json", conv.display());
    let json: serde_json::Value = serde_json::from_str(&Place::new().good(&line)).unwrap();
    let l1 = json["caches"].as_array().unwrap().iter().find(|c| c["cache"] == "L1").unwrap();
    assert_eq!(l1["smallest_capacity"], 3072);
    assert_eq!(json["fits"], true);
}

#[test]
fn every_kind_of_name_is_listed() {
    let place = Place::new();
    let all = place.good("list");
    for name in
        ["life-size", "belady", "postpone-first", "two-ended", "davinci-unbounded", "memory", "window", "bandwidth"]
    {
        assert!(all.contains(name), "{name}: {all}");
    }
    assert_snapshot!(place.good("list chains"), @r"
    chains (--strategies CHAIN)
     default         single, multi, postpone
     postpone-first  postpone, single, multi
     none            no strategy: only the last resort is left
    ");
    let json: serde_json::Value = serde_json::from_str(&place.good("list placements --json")).unwrap();
    assert_eq!(json["placements"][0]["name"], "best-fit");
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(Place::new().good(&format!("completions {shell}")).contains("inspect"), "{shell}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_does_not_change_the_verdict() {
    let place = Place::with_example();
    place.good("plan example.json --out .");
    place.put("example_memory.txt", "0:0\n1:0\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_spillbench"))
        .args(["check", "example.json", "--schedule", "example_schedule.txt", "--memory", "example_memory.txt"])
        .args(["--spill", "example_spill.txt"])
        .current_dir(place.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(1), 0));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for args in [&["list"][..], &["completions", "zsh"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_spillbench"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{args:?}");
    }
}
