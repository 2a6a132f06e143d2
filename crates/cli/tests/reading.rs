//! Inputs that cannot be right are refused: exit status 2, one screen, nothing printed.

mod common;

use common::{EXAMPLE, Place, refused};
use insta::assert_snapshot;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn message(graph: &str) -> String {
    let place = Place::new();
    place.put("g.json", graph);
    place.refused("inspect g.json")
}

/// The worked example with one text in place of another.
fn changed(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    message(&EXAMPLE.replacen(from, to, 1))
}

#[test]
fn broken_json_is_placed() {
    assert_snapshot!(message("{\"Nodes\": [\n{\"Id\": 0, oops}]}"), @"error: g.json: line 2, column 11: key must be a string");
    assert_snapshot!(changed("\"Edges\"", "\"Kanten\""), @"error: g.json: line 10, column 47: the document has no Edges");
    assert_snapshot!(message(&EXAMPLE[..300]), @"error: g.json: line 6, column 57: EOF while parsing a list");
}

#[test]
fn missing_and_mistyped_fields_are_placed() {
    assert_snapshot!(changed("\"BufId\":0,", ""), @r"
    error: g.json: 4 errors in the graph
      node 0 (ALLOC) has no BufId
      buffer 0 has no ALLOC (its FREE is node 5)
      node 1 (COPY_IN) uses buffer 0, which has no ALLOC
      node 4 (EXP) uses buffer 0, which has no ALLOC
    help: ALLOC and FREE need Id, Op, BufId, Size and Type; ops need Id and Op
    ");
    assert_snapshot!(changed("\"Op\":\"EXP\",", ""), @"error: g.json: line 6, column 46: Nodes[4] has no Op");
    assert_snapshot!(changed("\"Size\":6", "\"Size\":\"six\""), @r#"error: g.json: line 2, column 43: Size of Nodes[0]: invalid type: string "six", expected u64"#);
    assert_snapshot!(changed("[0,1]", "[0]"), @"error: g.json: line 10, column 12: Edges[0]: holds 1 id, not a pair of node ids, [from, to]");
    assert_snapshot!(changed("[0,1]", "[0,1,2]"), @"error: g.json: line 10, column 16: Edges[0]: holds 3 ids, not a pair of node ids, [from, to]");
}

#[test]
fn ids_and_edges_are_checked() {
    assert_snapshot!(changed("\"Id\":4", "\"Id\":3"), @r"
    error: g.json: 3 errors in the graph
      node id 3 stands twice, at Nodes[3] and Nodes[4]
      edge 1 -> 4 (Edges[1]): there is no node 4
      edge 4 -> 5 (Edges[2]): there is no node 4
    help: ids are distinct whole numbers from 0 to 2^63-1
    ");
    assert_snapshot!(changed("[0,1]", "[0,11]"), @r"
    error: g.json: 1 error in the graph
      edge 0 -> 11 (Edges[0]): there is no node 11
    help: an edge is a pair of the Ids of two nodes of the same file
    ");
    assert_snapshot!(changed("\"Id\":4", "\"Id\":9223372036854775808"), @r"
    error: g.json: 3 errors in the graph
      Id 9223372036854775808 at Nodes[4] passes 2^63-1
      edge 1 -> 4 (Edges[1]): there is no node 4
      edge 4 -> 5 (Edges[2]): there is no node 4
    help: ids are distinct whole numbers from 0 to 2^63-1
    ");
    assert_snapshot!(changed("[0,1]", "[0,1],[6,3]"), @r"
    error: g.json: 1 error in the graph
      the graph has a cycle: 6 -> 3 -> 6
    help: drop or turn one of these edges: a graph runs only if its edges form no cycle
    ");
}

#[test]
fn buffers_are_checked() {
    assert_snapshot!(changed("{\"Id\":2,\"Op\":\"ALLOC\"", "{\"Id\":2,\"Op\":\"FREE\""), @r"
    error: g.json: 4 errors in the graph
      buffer 1 has no ALLOC (its FREE is node 2)
      buffer 1 has no ALLOC (its FREE is node 7)
      node 3 (COPY_IN) uses buffer 1, which has no ALLOC
      node 6 (EXP) uses buffer 1, which has no ALLOC
    help: every buffer has exactly one ALLOC and one FREE, with the same BufId, Size and Type
    ");
    assert_snapshot!(changed("{\"Id\":5,\"Op\":\"FREE\"", "{\"Id\":5,\"Op\":\"NOP\""), @r"
    error: g.json: 1 error in the graph
      buffer 0 has no FREE (its ALLOC is node 0)
    help: every buffer has exactly one ALLOC and one FREE, with the same BufId, Size and Type
    ");
    assert_snapshot!(changed("\"Id\":5,\"Op\":\"FREE\",\"BufId\":0,\"Size\":6", "\"Id\":5,\"Op\":\"FREE\",\"BufId\":0,\"Size\":7"), @r"
    error: g.json: 1 error in the graph
      buffer 0 has size 6 at its ALLOC (node 0) and 7 at its FREE (node 5)
    help: ALLOC and FREE of a buffer carry the same Size, at least 1, and the same Type
    ");
    assert_snapshot!(changed("\"Id\":5,\"Op\":\"FREE\",\"BufId\":0,\"Size\":6,\"Type\":\"UB\"", "\"Id\":5,\"Op\":\"FREE\",\"BufId\":0,\"Size\":6,\"Type\":\"L1\""), @r"
    error: g.json: 1 error in the graph
      buffer 0 is of UB at its ALLOC (node 0) and of L1 at its FREE (node 5)
    help: ALLOC and FREE of a buffer carry the same Size, at least 1, and the same Type
    ");
    assert_snapshot!(changed("\"Size\":6", "\"Size\":0"), @r"
    error: g.json: 2 errors in the graph
      node 0: buffer 0 has size 0
      buffer 0 has size 0 at its ALLOC (node 0) and 6 at its FREE (node 5)
    help: ALLOC and FREE of a buffer carry the same Size, at least 1, and the same Type
    ");
    assert_snapshot!(changed("[4,5]", "[5,4]"), @r"
    error: g.json: 1 error in the graph
      node 4 uses buffer 0 outside its life: the edges put it after FREE (node 5): 5 -> 4
    help: ALLOC(b) -> every user of b -> FREE(b) is implied, whether the file lists it or not: drop the edge that contradicts it, or give the op another buffer
    ");
}

#[test]
fn sums_past_64_bits_are_refused() {
    let huge = format!("\"Size\":{}", u64::MAX / 3);
    assert_snapshot!(message(&EXAMPLE.replace("\"Size\":6", &huge)), @r"
    error: g.json: 1 error in the graph
      the sum of all sizes, each counted twice, passes 2^64-1 at node 2
    help: sums of sizes and cycles must stay below 2^63 and 2^64; sizes may be in any unit
    ");
    let huge = format!("\"Cycles\":{}", u64::MAX / 2);
    assert_snapshot!(message(&EXAMPLE.replace("\"Cycles\":10", &huge).replace("\"Cycles\":5", &huge)), @r"
    error: g.json: 1 error in the graph
      the sum of all cycles passes 2^64-1 at node 4
    help: sums of sizes and cycles must stay below 2^63 and 2^64; sizes may be in any unit
    ");
}

#[test]
fn empty_graphs_and_files_are_refused() {
    assert_snapshot!(message("{\"Nodes\":[],\"Edges\":[]}"), @r"
    error: g.json: 1 error in the graph
      the graph has no nodes
    help: a graph has at least one node
    ");
    assert_snapshot!(message(""), @"error: g.json: the file is empty");
    assert_snapshot!(message(" \r\n"), @"error: g.json: the file is empty");
    assert_snapshot!(message("\u{feff}[]"), @r#"
    error: g.json: is JSON, but not a graph object: it begins with '['
    help: a graph is {"Nodes": [...], "Edges": [[from, to], ...]} or a CSV pair; `spillbench convert` turns one into the other
    "#);
}

#[test]
fn long_lists_of_errors_are_cut() {
    let edges: Vec<_> = (0..300).map(|i| format!("[{},1]", i + 100)).collect();
    assert_snapshot!(message(&EXAMPLE.replace("[0,1]", &edges.join(","))), @r"
    error: g.json: 300 errors in the graph
      edge 100 -> 1 (Edges[0]): there is no node 100
      edge 101 -> 1 (Edges[1]): there is no node 101
      edge 102 -> 1 (Edges[2]): there is no node 102
      edge 103 -> 1 (Edges[3]): there is no node 103
      edge 104 -> 1 (Edges[4]): there is no node 104
      edge 105 -> 1 (Edges[5]): there is no node 105
      edge 106 -> 1 (Edges[6]): there is no node 106
      edge 107 -> 1 (Edges[7]): there is no node 107
      edge 108 -> 1 (Edges[8]): there is no node 108
      edge 109 -> 1 (Edges[9]): there is no node 109
      and 290 more
    help: an edge is a pair of the Ids of two nodes of the same file
    ");
}

#[test]
fn what_a_file_puts_into_a_message_is_cut_and_made_harmless() {
    let long = format!("{{\"Nodes\":[{{\"Id\":\"{}\u{1b}[31m\"}}],\"Edges\":[]}}", "x".repeat(50_000));
    let err = message(&long);
    assert!(err.len() < 2_000 && !err.contains('\u{1b}'), "{err}");
}

#[test]
fn names_from_files_are_cut_and_escaped_wherever_they_are_shown() {
    let place = Place::new();
    let name = format!("U\\u001b[31m\\n{}", "B".repeat(5_000));
    place.put("g.json", EXAMPLE.replace("UB", &name).replace("EXP", &name).replace("VECTOR", &name));
    place.put("hw.toml", format!("name = \"{name}\"\n[caches.\"{name}\"]\ncapacity = 10\n"));
    place.put("small.toml", format!("name = \"{name}\"\n[caches.\"{name}\"]\ncapacity = 5\n"));
    let lines = [
        "plan g.json --hardware hw.toml -v",
        "plan g.json",
        "plan g.json --hardware small.toml",
        "plan g.json --hardware hw.toml --capacity L7=3",
        "compare g.json --hardware hw.toml -v --heuristics lru",
        "inspect g.json --hardware small.toml",
        "explain g.json --hardware hw.toml",
    ];
    for line in lines {
        let ran = place.run(line);
        let shown = ran.out + &ran.err;
        assert!(shown.contains("U\\u{1b}[31m\\nBBB"), "{line}: {shown}");
        assert!(!shown.contains('\u{1b}') && !shown.contains(&"B".repeat(61)), "{line}: {shown}");
    }
}

#[test]
fn paths_that_are_no_files_are_refused() {
    let place = Place::new();
    assert_snapshot!(place.refused("inspect nowhere.json"), @r"
    error: nowhere.json: No such file or directory (os error 2)
    help: give the path of a JSON graph, of one file of a CSV pair or their common prefix, or - for standard input
    ");
    assert_snapshot!(place.refused("inspect ."), @r"
    error: .: is a directory, not a file
    help: give a file inside it
    ");
}

#[test]
fn garbage_is_refused_at_once_whatever_its_size() {
    let place = Place::new();
    let started = Instant::now();
    // Sparse: 200 MB of zero bytes, which take no room on the disk.
    std::fs::File::create(place.path("big.json")).unwrap().set_len(200_000_000).unwrap();
    assert_snapshot!(place.refused("inspect big.json"), @r#"
    error: big.json: is not JSON: it begins with byte 0x00, where a document begins with '{'
    help: a graph is {"Nodes": [...], "Edges": [[from, to], ...]} or a CSV pair; `spillbench convert` turns one into the other
    "#);
    std::fs::File::create(place.path("huge.json")).unwrap().set_len(3 << 30).unwrap();
    assert_snapshot!(place.refused("inspect huge.json"), @"error: huge.json: is larger than 2147483648 bytes, the most that is read");
    // A document that begins well and turns to garbage within what is looked at.
    let mut text = b"{\"Nodes\":[".to_vec();
    text.resize(200_000, b'x');
    place.put("turns.json", text);
    assert_snapshot!(place.refused("inspect turns.json"), @"error: turns.json: line 1, column 11: expected value");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[cfg(unix)]
#[test]
fn endless_input_is_refused() {
    assert_snapshot!(Place::new().refused("inspect /dev/zero"), @r#"
    error: /dev/zero: is not JSON: it begins with byte 0x00, where a document begins with '{'
    help: a graph is {"Nodes": [...], "Edges": [[from, to], ...]} or a CSV pair; `spillbench convert` turns one into the other
    "#);
}

#[test]
fn standard_input_is_read_to_its_end_from_a_slow_pipe() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_spillbench"))
        .args(["inspect", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    for part in EXAMPLE.as_bytes().chunks(97) {
        pipe.write_all(part).unwrap();
        pipe.flush().unwrap();
    }
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((json["task"].as_str(), json["nodes"].as_u64()), (Some("stdin"), Some(8)));
}

#[test]
fn standard_input_cannot_be_two_things() {
    let place = Place::new();
    let refused = |line| refused(line, place.run_with(line, EXAMPLE));
    assert_snapshot!(refused("inspect - --schedule -"), @r"
    error: standard input: holds one input only, and two are to come from it
    help: give the others as files
    ");
    assert!(refused("plan - --hardware -").contains("standard input: "));
    assert!(refused("compare - -").contains("two are to come from it"));
}

#[test]
fn any_one_input_may_come_from_standard_input() {
    let place = Place::with_example();
    let plain = place.good("inspect example.json");
    assert_eq!(place.run_with("inspect - --task example", EXAMPLE).out, plain);
    assert_eq!(place.run_with("inspect example.json --schedule -", "0\n1\n2\n3\n4\n5\n6\n7\n").out, plain);
    let hardware = "name = \"davinci\"\n[caches.UB]\ncapacity = 1024\n";
    assert_eq!(place.run_with("inspect example.json --hardware -", hardware).out, plain);
}

#[test]
fn schedules_are_checked_against_the_graph() {
    let place = Place::with_example();
    let with = |schedule: &str| {
        place.put("s.txt", schedule);
        place.refused("inspect example.json --schedule s.txt")
    };
    assert_snapshot!(with("0\n1\n2\n3\n4\n5\n6\n"), @r"
    error: s.txt: 1 error in the schedule
      node 7 is missing
    help: a schedule lists every node of the graph once, one id per line, in an order in which every edge goes forward; without --schedule, nodes go by id
    ");
    assert_snapshot!(with("0\n1\n2\n3\n4\n5\n6\n7\n7\n"), @r"
    error: s.txt: 1 error in the schedule
      node 7 stands twice, at positions 7 and 8
    help: a schedule lists every node of the graph once, one id per line, in an order in which every edge goes forward; without --schedule, nodes go by id
    ");
    assert_snapshot!(with("0\n1\n2\n3\n4\n5\n6\n70\n"), @r"
    error: s.txt: 2 errors in the schedule
      position 7: there is no node 70
      node 7 is missing
    help: a schedule lists every node of the graph once, one id per line, in an order in which every edge goes forward; without --schedule, nodes go by id
    ");
    assert_snapshot!(with("1\n0\n2\n3\n4\n5\n7\n6\n"), @r"
    error: s.txt: 2 errors in the schedule
      edge 0 -> 1 goes backward: 0 stands at position 1, 1 at 0
      edge 6 -> 7 goes backward: 6 stands at position 7, 7 at 6
    help: a schedule lists every node of the graph once, one id per line, in an order in which every edge goes forward; without --schedule, nodes go by id
    ");
    assert_snapshot!(with("0\n1\n2x\n"), @r"
    error: s.txt: line 3: 'x' stands in no list of ids
    help: a schedule has one node id per line, or is a JSON array of ids
    ");
    assert_snapshot!(with("0\n\n1\n"), @r#"error: s.txt: line 2: the node id is "", not a whole number from 0 to 2^63-1"#);
    assert_snapshot!(with("[0,1"), @"error: s.txt: line 1, column 4: EOF while parsing a list");
    assert_snapshot!(with(""), @"error: s.txt: the file is empty");
}

#[test]
fn schedules_may_be_json_or_lines() {
    let place = Place::with_example();
    place.put("s.txt", "\u{feff}0\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n\r\n");
    place.put("s.json", "[0,1,2,3,4,5,6,7]");
    let plain = place.good("inspect example.json");
    assert_eq!(place.good("inspect example.json --schedule s.txt"), plain);
    assert_eq!(place.good("inspect example.json --schedule s.json"), plain);
}

#[test]
fn unknown_names_get_the_nearest() {
    let place = Place::with_example();
    assert_snapshot!(place.refused("inspect example.json --hardware davincy"), @r#"
    error: there is no preset or file "davincy"
    help: did you mean "davinci"? (known: davinci, davinci-unbounded, davinci-energy)
    "#);
    assert_snapshot!(place.refused("inspect example.json --normalize mem"), @r#"
    error: there is no level of normalising "mem"
    help: did you mean "memory"? (known: none, free, memory, loads)
    "#);
    assert_snapshot!(place.refused("inspect example.json --capacity L7=3"), @"error: there is no cache L7 (the hardware davinci has L1, UB, L0A, L0B, L0C)");
    assert_snapshot!(place.refused("inspect example.json --capacity UB=0"), @r"
    error: cache UB has capacity 0
    help: a capacity is a whole number of bytes, at least 1
    ");
    assert_snapshot!(place.refused("inspect example.json --capacity UB=9 --capacity UB=10"), @r"
    error: --capacity is given twice for UB
    help: give each cache one capacity
    ");
    assert_snapshot!(place.refused("inspect example.json --spill-cost bandwidth:0"), @r"
    error: spill_cost.bytes_per_cycle is 0
    help: give at least 1 byte per cycle: bandwidth:A,B with A from 1 up
    ");
    assert_snapshot!(place.refused("inspect example.json --spill-cost dear"), @r#"
    error: there is no cost model "dear"
    help: known: davinci, bandwidth, affine
    "#);
    assert_snapshot!(place.refused("list placement"), @r#"
    error: there is no kind of names "placement"
    help: did you mean "placements"? (known: heuristics, strategies, chains, placements, presets, normalize, orders, workloads, spill-costs)
    "#);
}

#[test]
fn hardware_files_are_placed() {
    let place = Place::with_example();
    let with = |text: &str| {
        place.put("hw.toml", text);
        place.refused("inspect example.json --hardware hw.toml")
    };
    assert_snapshot!(with("[caches.UB]\ncapacity = \"big\"\n"), @r#"error: hw.toml: line 2, column 12: invalid type: string "big", expected u64"#);
    assert_snapshot!(with("[caches.UB]\ncapacity = 0\n"), @"error: hw.toml: cache UB has capacity 0");
    assert_snapshot!(with("[caches.\"\"]\ncapacity = 1\n"), @"error: hw.toml: the name of a cache is empty");
    assert_snapshot!(with("[caches.UB\n"), @"error: hw.toml: line 1, column 11: unclosed table, expected `]`");
    assert_snapshot!(with("name = \"x\"\n[caches]\n"), @"error: hw.toml: the hardware declares no cache");
    assert_snapshot!(place.refused("inspect example.json --hardware none.toml"), @"error: none.toml: No such file or directory (os error 2)");
}
