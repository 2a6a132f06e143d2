//! However `optimize` ends, the best plan so far is on disk, whole and valid.
#![cfg(unix)]

mod common;

use common::{Place, shipped};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DOCUMENT: &str = "matmul-zigzag-3x8x5_plan.json";

/// Starts a search that goes on until it is ended: L1 is so small that no plan meets the bound.
fn start(place: &Place, seed: u64) -> Child {
    let graph = shipped("matmul-zigzag-3x8x5.json");
    let line =
        format!("--capacity L1=1536 --time 60s --jobs 1 --islands 1 --start breadth-first --out plans --seed {seed}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_spillbench"));
    command.arg("optimize").arg(graph).args(line.split(' ')).current_dir(place.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until there is a document.
fn wait_for_plan(place: &Place) {
    let begin = Instant::now();
    while !place.path("plans").join(DOCUMENT).exists() {
        assert!(begin.elapsed() < Duration::from_secs(30), "no plan after half a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn check(place: &Place) -> common::Ran {
    place.run(&format!("check {} --capacity L1=1536 --plan plans", shipped("matmul-zigzag-3x8x5.json").display()))
}

#[test]
fn a_killed_search_leaves_a_valid_plan_each_time() {
    let place = Place::new();
    let mut moment = 1u64;
    for round in 0..25 {
        // Every other search finds the files of the one before.
        if round % 2 == 0 {
            let _ = std::fs::remove_dir_all(place.path("plans"));
        }
        let mut child = start(&place, round);
        wait_for_plan(&place);
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((moment >> 33) % 40_000));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "it was still searching");
        let ran = check(&place);
        assert_eq!(ran.status, 0, "round {round}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_document_counts_whatever_the_texts_beside_it_are() {
    let place = Place::new();
    let graph = shipped("matmul-zigzag-3x8x5.json");
    let plan =
        |order: &str| place.good(&format!("plan {} --capacity L1=1536 --order {order} --out plans", graph.display()));
    plan("breadth-first");
    let schedule = place.text("plans/matmul-zigzag-3x8x5_schedule.txt");
    plan("id");
    // What a process leaves that is killed between two renames.
    place.put("plans/matmul-zigzag-3x8x5_schedule.txt", schedule);
    let ran = check(&place);
    assert!(ran.status == 0 && ran.err.contains("do not hold its plan"), "{}", ran.err);
    std::fs::remove_file(place.path("plans/matmul-zigzag-3x8x5_memory.txt")).unwrap();
    let ran = check(&place);
    assert!(ran.status == 0 && ran.err.contains("do not hold its plan"), "{}", ran.err);
}

#[test]
fn an_interrupted_search_ends_well_with_its_best_plan() {
    let place = Place::new();
    let child = start(&place, 0);
    wait_for_plan(&place);
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let best = text.split("\nmovement ").nth(1).and_then(|t| t.split(' ').next()).unwrap_or_default();
    let ran = check(&place);
    assert!(ran.status == 0 && ran.out.contains(best) && !best.is_empty() && ran.err.is_empty(), "{text}{}", ran.out);
}
