//! Golden values: the exact movement of every heuristic on the graphs that come with spillbench.
//!
//! A change here is a change of results: it wants a reason in the change log. Accept with
//! `cargo insta accept`, or by hand.

mod common;

use common::{DEFAULT_CHAIN, movement, plan_schedule, policy};
use spillbench_core::formats::graph_json;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Bytes, Graph, Hardware, Schedule};
use spillbench_heuristics::HEURISTICS;
use std::fmt::Write;
use std::path::Path;

/// One graph per operator family, and two synthetic ones.
const GRAPHS: &[&str] = &[
    "matmul-4x8x4",
    "flash-attention-2x4",
    "conv-3x2x4",
    "transformer-block-2",
    "mlp-4x8",
    "moe-3x4",
    "stencil-5x5x4",
    "fft-32",
    "reduction-tree-64",
    "layered-dag-600",
    "trace-zipf-600",
];

fn load(name: &str) -> Graph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets").join(format!("{name}.json"));
    graph_json::read(&std::fs::read(path).unwrap()).unwrap().0
}

fn moved(graph: &Graph, hardware: &Hardware, heuristic: &str, chain: &str) -> u64 {
    let schedule = Schedule::default_for(graph).normalized(graph, Normalize::default());
    movement(graph, &plan_schedule(graph, hardware, &schedule, &policy(heuristic, chain, "best-fit")).unwrap())
}

/// A table of one row per heuristic.
fn table(columns: &[String], cell: impl Fn(usize, &str) -> u64) -> String {
    let mut text = format!("{:<16}", "");
    columns.iter().for_each(|c| write!(text, " {c:>19}").unwrap());
    for h in HEURISTICS {
        write!(text, "\n{:<16}", h.name).unwrap();
        (0..columns.len()).for_each(|i| write!(text, " {:>19}", cell(i, h.name)).unwrap());
    }
    text
}

#[test]
fn every_family_on_davinci() {
    let graphs: Vec<_> = GRAPHS.iter().map(|g| load(g)).collect();
    let names: Vec<_> = GRAPHS.iter().map(|g| (*g).to_owned()).collect();
    let hardware = Hardware::default();
    insta::assert_snapshot!(table(&names, |i, h| moved(&graphs[i], &hardware, h, DEFAULT_CHAIN)));
}

#[test]
fn windows_on_davinci() {
    let graphs: Vec<_> = GRAPHS.iter().map(|g| load(g)).collect();
    let names: Vec<_> = GRAPHS.iter().map(|g| (*g).to_owned()).collect();
    let hardware = Hardware::default();
    insta::assert_snapshot!(table(&names, |i, h| moved(&graphs[i], &hardware, h, "window,postpone")));
}

#[test]
fn one_graph_at_six_capacities() {
    let graph = load("matmul-4x8x4");
    let capacities = [512u64, 1024, 2048, 3072, 4096, 6144];
    let hardware = |capacity| {
        let mut hardware = Hardware::default();
        hardware.set_capacity("L1", Bytes(capacity)).unwrap();
        hardware
    };
    let names: Vec<_> = capacities.iter().map(|c| format!("L1 {c}")).collect();
    insta::assert_snapshot!(table(&names, |i, h| moved(&graph, &hardware(capacities[i]), h, DEFAULT_CHAIN)));
}
