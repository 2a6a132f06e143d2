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
    // Three buffers of which two fit, in a fixed order: one must come back.
    place.put("tight.json", tight());
    let tight = "optimize tight.json --capacity UB=10 --objective makespan --evaluations 100 --max-movement 4";
    let ran = place.run(&format!("{tight} --out none"));
    assert_eq!((ran.status, ran.err.as_str()), (1, ""), "{}", ran.out);
    assert!(ran.out.contains("no plan found moves at most 4 bytes; the least found is 5."), "{}", ran.out);
    assert!(place.names("none").is_empty());
    let ran = place.run(&format!("{tight} --json"));
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.status, &told["best"], &told["max_movement"]), (1, &Value::Null, &4.into()));
    assert_eq!((&told["least_movement"], told["evaluations"].as_u64() <= Some(100)), (&5.into(), true));
    assert!(place.refused("optimize example.json --max-movement 5").contains("--objective makespan"));
    assert!(place.refused("optimize example.json --objective makespan --max-movement 5%").contains("+5%"));
    assert!(place.refused("optimize example.json --objective weighted").contains("weighted 1:2"));
    assert!(place.refused("optimize example.json --objective makespans").contains("did you mean \"makespan\""));
}

/// Three buffers of 5 bytes, each op on another pair, in a chain.
fn tight() -> String {
    let mut nodes = Vec::new();
    for b in 0..3 {
        nodes.push(format!(r#"{{"Id":{b},"Op":"ALLOC","BufId":{b},"Size":5,"Type":"UB"}}"#));
        nodes.push(format!(r#"{{"Id":{},"Op":"COPY_IN","Pipe":"MTE2","Cycles":15,"Bufs":[{b}]}}"#, 10 + b));
        nodes.push(format!(r#"{{"Id":{},"Op":"FREE","BufId":{b},"Size":5,"Type":"UB"}}"#, 100 + b));
    }
    for (id, pair) in [(20, "0,1"), (21, "1,2"), (22, "2,0")] {
        nodes.push(format!(r#"{{"Id":{id},"Op":"ADD","Pipe":"VECTOR","Cycles":30,"Bufs":[{pair}]}}"#));
    }
    let edges = "[0,10],[1,11],[2,12],[10,20],[11,20],[11,21],[12,21],[12,22],[10,22],[20,21],[21,22]";
    format!(r#"{{"Nodes":[{}],"Edges":[{edges}]}}"#, nodes.join(","))
}

#[test]
fn plans_say_what_they_were_made_for() {
    let place = Place::with_example();
    let settings = |file: &str| -> Value {
        let plan: Value = serde_json::from_str(&place.text(file)).unwrap();
        plan["settings"].clone()
    };
    let line = "optimize example.json --capacity UB=10 --evaluations 50 --seed 3";
    place.good(&format!("{line} --objective makespan --max-movement +5% --out limited"));
    let found = settings("limited/example_plan.json");
    assert_eq!((&found["objective"], &found["max_movement"]), (&"makespan".into(), &"+5%".into()));
    assert!(found.get("weights").is_none());
    place.good(&format!("{line} 0.5:1 --objective weighted --out weighted"));
    let found = settings("weighted/example_plan.json");
    assert_eq!((&found["objective"], &found["weights"]), (&"weighted".into(), &"0.5:1".into()));
    place.good(&format!("{line} --pareto --out front"));
    let found = settings("front/point-01/example_plan.json");
    assert_eq!((&found["objective"], &found["seed"], &found["evaluations"]), (&"pareto".into(), &3.into(), &50.into()));
    // With that its hardware is known.
    assert!(place.good("timing example.json --plan front/point-01").contains("UB=10"));
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
