//! `optimize` for makespan, weights and energy, and the front.

mod common;

use common::Place;
use serde_json::Value;

fn found(place: &Place, line: &str) -> Value {
    serde_json::from_str(&place.good(line)).unwrap()
}

#[test]
fn a_limit_of_movement_holds_or_is_refused() {
    let place = Place::with_example();
    let line = "optimize example.json --capacity UB=10 --objective makespan --evaluations 1000 --json";
    let result = found(&place, &format!("{line} --max-movement +0% --out plans"));
    assert_eq!((&result["least_movement"], &result["max_movement"]), (&Value::from(0), &Value::from(0)));
    assert!(result["best"].as_u64() <= result["start"].as_u64());
    let checked = found(&place, "check example.json --capacity UB=10 --plan plans --json");
    assert_eq!((&checked["extra_movement"], &checked["makespan"]), (&Value::from(0), &result["best"]));
    assert!(place.refused("optimize example.json --max-movement 5").contains("--objective makespan"));
    assert!(place.refused("optimize example.json --objective makespan --max-movement 5%").contains("+5%"));
    assert!(place.refused("optimize example.json --objective weighted").contains("weighted 1:2"));
    assert!(place.refused("optimize example.json --objective makespans").contains("did you mean \"makespan\""));
}

#[test]
fn energy_needs_a_model() {
    let place = Place::with_example();
    let line = "optimize example.json --objective energy --evaluations 200 --json";
    assert!(place.refused(line).contains("davinci-energy"));
    let result = found(&place, &format!("{line} --hardware davinci-energy --out plans"));
    let checked = found(&place, "check example.json --hardware davinci-energy --plan plans --json");
    assert_eq!(checked["energy"], result["best"]);
    assert!(found(&place, "check example.json --plan plans --json")["energy"].is_null());
    assert_eq!((&result["bound"], &result["gap"]), (&Value::Null, &Value::Null));
    let weighted = found(&place, "optimize example.json 1:2 --objective weighted --evaluations 200 --json");
    assert!(weighted["bound"].as_u64() > Some(0) && weighted["bound"].as_u64() <= weighted["best"].as_u64());
}

#[test]
fn a_front_is_a_table_a_figure_and_plans() {
    let place = Place::with_example();
    let line = "optimize example.json --capacity UB=10 --pareto --evaluations 2000 --out front";
    place.good(line);
    let table = place.text("front/front.csv");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("point,graph,extra_movement,makespan,energy,plan"));
    for row in lines {
        let cells: Vec<&str> = row.split(',').collect();
        let checked = found(&place, &format!("check example.json --capacity UB=10 --plan front/{} --json", cells[5]));
        assert_eq!(
            (checked["extra_movement"].to_string(), checked["makespan"].to_string()),
            (cells[2].into(), cells[3].into())
        );
    }
    assert!(place.text("front/front.svg").contains("<svg"));
}
