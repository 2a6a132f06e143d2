//! `spillbench import` from the outside: models, interval files and traces, and what is wrong with
//! them.

mod common;

use common::Place;
use std::path::Path;

fn corpus(importer: &str, name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/fuzz/corpus").join(importer);
    std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn an_interval_file_becomes_a_graph_that_plans_in_its_height() {
    let place = Place::new();
    place.put("small.csv", corpus("intervals", "names.csv"));
    let ran = place.run("import intervals small.csv --out small.json");
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(
        ran.err,
        "note: ids such as \"b1\" are no numbers: buffers are numbered by row, from 0\n\
         note: 10 nodes, 9 edges, 5 buffers\n\
         note: no packing is lower than 12 bytes: the most that are live at once\n"
    );
    let ran = place.run("inspect small.json --json --capacity UB=12");
    assert_eq!(ran.status, 0, "{}", ran.err);
    let ran = place.run("plan small.json --capacity UB=12 --normalize loads");
    assert_eq!(ran.status, 0, "{}", ran.err);
}

#[test]
fn a_model_is_fitted_to_the_hardware_that_is_given() {
    let place = Place::new();
    place.put("block.onnx", corpus("onnx", "residual.onnx"));
    let ran = place.run("import onnx block.onnx --out block.json");
    assert_eq!(ran.status, 0, "{}", ran.err);
    let planned = place.run("plan block.json");
    assert_eq!(planned.status, 0, "{}", planned.err);
    let small = "--capacity L1=256 --capacity UB=128 --capacity L0A=16";
    let ran = place.run(&format!("import onnx block.onnx --out small.json {small}"));
    assert_eq!(ran.status, 0, "{}", ran.err);
    let planned = place.run(&format!("plan small.json {small}"));
    assert_eq!(planned.status, 0, "{}", planned.err);
}

#[test]
fn symbolic_dimensions_are_given_by_name() {
    let place = Place::new();
    place.put("a.onnx", corpus("onnx", "attention.onnx"));
    let default = place.run("import onnx a.onnx --out one.json");
    assert!(
        default.err.contains("dimension 0 of input \"ids\" has no number: 1 is taken (give one with --dim batch=N)")
    );
    let given = place.run("import onnx a.onnx --dim batch=2 --out two.json");
    assert_eq!(given.status, 0, "{}", given.err);
    assert!(!given.err.contains("has no number"));
    assert!(place.text("two.json").len() > place.text("one.json").len());
    let wrong = place.run("import onnx a.onnx --dim bunch=2");
    assert_eq!(wrong.status, 2);
    assert_eq!(wrong.err, "error: a.onnx: no input of the network has a dimension \"bunch\" (it has: batch)\n");
}

#[test]
fn a_trace_becomes_a_graph_on_standard_output() {
    let place = Place::new();
    place.put("loop.txt", corpus("trace", "loop.txt"));
    let ran = place.run("import trace loop.txt");
    assert_eq!((ran.status, ran.err.as_str()), (0, "note: 12 nodes, 5 edges, 3 buffers\n"));
    place.put("loop.json", &ran.out);
    let planned = place.run("plan loop.json --capacity UB=8 --heuristic belady");
    assert_eq!(planned.status, 0, "{}", planned.err);
}

#[test]
fn broken_files_are_named_with_place_and_exit_status_2() {
    let place = Place::new();
    place.put("empty.csv", corpus("intervals", "empty_life.csv"));
    place.put("cycle.onnx", corpus("onnx", "cycle.onnx"));
    place.put("no_size.txt", corpus("trace", "no_size.txt"));
    place.put("graph.json", "{}");
    let error = |line: &str| {
        let ran = place.run(&format!("import {line}"));
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        ran.err
    };
    assert_eq!(
        error("intervals empty.csv --out g.json"),
        "error: empty.csv: line 2: the life of \"0\" is [5, 5), which is empty\n"
    );
    assert_eq!(
        error("onnx cycle.onnx"),
        "error: cycle.onnx: node 0 (Add) waits for tensor \"b\", which depends on its own output\n"
    );
    assert_eq!(
        error("trace no_size.txt"),
        "error: no_size.txt: line 1: size is \"0\", not a whole number from 1 to 2^62\n"
    );
    assert!(error("onnx graph.json").starts_with("error: graph.json: not an ONNX file: "));
    assert!(error("intervals graph.json").contains("the header has no column id"));
    assert!(error("onnx missing.onnx").starts_with("error: missing.onnx: "));
    assert!(error("onnx cycle.onnx --tile 9999").contains("it must be 1 to 256"));
    assert!(!place.path("g.json").exists());
}
