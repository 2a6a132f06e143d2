//! `optimize` and `--order`: better plans, written whole, the same for a budget in evaluations.

mod common;

use common::Place;
use serde_json::Value;

#[test]
fn the_best_plan_is_on_disk_and_valid() {
    let place = Place::with_example();
    let line = "optimize example.json --capacity UB=10 --evaluations 2000 --out plans --trace t.csv --json";
    let found: Value = serde_json::from_str(&place.good(line)).unwrap();
    assert_eq!((&found["start"], &found["best"]), (&Value::from(12), &Value::from(0)));
    place.good("check example.json --capacity UB=10 --plan plans");
    let trace = place.text("t.csv");
    assert!(trace.starts_with("evaluations,seconds,value\n0,") && trace.trim_end().ends_with(",0"), "{trace}");
    let plan = place.text("plans/example_plan.json");
    place.good(&format!("{line} --jobs 2"));
    assert_eq!(place.text("plans/example_plan.json"), plan, "threads make no difference");
}

#[test]
fn orders_have_names() {
    let place = Place::with_example();
    for order in ["id", "topological", "depth-first", "breadth-first", "demand-first", "cluster", "optimized"] {
        place.good(&format!("plan example.json --capacity UB=10 --order {order}"));
        place.good(&format!("optimize example.json --capacity UB=10 --evaluations 10 --start {order}"));
    }
    assert!(place.refused("plan example.json --order ids").contains("did you mean \"id\""));
    assert!(place.refused("optimize example.json --objective peaks").contains("did you mean \"peak\""));
    assert!(place.refused("optimize example.json --time 5x").contains("unit of time"));
}

#[test]
fn the_bound_and_the_gap_are_told() {
    let place = Place::with_example();
    let json = |line: &str| -> Value { serde_json::from_str(&place.good(line)).unwrap() };
    let peak = json("optimize example.json --objective peak --evaluations 2000 --json");
    assert_eq!((&peak["best"], &peak["bound"], &peak["gap"]), (&6.into(), &6.into(), &0.0.into()));
    let certificate = r#"{"format":"spillbench-certificate","version":1,"cover":"COVER","bound":99,
        "proof":{"kind":"partition","sets":[{"cache":"UB","buffers":[0,1],"bound":99}]}}"#;
    place.put("every.json", certificate.replace("COVER", "every-order"));
    place.put("one.json", certificate.replace("COVER", "op-order"));
    place.put("torn.json", &certificate[..40]);
    let line = "optimize example.json --capacity UB=10 --evaluations 2000";
    let found = json(&format!("{line} --bound-file every.json --json"));
    assert_eq!((&found["best"], &found["bound"]), (&0.into(), &0.into()), "what is claimed counts for nothing");
    assert!(place.good(line).contains("movement 0 from 12, bound 0, optimal; "));
    let refused = |file: &str| place.refused(&format!("{line} --bound-file {file}"));
    assert!(refused("one.json").contains("covers op-order"));
    assert!(refused("torn.json").contains("not a certificate"));
    assert!(refused("none.json").contains("none.json"));
    assert!(place.refused(&format!("{line} --objective peak --bound-file every.json")).contains("objective is peak"));
}

#[test]
fn a_search_goes_on_from_a_plan() {
    let place = Place::with_example();
    let line = "optimize example.json --capacity UB=10 --evaluations 1 --json";
    place.good("optimize example.json --capacity UB=10 --evaluations 2000 --out plans");
    place.put("s.txt", "0\n1\n2\n4\n5\n3\n6\n7\n");
    place.good("plan example.json --capacity UB=10 --schedule s.txt --out spilled");
    for (start, value) in [("plans", 0), ("plans/example_plan.json", 0), ("spilled", 12)] {
        let found: Value = serde_json::from_str(&place.good(&format!("{line} --start {start}"))).unwrap();
        assert_eq!(found["start"], value, "{start}");
    }
    assert!(place.refused(&format!("{line} --start .")).contains("no example_plan.json"));
}

#[test]
fn the_plan_says_how_it_was_found() {
    let place = Place::with_example();
    place.good("optimize example.json --capacity UB=10 --evaluations 500 --seed 7 --out plans");
    let plan: Value = serde_json::from_str(&place.text("plans/example_plan.json")).unwrap();
    let settings = &plan["settings"];
    assert_eq!((&settings["objective"], &settings["start"]), (&"movement".into(), &"id".into()));
    assert_eq!((&settings["seed"], &settings["evaluations"]), (&7.into(), &500.into()));
    let ran = place.run("check example.json --plan plans");
    assert!(ran.err.contains("the plan was made for davinci with UB=10"), "{}", ran.err);
}

#[test]
fn a_plan_to_start_from_is_never_made_worse() {
    let place = Place::with_example();
    for objective in ["movement", "peak", "makespan", "weighted", "energy"] {
        let weights = if objective == "weighted" { "1:2" } else { "" };
        let line = format!(
            "optimize example.json {weights} --objective {objective} --hardware davinci-energy --capacity UB=10 \
             --islands 3 --json"
        );
        let found = |more: &str| -> Value { serde_json::from_str(&place.good(&format!("{line} {more}"))).unwrap() };
        let best = found(&format!("--evaluations 2000 --out {objective}"))["best"].clone();
        for evaluations in 0..3 {
            let again = found(&format!("--evaluations {evaluations} --start {objective} --seed {evaluations}"));
            assert_eq!((&again["start"], &again["best"]), (&best, &best), "{objective}");
            assert!(again["evaluations"].as_u64() <= Some(evaluations), "{again}");
        }
    }
    assert!(place.refused("optimize example.json --islands 0").contains("1..=1024"));
    assert!(place.refused("optimize example.json --jobs 0").contains("1..=1024"));
}
