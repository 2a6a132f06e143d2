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
