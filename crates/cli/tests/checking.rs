//! `check`: exit status, what is listed, and which files make a plan.

mod common;

use common::{Place, all_shipped, refused};
use insta::assert_snapshot;
use serde_json::Value;

/// The worked example, planned into `plans`.
fn planned() -> Place {
    let place = Place::with_example();
    place.put("s.txt", "0\n1\n2\n4\n5\n3\n6\n7\n");
    place.good("plan example.json --schedule s.txt --capacity UB=10 --out plans");
    place
}

const CHECK: &str = "check example.json --capacity UB=10";
const TEXTS: &str =
    "--schedule plans/example_schedule.txt --memory plans/example_memory.txt --spill plans/example_spill.txt";

fn json(out: &str) -> Value {
    serde_json::from_str(out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

#[test]
fn our_own_plans_are_valid_in_every_form() {
    let place = planned();
    assert_snapshot!(place.good(&format!("{CHECK} --plan plans")), @r"
    valid: example with the plan plans/example_plan.json on davinci with UB=10 (8 nodes, 2 buffers)

      cache  capacity  peak  fragmented  spills  moved  backed  generated  by capacity  by fragmentation
      UB           10     6        0.0%       2     12      12          0           12                 0
    Extra movement 12 bytes in 2 spills; peak demand 12 bytes.
    Makespan 354 cycles (literal 349), at least 344.
    ");
    let document = place.good(&format!("{CHECK} --plan plans/example_plan.json --json"));
    let texts = place.good(&format!("{CHECK} {TEXTS} --json"));
    let (document, texts) = (json(&document), json(&texts));
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
    ] {
        assert!(!document[key].is_null(), "{key}");
        assert_eq!(document[key], texts[key], "{key}");
    }
    assert_eq!((&document["valid"], &document["violations"]), (&true.into(), &Value::Array(Vec::new())));
    assert!(document["elapsed_ms"].is_number());
    // Text files do not say why a buffer went out.
    assert_eq!(texts["movement"]["by_cache"]["UB"]["unknown_cause"], 12);
}

#[test]
fn every_violation_is_listed_and_the_status_is_1() {
    let place = planned();
    place.put("plans/example_schedule.txt", "0\n1\n8\n2\n4\n10\n9\n5\n11\n3\n6\n7\n");
    place.put("plans/example_memory.txt", "0:0\n1:5\n");
    let ran = place.run(&format!("{CHECK} {TEXTS}"));
    assert_eq!((ran.status, ran.err.as_str()), (1, ""));
    assert_snapshot!(ran.out, @r"
    not valid: example with the plan plans/example_schedule.txt, plans/example_memory.txt, plans/example_spill.txt on davinci with UB=10, 2 violations
    rule 3 is broken once: each op finds its buffers resident; nothing of a buffer happens while it is out
      position 4: node 4 uses buffer 0 of UB, which is out: node 8 at position 2 moves it out, node 9 at position 6 in
    rule 4 is broken once: each segment has exactly one address and lies inside its cache
      buffer 1 at offset 5 with 6 bytes ends past UB of 10 bytes (begun by node 2 at position 3)
    Extra movement 12 bytes in 2 spills; other figures are for valid plans only.
    ");
    let ran = place.run(&format!("{CHECK} {TEXTS} --json"));
    assert_eq!(ran.status, 1);
    let report = json(&ran.out);
    assert_eq!(report["valid"], false);
    assert!(report["peak_demand"].is_null() && report["makespan"].is_null() && report["pipe_busy"].is_null());
    assert_eq!((&report["extra_movement"], &report["spill_count"]), (&12.into(), &2.into()));
    assert_eq!(report["movement"]["by_cache"]["UB"]["backed"], 12);
    let violations = report["violations"].as_array().unwrap();
    assert_eq!(violations.len() as u64, report["violation_count"].as_u64().unwrap());
    let residency = violations.iter().find(|v| v["rule"] == 3).unwrap();
    assert_eq!((&residency["node"], &residency["buf"], &residency["pos"]), (&4.into(), &0.into(), &4.into()));
}

#[test]
fn a_plan_for_more_room_is_not_valid_in_less() {
    let place = planned();
    let ran = place.run("check example.json --capacity UB=9 --plan plans");
    assert_eq!(ran.status, 0, "one buffer at a time fits into 9 bytes, too: {}", ran.out);
    place.good("plan example.json --capacity UB=12 --out plans");
    let ran = place.run("check example.json --capacity UB=10 --plan plans");
    assert_eq!(ran.status, 1);
    assert_snapshot!(ran.out, @r"
    not valid: example with the plan plans/example_plan.json on davinci with UB=10, 1 violation
    rule 4 is broken once: each segment has exactly one address and lies inside its cache
      buffer 1 at offset 6 with 6 bytes ends past UB of 10 bytes (begun by node 2 at position 2)
    Extra movement 0 bytes in 0 spills; other figures are for valid plans only.
    ");
    assert_snapshot!(ran.err, @"note: the plan was made for davinci with UB=12, and is checked on davinci with UB=10; --hardware, --capacity and --reserve set the latter");
}

#[test]
fn spills_of_unknown_buffers_have_no_movement() {
    let place = planned();
    place.put("plans/example_spill.txt", "0:0\n9:0\n");
    let ran = place.run(&format!("{CHECK} {TEXTS}"));
    assert_eq!(ran.status, 1);
    assert!(!ran.out.contains("Extra movement"), "{}", ran.out);
    let report = json(&place.run(&format!("{CHECK} {TEXTS} --json")).out);
    assert!(report["extra_movement"].is_null() && report["movement"].is_null());
}

#[test]
fn hardware_that_differs_under_one_name_is_told_apart() {
    let place = planned();
    let with = |capacity: u64, cost: &str| {
        let text = format!("name = \"davinci with UB=10\"\n[caches.UB]\ncapacity = {capacity}\n{cost}");
        place.put("hw.toml", text);
        place.run("check example.json --hardware hw.toml --plan plans").err
    };
    assert_snapshot!(with(12, ""), @"note: the plan was made for another davinci with UB=10 (other caches); --hardware, --capacity, --reserve and --spill-cost set what it is checked on");
    let cost = "[spill_cost]\nmodel = \"bandwidth\"\n";
    assert!(with(12, cost).contains("(other caches and another spill cost)"));
}

#[test]
fn a_plan_made_without_energies_is_not_accused_of_its_figures() {
    let place = planned();
    let line = "check example.json --hardware davinci-energy --capacity UB=10 --plan plans";
    let ran = place.run(line);
    assert!(
        ran.err.contains("made for davinci with UB=10, and is checked on davinci-energy with UB=10"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("figures"), "{}", ran.err);
}

#[test]
fn energies_of_what_is_not_there_are_told() {
    let place = planned();
    let with = |energy: &str| place.put("hw.toml", format!("[caches.UB]\ncapacity = 10\n[energy]\n{energy}\n"));
    let line = "check example.json --hardware hw.toml --plan plans";
    with("per_byte = { DRAMM = 3 }");
    let error = place.refused(line);
    assert!(error.contains("energy.per_byte: there is no level DRAMM (caches spill to DRAM)"), "{error}");
    with("per_busy_cycle = { VECTR = 3, VECTOR = 1 }");
    let ran = place.run(line);
    assert!(ran.err.contains("energy.per_busy_cycle: no op and no spill uses the pipe VECTR\n"), "{}", ran.err);
    with("per_cycle = 9223372036854775807");
    let ran = place.run(line);
    assert!(ran.err.contains("the energy of the plan passes 2^64-1 pJ and is left out"), "{}", ran.err);
}

#[test]
fn what_is_missing_is_said() {
    let place = planned();
    assert_snapshot!(place.refused("check example.json"), @r"
    error: no plan is given
    help: give --plan DIR, --plan FILE.json, or all three of --schedule, --memory and --spill
    ");
    assert_snapshot!(place.refused("check example.json --schedule plans/example_schedule.txt"), @r"
    error: --memory, --spill missing
    help: give --plan DIR, --plan FILE.json, or all three of --schedule, --memory and --spill
    ");
    assert_snapshot!(place.refused("check example.json --task other --plan plans"), @r"
    error: plans: no other_plan.json, and no other_schedule.txt, no other_memory.txt, no other_spill.txt either
    help: there are plans of example; give --task NAME if the graph has another name
    ");
    std::fs::remove_file(place.path("plans/example_plan.json")).unwrap();
    std::fs::remove_file(place.path("plans/example_spill.txt")).unwrap();
    assert_snapshot!(place.refused("check example.json --plan plans"), @r"
    error: plans: no example_plan.json, and no example_spill.txt either
    help: there are plans of example; give --task NAME if the graph has another name
    ");
    std::fs::create_dir(place.path("empty")).unwrap();
    assert_snapshot!(place.refused("check example.json --plan empty"), @r"
    error: empty: no example_plan.json, and no example_schedule.txt, no example_memory.txt, no example_spill.txt either
    help: the directory holds no plan at all; `spillbench plan GRAPH --out DIR` writes one
    ");
    assert_snapshot!(place.refused("check example.json --plan nowhere"), @"error: nowhere: No such file or directory (os error 2)");
}

#[test]
fn broken_plan_files_are_placed() {
    let place = planned();
    place.put("plans/example_memory.txt", "0:0\n1\n");
    assert_snapshot!(place.refused(&format!("{CHECK} {TEXTS}")), @r#"error: plans/example_memory.txt: line 2: "1" is not BufId:Offset"#);
    place.put("plans/example_memory.txt", "0:0\n1:-3\n");
    let ran = place.run(&format!("{CHECK} {TEXTS}"));
    assert!(ran.status == 1 && ran.out.contains("buffer 1 at offset -3 with 6 bytes begins before UB"), "{}", ran.out);
    place.put("plans/example_memory.txt", "0:0\n1:--3\n");
    assert_snapshot!(place.refused(&format!("{CHECK} {TEXTS}")), @r#"error: plans/example_memory.txt: line 2: the offset is "--3", not a whole number from 0 to 2^63-1"#);
    for file in ["memory", "spill"] {
        let text = place.text(&format!("plans/example_{file}.txt"));
        place.put(&format!("plans/example_{file}.txt"), "0:0\n1=0\n");
        let refused = place.refused(&format!("{CHECK} {TEXTS}"));
        assert!(
            refused.contains("line 2: '=' stands in no list of BufId:Offset pairs\nhelp: a memory or spill"),
            "{refused}"
        );
        place.put(&format!("plans/example_{file}.txt"), text.replace("1:--3", "1:0"));
    }
    let document = place.text("plans/example_plan.json");
    place.put("plans/example_plan.json", document.replace("\"schedule\": [", "\"schedule\": [\"x\","));
    assert_snapshot!(place.refused("check example.json --plan plans/example_plan.json"), @r#"error: plans/example_plan.json: line 144, column 18: invalid type: string "x", expected u64"#);
}

#[test]
fn claims_that_do_not_hold_are_noted() {
    let place = planned();
    let document = place.text("plans/example_plan.json");
    place.put("plans/example_plan.json", document.replace("\"extra_movement\": 12", "\"extra_movement\": 1"));
    assert_snapshot!(place.run(&format!("{CHECK} --plan plans")).err, @"note: the figures in the document are not those of its plan; shown are the measured ones");
    place.put("plans/example_memory.txt", "0:0\n1:1\n");
    assert_snapshot!(place.run(&format!("{CHECK} --plan plans")).err, @r"
    note: the text files of example beside plans/example_plan.json do not hold its plan, which is the one that counts; to check them, give --schedule, --memory and --spill
    note: the figures in the document are not those of its plan; shown are the measured ones
    ");
    assert_snapshot!(place.run(&format!("{CHECK} --plan plans/example_plan.json --task t")).err, @r#"
    note: the document is of task "example", checked against "t"
    note: the figures in the document are not those of its plan; shown are the measured ones
    "#);
}

#[test]
fn only_one_input_comes_from_standard_input() {
    let place = planned();
    let schedule = place.text("plans/example_schedule.txt");
    let line = format!("{CHECK} {TEXTS}").replace("plans/example_schedule.txt", "-");
    assert_eq!(place.run_with(&line, schedule.as_str()).status, 0);
    let line = line.replace("plans/example_memory.txt", "-");
    assert_snapshot!(refused(&line, place.run_with(&line, schedule)), @r"
    error: standard input: holds one input only, and two are to come from it
    help: give the others as files
    ");
}

#[test]
fn every_shipped_graph_is_planned_and_its_plan_read_back() {
    let place = Place::new();
    for graph in all_shipped() {
        let (graph, task) = (graph.display(), graph.file_stem().unwrap().to_string_lossy().into_owned());
        let planned = json(&place.good(&format!("plan {graph} --strategies postpone-first --out . --json")));
        let texts = ["schedule", "memory", "spill"].map(|part| format!("--{part} {task}_{part}.txt")).join(" ");
        for source in ["--plan .".to_owned(), texts] {
            let ran = place.run(&format!("check {graph} {source} --json"));
            assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{task} from {source}: {}", ran.out);
            let checked = json(&ran.out);
            for key in ["extra_movement", "spill_count", "makespan", "peak_residency", "fragmentation"] {
                assert_eq!(checked[key], planned[key], "{key} of {task} from {source}");
            }
        }
    }
}
