//! Capacity as a decision: reservations, the split of a total, the price of a byte.

mod common;

use common::{Place, shipped};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_reservation_is_planned_around_kept_in_the_plan_and_checked() {
    let place = Place::with_example();
    // Four of ten bytes are reserved: each buffer fits by itself, as before.
    let plan = "plan example.json --capacity UB=10";
    let reserved = json(&place.good(&format!("{plan} --reserve UB:4@2..4 --json --out kept")));
    assert_eq!(reserved["extra_movement"], 12);
    assert_eq!(
        reserved["settings"]["hardware"]["reservations"],
        json(r#"[{"cache": "UB", "bytes": 4, "from": 2, "to": 4}]"#)
    );
    assert_eq!(json(&place.text("kept/example_plan.json"))["settings"], reserved["settings"]);
    place.good("check example.json --plan kept --capacity UB=10 --reserve UB:4@2..4");
    // In a cache of 12 both buffers lie side by side, until something is reserved.
    place.good("plan example.json --capacity UB=12 --out wide");
    let ran = place.run("check example.json --plan wide --capacity UB=12 --reserve UB:1@5..");
    assert_eq!(ran.status, 1);
    insta::assert_snapshot!(ran.out, @r"
    not valid: example with the plan wide/example_plan.json on davinci with UB=12 less UB:1@5.., 1 violation
    rule 4 is broken once: each segment has exactly one address and lies inside its cache
      in UB, buffer 1 (offset 6, size 6, positions 2 to 7 exclusive, begun by node 2) lies in what is reserved: 11 bytes are usable at position 5
    Extra movement 0 bytes in 0 spills; other figures are for valid plans only.
    ");
    let out = place.good("plan example.json --capacity UB=12 --reserve UB:1@5..");
    assert!(out.contains("1 buffer out of the way of reservations"), "{out}");
    assert!(out.contains("Extra movement 6 bytes in 1 spill"), "{out}");
}

#[test]
fn a_reservation_that_cannot_be_is_refused_with_its_numbers() {
    let place = Place::with_example();
    insta::assert_snapshot!(place.refused("plan example.json --capacity UB=10 --reserve UB:5@3..3"), @r"
    error: example.json: no plan exists on davinci with UB=10 less UB:5@3..3
      node 3 (COPY_IN) needs 6 bytes of UB at once; reservations leave it 5 of 10 there
    help: reserve at most 4 bytes of UB while this node runs (--reserve)
    ");
    insta::assert_snapshot!(place.refused("plan example.json --reserve UB:5@3..99"), @r"
    error: example.json: no plan exists on davinci less UB:5@3..99
      UB:5@3..99 is reserved from or to node 99, which the graph does not have
    help: the ends of a reservation are ids of nodes of the graph, as its file has them
    ");
    insta::assert_snapshot!(place.refused("plan example.json --reserve UB:1@5..3"), @r"
    error: example.json: no plan exists on davinci less UB:1@5..3
      UB:1@5..3 cannot be reserved: in the schedule its last node stands at position 3, before its first, at position 5
    help: the ends stand as in the schedule once it is normalised (--schedule, --order, --normalize): give UB:1@3..5 if that is meant
    ");
    let unused = place.refused("plan example.json --reserve L1:5@98..3");
    assert!(unused.contains("L1:5@98..3 is reserved from or to node 98, which the graph does not have"), "{unused}");
    let more = place.refused("plan example.json --reserve UB:2K");
    assert!(more.contains("UB:2048 reserves more than the 1024 bytes of its cache"), "{more}");
    for wrong in ["UB", "UB:x", "UB:1@2..x", ":1"] {
        assert_eq!(place.run(&format!("plan example.json --reserve {wrong}")).status, 2, "{wrong}");
    }
    for command in ["optimize example.json --evaluations 1", "partition example.json"] {
        let message = place.refused(&format!("{command} --reserve UB:1"));
        assert!(message.contains("reservation"), "{message}");
    }
}

#[test]
fn hardware_files_and_experiments_reserve_too() {
    let place = Place::with_example();
    place.put("ten.toml", "[caches.UB]\ncapacity = 12\n[[reservations]]\ncache = \"UB\"\nbytes = 1\nfrom = 5\n");
    let planned = json(&place.good("plan example.json --hardware ten.toml --json"));
    assert_eq!(planned["extra_movement"], 6);
    let study = |reserve: &str| {
        let text = format!(
            "name = \"e\"\nreserve = {reserve}\n[axes]\ngraphs = \"example.json\"\nheuristics = \"belady\"\n\
             [capacities]\nUB = 12\n"
        );
        place.put("e.toml", text);
        place.run("sweep e.toml --out rows --overwrite --jobs 1")
    };
    for (reserve, moved) in [("\"UB:1@5..\"", "6"), ("[\"UB:1\", \"UB:1@2..3\"]", "12")] {
        assert_eq!(study(reserve).status, 0, "{reserve}");
        let rows = place.text("rows/runs.csv");
        let mut lines = rows.lines();
        let column = lines.next().unwrap().split(',').position(|name| name == "extra_movement").unwrap();
        // Texts with commas in them stand in front and are quoted.
        let line = lines.next().unwrap().replace("\"affine(2,150)\"", "").replace("\"single,multi,postpone\"", "");
        assert_eq!(line.split(',').nth(column), Some(moved), "{reserve}: {line}");
    }
    for (reserve, message) in [
        ("\"UB\"", "line 2, column 11: `UB`: expected CACHE:BYTES@FROM..TO"),
        ("\"XX:1\"", "there is no cache XX"),
        ("\"UB:13\"", "UB:13 reserves more than the 12 bytes of its cache"),
        ("\"UB:1@99..\"", "node 99, which the graph does not have"),
    ] {
        let ran = study(reserve);
        assert!(ran.status == 2 && ran.err.contains(message), "{reserve}: {}", ran.err);
    }
}

#[test]
fn a_total_is_split_for_least_movement() {
    let place = Place::new();
    let graph = shipped("flash-attention-2x4.json");
    let line = format!("partition {} --heuristic belady --granularity 32", graph.display());
    let found = json(&place.good(&format!("{line} --json --csv curves.csv --figure curves")));
    let number = |value: &Value| value.as_u64().unwrap();
    let caches = found["caches"].as_array().unwrap();
    assert!(caches.len() >= 4);
    // Caches are independent, and the plan of the whole split says so.
    let moved: u64 = caches.iter().map(|c| number(&c["movement"])).sum();
    assert_eq!(moved, number(&found["split"]["movement"]));
    let before: u64 = caches.iter().map(|c| number(&c["default_movement"])).sum();
    assert_eq!(before, number(&found["default"]["movement"]));
    assert!(moved < before, "{moved} {before}");
    let used: u64 = caches.iter().map(|c| number(&c["capacity"])).sum();
    assert_eq!(used + number(&found["unused"]), number(&found["total"]));
    assert!(caches.iter().all(|c| c["capacity"].as_u64() >= c["smallest"].as_u64()));
    // The split is what plan --capacity makes of it.
    let capacities: Vec<_> =
        caches.iter().map(|c| format!("--capacity {}={}", c["cache"].as_str().unwrap(), c["capacity"])).collect();
    let plan = format!("plan {} --heuristic belady {} --json", graph.display(), capacities.join(" "));
    assert_eq!(json(&place.good(&plan))["extra_movement"], found["split"]["movement"]);
    let curves = place.text("curves.csv");
    assert!(curves.starts_with("cache,capacity,extra_movement\n"));
    let points: usize = found["curves"].as_array().unwrap().iter().map(|c| c["points"].as_array().unwrap().len()).sum();
    assert_eq!(curves.lines().count(), points + 1);
    assert!(place.text("curves.svg").contains("</svg>") && place.path("curves.png").exists());
    let table = place.good(&format!("{line} --caches L1,UB"));
    assert!(table.contains("of L1, UB in multiples of 32") && table.contains("A plan with the split moves"), "{table}");
}

#[test]
fn a_total_that_cannot_be_split_is_refused() {
    let place = Place::with_example();
    insta::assert_snapshot!(place.refused("partition example.json --total 5"), @r"
    error: the caches need 6 bytes at least, for the operands of single nodes, and 5 are to be split
    help: give a larger --total; `spillbench inspect` lists what nodes need
    ");
    assert!(place.refused("partition example.json --total 1G --granularity 1").contains("a larger --granularity"));
    assert!(place.refused("partition example.json --caches L1").contains("known: UB"));
    let exact = json(&place.good("partition example.json --total 12 --json"));
    assert_eq!((&exact["caches"][0]["capacity"], &exact["split"]["movement"]), (&12.into(), &0.into()));
}

#[test]
fn a_byte_of_each_cache_has_a_price() {
    let place = Place::with_example();
    // Two buffers of 6 in 10 bytes: two of the twelve are too many at two steps, and each is backed.
    insta::assert_snapshot!(place.good("sensitivity example.json --capacity UB=10 --csv prices.csv"), @r"
    example on davinci with UB=10: life-size, bound of cover op-order, a step of 1 byte

      cache  capacity  bound  price  more saves  less costs  moved  with more  with less
      UB           10      4      2           2           2     12         12         12

    The plan moves 12 bytes; no plan covered moves less than 4.
    prices.csv
    ");
    assert_eq!(
        place.text("prices.csv"),
        "cache,capacity,step,bound,price,bound_saved_by_more,bound_cost_of_less,movement,movement_with_more,\
         movement_with_less\nUB,10,1,4,2,2,2,12,12,12\n"
    );
    let found = json(&place.good("sensitivity example.json --capacity UB=10 --step 5 --cover schedule --json"));
    let ub = &found["caches"][0];
    assert_eq!((&ub["movement_with_more"], &ub["movement_with_less"]), (&0.into(), &Value::Null));
    assert_eq!(ub["bound_cost_of_less"], Value::Null, "a buffer needs 6 bytes");
    let price = ub["price"].as_u64().unwrap();
    assert!(ub["bound_saved_by_more"].as_u64().unwrap() <= 5 * price);
    assert!(place.refused("sensitivity example.json --cover every-order").contains("op-order"));
}
