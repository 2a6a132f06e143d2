//! `convert`, and reading CSV pairs.

mod common;

use common::{EXAMPLE, Place, data};
use insta::assert_snapshot;

#[test]
fn json_and_csv_turn_into_each_other() {
    let place = Place::with_example();
    let written = place.good("convert example.json --out csv");
    assert_eq!(written.lines().count(), 2, "{written}");
    assert_eq!(place.names("csv"), ["example_Edges.csv", "example_Nodes.csv"]);
    assert_snapshot!(place.text("csv/example_Nodes.csv"), @r"
    Id,Op,BufId,Size,Type,Pipe,Cycles,Bufs
    0,ALLOC,0,6,UB,,,
    1,COPY_IN,,,,MTE2,10,0
    2,ALLOC,1,6,UB,,,
    3,COPY_IN,,,,MTE2,10,1
    4,EXP,,,,VECTOR,5,0
    5,FREE,0,6,UB,,,
    6,EXP,,,,VECTOR,5,1
    7,FREE,1,6,UB,,,
    ");
    // Any of the pair, or what both begin with.
    let json = place.good("convert csv/example_Nodes.csv");
    assert_eq!(place.good("convert csv/example_Edges.csv"), json);
    assert_eq!(place.good("convert csv/example"), json);
    assert_eq!(json, place.good("convert example.json --to json"));
    assert_eq!(place.good("inspect csv/example"), place.good("inspect example.json"));
}

#[test]
fn a_public_graph_survives_the_round_trip() {
    let Some(conv) = data("cpmcm2025a/Conv_Case0.json") else { return };
    let place = Place::new();
    place.good(&format!("convert {} --out .", conv.display()));
    let direct = place.good(&format!("convert {} --to json", conv.display()));
    assert_eq!(place.good("convert Conv_Case0"), direct);
}

#[test]
fn csv_pairs_are_found_and_halves_are_refused() {
    let place = Place::with_example();
    place.good("convert example.json --out .");
    std::fs::remove_file(place.path("example_Edges.csv")).unwrap();
    assert_snapshot!(place.refused("inspect example_Nodes.csv"), @r"
    error: example_Nodes.csv: the other file of the CSV pair, example_Edges.csv, is not there
    help: give either file of the pair, or their common prefix; both must be there
    ");
    assert_snapshot!(place.refused("inspect example"), @r"
    error: example: the other file of the CSV pair, example_Edges.csv, is not there
    help: give either file of the pair, or their common prefix; both must be there
    ");
    place.put("table.csv", "a,b\n");
    assert_snapshot!(place.refused("inspect table.csv"), @r"
    error: table.csv: a CSV graph is a pair of files <task>_Nodes.csv and <task>_Edges.csv
    help: give either file of the pair, or their common prefix; both must be there
    ");
    let nodes = place.text("example_Nodes.csv");
    assert_snapshot!(common::refused("csv on stdin", place.run_with("inspect -", nodes)), @r#"
    error: standard input: looks like a CSV table; a CSV graph is a pair of files <task>_Nodes.csv and <task>_Edges.csv
    help: a graph is {"Nodes": [...], "Edges": [[from, to], ...]} or a CSV pair; `spillbench convert` turns one into the other
    "#);
    assert_snapshot!(place.refused("convert example.json --to csv"), @r"
    error: a CSV graph is two files, which standard output cannot hold
    help: give a directory for them (--out DIR)
    ");
}

#[test]
fn broken_tables_are_placed() {
    let place = Place::with_example();
    place.good("convert example.json --out .");
    let (nodes, edges) = (place.text("example_Nodes.csv"), place.text("example_Edges.csv"));
    let with = |nodes: &str, edges: &str| {
        place.put("example_Nodes.csv", nodes);
        place.put("example_Edges.csv", edges);
        place.refused("plan example_Nodes.csv")
    };
    assert_snapshot!(with(&nodes.replacen(",6,", ",six,", 1), &edges), @r#"error: example_Nodes.csv: line 2: Size is "six", not a whole number from 0 to 2^64-1"#);
    assert_snapshot!(with(&nodes.replacen("0,ALLOC", "x,ALLOC", 1), &edges), @r#"error: example_Nodes.csv: line 2: Id is "x", not a whole number from 0 to 2^63-1"#);
    assert_snapshot!(with(&nodes.replacen("Size", "Bytes", 1), &edges), @"error: example_Nodes.csv: line 1: the header lacks the column Size");
    assert_snapshot!(with(&nodes, &edges.replacen("0,1", "0,1,2", 1)), @"error: example_Edges.csv: line 2: the row has 3 fields, the header has 2");
    assert_snapshot!(with(&nodes, &edges.replacen("0,1", "0,100", 1)), @r"
    error: example_Nodes.csv and example_Edges.csv: 1 error in the graph
      example_Edges.csv, line 2: edge 0 -> 100: there is no node 100
    help: an edge is a pair of the Ids of two nodes of the same file
    ");
    assert_snapshot!(with(&nodes.replacen("3,COPY_IN", "2,COPY_IN", 1).replacen("2,ALLOC,1,6", "2,ALLOC,1,0", 1), &edges.replacen("2,3\n", "", 1).replacen("3,6\n", "", 1)), @r"
    error: example_Nodes.csv and example_Edges.csv: 3 errors in the graph
      example_Nodes.csv, line 5: node id 2 stands here for the second time
      example_Nodes.csv, line 4: node 2: buffer 1 has size 0
      example_Nodes.csv, line 9: buffer 1 has size 0 at its ALLOC (node 2) and 6 at its FREE (node 7)
    help: ids are distinct whole numbers from 0 to 2^63-1
    ");
    assert_snapshot!(with(&nodes, &edges.replacen("6,7", "7,6", 1)), @r"
    error: example_Nodes.csv and example_Edges.csv: 1 error in the graph
      node 6 uses buffer 1 outside its life: the edges put it after FREE (node 7): 7 -> 6
    help: ALLOC(b) -> every user of b -> FREE(b) is implied, whether the file lists it or not: drop the edge that contradicts it, or give the op another buffer
    ");
    assert_snapshot!(with(&nodes, "\0\0\0"), @"error: example_Edges.csv: is not text: line 1 holds byte 0x00");
    assert_snapshot!(with("", &edges), @"error: example_Nodes.csv: the file is empty");
}

#[test]
fn meta_has_no_place_in_csv() {
    let place = Place::new();
    place.put("g.json", EXAMPLE.replacen('{', "{\"Meta\":{\"from\":\"here\"},", 1));
    assert_snapshot!(place.run("convert g.json --out .").err, @"note: CSV has no place for the Meta object, which is dropped");
    assert!(place.good("convert g.json --to json").contains("\"from\":\"here\""));
}
